"""The command `onceproof matrix`: run scenarios × Kafka versions × clients × features, and print one table."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onceproof.cli import commands, machine, scenarios, values
from onceproof.harness.artifacts import jars
from onceproof.harness.base.progress import Progress
from onceproof.harness.model import scenario

if TYPE_CHECKING:
    from onceproof.harness.record.results import Results
    from onceproof.suite.matrix import Cell


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    matrix = subcommands.add_parser("matrix", help="run scenarios × Kafka versions × clients × features")
    matrix.add_argument(
        "scenarios", type=Path, nargs="+", help="TOML files, folders of them, or names that `onceproof list` shows"
    )
    matrix.add_argument(
        "--kafka",
        type=values.listed(str),
        default=[],
        metavar="V,V",
        help="releases such as 4.1.2, 4.1.x, latest or latest-1",
    )
    matrix.add_argument(
        "--client", type=values.listed(values.client), default=[], metavar="C,C", help="librdkafka, java==3.9.2, …"
    )
    matrix.add_argument(
        "--feature",
        type=values.levels,
        action=values.Features,
        default={},
        metavar="NAME=L,L",
        help="levels of a broker feature: transaction.version=1,2",
    )
    matrix.add_argument(
        "--group-protocol", type=values.listed(values.protocol), default=[], metavar="P,P", help="classic, consumer"
    )
    matrix.add_argument("--count", type=values.positive, default=1, metavar="N", help="run each cell N times")
    matrix.add_argument(
        "--seed",
        type=values.seed,
        metavar="N",
        help="seed of the first run, incremented for each later run (default: random)",
    )
    machine.add_options(matrix, "the cells")
    matrix.add_argument(
        "--against", type=Path, metavar="FILE", help="compare with an earlier --json; exit status 1 if a cell differs"
    )
    matrix.add_argument(
        "--resume",
        type=Path,
        metavar="FOLDER",
        help="run only the cells without a result in an earlier matrix's folder",
    )
    matrix.add_argument("--dry-run", action="store_true", help="print the cells and run none")
    matrix.add_argument("--runs", type=Path, default=Path("runs"), help="parent of the matrix's folder (default: runs)")
    matrix.add_argument("--quiet", action="store_true", help="print the table only")
    values.add_spark_master(matrix)
    matrix.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run a matrix of scenarios, versions, clients and features, and print and write the table of its results.

    With `--against`, the exit status says whether the result of a cell has changed since an earlier matrix.
    """
    from onceproof.suite import batch, matrix, preflight

    loaded = [scenario.load(file) for path in options.scenarios for file in scenarios.find(path)]
    axes = matrix.Axes(
        kafka=[jars.release(each) for each in options.kafka],
        clients=options.client,
        features=options.feature,
        protocols=options.group_protocol,
        times=options.count,
    )
    wanted = list(matrix.cells(loaded, axes))
    if options.resume:
        wanted = matrix.resumed(wanted, matrix.read_json(options.resume / "matrix.json"))
    before = matrix.read_json(options.against) if options.against else None
    if options.dry_run:
        commands.table(matrix.COLUMNS, (matrix.columns(cell) for cell, _ in wanted))
        return commands.AS_EXPECTED
    preflight.writable(options.runs)
    machine.check(options)
    preflight.machine(options.spark_master)
    for cell, each in wanted:
        if not cell.result:
            preflight.check(each, each.name, options.spark_master)
    scenarios.prepare((cell.kafka, cell.client) for cell, _ in wanted if not cell.result)
    new = options.runs / datetime.now(UTC).strftime("matrix-%Y%m%dT%H%M%S")
    folder = preflight.writable(options.resume or new)
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    statuses = [commands.AS_EXPECTED]
    alone = machine.alone(options)
    say = (lambda _: None) if alone else commands.say

    def done(cell: Cell, results: Results) -> None:
        say("  ".join(matrix.columns(cell)))
        statuses.append(commands.status(results))

    with Progress(quiet=options.quiet or alone) as progress:
        how = batch.Options(
            folder=folder, progress=progress, command=scenarios.repeat_command, master=options.spark_master
        )
        found = matrix.run(wanted, seed, how, done)
    if not alone:
        commands.table(matrix.COLUMNS, (matrix.columns(cell) for cell in found))
    matrix.write(found, folder)
    machine.write_json(options, [asdict(cell) for cell in found])
    machine.write_summary(options, _summary(found))
    for bound in matrix.bounds(found):
        say(bound)
    say(f"matrix: {folder / 'matrix.html'}")
    if before is not None:
        changed = matrix.changes(before, found)
        say("\n".join(changed) if changed else f"no result has changed since {options.against}")
        if still := matrix.unexpected(found):
            say(still)
        statuses = (
            [commands.FAILED]
            if commands.FAILED in statuses
            else [commands.NOT_AS_EXPECTED if changed else commands.AS_EXPECTED]
        )
    return max(statuses)


def _summary(found: Sequence[Cell]) -> machine.Summary:
    from onceproof.suite import matrix

    ran = [cell for cell in found if cell.as_expected is not None]
    return machine.Summary(
        headline=f"matrix: {sum(bool(cell.as_expected) for cell in ran)} of {len(ran)} cells as expected",
        good=all(cell.as_expected for cell in ran),
        heads=matrix.COLUMNS,
        rows=[matrix.columns(cell) for cell in found],
    )
