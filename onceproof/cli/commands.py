"""Commands of the command line that take a run's folder or the machine, and what all commands print.

Each command takes the parsed options and returns the exit status.

Modules that need a Docker engine, Spark or a JVM are imported when a command needs them, so that `--help` and errors
in the input are answered immediately.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from onceproof.cli import terminal
from onceproof.harness.base import paths
from onceproof.harness.base.errors import BadInput
from onceproof.harness.base.text import shown
from onceproof.harness.record.results import Results

AS_EXPECTED, NOT_AS_EXPECTED, BAD_INPUT, FAILED = 0, 1, 2, 3


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table with the heads of its columns."""
    table = Table(*heads, box=None)
    for row in rows:
        table.add_row(*(escape(shown(each)) for each in row))
    terminal.console().print(table)


def report(options: argparse.Namespace) -> int:
    """Write the report of a run's folder again, and print its path."""
    run_folder(options.run)
    from onceproof.report import report

    say(str(report.write(options.run)))
    return AS_EXPECTED


def images(options: argparse.Namespace) -> int:
    """Build the images for a Kafka version, and print their names."""
    from onceproof.harness.artifacts import images

    paths.made(paths.home())
    say(f"{images.tag_for_hand(options.version)}\n{images.TOXIPROXY_IMAGE}\n{images.wire()}")
    return AS_EXPECTED


def doctor(_options: argparse.Namespace) -> int:
    """Print what this machine needs, what is missing, and how to get it."""
    from onceproof.cli import doctor

    missing = 0
    for check in doctor.checks():
        say(f"{'ok     ' if check.ok else 'MISSING'}  {check.what}" + ("" if check.ok else f": {check.how}"))
        missing += not check.ok
    return NOT_AS_EXPECTED if missing else AS_EXPECTED


def setup(options: argparse.Namespace) -> int:
    """Install what is missing on this machine, or print what would be installed or what is missing."""
    from onceproof.cli import setup

    status = setup.setup(dry_run=options.dry_run, no_install=options.no_install)
    if status == AS_EXPECTED and not options.dry_run:
        say("setup: everything that a run needs is there")
    return status


def clean(options: argparse.Namespace) -> int:
    """Remove what killed or kept runs left on this machine, with `--all` everything that onceproof put there; print it.

    With `--dry-run`, only print what would be removed.
    """
    from onceproof.cli import uninstall
    from onceproof.harness.cluster import pool

    if options.all and options.dry_run:
        uninstall.remove(say, dry_run=True)
        return AS_EXPECTED
    if not options.dry_run:
        paths.made(paths.clusters_dir())
    removed = pool.clean(say, dry_run=options.dry_run)
    if options.all:
        if used := pool.in_use():
            raise BadInput(f"clean --all: {', '.join(used)}: in use by a running process, so nothing else is removed")
        uninstall.remove(say, dry_run=False)
        return AS_EXPECTED
    if not removed:
        say("there is nothing to remove" if options.dry_run else "there was nothing to remove")
    elif not options.dry_run:
        say(f"{removed} files, folders, processes, containers and networks removed")
    return AS_EXPECTED


def run_folder(folder: Path) -> None:
    """Raise BadInput when there is no such folder."""
    try:
        there = folder.is_dir()
    except (OSError, ValueError) as error:  # too long, or with a null character
        says = getattr(error, "strerror", None) or error
        raise BadInput(f"{str(folder)[:80]}: no such folder: {says}") from None
    if not there:
        raise BadInput(f"{folder}: no such folder; a run's folder looks like runs/<name>-<seed>-<time>")


def print_results(results: Results) -> None:
    """Print a verdict with its findings, its reasons and the counts."""
    colours = {"valid": "green", "unknown": "yellow", "invalid": "red"}
    console = terminal.console()
    headline, expectation = (
        escape(shown(each)) for each in (f"{results.name}: {results.headline}", results.expectation)
    )
    said = f"[bold {colours[results.verdict]}]{headline}[/]  ({expectation})"
    console.print(said, soft_wrap=True)
    for finding in results.findings:
        console.print(shown(f"  {finding.line}"), markup=False, soft_wrap=True)
        for sample in list(finding.samples)[:3]:
            where = f"{sample['topic']}/{sample['partition']} offset {sample['offset']}"
            number = f", input number {sample['number']}" if "number" in sample else ""
            console.print(f"    {where}{number}", markup=False, soft_wrap=True)
    for reason in results.reasons:
        console.print(shown(f"  {reason.kind}: {reason.says}"), markup=False, soft_wrap=True)
    for lint in results.lints or ():
        console.print(shown(f"  lint {lint.name} × {lint.count:,}: {lint.says}"), markup=False, soft_wrap=True)
    counts = ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in results.counts.items())
    console.print(counts, markup=False, soft_wrap=True)


def status(results: Results) -> int:
    """Return the exit status for the results of a run."""
    if any(reason.kind == "harness-error" for reason in results.reasons):
        return FAILED
    return AS_EXPECTED if results.as_expected else NOT_AS_EXPECTED


def line(text: str) -> str:
    """Return a text of others in one line."""
    return " ".join(shown(text).split())


def say(text: str) -> None:
    """Print a line or several, of others too, without markup."""
    terminal.console().print(shown(text), markup=False, soft_wrap=True)
