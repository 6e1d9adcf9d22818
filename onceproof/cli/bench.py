"""The command `onceproof bench`: measure verdicts, the request proxy, copies, or what transactions cost."""

import argparse
from pathlib import Path
from typing import Any

from onceproof.cli import commands, values
from onceproof.harness.base.errors import BadInput
from onceproof.harness.base.progress import Progress

_CLAIMS = ["throughput", "cost", "isolation", "scope"]
_READERS = ["kafka", "source", "full", "ledger", "plain"]
_CODECS = ["none", "gzip", "lz4", "snappy", "zstd"]


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    bench = subcommands.add_parser("bench", help="measure verdicts, the request proxy, copies, or transactions")
    bench.add_argument("what", choices=["verify", "wire", "transactions", "copy"])
    bench.add_argument(
        "--records",
        type=values.records,
        metavar="N",
        help="number of inputs, or records of the claim isolation "
        "(default: 1_000_000; copy: 200_000; isolation: 300_000)",
    )
    bench.add_argument(
        "--sizes",
        type=values.sizes,
        metavar="B,B",
        help="record sizes in bytes (default: 100,1000, and of transactions 10000 too)",
    )
    bench.add_argument(
        "--rounds",
        type=values.positive,
        metavar="N",
        help="measurements of each reader of verify, or pairs of copy and of each cell of transactions, at least 6 "
        "(default: 3; copy and transactions: 9)",
    )
    bench.add_argument(
        "--runs", type=Path, default=Path("runs/bench"), help="parent of the runs' folders (default: runs/bench)"
    )
    bench.add_argument(
        "--claims",
        type=values.listed(values.one_of(_CLAIMS)),
        default=_CLAIMS,
        metavar="C,C",
        help=f"what transactions measures: {', '.join(_CLAIMS)} (default: all)",
    )
    bench.add_argument(
        "--readers",
        type=values.listed(values.one_of(_READERS)),
        default=_READERS,
        metavar="R,R",
        help=f"what verify measures: {', '.join(_READERS)} (default: all)",
    )
    bench.add_argument(
        "--compression",
        choices=_CODECS,
        default="none",
        help="compression.type of the producers that fill the topics of verify (default: none)",
    )
    bench.add_argument("--quiet", action="store_true", help="print the table only")
    values.add_spark_master(bench)
    bench.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Execute a benchmark of the verdict or of the request proxy, and print its tables."""
    from onceproof.bench import verified, verify, wire
    from onceproof.suite import preflight

    preflight.writable(options.runs)
    preflight.machine(options.spark_master)
    if options.what == "transactions":
        return _transactions(options)
    if options.what == "copy":
        return _copy(options)
    options.records, options.sizes = options.records or 1_000_000, options.sizes or [100, 1000]
    options.rounds = options.rounds or 3
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
            readers=options.readers,
            compression=options.compression,
            folder=options.runs,
            progress=progress,
            master=options.spark_master,
        )
    commands.say(verified.table(found))
    return commands.AS_EXPECTED if all(each.held for each in verified.targets(found)) else commands.NOT_AS_EXPECTED


def _transactions(options: argparse.Namespace) -> int:
    """Measure what transactions cost; every cell that was measured is kept when a later one fails."""
    from onceproof.bench import claim_pages, claims

    _enough(options)
    given = {"records": options.records, "sizes": options.sizes, "pairs": options.rounds}
    sweep = claims.Sweep(**{name: value for name, value in given.items() if value is not None})
    cells, text = [], ""
    with Progress(quiet=options.quiet) as progress:
        for cell in claims.measure(sweep, options.claims, progress):
            cells.append(cell)
            text = claim_pages.write(cells, options.runs)
    commands.say(text)
    return commands.AS_EXPECTED


def _copy(options: argparse.Namespace) -> int:
    """Measure copies by several programs, and print their table."""
    from onceproof.bench import copies

    _enough(options)
    with Progress(quiet=options.quiet) as progress:
        found = copies.copy(
            records=options.records or 200_000,
            sizes=options.sizes or [100, 1000],
            rounds=options.rounds or 9,
            folder=options.runs,
            progress=progress,
        )
    commands.say(copies.table(found))
    return commands.AS_EXPECTED


def _enough(options: argparse.Namespace) -> None:
    """Raise BadInput unless there are enough rounds for an interval."""
    from onceproof.bench.paired import PAIRS_MIN

    if options.rounds is not None and options.rounds < PAIRS_MIN:
        raise BadInput(f"--rounds: {options.rounds}; allowed with {options.what}: at least {PAIRS_MIN}")
