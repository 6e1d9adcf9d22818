"""`onceproof check FILE…`: say of each scenario whether it can be run, without a cluster.

    $ onceproof check chaos/orders.toml chaos/payments.toml
    chaos/orders.toml: ok
    onceproof: chaos/payments.toml: cluster.features: Kafka 4.3.1: Unsupported feature: transaction.versoin. …

`onceproof run` refuses the same in the same words (`preflight`).
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from onceproof.cli import values
from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import scenario
from onceproof.harness.model.scenario import Scenario


def add(subcommands: Any) -> None:
    """Add the command to the parser."""
    check = subcommands.add_parser("check", help="say whether scenarios can be run, without a cluster")
    check.add_argument(
        "scenarios", type=Path, nargs="+", help="TOML files, folders of them, or names that `onceproof list` shows"
    )
    values.add_spark_master(check, "that analyses SQL")
    check.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Print a line for each scenario, and return 0 if all of them can be run, otherwise 2."""
    from onceproof.cli.commands import AS_EXPECTED, BAD_INPUT
    from onceproof.cli.scenarios import find
    from onceproof.suite import preflight

    loaded: list[tuple[Path, Scenario]] = []
    refused = False
    for path in options.scenarios:
        try:
            files = find(path)
        except BadInput as error:
            refused = _refuse(error)
            continue
        for file in files:
            try:
                loaded.append((file, scenario.load(file)))
            except BadInput as error:
                refused = _refuse(error)
    if loaded:
        preflight.machine(options.spark_master)
    for file, each in loaded:
        try:
            preflight.check(each, str(file))
            _analyse(each, file, options.spark_master)
            sys.stdout.write(f"{file}: ok\n")
        except BadInput as error:
            refused = _refuse(error)
    return BAD_INPUT if refused else AS_EXPECTED


def _analyse(each: Scenario, file: Path, master: str) -> None:
    """Let Spark analyse the SQL of a workload that is not registered. Raises BadInput when it does not accept it."""
    if not each.own_sql:
        return
    from onceproof.verifiers.evidence.model import analyse
    from onceproof.verifiers.evidence.spark import session

    try:
        analyse(session(master), each)
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None


def _refuse(error: BadInput) -> bool:
    sys.stderr.write(f"onceproof: {error}\n")
    return True
