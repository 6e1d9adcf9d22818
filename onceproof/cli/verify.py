"""The command `onceproof verify`: judge a run's folder again, here or on storage that executors share."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onceproof.cli import commands, machine, values
from onceproof.harness.base.errors import BadInput
from onceproof.harness.base.progress import Progress

if TYPE_CHECKING:
    from onceproof.verifiers.evidence.storage import Storage

_WRITTEN = ("results.json", "report.html", "manifest.json")


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    verify = subcommands.add_parser("verify", help="judge a run's folder again, without a cluster")
    verify.add_argument(
        "run", type=values.place, help="a run's folder, or the URI of one, such as s3a://bucket/runs/copy-1"
    )
    values.add_spark_master(verify, "that judges")
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
    from onceproof.suite import preflight

    machine.check(options)
    preflight.machine(options.spark_master)
    if isinstance(options.run, Path) and not options.storage:
        return _judge(options, options.run, None)
    from onceproof.verifiers.evidence.storage import Storage

    if not isinstance(options.run, Path):
        return _judge_stored(options, Storage(options.spark_master, options.run))
    folder = options.run.resolve()
    if not ((folder / "plan.json").is_file() and (folder / "tables").is_dir()):
        raise BadInput(f"{folder}: no plan.json or no tables/ in this folder; allowed: a run's folder with tables")
    storage = Storage(options.spark_master, f"{options.storage}/{folder.name}")
    with Progress(quiet=machine.alone(options)) as progress:
        progress.say(f"copying the run folder to {storage.uri}")
        storage.put(folder)
    status = _judge(options, folder, storage)
    storage.put_files(folder, _present(folder))
    return status


def _judge_stored(options: argparse.Namespace, storage: Storage) -> int:
    """Judge a run folder on storage; it is on this machine meanwhile, and results and report are copied back."""
    from onceproof.verifiers.evidence import spark_jvm

    with tempfile.TemporaryDirectory(dir=spark_jvm.folder(), ignore_cleanup_errors=True) as parent:
        folder = Path(parent, storage.uri.rpartition("/")[2])
        with Progress(quiet=machine.alone(options)) as progress:
            progress.say(f"copying {storage.uri} to this machine")
            storage.fetch(folder)
        status = _judge(options, folder, storage)
        storage.put_files(folder, _present(folder))
        return status


def _judge(options: argparse.Namespace, folder: Path, storage: Storage | None) -> int:
    """Judge a folder on this machine, write its report, and print the verdict; return the exit status."""
    from onceproof.report import report
    from onceproof.report.documents import JudgedRun
    from onceproof.verifiers.verify import verify

    told = problem = ""
    with Progress(quiet=machine.alone(options)) as progress:
        try:
            results = verify(folder, master=options.spark_master, checks=options.check, say=progress.far, at=storage)
        except OSError as error:  # such as a full disk: what was found is not recorded, so it is no verdict
            commands.say(commands.line(f"{folder.absolute().name}: unknown: harness-error: {error}"))
            return commands.FAILED
        try:
            told = str(report.write(folder))
        except Exception as error:  # the verdict does not depend on the report
            problem = commands.line(f"the report was not written: {type(error).__name__}: {error}")
    if told and storage is not None and not isinstance(options.run, Path):
        told = f"{storage.uri}/{Path(told).name}"
    if not machine.alone(options):
        commands.print_results(results)
        commands.say(problem or f"report: {told}")
    machine.write_json(options, asdict(JudgedRun(folder=str(options.run), report=told, results=results)))
    return commands.status(results)


def _present(folder: Path) -> list[str]:
    return [name for name in _WRITTEN if (folder / name).exists()]
