"""The commands `onceproof replay` and `onceproof shrink`: repeat the plan of a run, and make it smaller."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onceproof.cli import commands, scenarios, values
from onceproof.harness.base.progress import Progress
from onceproof.harness.model import scenario

if TYPE_CHECKING:
    from onceproof.harness.model.scenario import Scenario
    from onceproof.suite.replay import Player


def add(subcommands: Any) -> None:
    """Add both commands to the parser of the command line."""
    replay = subcommands.add_parser("replay", help="repeat the plan of a run, and say how often it fails again")
    shrink = subcommands.add_parser("shrink", help="find the smallest plan that fails as a run did")
    for each in (replay, shrink):
        each.add_argument("run", type=Path, help="a run's folder, with a finding")
        each.add_argument(
            "--class",
            dest="cls",
            metavar="CLASS",
            help="the class of anomaly to repeat (default: the first that the run found, unprotected last)",
        )
        each.add_argument(
            "--scenario", type=Path, metavar="FILE", help="the run's scenario, for secrets that its folder lacks"
        )
        each.add_argument("--runs", type=Path, default=Path("runs"), help="parent of the runs' folder (default: runs)")
        each.add_argument("--quiet", action="store_true", help="print one line for each run, and the result")
        values.add_spark_master(each)
    replay.add_argument(
        "--failures", type=values.positive, default=3, metavar="N", help="stop after so many failures (default: 3)"
    )
    replay.add_argument(
        "--count", type=values.positive, default=12, metavar="N", help="stop after so many runs (default: 12)"
    )
    replay.add_argument("--json", action="store_true", help="print the result as JSON")
    replay.set_defaults(command=replay_command)
    shrink.add_argument(
        "--count", type=values.positive, default=100, metavar="N", help="stop after so many runs (default: 100)"
    )
    shrink.add_argument(
        "--minutes", type=values.positive, default=60, metavar="M", help="stop after so many minutes (default: 60)"
    )
    shrink.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write the smallest plan to this file (default: shrunk.toml in the runs' folder)",
    )
    shrink.set_defaults(command=shrink_command)


def replay_command(options: argparse.Namespace) -> int:
    """Repeat the plan of a run, and print how often it failed again; exit status 1 if it never did."""
    from onceproof.suite import rates
    from onceproof.suite.replay import Trials

    planned, seed, cls, folder = _prepared(options, "replay")
    trials = Trials(scenario=planned, cls=cls)
    with (
        Progress(quiet=options.quiet or options.json) as progress,
        closing(_player(options, seed, cls, folder, progress, say=not options.json)) as play,
    ):
        trials.until(play, failures=options.failures, runs=options.count)
    if options.json:
        interval = list(rates.interval(trials.failures, trials.runs)) if trials.runs else None
        commands.say(
            json.dumps(
                {
                    "schema_version": 1,
                    "class": cls,
                    "seed": seed,
                    "failures": trials.failures,
                    "runs": trials.runs,
                    "proved_nothing": trials.nothing,
                    "interval": interval,
                    "last_failure": None if play.last_failure is None else str(play.last_failure),
                },
                indent=1,
            )
        )
    else:
        commands.say(trials.says + (f"\nreport: {play.last_failure / 'report.html'}" if play.last_failure else ""))
    return commands.AS_EXPECTED if trials.failures else commands.NOT_AS_EXPECTED


def shrink_command(options: argparse.Namespace) -> int:
    """Shrink the plan of a run, and write the smallest one; exit status 1 if it was not proved to be the smallest."""
    from onceproof.suite import certificate, cone, preflight
    from onceproof.suite.shrink import Bounds, shrink

    if options.output:
        preflight.writable_file(options.output)
    planned, seed, cls, folder = _prepared(options, "shrink")
    with Progress(quiet=options.quiet) as progress, closing(_player(options, seed, cls, folder, progress)) as play:
        done = shrink(
            planned,
            cls=cls,
            cones=cone.of(options.run, cls),
            play=play,
            bounds=Bounds(runs=options.count, minutes=options.minutes),
            say=commands.say,
        )
    output = options.output or folder / "shrunk.toml"
    certificate.write(done, seed=seed, scenario_file=output, certificate_file=folder / "certificate.json")
    faults = len(done.smallest.scenario.faults)
    commands.say(f"{faults} of {len(planned.faults)} faults are left after {done.runs} runs: {done.smallest.says}")
    commands.say(f"scenario: {output}\ncertificate: {folder / 'certificate.json'}")
    if play.last_failure:
        commands.say(f"report: {play.last_failure / 'report.html'}")
    if done.interrupted:
        raise KeyboardInterrupt
    return commands.AS_EXPECTED if done.proved else commands.NOT_AS_EXPECTED


def _prepared(options: argparse.Namespace, what: str) -> tuple[Scenario, int, str, Path]:
    """Return the plan to repeat, its seed, the class of anomaly, and the folder of the new runs."""
    from onceproof.suite import preflight, replay

    commands.run_folder(options.run)
    explicit = None if options.scenario is None else scenario.load(scenarios.find_one(options.scenario))
    planned, seed = replay.plan_of(options.run, explicit=explicit)
    cls = replay.class_of(options.run, options.cls)
    preflight.machine(options.spark_master)
    preflight.check(planned, planned.name, options.spark_master)
    scenarios.prepare([(planned.cluster.version, planned.workload.client)])
    folder = preflight.writable(options.runs / datetime.now(UTC).strftime(f"{what}-%Y%m%dT%H%M%S"))
    return planned, seed, cls, folder


def _player(
    options: argparse.Namespace, seed: int, cls: str, folder: Path, progress: Progress, say: bool = True
) -> Player:
    from onceproof.suite import batch, replay

    how = batch.Options(folder=folder, progress=progress, master=options.spark_master, command=scenarios.repeat_command)
    return replay.Player(cls=cls, seed=seed, options=how, say=commands.say if say else progress.say)
