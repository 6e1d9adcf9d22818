"""What is asked of a cluster to know that a run is at rest, and what is recorded if it does not come to rest."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from onceproof.harness.cluster.described import Partition
from onceproof.harness.context import settled
from onceproof.harness.record.events import Quiesced, Stalled
from onceproof.run import done
from onceproof.run import quiesce as module
from onceproof.run.quiesce import quiesce
from onceproof.verifiers.collect import records
from onceproof.verifiers.evidence import spark
from onceproof.verifiers.evidence import spark as sessions
from tests.unit.still_cluster import OFFSETS, StillContext, held, of, transaction


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[Partition, tuple[int, int]]]:
    """The ranges in which records were looked for. All of them have one, but those of partition 1."""
    ranges: list[dict[Partition, tuple[int, int]]] = []

    def remaining(bootstrap: str, behind: dict[Partition, tuple[int, int]]) -> set[Partition]:
        assert bootstrap == "lane-0"
        ranges.append(behind)
        return {each for each in behind if each[1] != 1}

    monkeypatch.setattr(settled, "remaining", remaining)
    return ranges


@pytest.fixture(autouse=True)
def deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(done, "_DEADLINE_S", 0.1)
    for name in ("_CLEANUP_S", "_ISR_DEADLINE_S"):
        monkeypatch.setattr(module, name, 0.1)


def at_rest(workload: str = "copy") -> StillContext:
    still = StillContext(workload)
    for group, topic in still.names.read:
        still.admin.committed[group] = {(topic, partition): (10, "") for partition in range(2)}
    return still


def test_no_partition_is_asked_for_records_when_there_is_no_lag(asked: list[object]) -> None:
    assert settled.lag(at_rest().context) == 0
    assert asked == []


def test_an_application_may_read_further_topics_of_its_own(asked: list[dict[Partition, tuple[int, int]]]) -> None:
    still = StillContext(app={"command": ["true"]})
    repartition = f"{still.names.prefix}-group-repartition"
    read = {(still.names.input, 0): 10, (still.names.input, 1): 10, (repartition, 1): 4, ("audit", 1): 2}
    still.admin.committed[still.names.group] = {place: (offset, "") for place, offset in read.items()}
    assert settled.lag(still.context) == 10
    assert asked == [{(repartition, 0): (0, 10), (repartition, 1): (4, 10)}]


def described(by: str) -> StillContext:
    return StillContext(
        app={"command": ["true"], "position": "none"}, outputs={"output": {"input": "key"}}, done={"by": by}
    )


def test_an_application_is_done_when_nothing_has_been_written_for_long_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    still, now = described("quiet: 5s"), [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(spark, "session", lambda _: None)
    quiet = done.Quiet(still.context, 5.0, tmp_path, "local[1]")

    def after(seconds: float) -> bool:
        now[0] += seconds
        return quiet.reached()

    assert [after(3), after(4)] == [False] * 2
    still.admin.high[still.names.topic("output"), 1] = 12
    assert [after(2), after(4)] == [False] * 2
    still.admin.high[still.names.input, 1] = 12  # no output
    still.admin.stable[still.names.topic("output"), 1] = 12  # what was written before is decided
    assert after(1)


@pytest.mark.parametrize(
    ("by", "what"),
    [("quiet: 5s", "no new output for 5 s"), ("sentinel", "an output of the last input of each partition on every")],
)
def test_what_shows_that_an_application_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str, what: str
) -> None:
    looked: list[object] = []

    def looks(*about: object) -> SimpleNamespace:
        looked.append(about)
        return SimpleNamespace(reached=lambda: True)

    monkeypatch.setattr(done, "Quiet" if by.startswith("quiet") else "Sentinel", looks)
    waited: list[str] = []
    monkeypatch.setattr(done, "until", lambda says, _, **__: waited.append(says))
    still = described(by)
    done.wait(still.context, tmp_path, "local[1]")
    assert waited[0].startswith(what) and len(looked) == 1


@pytest.mark.parametrize("positions", [{0: 10, 1: 10}, {0: 10, 1: 9}, {0: 10}])
def test_positions_in_a_database_show_what_was_processed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, positions: dict[int, int]
) -> None:
    monkeypatch.setattr(sessions, "session", lambda _: None)
    monkeypatch.setattr(records, "positions", lambda _, __, folder: positions if folder == tmp_path else {})
    reached: list[bool] = []
    monkeypatch.setattr(done, "until", lambda _, looks, **__: reached.append(looks()))
    done.wait(StillContext("database").context, tmp_path, "local[1]")
    assert reached == [positions == {0: 10, 1: 10}]


def test_lag_counts_only_where_records_remain(asked: list[dict[Partition, tuple[int, int]]]) -> None:
    still = at_rest("chain")
    [(first, read), (second, middle)] = still.names.read
    still.admin.committed[first] = {(read, 0): (6, ""), (read, 1): (10, "")}
    still.admin.committed[second] = {(middle, 1): (9, "")}
    still.admin.starts[middle, 0] = 3
    assert settled.lag(still.context) == 4 + 7
    assert (settled.lag(still.context, read), settled.lag(still.context, middle)) == (4, 7)
    assert asked[0] == {(read, 0): (6, 10), (middle, 0): (3, 10), (middle, 1): (9, 10)}


def test_an_lso_below_the_high_watermark() -> None:
    still = at_rest()
    still.admin.stable[OFFSETS, 0] = 8
    still.admin.stable[still.names.topic("output"), 1] = 9
    assert settled.lso_behind(still.context) == {
        (OFFSETS, 0): (8, 10),
        (still.names.topic("output"), 1): (9, 10),
    }


@pytest.mark.parametrize(
    ("leader", "isr", "wrong"), [(2, (1, 2), True), (None, (1, 2, 3), True), (2, (1, 2, 3), False)]
)
def test_replicas_out_of_sync(leader: int | None, isr: tuple[int, ...], wrong: bool) -> None:
    still = at_rest()
    still.admin.states = held("__transaction_state", leader=leader, isr=isr)
    assert settled.not_in_sync(still.context) == (["__transaction_state/1"] if wrong else [])


def test_a_run_at_rest_is_recorded_as_such(tmp_path: Path) -> None:
    still = at_rest()
    ended = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")
    for worker, state in enumerate(ended):
        name = still.names.transactional_id(worker)
        still.admin.transactions[name] = transaction(name, state, (still.names.input, 0))
    quiesce(still.context, tmp_path, "local[1]")
    assert still.noted == [Quiesced(lso_behind=[])]
    assert still.calls == ["stop workers", "close 6", "stop observers"]


def test_what_does_not_come_to_rest_is_recorded(tmp_path: Path) -> None:
    """Consumers lag, a transaction is open, an LSO stays behind, and a replica is out of sync."""
    still = at_rest()
    still.admin.committed.clear()
    name = still.names.transactional_id(0)
    still.admin.transactions[name] = transaction(name, "Ongoing", (still.names.input, 0))
    still.admin.stable[still.names.topic("output"), 0] = 7
    still.admin.states = held(OFFSETS, isr=(1,))
    quiesce(still.context, tmp_path, "local[1]")
    waited = [each.reason.partition("; last seen")[0].partition(" for ")[2] for each in of(still, Stalled)]
    assert waited == ["lag 0", "no open transaction", "full ISR"]
    [quiesced] = of(still, Quiesced)
    assert [(each.topic, each.lso, each.hw) for each in quiesced.lso_behind] == [(still.names.topic("output"), 7, 10)]


def test_a_system_that_does_not_tell_transactions_is_not_asked_for_them(tmp_path: Path) -> None:
    still = StillContext(capabilities=["log-access"])
    still.admin.committed = at_rest().admin.committed
    name = still.names.transactional_id(0)
    still.admin.transactions[name] = transaction(name, "Ongoing", (still.names.input, 0))
    quiesce(still.context, tmp_path, "local[1]")
    assert still.noted == [Quiesced(lso_behind=[])]
