"""The commands `onceproof list` and `onceproof runs`: what there is, and what has been run.

    onceproof list [WORD] [--json]     scenarios, workloads, faults, checks and systems
    onceproof runs [--json]            the runs of a folder with their verdicts, the newest last

On a terminal they are tables. Elsewhere each entry is a line that is never cut, with tabs between its columns.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from onceproof.cli import terminal
from onceproof.harness.base.errors import BadInput

Row = Mapping[str, str]


def add(subcommands: Any) -> None:
    """Add both commands to the parser of the command line."""
    listing = subcommands.add_parser("list", help="list scenarios, workloads, faults, checks and systems")
    listing.add_argument("word", nargs="?", default="", metavar="WORD", help="list only entries that contain this word")
    listing.add_argument("--json", action="store_true", help="print the entries as JSON")
    listing.add_argument("--page", type=Path, metavar="FILE", help="write the catalogue to this Markdown file instead")
    listing.add_argument(
        "--runs", type=Path, metavar="FOLDER", help="with --page: include the times of the runs in this folder"
    )
    listing.set_defaults(command=list_all)
    runs = subcommands.add_parser("runs", help="list the runs of a folder with their verdicts")
    runs.add_argument("--runs", type=Path, default=Path("runs"), help="the folder (default: runs)")
    runs.add_argument("--json", action="store_true", help="print the runs as JSON")
    runs.set_defaults(command=list_runs)


def list_all(options: argparse.Namespace) -> int:
    """Print what can be run, or write the catalogue's page."""
    from onceproof.suite import catalogue, preflight

    if options.page:
        preflight.writable_file(options.page)
        measured = catalogue.measured(options.runs) if options.runs else catalogue.Measured()
        options.page.write_text(catalogue.page(measured), encoding="utf-8")
        return 0
    word = options.word.lower()
    found = [each for each in _entries() if any(word in text.lower() for text in each.values())]
    if not found:
        raise BadInput(f"list {options.word!r:.60}: nothing has this word; `onceproof list` shows everything")
    _print(found, ("kind", "name", "pipeline", "faults", "expected", "about"), as_json=options.json)
    return 0


def _entries() -> Iterable[Row]:
    """Yield a row for each scenario, workload, fault, check and system."""
    from onceproof.harness.model import registry
    from onceproof.suite import catalogue

    for each in catalogue.entries():
        name = f"{each.folder}/{each.name}".removeprefix("./")
        told = {"pipeline": each.pipeline, "faults": each.faults, "expected": each.expected, "about": each.about}
        yield {"kind": "scenario", "name": name, **told}
    for name in registry.names("workload"):
        yield {"kind": "workload", "name": name, "about": registry.workload(name).about}
    for name in registry.names("fault"):
        yield {"kind": "fault", "name": name, "about": registry.fault(name).about}
    for name in registry.names("check"):
        yield {"kind": "check", "name": name, "about": registry.get("check", name).claim}
    for name in registry.names("system"):
        yield {"kind": "system", "name": name, "about": registry.system(name).about}


def list_runs(options: argparse.Namespace) -> int:
    """Print the runs of a folder, and of the folders of batches in it."""
    from onceproof.report import archive

    if not options.runs.is_dir():
        raise BadInput(f"--runs {options.runs}: no such folder; `onceproof run` makes it")
    found = sorted(archive.runs(options.runs), key=lambda each: each.began)
    rows = [
        {
            "name": each.name,
            "seed": each.seed,
            "began": each.began,
            "folder": str(each.folder),
            "verdict": each.headline,
        }
        for each in found
    ]
    _print(rows, ("began", "name", "seed", "verdict", "folder"), as_json=options.json)
    return 0


def _print(rows: Sequence[Row], columns: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps([dict(each) for each in rows], indent=1) + "\n")
    elif sys.stdout.isatty():
        shown = [name for name in columns if any(each.get(name) for each in rows)]
        table = Table(*shown, box=None)
        for each in rows:
            table.add_row(*(escape(each.get(name, "")) for name in shown))
        terminal.console().print(table)
    else:
        for each in rows:
            sys.stdout.write("\t".join(" ".join(each.get(name, "").split()) for name in columns) + "\n")
