"""The command `onceproof analysis`: write up the runs of a folder."""

import argparse
from pathlib import Path
from typing import Any

from onceproof.cli import commands
from onceproof.harness.base.errors import BadInput


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    analysis = subcommands.add_parser("analysis", help="write up the runs of a battery, a matrix or a soak")
    analysis.add_argument("folder", type=Path, help="the folder of the runs")
    analysis.add_argument("--title", default="", help="the title (default: the folder's name)")
    analysis.add_argument(
        "--output", type=Path, metavar="FOLDER", help="write analysis.md and analysis.html there (default: the folder)"
    )
    analysis.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Write the analysis of the runs in a folder, and print its path."""
    from onceproof.suite import analysis, preflight

    if not options.folder.is_dir():
        raise BadInput(f"{options.folder}: no such folder; `onceproof matrix` makes one")
    made = analysis.of(options.folder, options.title)
    commands.say(str(analysis.write(made, preflight.writable(options.output or options.folder))))
    return commands.AS_EXPECTED
