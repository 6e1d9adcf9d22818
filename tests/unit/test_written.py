"""What was acknowledged is in the log as it was sent, or it is lost."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onceproof.harness.record.results import Finding
from onceproof.harness.record.tables import BATCHES, REQUESTS
from onceproof.verifiers import completeness, written
from onceproof.verifiers.evidence.tables import Tables
from onceproof.verifiers.written import Sent, acknowledged, wrong

PLACE = ("op-1-output", 3)


def produced(
    crc: int = 17, sequence: int = 40, *, error: int = 0, acks: int = -1, producer: int = 4000
) -> dict[str, Any]:
    """A Produce and its response, as the table `requests` has it."""
    batch = {"topic": PLACE[0], "partition": PLACE[1], "producerId": producer, "producerEpoch": 2, "records": 5}
    asked = {"acks": acks, "batches": [{**batch, "baseSequence": sequence, "crc": crc}]}
    place = {"index": PLACE[1], "errorCode": error, "baseOffset": 812}
    told = {"responses": [{"name": PLACE[0], "partitionResponses": [place]}]}
    return {"api": 0, "worker": 1, "request": json.dumps(asked), "response": json.dumps(told)}


def sent(*rows: dict[str, Any]) -> list[Sent]:
    return list(acknowledged(rows))


def test_what_was_acknowledged() -> None:
    assert sent(produced()) == [Sent(place=PLACE, key=(4000, 2, 40), crc=17, records=5, offset=812, worker=1)]


@pytest.mark.parametrize(
    "row",
    [
        produced(error=45),
        produced(acks=1),
        produced(producer=-1),
        produced() | {"response": None},
        produced() | {"api": 26},
    ],
)
def test_what_was_not_acknowledged_is_not_asked_for(row: dict[str, Any]) -> None:
    assert sent(row) == []


def in_log(*batches: tuple[int, int]) -> dict[tuple[str, int], dict[tuple[int, int, int], int]]:
    """A partition with these batches: sequence number and CRC."""
    return {PLACE: {(4000, 2, sequence): crc for sequence, crc in batches}}


def test_a_repetition_is_in_the_log_once() -> None:
    assert list(wrong(sent(produced(), produced()), in_log((40, 17)))) == []


def test_another_batch_has_its_sequence_number() -> None:
    found = list(wrong(sent(produced(1, 35), produced(17), produced(99)), in_log((35, 1), (40, 17))))
    assert [(each.crc, there) for each, there in found] == [(99, 17)]


def test_a_batch_that_is_nowhere() -> None:
    found = list(wrong(sent(produced(1, 35), produced(17)), in_log((35, 1))))
    assert [(each.crc, there) for each, there in found] == [(17, None)]


def test_a_partition_that_the_broker_writes_anew_is_not_judged() -> None:
    assert list(wrong(sent(produced(1, 35), produced(17)), in_log((35, 8), (40, 9)))) == []


def test_a_broker_that_compresses_writes_some_batches_anew() -> None:
    found = list(wrong(sent(produced(1, 35), produced(17), produced(3, 45)), in_log((35, 1), (40, 9)), as_sent=False))
    assert [(each.crc, there) for each, there in found] == [(3, None)]


def test_a_partition_that_is_not_whole_is_not_judged() -> None:
    assert list(wrong(sent(produced(1, 35), produced(17)), {})) == []


def test_batches_whose_bytes_were_not_recorded_are_not_judged() -> None:
    row = produced()
    asked = json.loads(row["request"])
    del asked["batches"][0]["crc"]
    assert sent(row | {"request": json.dumps(asked)}) == []


def judged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, start: int = 0, whole: bool = True, compression: str = ""
) -> Sequence[Finding]:
    """The findings of a run whose client was told that sequence 40 was written twice, with two CRCs.

    The replica on broker1 is that of the leader, and the one on broker2 has the other batch. A marker of the same
    producer has no sequence number.
    """
    empty = dict.fromkeys(BATCHES.columns) | {"topic": PLACE[0], "partition": PLACE[1], "producer_id": 4000}
    first = empty | {"broker": "broker1", "producer_epoch": 2, "sequence": 35, "crc": 1}
    batch = first | {"sequence": 40, "crc": 17}
    marker = batch | {"control": "commit", "crc": 3}
    other = batch | {"broker": "broker2", "crc": 99}
    asked = [produced(1, 35), produced(17), produced(99), produced(3)]
    (folder / "tables").mkdir()
    for table, rows in ((BATCHES, [first, batch, marker, other]), (REQUESTS, asked)):
        filled = [dict.fromkeys(table.columns) | row for row in rows]
        pq.write_table(pa.Table.from_pylist(filled, table.arrow), folder / "tables" / f"{table.name}.parquet")
    monkeypatch.setattr(completeness, "incomplete", lambda _: {} if whole else {("output", PLACE[1]): "a hole"})
    pinned = [{"topic": PLACE[0], "partition": PLACE[1], "start": start, "leader": "broker1"}]
    settings = {"compression.type": compression} if compression else {}
    planned = SimpleNamespace(scenario=SimpleNamespace(cluster=SimpleNamespace(settings=settings)))
    tables = SimpleNamespace(
        folder=folder, pinned=pinned, role=lambda topic: topic.removeprefix("op-1-"), samples_max=5, plan=planned
    )
    monkeypatch.setattr(written, "explained", lambda _, __, samples: samples)
    return written.CHECK.run(cast("Tables", tables)).findings


def test_the_leader_of_each_partition_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [finding] = judged(tmp_path, monkeypatch)
    assert (finding.cls, finding.count) == ("lost", 2)
    assert [(each["sent_crc"], each["crc_in_the_log"]) for each in finding.samples] == [(99, 17), (3, 17)]


@pytest.mark.parametrize("keys", [{"start": 1}, {"whole": False}])
def test_what_is_not_in_the_log_of_a_partition_that_lacks_records_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any]
) -> None:
    assert judged(tmp_path, monkeypatch, **keys) == []


@pytest.mark.parametrize(("compression", "crcs"), [("producer", [99, 3]), ("zstd", [])])
def test_brokers_with_a_compression_of_their_own_write_batches_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str, crcs: list[int]
) -> None:
    found = judged(tmp_path, monkeypatch, compression=compression)
    assert [sample["sent_crc"] for each in found for sample in each.samples] == crcs


def test_a_right_run_has_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "wrong", lambda *_, **__: [])
    assert judged(tmp_path, monkeypatch) == []
