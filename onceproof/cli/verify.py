"""The command `onceproof verify`: judge a run's folder again, here or on storage that executors share."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from onceproof.cli import commands, machine, values
from onceproof.harness.base.errors import BadInput
from onceproof.harness.base.progress import Progress

_WRITTEN = ("results.json", "report.html", "manifest.json")


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    verify = subcommands.add_parser("verify", help="judge a run's folder again, without a cluster")
    verify.add_argument(
        "run", type=values.place, help="a run's folder, or the URI of one, such as s3a://bucket/runs/copy-1"
    )
    verify.add_argument("--spark-master", default="local[2]", help="Spark master that judges (default: local[2])")
    verify.add_argument(
        "--storage",
        type=values.uri,
        metavar="URI",
        help="copy the folder below this URI, where executors read it; without it, they read it at the same path",
    )
    machine.add_json(verify, "the run with its results")
    verify.add_argument(
        "--check",
        action="append",
        default=[],
        metavar="FILE.py:NAME",
        help="load this check and run it, too; no file that the run's folder names is loaded",
    )
    verify.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Judge a run's folder again, print the verdict, and write its report."""
    if isinstance(options.run, Path):
        commands.run_folder(options.run)
    elif options.storage:
        raise BadInput(f"--storage: not with {options.run}, which executors read where it is; allowed with a folder")
    from onceproof.report import report
    from onceproof.report.documents import JudgedRun
    from onceproof.suite import preflight

    machine.check(options)
    from onceproof.verifiers.verify import verify

    preflight.machine(options.spark_master)
    with Progress(quiet=machine.alone(options)) as progress, _at_hand(options, progress) as (folder, at):
        try:
            results = verify(folder, master=options.spark_master, checks=options.check, say=progress.far, at=at)
        except OSError as error:  # such as a full disk: what was found is not recorded, so it is no verdict
            commands.say(commands.line(f"{folder.absolute().name}: unknown: harness-error: {error}"))
            return commands.FAILED
        told = problem = ""
        try:
            told = str(report.write(folder))
        except Exception as error:  # the verdict does not depend on the report
            problem = commands.line(f"the report was not written: {type(error).__name__}: {error}")
    if told and not isinstance(options.run, Path):
        told = f"{at}/{Path(told).name}"
    if not machine.alone(options):
        commands.print_results(results)
        commands.say(problem or f"report: {told}")
    machine.write_json(options, asdict(JudgedRun(folder=str(options.run), report=told, results=results)))
    return commands.status(results)


@contextmanager
def _at_hand(options: argparse.Namespace, progress: Progress) -> Iterator[tuple[Path, str | None]]:
    """Yield the run folder on this machine, and the URI of its copy, if executors read one.

    A folder that is named by its URI is on this machine during the block only; results and report are copied back.
    """
    here = isinstance(options.run, Path)
    if here and not options.storage:
        yield options.run, None
        return
    from onceproof.verifiers.evidence import spark, spark_jvm
    from onceproof.verifiers.evidence.storage import Storage

    name = options.run.absolute().name if here else options.run.rstrip("/").rpartition("/")[2]
    storage = Storage(spark.session(options.spark_master), f"{options.storage}/{name}" if here else options.run)
    if here:
        progress.say(f"copying the run folder to {storage.uri}")
        storage.put(options.run)
        yield options.run, storage.uri
        storage.put_files(options.run, _present(options.run))
        return
    progress.say(f"copying {storage.uri} to this machine")
    with tempfile.TemporaryDirectory(dir=spark_jvm.folder()) as parent:
        folder = Path(parent, name)
        storage.fetch(folder)
        yield folder, storage.uri
        storage.put_files(folder, _present(folder))


def _present(folder: Path) -> list[str]:
    return [name for name in _WRITTEN if (folder / name).exists()]
