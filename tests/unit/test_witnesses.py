"""What a worker says of its transactions, compared with the requests of its client."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onceproof.harness.model import registry
from onceproof.harness.record.events import parse
from onceproof.harness.record.history import Events
from onceproof.harness.record.tables import REQUESTS
from onceproof.verifiers import witnesses
from onceproof.verifiers.evidence.tables import Tables

PRODUCE, OFFSET_FETCH, ADD, END, TXN_OFFSET, HEARTBEAT = 0, 9, 24, 26, 28, 68
INPUT, OUTPUT = "op-1-input", "op-1-output"
ID = {"transactionalId": "app"}
Row = dict[str, Any]


class Told:
    """A run of one worker: what it reports, and what its client sends."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder, self.workload = tmp_path, "copy"
        self.events: list[Row] = [{"event": "started", "source": "worker-0", "at": 0.0, "incarnation": 1, "pid": 7}]
        self.rows: list[Row] = []
        self._numbers: dict[int, int] = {}

    def says(self, kind: str, t: float, transaction: int, incarnation: int = 1, **keys: Any) -> None:
        self._numbers[incarnation] = n = self._numbers.get(incarnation, 0) + 1
        head = {"event": kind, "source": "worker-0", "at": t, "t": t, "n": n, "incarnation": incarnation}
        self.events.append({**head, "transaction": transaction, **keys})

    def asks(self, api: int, at: float, body: Row, told: Row | None = None, *, connection: int = 1) -> None:
        about = {"worker": 0, "link": "lane1->broker1", "connection": connection, "correlation": len(self.rows)}
        answer = {"answered": at + 0.01, "response": json.dumps(told)} if told is not None else {}
        row = (
            dict.fromkeys(REQUESTS.columns) | about | {"at": at, "api": api, "version": 1, "request": json.dumps(body)}
        )
        self.rows.append(row | answer)

    def transaction(self, number: int, at: float, first: int, *, ends: bool = True) -> None:
        """A whole transaction of ten records, as a worker and its client tell of it."""
        whole: dict[str, Any] = {"sources": {"3": [first, first + 10]}, "records": 10}
        outputs = {f"{OUTPUT}/3": [10, first, first + 9]}
        self.says("begin", at, number)
        self.asks(ADD, at + 0.1, {"v3AndBelowTransactionalId": "app"}, {})
        batch = {"topic": OUTPUT, "partition": 3, "records": 10}
        place = {"index": 3, "errorCode": 0, "baseOffset": first}
        acknowledged = {"responses": [{"name": OUTPUT, "partitionResponses": [place]}]}
        self.asks(PRODUCE, at + 0.2, {**ID, "batches": [batch]}, acknowledged)
        position = {"partitionIndex": 3, "committedOffset": first + 10}
        self.asks(TXN_OFFSET, at + 0.3, {**ID, "topics": [{"name": INPUT, "partitions": [position]}]}, {})
        self.says("invoke", at + 0.4, number, outputs=outputs, **whole)
        if ends:
            self.asks(END, at + 0.5, {**ID, "committed": True}, {"errorCode": 0})
            self.says("outcome", at + 0.6, number, type="ok", **whole)

    def tables(self) -> Tables:
        (self.folder / "tables").mkdir(exist_ok=True)
        rows = sorted(self.rows, key=lambda row: float(row["at"]))
        pq.write_table(pa.Table.from_pylist(rows, REQUESTS.arrow), self.folder / "tables" / "requests.parquet")
        return cast(
            "Tables",
            SimpleNamespace(
                folder=self.folder,
                events=Events([parse(each) for each in self.events]),
                input_topic=INPUT,
                topic=lambda role: f"op-1-{role}",
                workload=registry.workload(self.workload),
                facts={"rows": {"requests": len(rows)}},
            ),
        )

    def differences(self) -> list[str]:
        judged = witnesses.CHECK.run(self.tables())
        assert not judged.findings
        return [reason.says.removeprefix("the witnesses differ: ") for reason in judged.reasons]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_two_witnesses_that_agree(told: Told) -> None:
    told.asks(OFFSET_FETCH, 0.5, {}, {"groups": [{"topics": [{"name": INPUT, "partitions": []}]}]})
    told.transaction(1, 1.0, 0)
    told.transaction(2, 2.0, 11)
    assert told.differences() == []
    events = witnesses.narrated(told.tables())
    assert [(each["event"], each["transaction"]) for _, each in events] == [
        (kind, number) for number in (1, 2) for kind in ("begin", "invoke", "outcome")
    ]
    assert [each["n"] for _, each in events] == [1, 2, 3, 4, 5, 6]


def test_a_commit_that_no_broker_acknowledged(told: Told) -> None:
    told.transaction(1, 1.0, 0)
    told.rows[-1].update(answered=None, response=None)
    assert told.differences() == [
        "transaction 1 of worker-0.1 was committed, as the worker says, but no broker told its client so"
    ]


def test_what_no_broker_acknowledged_is_not_compared(told: Told) -> None:
    """The commit is said to have succeeded, and that it did not is what is wrong."""
    told.transaction(1, 1.0, 0)
    told.rows[-1].update(answered=None, response=None)
    [produced] = [row for row in told.rows if row["api"] == PRODUCE]
    produced["response"] = produced["response"].replace('"baseOffset": 0', '"baseOffset": 40')
    assert len(told.differences()) == 1


@pytest.mark.parametrize("code", [47, 90])
def test_a_commit_that_a_broker_refused(told: Told, code: int) -> None:
    told.transaction(1, 1.0, 0)
    told.rows[-1]["response"] = json.dumps({"errorCode": code})
    assert len(told.differences()) == 1


def test_a_commit_that_was_sent_again(told: Told) -> None:
    """The first answer was lost, or said that the coordinator was busy."""
    told.transaction(1, 1.0, 0, ends=False)
    told.asks(END, 1.50, {**ID, "committed": True})
    told.asks(END, 1.52, {**ID, "committed": True}, {"errorCode": 51}, connection=2)
    told.asks(END, 1.54, {**ID, "committed": True}, {"errorCode": 0}, connection=2)
    told.says("outcome", 1.6, 1, type="ok", sources={"3": [0, 10]}, records=10)
    told.transaction(2, 2.0, 11)
    assert told.differences() == []


def test_an_abort_whose_client_asked_for_the_commit(told: Told) -> None:
    told.transaction(1, 1.0, 0)
    told.events[-1]["type"] = "fail"
    assert told.differences() == [
        "transaction 1 of worker-0.1 was aborted, as the worker says, but its client asked for its commit"
    ]


def test_an_abort(told: Told) -> None:
    told.says("begin", 1.0, 1)
    told.asks(ADD, 1.1, {"v3AndBelowTransactionalId": "app"}, {})
    told.asks(END, 1.5, {**ID, "committed": False}, {"errorCode": 0})
    told.says("outcome", 1.6, 1, type="fail", sources={}, records=0)
    told.says("begin", 1.7, 2)  # of which no request was sent
    told.says("outcome", 1.8, 2, type="fail", sources={}, records=0)
    told.transaction(3, 2.0, 0)
    assert told.differences() == []


def test_other_outputs(told: Told) -> None:
    told.transaction(1, 1.0, 0)
    [produced] = [row for row in told.rows if row["api"] == PRODUCE]
    produced["response"] = produced["response"].replace('"baseOffset": 0', '"baseOffset": 40')
    [says] = told.differences()
    assert says == (
        "transaction 1 of worker-0.1 has other outputs in the responses to its client than in the worker's report"
    )


def test_outputs_of_which_the_worker_does_not_know_the_offsets(told: Told) -> None:
    """Its client had no answer for one partition, and the broker's answer to another request has that one."""
    told.transaction(1, 1.0, 0)
    [invoked] = [each for each in told.events if each["event"] == "invoke"]
    invoked["outputs"] = {f"{OUTPUT}/3": [10, -1, -1], f"{OUTPUT}/4": [10, -1, -1]}
    assert told.differences() == []


def test_offsets_that_are_not_in_the_transaction(told: Told) -> None:
    told.transaction(1, 1.0, 0)
    told.rows = [row for row in told.rows if row["api"] != TXN_OFFSET]
    assert told.differences() == []


def test_what_other_processes_do_is_not_compared(told: Told) -> None:
    told.events.append({"event": "started", "source": "observer", "at": 0.5, "pid": 8})
    told.transaction(1, 1.0, 0)
    assert told.differences() == []


def test_assignments_are_not_compared(told: Told) -> None:
    told.asks(HEARTBEAT, 0.5, {}, {"assignment": {"topicPartitions": [{"name": INPUT, "partitions": [3]}]}})
    told.transaction(1, 1.0, 0)
    assert told.differences() == []
    assert witnesses.narrated(told.tables())[0][1]["event"] == "assigned"


def test_the_second_service_of_a_chain_reads_the_topic_between(told: Told) -> None:
    told.workload = "chain"
    told.events.append({"event": "started", "source": "worker-1", "at": 0.0, "incarnation": 1, "pid": 8})
    for topic, position in ((INPUT, 5), ("op-1-middle", 7)):
        partitions = [{"partitionIndex": 3, "committedOffset": position}]
        told.asks(TXN_OFFSET, 1.0, {**ID, "topics": [{"name": topic, "partitions": partitions}]}, {})
    told.asks(END, 1.5, {**ID, "committed": True}, {"errorCode": 0})
    for row in told.rows:
        row.update(worker=1, link="lane2->broker1")
    *_, (worker, outcome) = witnesses.narrated(told.tables())
    assert (worker, outcome["sources"]) == (1, {"3": (0, 7)})


def test_other_offsets(told: Told) -> None:
    told.transaction(1, 1.0, 0)
    [sent] = [row for row in told.rows if row["api"] == TXN_OFFSET]
    sent["request"] = sent["request"].replace('"committedOffset": 10', '"committedOffset": 12')
    [says] = told.differences()
    assert says == (
        "transaction 1 of worker-0.1 has other offsets in the requests of its client than in the worker's report"
    )


def test_a_transaction_that_no_worker_began(told: Told) -> None:
    told.transaction(1, 1.0, 0)
    told.events = [each for each in told.events if each["event"] == "started"]
    assert told.differences() == ["transaction 1 of the requests of worker-0.1 was begun by no worker"]


def test_the_next_process_of_a_worker(told: Told) -> None:
    """The first process was killed inside a transaction, and the second one goes on with the next number."""
    told.transaction(1, 1.0, 0, ends=False)
    told.events.append({"event": "started", "source": "worker-0", "at": 5.0, "incarnation": 2, "pid": 8})
    told.says("begin", 6.0, 2, incarnation=2)
    told.asks(ADD, 6.1, {"v3AndBelowTransactionalId": "app"}, {}, connection=9)
    told.asks(END, 6.2, {**ID, "committed": True}, {"errorCode": 0}, connection=9)
    told.says("outcome", 6.3, 2, incarnation=2, type="ok", sources={}, records=0)
    assert told.differences() == []
    assert [(e["incarnation"], e["event"], e["n"]) for _, e in witnesses.narrated(told.tables())] == [
        (1, "begin", 1),
        (2, "begin", 1),
        (2, "invoke", 2),
        (2, "outcome", 3),
    ]


def test_many_differences_are_counted(told: Told) -> None:
    for number in range(1, 9):
        told.transaction(number, float(number), 11 * number)
    for each in told.events:
        if each["event"] == "outcome":
            each["type"] = "fail"
    says = told.differences()
    assert len(says) == 6
    assert says[-1] == "the witnesses differ in 8 places"
