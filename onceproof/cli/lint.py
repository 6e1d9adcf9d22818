"""The command `onceproof lint`: what is unsafe in what the clients of a pipeline ask the brokers for.

    onceproof lint SCENARIO          run its pipeline for some seconds without a fault, and look at the requests

Exit status: 0 if no request breaks a rule, 1 if one does or if the run failed, 2 for bad input.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onceproof.cli import commands, once

if TYPE_CHECKING:
    from onceproof.harness.record.results import Results


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    lint = subcommands.add_parser("lint", help="name what is unsafe in the requests of a pipeline, without a fault")
    lint.add_argument("scenario", type=Path, help="a TOML file, or a name that `onceproof list` shows")
    once.add_options(lint, quiet="print the lints only")
    lint.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run the pipeline of a scenario without its faults, print the lints, and return the exit status."""
    results, folder = once.once(options, once.load(options), command=f"onceproof lint {options.scenario}")
    _print(results, folder / "report.html")
    return 0 if results.lints is not None and not results.lints else 1


def _print(results: Results, report: Path) -> None:
    if results.lints is None:
        commands.say(f"the requests were not recorded: {'; '.join(reason.says for reason in results.reasons)}")
    elif not results.lints:
        commands.say("no lint: no request of the workers breaks a rule")
    else:
        rows = ((each.name, each.kip, f"{each.count:,}", each.says) for each in results.lints)
        commands.table(("lint", "source", "requests", "what can go wrong"), rows)
    commands.say(f"verdict: {results.headline}; report: {report}")
