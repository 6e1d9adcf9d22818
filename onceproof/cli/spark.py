"""The command `onceproof spark`: a Spark standalone cluster in containers, for `--spark-master`."""

import argparse
from pathlib import Path
from typing import Any

from onceproof.cli import commands, values


def add(subcommands: Any) -> None:
    """Add the command to the parser of the command line."""
    spark = subcommands.add_parser("spark", help="start or stop a Spark cluster in containers, for --spark-master")
    spark.add_argument(
        "action", choices=["up", "down"], help="start a cluster and print the URL of its master, or remove all of them"
    )
    spark.add_argument(
        "--workers", type=values.positive, default=2, metavar="N", help="workers of one core each (default: 2)"
    )
    spark.add_argument(
        "--memory", type=values.memory, default="1g", metavar="SIZE", help="memory that a worker offers (default: 1g)"
    )
    spark.add_argument(
        "--share", type=Path, default=Path("runs"), help="folder that the executors can read and write (default: runs)"
    )
    spark.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Start a cluster, or remove those of this home."""
    from onceproof.harness.cluster import standalone
    from onceproof.suite import preflight

    if options.action == "up":
        share = preflight.writable(options.share)
        commands.say(standalone.start(options.workers, share=share, memory=options.memory))
        return commands.AS_EXPECTED
    for master in standalone.masters():
        standalone.stop(master)
        commands.say(f"{master}: removed")
    return commands.AS_EXPECTED
