"""The command `onceproof init`: an application, what onceproof needs to know of it, and a test, ready to run.

    onceproof init chaos          chaos/app.toml, chaos/copier.py and chaos/test_app.py

The application is a copy with confluent-kafka: replace it by your own. Files that are there are not overwritten.
"""

import argparse
from pathlib import Path
from typing import Any

from onceproof.cli import commands
from onceproof.harness.base import files, paths
from onceproof.harness.base.errors import BadInput

_FILES = ("app.toml", "copier.py", "test_app.py")


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    init = subcommands.add_parser("init", help="write an application, its description and a test, ready to run")
    init.add_argument("folder", type=Path, nargs="?", default=Path(), help="where to write them (default: here)")
    init.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Write the files and say what to do with them. Raises BadInput when one of them is there already."""
    for name in _FILES:
        if (options.folder / name).exists():
            raise BadInput(
                f"{options.folder / name}: it is there already; allowed: a folder without {', '.join(_FILES)}"
            )
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            files.write(options.folder / name, (paths.applications_dir() / "confluent-kafka" / name).read_text())
    except OSError as error:
        raise BadInput(f"{options.folder}: cannot be written: {error.strerror}") from None
    commands.say("".join(f"{options.folder / name}\n" for name in _FILES).rstrip())
    inside = "" if options.folder == Path() else f"cd {options.folder} && "
    commands.say(f"to run it: {inside}onceproof run app.toml; to test it: {inside}pytest -m chaos")
    return commands.AS_EXPECTED
