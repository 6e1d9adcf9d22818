"""The command `onceproof trace`: the story of one record, or of one transactional id."""

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onceproof.cli import commands, values

if TYPE_CHECKING:
    from onceproof.report.trace import Story

_PLACE = re.compile(r"([a-z][a-z-]{0,79})/([0-9]{1,6}):([0-9]{1,18})")


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    trace = subcommands.add_parser("trace", help="tell the story of one record from a run's folder")
    trace.add_argument("run", type=Path, help="a run's folder")
    what = trace.add_mutually_exclusive_group(required=True)
    what.add_argument("--input", type=values.number, metavar="N", help="the number of an input")
    what.add_argument("--output", type=_place, metavar="TOPIC/P:OFFSET", help="a place in an output topic")
    what.add_argument("--key", metavar="KEY", help="a key, as text: the first inputs with it")
    what.add_argument("--transactional-id", metavar="ID", help="a transactional id, as the cluster knows it")
    trace.add_argument("--json", action="store_true", help="print JSON: a list of stories with their steps")
    trace.set_defaults(command=command)


def _place(text: str) -> tuple[str, int, int]:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r:.80}: allowed: a place such as output/3:19")
    return found[1], int(found[2]), int(found[3])


def command(options: argparse.Namespace) -> int:
    """Print the stories that were asked for."""
    from onceproof.report import trace
    from onceproof.report.folder import Folder

    commands.run_folder(options.run)
    folder = Folder(options.run)
    if options.input is not None:
        stories = [trace.of_input(folder, options.input)]
    elif options.output is not None:
        stories = [trace.of_output(folder, *options.output)]
    elif options.key is not None:
        stories = trace.of_key(folder, options.key.encode())
    else:
        stories = [trace.of_transactional_id(folder, options.transactional_id)]
    commands.say(json.dumps([asdict(each) for each in stories], indent=1) if options.json else _text(stories))
    return commands.AS_EXPECTED


def _text(stories: Sequence["Story"]) -> str:
    lines: list[str] = []
    for story in stories:
        lines.append(story.title)
        for step in story.steps:
            at = "" if step.at is None else f"{step.at:.3f} s"
            lines.append(f"  {step.witness:<12} {at:>10}  {step.says}")
    return "\n".join(lines)
