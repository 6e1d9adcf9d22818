"""Run the pipeline of a scenario once for some seconds, without its faults: what `lint` and `app check` do."""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from onceproof.cli import scenarios, values
from onceproof.harness.base.progress import Progress
from onceproof.harness.model import scenario
from onceproof.harness.model.scenario import Expect, Scenario

if TYPE_CHECKING:
    from onceproof.harness.record.results import Results

_RECORDS_MAX = 10_000


def add_options(command: argparse.ArgumentParser, *, quiet: str) -> None:
    """Add the options of such a command; `quiet` says what it prints with --quiet."""
    command.add_argument("--kafka", metavar="VERSION", help="a release such as 4.1.2 (default: the scenario's)")
    command.add_argument("--keep", action="store_true", help="leave the cluster up for the next run")
    command.add_argument("--runs", type=Path, default=Path("runs"), help="parent of the run's folder (default: runs)")
    command.add_argument("--quiet", action="store_true", help=quiet)
    values.add_spark_master(command)


def once(options: argparse.Namespace, loaded: Scenario, *, command: str) -> tuple[Results, Path]:
    """Run a scenario without its faults, and return its results and its folder.

    `command` repeats that. Raises BadInput when the scenario cannot be run.
    """
    from onceproof.harness.cluster import pool
    from onceproof.run.run import Run
    from onceproof.suite import preflight

    bare = without_faults(loaded, kafka=options.kafka)
    preflight.writable(options.runs)
    preflight.machine(options.spark_master)
    preflight.check(bare, str(options.scenario), options.spark_master)
    scenarios.prepare([(bare.cluster.version, bare.workload.client)])
    with (
        Progress(quiet=options.quiet) as progress,
        pool.lease(bare.cluster, keep=options.keep, say=progress.say) as cluster,
    ):
        one = Run(
            bare,
            seed=secrets.randbelow(1_000_000),
            cluster=cluster,
            runs=options.runs,
            progress=progress,
            command=command,
            master=options.spark_master,
        )
        return one.all(), one.folder


def without_faults(loaded: Scenario, *, kafka: str | None) -> Scenario:
    """Return a short scenario of the same pipeline, without faults, whose requests are recorded."""
    work = loaded.workload.model_copy(update={"records": min(loaded.workload.records, _RECORDS_MAX)})
    return scenarios.on_release(loaded, kafka).model_copy(
        update={
            "workload": work,
            "faults": (),
            "random": None,
            "bug": None,
            "collect": loaded.collect.model_copy(update={"requests": True}),
            "expect": Expect(),
        }
    )


def load(options: argparse.Namespace) -> Scenario:
    """Return the scenario that a command's option names. Raises BadInput when there is none."""
    return scenario.load(scenarios.find_one(options.scenario))
