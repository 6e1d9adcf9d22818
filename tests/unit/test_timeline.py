"""What the chart of a report shows: lanes, outcomes, the first commit after a fault, and what explains a finding."""

from pathlib import Path

from onceproof.harness.record import history
from onceproof.harness.record.events import FaultInjected, Outcome
from onceproof.report import curves, explained, timeline
from onceproof.verifiers.levels import FOUND_BY
from onceproof.verifiers.verify import verify
from tests.mutants import of_records
from tests.mutants.catalogue import MUTANTS, RUNS
from tests.unit.good_run import PREFIX, GoodRun

assert of_records  # fills MUTANTS


def events_of(run: GoodRun, folder: Path) -> history.Events:
    return history.read(run.write(folder) / "history.jsonl")


def test_each_transaction_is_told_with_its_outcome(good_run: GoodRun, tmp_path: Path) -> None:
    good_run.note("begin", "worker-0", incarnation=1, n=90, t=7.0, transaction=9)
    told = timeline.transactions(events_of(good_run, tmp_path / "run"))
    assert sorted((each.source, each.number, each.outcome) for each in told) == [
        ("worker-0", 1, "committed"),
        ("worker-0", 2, "committed"),
        ("worker-0", 9, "open"),
        ("worker-1", 1, "committed"),
        ("worker-1", 2, "committed"),
    ]
    [first] = [each for each in told if (each.source, each.number) == ("worker-1", 1)]
    assert first.sources == [(1, 0, 20)] and first.outputs == [(f"{PREFIX}-output", 1, 20, 0, 19)]
    assert first.begin <= (first.asked or 0) <= first.end


def test_transactions_that_overlap_have_lanes_of_their_own(good_run: GoodRun, tmp_path: Path) -> None:
    for number in (8, 9):
        good_run.note("begin", "worker-0", incarnation=1, n=90 + number, t=7.0, transaction=number)
    events = events_of(good_run, tmp_path / "run")
    told = timeline.transactions(events)
    assert timeline.lanes(events, told) == [("worker-0", 0), ("worker-0", 1), ("worker-1", 0)]
    assert max(curves.of(events, told)["open"]["count"]) >= 2


def test_the_first_commit_after_a_fault() -> None:
    """The recorded run has faults; a commit after each of them was told to a worker."""
    for name in ("aborts", "zombie"):
        events = history.read(RUNS / name / "history.jsonl")
        commits = [event.t - events[0].at for event in events.of(Outcome, type="ok")]
        for span in timeline.faults(events):
            injected = events.the(FaultInjected, fault=span.id).at - events[0].at
            after = [commit - injected for commit in commits if commit >= injected]
            assert span.first_commit_s == (min(after) if after else None)


def test_every_class_is_explained() -> None:
    assert set(explained.ANOMALIES) == set(FOUND_BY)


def test_a_finding_names_the_fault_that_overlaps_it(tmp_path: Path) -> None:
    run, _ = MUTANTS["doubled"].make()
    folder = run.write(tmp_path / "run")
    results, events = verify(folder), history.read(folder / "history.jsonl")
    told = timeline.transactions(events)
    length = events[-1].at - events[0].at
    fault = timeline.FaultSpan(id="0-kill", begin=0.0, end=length, note="broker1")
    [found] = [each for each in explained.of(results, told, [fault], events[0].at) if each.finding.cls == "duplicate"]
    assert found.claim and found.anomaly and found.faults[0].endswith(" s, during 0-kill")
    late = timeline.FaultSpan(id="1-kill", begin=length + 50, end=length + 60, note="broker1")
    [found] = [each for each in explained.of(results, told, [late], events[0].at) if each.finding.cls == "duplicate"]
    assert found.faults[0].endswith("; no fault was active")
