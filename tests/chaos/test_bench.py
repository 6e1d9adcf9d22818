"""The fillers of a benchmark leave a run that is valid, as the benchmark needs it."""

from pathlib import Path

import pytest

from onceproof.bench import claims, verify
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


@pytest.mark.chaos
@pytest.mark.long
def test_every_claim_about_transactions_is_measured_with_both_clients() -> None:
    sweep = claims.Sweep(
        pairs=6,
        seconds=0.3,
        records=5_000,
        sizes=(100,),
        intervals_ms=(100,),
        in_transaction=(10,),
        partitions=(4,),
        aborted_percent=(10,),
        producers=(4,),
    )
    names = ("throughput", "cost", "isolation", "scope")
    cells = list(claims.measure(sweep, names, Progress(quiet=True)))
    measured = {(each.claim, each.client) for each in cells}
    assert measured == {(claim, client) for claim in names for client in claims.CLIENTS}
    for each in cells:
        assert all(before > 0 and after > 0 for before, after in each.pairs)
    for one, apart in (each.peaks for each in cells if each.peaks):
        assert apart[1] > one[1] > 0  # connections of four producers, and of one
