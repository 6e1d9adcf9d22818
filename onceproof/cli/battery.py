"""The command `onceproof battery`: one pipeline or application under each fault that an expert would try.

    onceproof battery orders.toml            about twenty runs on one cluster, and a page
    onceproof battery orders.toml --print    the scenarios of these runs, and nothing else

Exit status: 0 if every run was valid and no request broke a rule, 1 otherwise, 2 for bad input.
"""

import argparse
from pathlib import Path
from typing import Any

from onceproof.cli import commands, scenarios, values
from onceproof.harness.base.progress import Progress
from onceproof.harness.model import scenario
from onceproof.harness.model.scenario import Scenario


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    battery = subcommands.add_parser("battery", help="try an application under each fault that an expert would try")
    battery.add_argument(
        "scenario", type=Path, help="a TOML file without faults, or a name that `onceproof list` shows"
    )
    battery.add_argument("--only", action="append", default=[], metavar="PLAN", help="try this plan; may be repeated")
    battery.add_argument("--print", action="store_true", help="print the scenarios of the runs, and run nothing")
    battery.add_argument("--kafka", metavar="VERSION", help="a release such as 4.1.2 (default: the scenario's)")
    battery.add_argument("--seed", type=values.seed, metavar="N", default=1, help="seed of the first run (default: 1)")
    battery.add_argument(
        "--runs", type=Path, default=Path("runs/battery"), help="parent of the runs' folders (default: runs/battery)"
    )
    battery.add_argument("--keep", action="store_true", help="leave the cluster up for the next run")
    battery.add_argument("--quiet", action="store_true", help="print one line for each run, and the page")
    values.add_spark_master(battery)
    battery.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Execute a battery, and print and write its page."""
    from onceproof.suite import batch, battery, preflight

    file = scenarios.find_one(options.scenario)
    wanted = options.only or battery.suited(scenario.load(file))
    if options.print:
        commands.say("\n".join(battery.text(file, plan) for plan in wanted).rstrip())
        return commands.AS_EXPECTED
    folder = preflight.writable(options.runs)
    preflight.machine(options.spark_master)
    first = scenarios.on_release(scenario.load(file), options.kafka)
    plans, paths = [], {}
    for plan, path in battery.write(file, folder, wanted):
        loaded = scenario.load(path)
        preflight.check(loaded, str(path), options.spark_master)
        plans.append((plan, loaded.model_copy(update={"cluster": first.cluster})))
        paths[loaded.name] = path
    scenarios.prepare([(first.cluster.version, first.workload.client)])

    def repeat(each: Scenario, seed: int) -> str:
        return scenarios.repeat_command(each, seed, str(paths[each.name]))

    with Progress(quiet=options.quiet) as progress:
        how = batch.Options(
            folder=folder,
            progress=progress,
            master=options.spark_master,
            command=repeat,
            keep=options.keep,
        )
        done = battery.battery(first.name, plans, seed=options.seed, options=how, say=commands.say)
    commands.say(done.page())
    commands.say(f"page: {folder / 'battery.md'}")
    return commands.AS_EXPECTED if done.held else commands.NOT_AS_EXPECTED
