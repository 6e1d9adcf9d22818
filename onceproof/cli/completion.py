"""The command `onceproof completion SHELL`: print a script with which a shell completes commands, options and names.

    eval "$(onceproof completion bash)"         in ~/.bashrc
    onceproof completion fish >~/.config/fish/completions/onceproof.fish

shtab makes the script from the parser. The names of the scenarios that come with onceproof are part of the script, so
that completing one does not start Python.
"""

import argparse
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any

from onceproof.harness.base import paths

_SHELLS = ("bash", "zsh", "fish")
_SCENARIOS = ("scenario", "scenarios")
_FOLDERS = ("run", "runs", "resume", "paths")
# The functions print names of scenarios, and files. `_file` tells shtab that bash may quote what they print.
_FUNCTIONS = {
    "bash": """
_onceproof_scenario_file() {
  compgen -W "NAMES" -- "$1"
  compgen -f -X '!*.toml' -- "$1"
  compgen -d -- "$1"
}""",
    "zsh": """
_onceproof_scenario_file() {
  _alternative 'scenarios:scenario:(NAMES)' 'files:file:_files -g "*.toml"'
}""",
    "fish": """
function _onceproof_scenario_file
  printf '%s\\n' NAMES
  __fish_complete_path (commandline -ct)
end""",
}


def add(subcommands: Any, parser: argparse.ArgumentParser) -> None:
    """Add the command to the parser of the command line, from which it makes the script."""
    completion = subcommands.add_parser("completion", help="print a script that completes commands in a shell")
    completion.add_argument("shell", choices=_SHELLS, help="the shell: bash, zsh or fish")
    completion.set_defaults(command=partial(run, parser))


def run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Print the script for a shell."""
    sys.stdout.write(script(parser, options.shell) + "\n")
    return 0


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script with which a shell completes the arguments of a parser with subparsers."""
    import shtab

    names = shlex.join(sorted({path.stem for path in paths.scenarios_dir().rglob("*.toml")}))
    functions = {each: text.replace("NAMES", names) for each, text in _FUNCTIONS.items()}
    calls = dict.fromkeys(_SHELLS, "_onceproof_scenario_file") | {"fish": "(_onceproof_scenario_file)"}
    [commands] = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    for action in [each for command in commands.choices.values() for each in command._actions]:
        if action.dest in _SCENARIOS:
            action.complete = {**calls, "preamble": functions}
        elif action.dest in _FOLDERS:
            action.complete = shtab.DIRECTORY
        elif action.type is Path:
            action.complete = shtab.FILE
    return shtab.complete(parser, shell)
