"""The command `onceproof app check`: run an application without faults, and say how far its outputs can be judged.

    onceproof app check orders.toml

Exit status: 0 if the run is valid, 1 if not, 2 for bad input.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onceproof.cli import commands, once
from onceproof.harness.base.errors import BadInput

if TYPE_CHECKING:
    from onceproof.harness.record.results import Results

_MISSING = {
    0: 'for level 1, say in [outputs.TOPIC] which input an output comes from: input = "json: $.PATH", "key", …',
    1: 'for level 2, add a table [model] with what is right: sql = "SELECT number, … FROM inputs"',
}


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    app = subcommands.add_parser("app", help="say how far an application's outputs can be judged")
    what = app.add_subparsers(required=True, metavar="COMMAND")
    check = what.add_parser("check", help="run an application without faults, and say how far it can be judged")
    check.add_argument("scenario", type=Path, help="a TOML file with a table [app]")
    once.add_options(check, quiet="print the result only")
    check.set_defaults(command=command, parser=check)


def command(options: argparse.Namespace) -> int:
    """Run the application, print its level and what each class rests on, and return the exit status."""
    loaded = once.load(options)
    if loaded.app is None:
        raise BadInput(f"{options.scenario}: app: missing; allowed: a scenario with a table [app]")
    results, folder = once.once(options, loaded, command=f"onceproof app check {options.scenario}")
    _print(results)
    commands.say(f"verdict: {results.headline}; report: {folder / 'report.html'}")
    return commands.AS_EXPECTED if results.verdict == "valid" else commands.NOT_AS_EXPECTED


def _print(results: Results) -> None:
    if not results.classes:
        commands.say(f"the run was not judged: {'; '.join(reason.says for reason in results.reasons)}")
        return
    commands.say(f"level {results.level}")
    commands.table(("class", "how far it was judged"), sorted(results.classes.items()))
    if results.level in _MISSING:
        commands.say(_MISSING[results.level])
    for says in (*(each.says for each in results.findings), *(each.says for each in results.reasons)):
        commands.say(says)
