"""The fillers of a benchmark leave a run that is valid, as the benchmark needs it."""

from pathlib import Path

import pytest

from onceproof.bench import verify
from onceproof.harness.base.progress import Progress
from onceproof.harness.cluster import pool


@pytest.mark.chaos
def test_what_the_fillers_wrote_is_valid(tmp_path: Path) -> None:
    work = verify.SPEC.workload.model_copy(
        update={"records": 5_000, "record_bytes": 100, "transaction_records": 500, "observer": False}
    )
    scenario = verify.SPEC.model_copy(update={"workload": work})
    with pool.lease(scenario.cluster, keep=False) as cluster:
        filled = verify.FillRun(scenario, seed=1, cluster=cluster, runs=tmp_path, progress=Progress(quiet=True))
        results = filled.all()
    found = {check.name: check.compared for check in results.checks}
    assert (results.verdict, results.findings, results.reasons) == ("valid", [], [])
    assert found["exactly-once"]["inputs"] == 5_000
