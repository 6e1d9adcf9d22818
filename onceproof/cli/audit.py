"""The command `onceproof audit`: judge transactions from logs alone.

    onceproof audit PATH…          copied log directories of the brokers of one cluster
    onceproof audit --run RUN      the logs of a run, without its history, ledger and manifest

Exit status: 0 if the logs are valid, 1 if they are not or if that is not known, 2 for bad input, 3 if Spark failed.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from onceproof.cli import machine, terminal, values
from onceproof.harness.base.errors import BadInput, HarnessError, in_a_line
from onceproof.harness.base.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from onceproof.verifiers.audit.audit import Audit

_SHOWN = 10


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    audit = subcommands.add_parser("audit", help="judge transactions from copied log directories, or from a run's logs")
    audit.add_argument(
        "paths", type=Path, nargs="*", metavar="PATH", help="a broker's log directory, or a folder of them"
    )
    audit.add_argument("--run", type=Path, metavar="RUN", help="a run's folder, of which only the logs are used")
    audit.add_argument(
        "--stopped", action="store_true", help="no broker of the cluster ran while any of the directories was copied"
    )
    machine.add_json(audit, "findings, reasons and transactional ids")
    values.add_spark_master(audit, "whose executors read the logs, at the same paths")
    audit.add_argument("--quiet", action="store_true", help="print the verdict only")
    audit.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Audit log directories or a run, print the result, and return the exit status."""
    from onceproof.report.documents import AuditDocument
    from onceproof.suite import preflight

    if bool(options.paths) == bool(options.run):
        raise BadInput("audit: expected either log directories or --run RUN")
    machine.check(options)
    preflight.machine(options.spark_master)
    with Progress(quiet=options.quiet or machine.alone(options)) as progress:
        done = _audit(options, progress)
    told = AuditDocument(verdict=done.verdict, **{each.name: getattr(done, each.name) for each in fields(done)})
    machine.write_json(options, asdict(told))
    if not machine.alone(options):
        _print(done, quiet=options.quiet)
    return 0 if done.verdict == "valid" else 1


def _audit(options: argparse.Namespace, progress: Progress) -> Audit:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from onceproof.verifiers.audit import audit, copies
    from onceproof.verifiers.evidence import executors, reading
    from onceproof.verifiers.evidence import master as masters
    from onceproof.verifiers.evidence.spark import killed_when_interrupted, session
    from onceproof.verifiers.evidence.time_limit import Watch, limit_s

    def start(*, records: int) -> SparkSession:
        spark = session(options.spark_master, records=records)
        if masters.elsewhere(options.spark_master):
            for path in options.paths or [options.run]:
                executors.check_reads(spark, path)
        return spark

    if options.run:
        read = copies.of_run(options.run, start)
    else:
        read = copies.of_directories(options.paths, start, stopped=options.stopped)
    spark, limit = read.batches.sparkSession, limit_s(0, read_bytes=read.size)
    try:
        with (
            Watch(spark, limit_s=limit, again=False) as watch,
            reading.told(spark, progress.far),
            killed_when_interrupted(),
        ):
            return watch.run("the audit", lambda: audit.audit(read))
    except (PySparkException, Py4JError) as error:
        raise HarnessError(f"audit: Spark could not read the logs: {in_a_line(error)}") from error


def _print(done: Audit, *, quiet: bool) -> None:
    console = terminal.console(soft_wrap=True)
    classes = ", ".join(sorted({each.cls for each in done.findings}))
    console.print(f"audit: {done.verdict}{': ' + classes if classes else ''}")
    if quiet:
        return
    console.print(", ".join(f"{count:,} {unit}" for unit, count in done.compared.items()))
    for finding in done.findings:
        console.print(escape(finding.line))
        for sample in finding.samples[:_SHOWN]:
            place = f"{sample['topic']}/{sample['partition']} offset {sample['offset']}"
            rest = {key: value for key, value in sample.items() if key not in ("topic", "partition", "offset")}
            console.print(escape(f"  {place}: " + ", ".join(f"{key} {value}" for key, value in rest.items())))
    for reason in done.reasons:
        console.print(escape(f"not known: {reason.says}"))
    if done.ids:
        console.print(_table(done.ids))


def _table(ids: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("transactional id", "producer ids", "epoch", "commits", "aborts", "state", "version"):
        table.add_column(name, overflow="fold")
    for each in ids:
        producers = ", ".join(map(str, each["producer_ids"]))
        told = (each[key] for key in ("epoch", "commits", "aborts", "state", "transaction_version"))
        table.add_row(escape(each["transactional_id"]), producers, *map(str, told))
    return table
