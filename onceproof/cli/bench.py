"""The command `onceproof bench`: measure verdicts, or the request proxy."""

import argparse
from pathlib import Path
from typing import Any

from onceproof.cli import commands, values
from onceproof.harness.base.progress import Progress


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    bench = subcommands.add_parser("bench", help="measure verdicts, or the request proxy")
    bench.add_argument("what", choices=["verify", "wire"])
    bench.add_argument(
        "--records", type=values.records, default=1_000_000, metavar="N", help="number of inputs (default: 1_000_000)"
    )
    bench.add_argument(
        "--sizes",
        type=values.sizes,
        default=[100, 1000],
        metavar="B,B",
        help="record sizes in bytes (default: 100,1000)",
    )
    bench.add_argument(
        "--rounds", type=values.positive, default=3, metavar="N", help="measurements of each reader (default: 3)"
    )
    bench.add_argument(
        "--runs", type=Path, default=Path("runs/bench"), help="parent of the runs' folders (default: runs/bench)"
    )
    bench.add_argument("--quiet", action="store_true", help="print the table only")
    bench.add_argument("--spark-master", default="local[2]", help=argparse.SUPPRESS)
    bench.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Execute a benchmark of the verdict or of the request proxy, and print its tables."""
    from onceproof.bench import verify, wire
    from onceproof.suite import preflight

    preflight.writable(options.runs)
    preflight.machine(options.spark_master)
    if options.what == "wire":
        with Progress(quiet=options.quiet) as progress:
            rates = wire.wire(
                records=options.records,
                sizes=options.sizes,
                rounds=options.rounds,
                folder=options.runs,
                progress=progress,
            )
        commands.say(wire.table(rates))
        held = all(wire.ratio(turns) >= wire.AT_LEAST for turns in rates.values())
        return commands.AS_EXPECTED if held else commands.NOT_AS_EXPECTED
    with Progress(quiet=options.quiet) as progress:
        found = verify.verify(
            records=options.records,
            sizes=options.sizes,
            rounds=options.rounds,
            folder=options.runs,
            progress=progress,
            master=options.spark_master,
        )
    commands.say(verify.table(found))
    return commands.AS_EXPECTED if all(each.held for each in verify.targets(found)) else commands.NOT_AS_EXPECTED
