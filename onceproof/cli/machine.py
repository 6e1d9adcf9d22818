"""Options with which commands write their results for other programs: JSON, a summary in Markdown, and a badge."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onceproof.harness.base import files

STDOUT = Path("-")


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a summary and a badge say: a headline, whether it is good, and a table."""

    headline: str
    good: bool
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option `--json`; `what` names the document."""
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help=f"write {what} as JSON to this file; - prints it, and nothing else"
    )


def add_options(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--json`, `--summary` and `--badge`."""
    add_json(parser, what)
    parser.add_argument(
        "--summary",
        type=Path,
        metavar="FILE",
        help='append a summary in Markdown to this file, such as "$GITHUB_STEP_SUMMARY"',
    )
    parser.add_argument("--badge", type=Path, metavar="FILE", help="write a badge with the result as SVG")


def alone(options: argparse.Namespace) -> bool:
    """Return whether the command prints its JSON, and nothing else."""
    return bool(options.json == STDOUT)


def check(options: argparse.Namespace) -> None:
    """Raise BadInput when a file that is asked for cannot be written."""
    from onceproof.suite import preflight

    for path in (options.json, getattr(options, "summary", None), getattr(options, "badge", None)):
        if path is not None and path != STDOUT:
            preflight.writable_file(path)


def write_json(options: argparse.Namespace, document: Any) -> None:
    """Write the document of a command, if it was asked for."""
    if options.json is None:
        return
    text = json.dumps(document, indent=1) + "\n"
    if alone(options):
        sys.stdout.write(text)
    else:
        options.json.write_text(text, encoding="utf-8")  # it may be a device


def write_summary(options: argparse.Namespace, summary: Summary) -> None:
    """Write the summary and the badge, if they were asked for."""
    if options.summary is not None:
        with options.summary.open("a", encoding="utf-8") as file:
            file.write(markdown(summary))
    if options.badge is not None:
        from onceproof.report.badge import badge

        files.write(options.badge, badge("onceproof", summary.headline, good=summary.good))


def markdown(summary: Summary) -> str:
    """Return a summary in Markdown."""
    lines = [f"### onceproof: {_cell(summary.headline)}", ""]
    lines += [f"| {' | '.join(map(_cell, summary.heads))} |", "|" + "---|" * len(summary.heads)]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in summary.rows]
    return "\n".join(lines) + "\n\n"


def _cell(text: str) -> str:
    """Return a text that neither ends its cell nor is read as HTML."""
    plain = " ".join(text.split())
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
