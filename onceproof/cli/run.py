"""The command `onceproof run`: run a scenario, or all scenarios of a folder."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onceproof.cli import commands, machine, scenarios, values
from onceproof.harness.artifacts.clients import DEFAULT_KAFKA
from onceproof.harness.base.progress import Progress
from onceproof.harness.model import plan, scenario
from onceproof.harness.model.scenario import Scenario

if TYPE_CHECKING:
    from onceproof.harness.record.results import Results
    from onceproof.run.run import Run
    from onceproof.suite.batch import Line


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    run = subcommands.add_parser("run", help="run a scenario")
    run.add_argument("scenario", type=Path, help="a TOML file, a folder of them, or a name that `onceproof list` shows")
    run.add_argument(
        "--seed",
        type=values.seed,
        metavar="N",
        help="seed of the first run, incremented for each later run (default: random)",
    )
    run.add_argument(
        "--kafka",
        metavar="VERSION",
        help=f"a release such as 4.1.2, 4.1.x, latest or latest-1 (default: the scenario's, or {DEFAULT_KAFKA})",
    )
    run.add_argument(
        "--client", type=values.client, metavar="CLIENT", help="librdkafka, java, or one version of these: java==3.9.2"
    )
    run.add_argument(
        "--feature",
        type=values.level,
        action=values.Features,
        default={},
        metavar="NAME=LEVEL",
        help="level of a broker feature: transaction.version=1",
    )
    run.add_argument("--group-protocol", choices=["classic", "consumer"], help="protocol of the consumer group")
    run.add_argument(
        "--twin", action="store_true", help="leave out the faults on single requests; the run must then be valid"
    )
    run.add_argument("--faults", choices=["random"], help="add faults that are drawn from the seed")
    run.add_argument("--no-faults", action="store_true", help="leave out all faults; the run is then vacuous")
    run.add_argument("--count", type=values.positive, default=1, metavar="N", help="run each scenario N times")
    run.add_argument(
        "--mode",
        choices=["full", "ledger"],
        default="full",
        help="full: read the input topic; ledger: trust the acknowledgements (default: full)",
    )
    run.add_argument("--dry-run", action="store_true", help="check the scenario, print the plan, and run nothing")
    run.add_argument("--keep", action="store_true", help="leave the cluster up for the next run")
    run.add_argument("--runs", type=Path, default=Path("runs"), help="parent of the run's folder (default: runs)")
    run.add_argument("--quiet", action="store_true", help="print the verdict only")
    machine.add_options(run, "the runs with their results")
    values.add_spark_master(run)
    run.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run a scenario, or all scenarios in a folder, and print each verdict with the path of its report."""
    from onceproof.report.documents import JudgedRun
    from onceproof.suite import batch, preflight

    files = scenarios.find(options.scenario)
    loaded = {path: scenarios.with_options(scenario.load(path), options) for path in files}
    preflight.writable(options.runs)
    machine.check(options)
    preflight.machine(options.spark_master)
    for path, each in loaded.items():
        preflight.check(each, str(path), options.spark_master)
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    runs = batch.by_cluster((each, seed + number) for number in range(options.count) for each in loaded.values())
    named = {each.name: str(path) for path, each in loaded.items()} if len(files) > 1 else {}
    if options.dry_run:
        for each, seed in runs:
            commands.say(plan.make(each, seed).to_json().rstrip())
        return commands.AS_EXPECTED
    scenarios.prepare((each.cluster.version, each.workload.client) for each in loaded.values())

    def named_command(each: Scenario, seed: int) -> str:
        said = scenarios.repeat_command(each, seed, named.get(each.name, str(options.scenario)))
        said += (" --faults random" if options.faults else "") + (" --no-faults" if options.no_faults else "")
        return said + (" --mode ledger" if options.mode == "ledger" else "") + (" --twin" if options.twin else "")

    statuses = [commands.AS_EXPECTED]
    judged: list[JudgedRun] = []

    def done(one: Run, results: Results, line: Line) -> None:
        report = one.folder / "report.html"
        judged.append(
            JudgedRun(
                folder=str(one.folder),
                report=str(report) if report.exists() else "",
                results=results,
                seconds=line.phases,
            )
        )
        statuses.append(commands.status(results))
        if machine.alone(options):
            return
        commands.print_results(results)
        commands.say(f"report: {one.folder / 'report.html'}")
        commands.say(
            f"seconds of each phase: {', '.join(f'{name} {spent:g}' for name, spent in line.phases.items())}; "
            f"total: {line.seconds:.1f}"
        )

    folder = options.runs if len(runs) == 1 else options.runs / datetime.now(UTC).strftime("all-%Y%m%dT%H%M%S")
    with Progress(quiet=options.quiet or machine.alone(options)) as progress:
        how = batch.Options(
            folder=folder,
            progress=progress,
            command=named_command,
            master=options.spark_master,
            mode=options.mode,
            keep=options.keep,
            faults=not options.no_faults,
        )
        lines = batch.run(runs, how, done)
    if len(runs) > 1:
        page = batch.write_page(lines, folder)
        if not machine.alone(options):
            seconds = sum(line.seconds for line in lines)
            took = f", in {seconds:,.0f} s, {seconds / len(lines):.1f} s for each" if lines else ""
            commands.say(f"{_met(lines)}{took}: {page}")
    machine.write_json(options, [asdict(each) for each in judged])
    machine.write_summary(options, _summary(lines))
    return max(statuses)


def _met(lines: Sequence[Line]) -> str:
    return f"{sum(line.as_expected for line in lines)} of {len(lines)} runs as expected"


def _summary(lines: Sequence[Line]) -> machine.Summary:
    return machine.Summary(
        headline=lines[0].headline if len(lines) == 1 else _met(lines),
        good=all(line.as_expected for line in lines),
        heads=("scenario", "seed", "verdict", "expectation", "faults", "seconds"),
        rows=[
            (
                line.scenario,
                str(line.seed),
                line.headline,
                line.expectation,
                ", ".join(line.faults),
                f"{line.seconds:.0f}",
            )
            for line in lines
        ],
    )
