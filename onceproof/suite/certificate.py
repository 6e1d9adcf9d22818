"""What `shrink` leaves: the smallest plan as a scenario, and a certificate of how often it fails.

shrunk.toml         a scenario that `onceproof run` takes
certificate.json    schema_version, class, seed, runs; the trials of the original and of the smallest plan, and of the
smallest one without each of its faults: failures, runs, and the 95% interval of the rate
"""

import json
from pathlib import Path
from typing import Any

import tomli_w

from onceproof.harness.base import files
from onceproof.harness.model.scenario import Scenario
from onceproof.suite import rates
from onceproof.suite.replay import Trials
from onceproof.suite.shrink import Shrunk
from onceproof.suite.smaller import document, named

SCHEMA_VERSION = 1


def write(done: Shrunk, *, seed: int, scenario_file: Path, certificate_file: Path) -> Scenario:
    """Write both files, and return the scenario. Raises OSError when a file cannot be written."""
    smallest = done.smallest
    expect = {"findings": [smallest.cls]} if smallest.found == {smallest.cls} else {"verdict": "invalid"}
    about = f"Shrunk from a run of {done.original.scenario.name} with seed {seed}: {smallest.says}."
    made = named(smallest.scenario, about, expect)
    head = f"# onceproof run {scenario_file.name} --seed {seed}\n\n"
    raw = document(made)
    raw["cluster"] = {**raw.get("cluster", {}), "version": made.cluster.version}  # whatever the default will be
    files.write(scenario_file, head + tomli_w.dumps(raw))
    files.write(certificate_file, json.dumps(_certificate(done, seed), indent=1) + "\n")
    return made


def _certificate(done: Shrunk, seed: int) -> dict[str, Any]:
    faults = done.smallest.scenario.faults
    return {
        "schema_version": SCHEMA_VERSION,
        "class": done.smallest.cls,
        "seed": seed,
        "proved": done.proved,
        "runs": done.runs,
        "cut_short": done.cut_short,
        "passes_needed": done.passes_needed,
        "original": {"faults": len(done.original.scenario.faults), **_rate(done.original)},
        "smallest": {"faults": len(faults), **_rate(done.smallest)},
        "without": [
            {"fault": number, "name": spec.name, "needed": done.needs(number), **_rate(done.without[number])}
            for number, spec in enumerate(faults)
            if number in done.without
        ],
        "steps": done.steps,
    }


def _rate(trials: Trials) -> dict[str, Any]:
    found: dict[str, Any] = {"failures": trials.failures, "runs": trials.runs, "proved_nothing": trials.nothing}
    if trials.runs:
        found["interval"] = [round(each, 4) for each in rates.interval(trials.failures, trials.runs)]
    return found
