"""The command `onceproof soak`: run many plans with random faults, and summarise them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onceproof.cli import commands, machine, scenarios, values
from onceproof.harness.base import paths
from onceproof.harness.base.errors import BadInput
from onceproof.harness.base.progress import Progress
from onceproof.harness.model import scenario

if TYPE_CHECKING:
    from onceproof.suite.soak import Soak


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    soak = subcommands.add_parser("soak", help="run many plans with random faults and summarise them")
    soak.add_argument("scenarios", type=Path, nargs="*", help="TOML files or folders (default: scenarios/soak)")
    length = soak.add_mutually_exclusive_group()
    length.add_argument("--count", type=values.positive, default=50, metavar="N", help="number of runs (default: 50)")
    length.add_argument(
        "--hours",
        type=values.hours,
        metavar="H",
        help="run for so long, judge each run while the next one is executed, and stop at the first finding",
    )
    soak.add_argument(
        "--seed",
        type=values.seed,
        metavar="N",
        default=1,
        help="seed of the first run, incremented for each later run (default: 1)",
    )
    soak.add_argument(
        "--runs", type=Path, default=Path("runs/soak"), help="parent of the runs' folders (default: runs/soak)"
    )
    soak.add_argument(
        "--resume",
        type=Path,
        metavar="FOLDER",
        help="continue the soak in this folder, after the runs that it has; not with --hours",
    )
    soak.add_argument("--quiet", action="store_true", help="print one line for each run, and the summary")
    machine.add_options(soak, "the soak")
    values.add_spark_master(soak)
    soak.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Execute a soak, and print and write its summary."""
    from onceproof.suite import batch, hours, preflight, soak

    if options.hours and options.resume:
        raise BadInput("--resume: not with --hours; allowed with --count")
    wanted = options.scenarios or [paths.scenarios_dir() / "soak"]
    loaded = [scenarios.with_random(scenario.load(file)) for path in wanted for file in scenarios.find(path)]
    before = soak.read(options.resume / "soak.json") if options.resume else None
    folder = preflight.writable(options.resume or options.runs)
    machine.check(options)
    preflight.machine(options.spark_master)
    for each in loaded:
        preflight.check(each, each.name, options.spark_master)
    scenarios.prepare((each.cluster.version, each.workload.client) for each in loaded)
    alone = machine.alone(options)
    say = (lambda _: None) if alone else commands.say
    with Progress(quiet=options.quiet or alone) as progress:
        how = batch.Options(
            folder=folder, progress=progress, master=options.spark_master, command=scenarios.repeat_command
        )
        if options.hours:
            done = hours.soak(loaded, hours=options.hours, seed=options.seed, options=how, say=say)
        else:
            done = soak.soak(loaded, runs=options.count, seed=options.seed, options=how, say=say, done=before)
    (folder / "soak.md").write_text(done.summary())
    say(done.summary())
    machine.write_json(options, done.document())
    machine.write_summary(options, _summary(done))
    return commands.AS_EXPECTED if done.held else commands.NOT_AS_EXPECTED


def _summary(done: Soak) -> machine.Summary:
    counts = {word: done.count(word) for word in ("valid", "unknown", "invalid")}
    said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return machine.Summary(
        headline=f"soak: {said}",
        good=done.held,
        heads=("scenario", "seed", "verdict", "why"),
        rows=[
            (line.scenario, str(line.seed), line.headline, "; ".join(line.reasons))
            for line in done.lines
            if line.verdict != "valid"
        ],
    )
