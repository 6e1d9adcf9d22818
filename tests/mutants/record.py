"""Records the small good runs that mutants are made from: real clusters, real faults, kept in tests/mutants/runs.

    python -m tests.mutants.record [NAME …]

Needs a container engine. Only what verify reads is kept.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from onceproof.harness.cluster import pool
from onceproof.harness.model import scenario
from onceproof.run.run import Run
from tests.mutants.catalogue import RUNS
from tests.rundata import RunData

_SMALL = {
    "records": 900,
    "records_per_s": 150,
    "record_bytes": 64,
    "partitions": 3,
    "transaction_records": 20,
    "keys": 50,
}
SCENARIOS: list[dict[str, Any]] = [
    {
        "name": "zombie",
        "about": "copy; a worker is stopped past session and transaction time-out and comes back",
        "workload": {"name": "copy", **_SMALL},
        "faults": [
            {
                "name": "zombie",
                "when": {"worker": 0, "phase": "produced", "count": 12},
                "fenced": "epoch",
                "past": ["session", "transaction"],
            }
        ],
    },
    {
        "name": "aborts",
        "about": "fan-out; a worker is killed with its transaction open, another one aborts, then a broker is killed",
        "workload": {"name": "fan-out", **_SMALL},
        "faults": [
            {
                "name": "kill-worker",
                "target": "worker-1",
                "when": {"worker": 1, "phase": "produced", "count": 8},
                "lasts_s": 1,
            },
            {"name": "abort", "when": {"worker": 0, "phase": "produced", "count": 8}},
            {"name": "kill", "target": "broker-2", "at_s": 4, "lasts_s": 4},
        ],
    },
    {
        "name": "totals",
        "about": "running sums; a worker is killed with its transaction open, then writes to the changelog are refused",
        "workload": {"name": "sums", **_SMALL},
        "faults": [
            {
                "name": "kill-worker",
                "target": "worker-1",
                "when": {"worker": 1, "phase": "produced", "count": 8},
                "lasts_s": 1,
            },
            {"name": "refuse-writes", "topic": "changelog", "at_s": 4, "lasts_s": 2},
        ],
    },
    {
        "name": "deletes",
        "about": "copy; records are deleted behind the committed position",
        "workload": {"name": "copy", **_SMALL},
        "faults": [{"name": "delete-records", "to": "behind", "at_s": 3}],
    },
    {
        "name": "twice",
        "about": "two equal records for each input; a worker is killed with its transaction open",
        "workload": {"name": "tests/mutants/twice.py:TWICE", **_SMALL},
        "faults": [
            {
                "name": "kill-worker",
                "target": "worker-1",
                "lasts_s": 1,
                "when": {"worker": 1, "phase": "produced", "count": 8},
            }
        ],
    },
    {
        "name": "bank",
        "about": "transfers between accounts; a worker is killed with its transaction open",
        "workload": {"name": "bank", **_SMALL},
        "faults": [
            {
                "name": "kill-worker",
                "target": "worker-0",
                "lasts_s": 1,
                "when": {"worker": 0, "phase": "produced", "count": 8},
            }
        ],
    },
    {
        "name": "chain",
        "about": "two services with a topic between; the first is killed with its transaction open",
        "workload": {"name": "chain", **_SMALL},
        "faults": [
            {
                "name": "kill-worker",
                "target": "worker-0",
                "lasts_s": 1,
                "when": {"worker": 0, "phase": "produced", "count": 8},
            }
        ],
    },
]


def main(names: list[str]) -> int:
    chosen = [raw for raw in SCENARIOS if raw["name"] in names or not names]
    specs = [scenario.parse(raw, where="record.py") for raw in chosen]
    with pool.lease(specs[0].cluster, keep=False) as cluster, tempfile.TemporaryDirectory() as work:
        for spec in specs:
            run = Run(spec, seed=1, cluster=cluster, runs=Path(work), command=f"tests.mutants.record {spec.name}")
            results = run.all()
            print(f"{spec.name}: {results.headline}, {results.counts}")  # noqa: T201
            if not results.as_expected:
                print([reason.says for reason in results.reasons])  # noqa: T201
                return 1
            shutil.rmtree(RUNS / spec.name, ignore_errors=True)
            RunData.read(run.folder).write(RUNS / spec.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
