"""The parser of the command line: its commands, their options, and the values that these take."""

import argparse
import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from onceproof.cli import (
    analysis,
    app,
    audit,
    battery,
    bench,
    check,
    commands,
    completion,
    init,
    lint,
    listing,
    matrix,
    run,
    serve,
    shrink,
    soak,
    spark,
    trace,
    verify,
)
from onceproof.cli.commands import BAD_INPUT
from onceproof.harness.artifacts.clients import DEFAULT_KAFKA
from onceproof.harness.base.errors import BadInput, suggestion

_DIGITS_MAX = 30
_STATUSES = (
    "Exit status: 0 as expected, 1 not as expected, 2 bad input, 3 the harness failed, 130 interrupted by Ctrl-C "
    "(143 by SIGTERM, 129 by SIGHUP)."
)


class _Parser(argparse.ArgumentParser):
    """Refuses bad options in one line, as all bad input is refused."""

    def error(self, message: str) -> NoReturn:
        """Print the line and exit with status 2."""
        self.exit(BAD_INPUT, f"onceproof: {BadInput(message)}; see `{self.prog} --help`\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is none of the choices, such as an unknown command, and suggest one that is like it."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            alike = suggestion(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{error.message}{alike}") from None


def parser() -> argparse.ArgumentParser:
    """The parser of the command line, with one subparser for each command."""
    parser = _Parser(prog="onceproof", description="Prove exactly-once on real Kafka clusters.", epilog=_STATUSES)
    parser.add_argument(
        "-v", "--version", action="version", version=f"onceproof {importlib.metadata.version('onceproof')}"
    )
    subcommands = parser.add_subparsers(required=True, metavar="COMMAND")

    run.add(subcommands)
    check.add(subcommands)
    matrix.add(subcommands)
    soak.add(subcommands)
    bench.add(subcommands)
    trace.add(subcommands)
    shrink.add(subcommands)
    serve.add(subcommands)
    analysis.add(subcommands)
    spark.add(subcommands)
    verify.add(subcommands)
    report = subcommands.add_parser("report", help="write a run's report again")
    report.add_argument("run", type=Path, help="a run's folder")
    report.set_defaults(command=commands.report)
    app.add(subcommands)
    lint.add(subcommands)
    battery.add(subcommands)
    init.add(subcommands)
    audit.add(subcommands)
    images = subcommands.add_parser("images", help="build the images of a Kafka release")
    images.add_argument("version", nargs="?", default=DEFAULT_KAFKA)
    images.set_defaults(command=commands.images)
    listing.add(subcommands)
    setup = subcommands.add_parser("setup", help="install what a run needs")
    setup.add_argument(
        "--dry-run", action="store_true", help="say what is there and what would be done; change nothing"
    )
    setup.add_argument(
        "--no-install", action="store_true", help="say what is missing, with exit status 2; change nothing"
    )
    setup.set_defaults(command=commands.setup)
    doctor = subcommands.add_parser("doctor", help="say what is missing and how to get it")
    doctor.set_defaults(command=commands.doctor)
    clean = subcommands.add_parser("clean", help="remove what interrupted or kept runs left behind")
    clean.add_argument(
        "--all", action="store_true", help="also remove images, the cache, and what `onceproof setup` installed"
    )
    clean.add_argument("--dry-run", action="store_true", help="say what would be removed; change nothing")
    clean.set_defaults(command=commands.clean)
    completion.add(subcommands, parser)
    for each in subcommands.choices.values():
        each.set_defaults(parser=each)  # which knows the options of the command
    return parser


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command. Raises SystemExit after `--help` and for options that are refused."""
    options, unknown = parser().parse_known_args(arguments)
    if unknown:
        known = [name for action in options.parser._actions for name in action.option_strings]
        wrong = next((each.partition("=")[0] for each in unknown if each.startswith("-")), "")
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}{suggestion(wrong, known)}")
    return options
