"""The command `onceproof lint`: what is unsafe in what the clients of a pipeline ask the brokers for.

    onceproof lint SCENARIO          run its pipeline for some seconds without a fault, and look at the requests

Exit status: 0 if no request breaks a rule, 1 if one does or if the run failed, 2 for bad input.
"""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onceproof.cli import commands, scenarios
from onceproof.harness.base.progress import Progress
from onceproof.harness.model import scenario
from onceproof.harness.model.scenario import Expect, Scenario

if TYPE_CHECKING:
    from onceproof.harness.record.results import Results

_RECORDS_MAX = 10_000


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    lint = subcommands.add_parser("lint", help="name what is unsafe in the requests of a pipeline, without a fault")
    lint.add_argument("scenario", type=Path, help="a TOML file, or a name that `onceproof list` shows")
    lint.add_argument("--kafka", metavar="VERSION", help="a release such as 4.1.2 (default: the scenario's)")
    lint.add_argument("--keep", action="store_true", help="leave the cluster up for the next run")
    lint.add_argument("--runs", type=Path, default=Path("runs"), help="parent of the run's folder (default: runs)")
    lint.add_argument("--quiet", action="store_true", help="print the lints only")
    lint.add_argument("--spark-master", default="local[2]", help=argparse.SUPPRESS)
    lint.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run the pipeline of a scenario without its faults, print the lints, and return the exit status."""
    from onceproof.harness.cluster import pool
    from onceproof.run.run import Run
    from onceproof.suite import preflight

    file = scenarios.find_one(options.scenario)
    loaded = without_faults(scenario.load(file), kafka=options.kafka)
    preflight.writable(options.runs)
    preflight.machine(options.spark_master)
    preflight.check(loaded, str(file))
    scenarios.prepare([(loaded.cluster.version, loaded.workload.client)])
    with (
        Progress(quiet=options.quiet) as progress,
        pool.lease(loaded.cluster, keep=options.keep, say=progress.say) as cluster,
    ):
        one = Run(
            loaded,
            seed=secrets.randbelow(1_000_000),
            cluster=cluster,
            runs=options.runs,
            progress=progress,
            command=f"onceproof lint {options.scenario}",
            master=options.spark_master,
        )
        results = one.all()
    _print(results, one.folder / "report.html")
    return 0 if results.lints is not None and not results.lints else 1


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


def _print(results: Results, report: Path) -> None:
    if results.lints is None:
        commands.say(f"the requests were not recorded: {'; '.join(reason.says for reason in results.reasons)}")
    elif not results.lints:
        commands.say("no lint: no request of the workers breaks a rule")
    else:
        rows = ((each.name, each.kip, f"{each.count:,}", each.says) for each in results.lints)
        commands.table(("lint", "source", "requests", "what can go wrong"), rows)
    commands.say(f"verdict: {results.headline}; report: {report}")
