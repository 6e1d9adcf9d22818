"""`onceproof audit` of what production clusters are like: compacted, retained, idempotent, copied one by one."""

from pathlib import Path

import pytest

from tests.kafka_writer import batch, idempotent_batch, marker
from tests.unit.test_audit import COMPLETE_COMMIT, DECIDED, committed, decided, directory, judged, records, state

pytestmark = pytest.mark.usefixtures("spark")


def written(*offsets: int) -> bytes:
    """The states of committed transactions at these offsets."""
    return b"".join(
        state(each, DECIDED[each % 3], partitions=() if DECIDED[each % 3] == COMPLETE_COMMIT else (0,))
        for each in offsets
    )


def test_each_broker_cleans_a_compacted_log_by_itself(tmp_path: Path) -> None:
    """The states of the first transaction are gone on one broker, which has noted how far its cleaner was."""
    one = directory(tmp_path / "b1", out=committed(2), states=decided(2))
    cleaned = ("__transaction_state 0 3",)
    other = directory(tmp_path / "b2", node=2, out=committed(2), states=written(0, 3, 4, 5), cleaned=cleaned)
    assert judged(one, other) == ([], [])
    (other / "cleaner-offset-checkpoint").unlink()
    places, [reason] = judged(one, other)
    assert places == []
    assert reason.startswith("replicas of 1 partitions were not compared") and reason.endswith("__transaction_state/0")


def test_states_are_those_of_the_replica_that_has_the_latest(tmp_path: Path) -> None:
    """The larger log is of a broker that died in the second transaction, before a cleaner had been there."""
    one = directory(tmp_path / "b1", out=committed(2), states=written(3, 4, 5), cleaned=("__transaction_state 0 4",))
    other = directory(tmp_path / "b2", node=2, out=committed(1), states=written(0, 1, 2, 3))
    assert judged(one, other)[0] == []


def test_the_first_batch_of_a_producer_that_a_broker_does_not_know(tmp_path: Path) -> None:
    """It may have any sequence number, as after the topic was made again; one of a new epoch begins with 0."""
    first = idempotent_batch(0, records(3), sequence=5000, epoch=0)
    path = directory(
        tmp_path / "legal", out=first + idempotent_batch(3, records(2), sequence=5003, epoch=0), states=decided()
    )
    assert judged(path, stopped=False)[0] == []
    new = idempotent_batch(3, records(2), sequence=4, epoch=1)
    path = directory(tmp_path / "wrong", out=first + new, states=decided())
    assert judged(path, stopped=False)[0] == [("lost", "out", 0, 3)]


def test_a_batch_of_an_older_epoch_without_a_transaction(tmp_path: Path) -> None:
    batches = (
        idempotent_batch(3 * n, records(3), sequence=s, epoch=e) for n, (s, e) in enumerate([(0, 0), (0, 1), (3, 0)])
    )
    path = directory(tmp_path / "b1", out=b"".join(batches), states=decided())
    assert judged(path, stopped=False)[0] == [("zombie-write", "out", 0, 6)]


def test_brokers_that_were_stopped_and_copied_one_after_the_other(tmp_path: Path) -> None:
    """The coordinator went on after the first broker had been copied."""
    one = directory(tmp_path / "b1", out=committed(1), states=decided(1))
    other = directory(tmp_path / "b2", node=2, out=b"", states=decided(2))
    for path in (one, other):
        (path / ".kafka_cleanshutdown").touch()
    places, reasons = judged(one, other, stopped=False)
    assert places == [] and any("the ends of the logs may be missing" in each for each in reasons)


def test_a_partition_whose_records_have_expired(tmp_path: Path) -> None:
    assert judged(directory(tmp_path / "b1", out=b"", base=1234, states=decided(3))) == ([], [])


def test_a_leader_that_died_had_a_longer_log(tmp_path: Path) -> None:
    """Its successor ended the transaction, which is open in what only the dead leader had."""
    kept = committed(1)
    dead = directory(
        tmp_path / "b1",
        out=kept + batch(11, records(50), "none", sequence=10),
        states=decided(),
        hw=11,
        epochs=("4 0",),
    )
    epochs = ("4 0", "5 11")
    live = directory(
        tmp_path / "b2",
        node=2,
        out=kept + batch(11, records(10), "none", sequence=10) + marker(21, True),
        states=decided(2),
        epochs=epochs,
    )
    assert judged(dead, live)[0] == []


def test_replicas_are_compared_as_far_as_two_of_them_reach(tmp_path: Path) -> None:
    written = bytearray(committed(3))
    written[len(committed(2)) + 80] ^= 1
    one = directory(tmp_path / "b1", out=committed(3), states=decided(3))
    other = directory(tmp_path / "b2", node=2, out=bytes(written), states=decided(3))
    behind = directory(tmp_path / "b3", node=3, out=committed(1), states=decided(3))
    assert judged(one, other, behind) == ([("replica-divergence", "out", 0, 22)] * 2, [])
    for path in (one, other, behind):
        (path / "replication-offset-checkpoint").unlink()
    places, reasons = judged(one, other, behind, stopped=False)
    assert places == [] and len(reasons) == 2
    assert "out/0 on broker 2 offset 22: the bytes do not have their CRC" in reasons
    assert any(each.startswith("replicas of 2 partitions were not compared") for each in reasons)


def test_a_replica_that_has_lost_its_end(tmp_path: Path) -> None:
    one = directory(tmp_path / "b1", out=committed(2), states=decided(2))
    other = directory(tmp_path / "b2", node=2, out=committed(1), states=decided(2), hw=22)
    assert judged(one, other) == ([], ["out/0 on broker 2 ends at 11, below its high watermark 22"])


def test_directories_at_different_depths(tmp_path: Path) -> None:
    directory(tmp_path / "b1", out=committed(), states=decided())
    written = bytearray(committed())
    written[90] ^= 1
    directory(tmp_path / "b2" / "data1", node=2, out=bytes(written), states=decided())
    assert {cls for cls, *_ in judged(tmp_path)[0]} == {"replica-divergence"}
