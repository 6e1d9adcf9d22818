"""The transactions that a client's requests tell, and whose batches and committed offsets they are."""

import base64
import struct
from typing import Any

import pytest

from onceproof.harness.record.narrator import Narrator

PRODUCE, OFFSET_COMMIT, OFFSET_FETCH, SYNC_GROUP, INIT = 0, 8, 9, 14, 22
ADD, ADD_OFFSETS, END, TXN_OFFSET, HEARTBEAT = 24, 25, 26, 28, 68
FENCED, NOT_COORDINATOR = 90, 16
ID = {"transactionalId": "app"}
PRODUCER = {"producerId": 4000, "producerEpoch": 2}
Body = dict[str, Any]


class Client:
    """A client of worker 0, whose requests are a second apart. An answer comes half a second after its request."""

    def __init__(self) -> None:
        self.told: list[Body] = []
        self.narrator = Narrator(read=lambda _: "in", emit=lambda _, event: self.told.append(event))
        self.narrator.started(0, 1)
        self.now = 0.0

    def send(self, api: int, body: Body, answer: Body | None = None, *, connection: int = 1) -> None:
        self.now += 1
        row = {"worker": 0, "link": "lane1->broker1", "connection": connection, "api": api, "at": self.now}
        transaction = self.narrator.asked(row, body)
        if answer is not None:
            self.narrator.told(row | {"answered": self.now + 0.5}, body, answer, transaction)

    def add(self) -> None:
        self.send(ADD, {"v3AndBelowTransactionalId": "app"}, {})

    def produce(
        self, first: int, *, records: int = 10, error: int = 0, sequence: int = 0, crc: int | None = None
    ) -> None:
        batch = {"topic": "out", "partition": 3, "records": records, "baseSequence": sequence, "crc": crc, **PRODUCER}
        place = {"index": 3, "errorCode": error, "baseOffset": first}
        answer = {"responses": [{"name": "out", "partitionResponses": [place]}]}
        self.send(PRODUCE, {**ID, "batches": [batch]}, answer)

    def commit_offset(self, position: int, topic: str = "in", partition: int = 3, error: int | None = 0) -> None:
        partitions = [{"partitionIndex": partition, "committedOffset": position}]
        codes = [{"partitionIndex": partition, "errorCode": error}]
        answer = None if error is None else {"topics": [{"name": topic, "partitions": codes}]}
        self.send(TXN_OFFSET, {**ID, **PRODUCER, "topics": [{"name": topic, "partitions": partitions}]}, answer)

    def end(self, *, committed: bool = True, error: int | None = 0) -> None:
        self.send(END, {**ID, "committed": committed}, None if error is None else {"errorCode": error})

    def close(self, at: float) -> None:
        self.narrator.closed({"link": "lane1->broker1", "connection": 1, "at": at})

    def wait(self, *, at: float = 3.0, event: str = "stopped", transaction: int = 1) -> None:
        about = {"rule": "03-kill-worker", "phase": "before-commit", "count": 1, "link": "lane1->broker2"}
        self.narrator.stopped(0, {"event": event, "at": at, "transaction": transaction, **about})

    def kinds(self) -> list[str]:
        return [str(each.get("type", each["event"])) for each in self.told]

    def last(self) -> Body:
        return self.told[-1]


@pytest.fixture
def client() -> Client:
    return Client()


def test_a_transaction(client: Client) -> None:
    client.add()
    client.produce(40)
    client.commit_offset(12)
    client.end()
    whole = {"transaction": 1, "sources": {"3": (0, 12)}, "records": 12, "incarnation": 1}
    assert client.told == [
        {"event": "begin", "n": 1, "t": 1.0, "incarnation": 1, "transaction": 1},
        {"event": "invoke", "n": 2, "t": 4.0, "outputs": {"out/3": (10, 40, 49)}, "sent": 3.0, **whole},
        {"event": "outcome", "n": 3, "t": 4.5, "type": "ok", **whole},
    ]


@pytest.mark.parametrize("api", [ADD, ADD_OFFSETS, PRODUCE, TXN_OFFSET])
def test_what_begins_a_transaction(client: Client, api: int) -> None:
    client.send(api, ID)
    assert client.kinds() == ["begin"]


def test_what_begins_none(client: Client) -> None:
    client.send(INIT, ID, {"errorCode": 0})
    client.send(PRODUCE, {"transactionalId": None})
    client.end()
    assert client.told == []


def test_a_request_of_another_kind_ends_no_transaction(client: Client) -> None:
    client.add()
    client.send(HEARTBEAT, ID, {"errorCode": 0})
    client.send(INIT, {**ID, "keepPreparedTxn": True}, {"errorCode": 0})  # KIP-939
    client.end()
    assert client.kinds() == ["begin", "invoke", "ok"]


def test_an_abort_is_no_commit(client: Client) -> None:
    client.add()
    client.commit_offset(12)
    client.end(committed=False)
    client.add()
    client.commit_offset(12)
    client.end()
    assert client.kinds() == ["begin", "fail", "begin", "invoke", "ok"]
    assert client.last()["sources"] == {"3": (0, 12)}  # the aborted transaction's inputs are read again


def test_inputs_begin_where_the_last_transaction_ended(client: Client) -> None:
    for position in (12, 20):
        client.add()
        client.commit_offset(position)
        client.end()
    assert (client.last()["sources"], client.last()["records"]) == ({"3": (12, 20)}, 8)


@pytest.mark.parametrize("nested", [True, False])
def test_inputs_begin_at_the_committed_offset(client: Client, nested: bool) -> None:
    partitions = [{"partitionIndex": 3, "committedOffset": 7}, {"partitionIndex": 4, "committedOffset": -1}]
    others = [{"partitionIndex": 3, "committedOffset": 5}]
    topics = {"topics": [{"name": "in", "partitions": partitions}, {"name": "other", "partitions": others}]}
    client.send(OFFSET_FETCH, {}, {"groups": [topics]} if nested else topics)
    client.commit_offset(12)
    client.commit_offset(3, partition=4)
    client.commit_offset(99, topic="other")
    client.end()
    assert client.last()["sources"] == {"3": (7, 12), "4": (0, 3)}


def test_a_commit_is_answered_once(client: Client) -> None:
    client.add()
    client.end(error=NOT_COORDINATOR)
    client.end()
    client.end()
    assert client.kinds() == ["begin", "invoke", "ok"]


def test_a_commit_that_failed(client: Client) -> None:
    client.add()
    client.end(error=FENCED)
    assert (client.kinds(), client.last()["t"]) == (["begin", "invoke", "error", "info"], 2.5)
    client.add()
    assert client.kinds() == ["begin", "invoke", "error", "info", "begin"]


def test_a_commit_without_an_answer_is_info_when_the_next_one_begins(client: Client) -> None:
    client.add()
    client.end(error=None)
    client.add()
    assert client.kinds() == ["begin", "invoke", "info", "begin"]
    assert [each["transaction"] for each in client.told] == [1, 1, 1, 2]


@pytest.mark.parametrize(("steps", "kinds"), [(1, ["fail"]), (2, ["invoke", "info"]), (3, ["invoke", "ok"])])
def test_a_process_that_ends(client: Client, steps: int, kinds: list[str]) -> None:
    client.add()
    if steps > 1:
        client.end(error=None if steps == 2 else 0)
    client.narrator.ended(0, 1, 9.0)
    client.close(10.0)
    assert client.kinds() == ["begin", *kinds]


def test_what_a_process_had_sent_is_read_after_its_end(client: Client) -> None:
    """A killed client's request for a commit may still wait in a socket when its process has gone."""
    client.add()
    client.narrator.ended(0, 1, client.now)
    client.end()
    client.close(9.0)
    assert client.kinds() == ["begin", "invoke", "ok"]


@pytest.mark.parametrize("asked", [False, True])
def test_the_end_of_a_connection_that_is_never_seen(client: Client, asked: bool) -> None:
    client.add()
    if asked:
        client.end(error=None)
    client.narrator.ended(0, 1, 8.0)
    client.narrator.closed({"link": "lane1->broker1", "connection": 7, "at": 8.5})  # nothing was reported on it
    assert not client.narrator.closed_all()
    client.narrator.finish(9.0)
    assert client.kinds() == ["begin", *(["invoke"] if asked else []), "info"]
    client.close(10.0)
    assert client.narrator.closed_all()
    assert client.kinds()[-1] == "info" and client.last()["t"] == 9.0


def test_a_process_whose_successor_has_started_ends_its_own_transactions(client: Client) -> None:
    client.add()
    client.narrator.started(0, 2)
    client.send(ADD, {"v3AndBelowTransactionalId": "app"}, {}, connection=2)
    client.close(8.0)
    client.narrator.ended(0, 1, 9.0)
    assert client.kinds() == ["begin", "begin", "fail"]
    assert (client.last()["incarnation"], client.last()["transaction"]) == (1, 1)
    assert client.narrator.closed_all()  # the other one runs, so nobody waits for its connections
    client.narrator.finish(10.0)
    assert client.kinds() == ["begin", "begin", "fail"]


def test_what_has_ended_is_not_told_again(client: Client) -> None:
    client.add()
    client.end()
    client.narrator.ended(0, 1, 8.0)
    client.narrator.finish(9.0)
    assert client.kinds() == ["begin", "invoke", "ok"]


def test_a_connection_that_is_closed_does_not_end_a_process(client: Client) -> None:
    client.add()
    client.close(5.0)
    client.send(ADD_OFFSETS, ID, connection=2)
    client.send(END, {**ID, "committed": True}, {"errorCode": 0}, connection=2)
    assert client.kinds() == ["begin", "invoke", "ok"]


@pytest.mark.parametrize(
    ("before", "kinds"),
    [
        ([], ["begin", "fail", "begin"]),
        ([{"committed": False, "error": None}], ["begin", "fail", "begin"]),
        ([{"committed": True, "error": None}], ["begin", "invoke", "info", "begin"]),
        ([{"committed": True, "error": 0}], ["begin", "invoke", "ok", "begin"]),
    ],
)
def test_a_client_that_starts_anew_has_given_its_transaction_up(
    client: Client, before: list[Any], kinds: list[str]
) -> None:
    client.produce(40)
    for each in before:
        client.end(**each)
    client.send(INIT, {"transactionalId": "other"}, {"errorCode": 0})
    assert client.kinds() == kinds[: len(kinds) - 1 - (kinds[-2] in ("fail", "info"))]
    client.send(INIT, ID, {"errorCode": 0})
    client.produce(60)
    assert client.kinds() == kinds
    client.end()
    assert client.last()["transaction"] == 2 and client.told[-2]["outputs"] == {"out/3": (10, 60, 69)}


def test_a_request_that_waits_at_a_phase(client: Client) -> None:
    client.add()
    client.wait()
    client.wait(at=4.0, event="went-on")
    stop = {"phase": "before-commit", "fault": "03-kill-worker", "incarnation": 1}
    assert client.told[1:] == [
        {"event": "at-phase", "n": 2, "t": 3.0, "count": 1, "transaction": 1, **stop},
        {"event": "went-on", "n": 3, "t": 4.0, **stop},
    ]


def test_a_transaction_whose_end_is_asked_for_again_has_gone_on(client: Client) -> None:
    client.add()
    client.end(error=None)
    client.wait(transaction=1)
    client.end(error=NOT_COORDINATOR)
    client.end()
    assert client.kinds() == ["begin", "invoke", "at-phase", "went-on", "ok"]
    assert client.told[3] == {
        "event": "went-on",
        "n": 4,
        "t": 3.0,
        "phase": "before-commit",
        "fault": "03-kill-worker",
        "incarnation": 1,
    }
    client.add()
    client.end()
    assert client.kinds()[5:] == ["begin", "invoke", "ok"]


def test_a_stop_of_another_transaction_is_not_gone_on_from(client: Client) -> None:
    client.add()
    client.end(error=None)
    client.wait(transaction=2)
    client.end()
    assert client.kinds() == ["begin", "invoke", "at-phase", "ok"]


def test_batches_that_were_refused_or_not_asked_for_are_no_outputs(client: Client) -> None:
    client.produce(40)
    client.produce(60, error=FENCED, sequence=10)
    client.produce(-1, sequence=10)
    place = {"index": 4, "errorCode": 0, "baseOffset": 50}
    client.send(PRODUCE, {**ID, "batches": []}, {"responses": [{"name": "out", "partitionResponses": [place]}]})
    for _ in range(2):  # the first acknowledgement was lost
        client.produce(70, records=5, sequence=10)
    client.end()
    assert client.kinds() == ["begin", "error", "invoke", "ok"]
    assert client.told[2]["outputs"] == {"out/3": (15, 40, 74)}


def test_whose_a_batch_is(client: Client) -> None:
    client.produce(40)
    client.end()
    client.produce(40)  # sent again, late
    client.produce(50, sequence=10)
    places = [(4000, 2, "out", 3, sequence) for sequence in (0, 10)]
    assert client.narrator.batches == {places[0]: {None: (0, 1, 1)}, places[1]: {None: (0, 1, 2)}}
    assert client.narrator.positions == {}


def test_a_sequence_number_that_was_refused_is_given_again(client: Client) -> None:
    client.produce(-1, error=10, crc=5)
    client.end(committed=False)
    client.produce(40, crc=6)
    client.produce(40, crc=6)
    assert list(client.narrator.batches.values()) == [{5: (0, 1, 1), 6: (0, 1, 2)}]


@pytest.mark.parametrize(
    ("errors", "first"),
    [
        ([27], []),
        ([27, 27], []),
        ([None, 27], [(0, 1, 1)]),  # the first one may be in the log
        ([27, 0], [(0, 1, 1)]),
        ([15], [(0, 1, 1)]),  # COORDINATOR_NOT_AVAILABLE: it may have been appended
    ],
)
def test_offsets_that_were_refused_are_nobodys(client: Client, errors: list[int | None], first: list[Any]) -> None:
    for error in errors:
        client.commit_offset(12, error=error)
    client.end(committed=False)
    client.commit_offset(12)
    client.end()
    assert client.narrator.positions == {(4000, 2, 3, 12): [*first, (0, 1, 2)]}
    assert client.told[-1]["sources"] == {"3": (0, 12)}


def test_offsets_that_were_refused_are_not_committed(client: Client) -> None:
    client.commit_offset(12, error=27)
    client.end()
    assert client.told[-1]["sources"] == {}


def test_whose_a_committed_offset_is(client: Client) -> None:
    for _ in range(2):
        client.commit_offset(12)
        client.commit_offset(12)
        client.commit_offset(99, topic="other")
        client.end()
    assert client.narrator.positions == {(4000, 2, 3, 12): [(0, 1, 1), (0, 1, 2)]}
    assert client.narrator.batches == {}


def classic(*topics: tuple[str, list[int]]) -> str:
    data = struct.pack(">hi", 1, len(topics))
    for name, partitions in topics:
        data += struct.pack(
            f">h{len(name)}si{len(partitions)}i", len(name), name.encode(), len(partitions), *partitions
        )
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("api", "assignment"),
    [
        (SYNC_GROUP, classic(("other", [7, 8]), ("in", [2, 0]))),
        (HEARTBEAT, {"topicPartitions": [{"name": "other", "partitions": [7]}, {"name": "in", "partitions": [2, 0]}]}),
    ],
)
def test_an_assignment(client: Client, api: int, assignment: Any) -> None:
    client.send(api, {}, {"errorCode": 0, "assignment": assignment})
    assert client.told == [{"event": "assigned", "n": 1, "t": 1.5, "incarnation": 1, "partitions": [0, 2]}]


@pytest.mark.parametrize(
    "answer",
    [
        {"errorCode": 27, "assignment": classic(("in", [0]))},
        {"errorCode": 0, "assignment": ""},
        {"errorCode": 0, "assignment": None},
        {"errorCode": 0},
        {"errorCode": 0, "assignment": classic(("other", [0]))},
    ],
)
def test_no_assignment(client: Client, answer: Body) -> None:
    client.send(SYNC_GROUP, {}, answer)
    assert client.told == []


def test_partitions_that_are_added_are_no_offsets(client: Client) -> None:
    client.send(ADD, {**ID, **PRODUCER, "topics": [{"name": "in", "partitions": [3]}]}, {})
    assert client.narrator.positions == {}


def test_other_answers_tell_nothing(client: Client) -> None:
    client.send(ADD, ID, {"assignment": classic(("in", [0])), "topics": [{"name": "in", "partitions": [{}]}]})
    client.send(INIT, {}, {"assignment": classic(("in", [0]))})
    assert client.kinds() == ["begin"]


def in_partitions(key: str, *codes: int) -> Body:
    return {
        "topics": [{"name": "in", "partitions": [{"partitionIndex": p, key: code} for p, code in enumerate(codes)]}]
    }


@pytest.mark.parametrize(
    ("api", "answer", "call", "code", "fatal"),
    [
        (TXN_OFFSET, in_partitions("errorCode", 0, 25, 25), "TxnOffsetCommit", "UNKNOWN_MEMBER_ID", False),
        (TXN_OFFSET, in_partitions("errorCode", 47), "TxnOffsetCommit", "INVALID_PRODUCER_EPOCH", True),
        (ADD, in_partitions("partitionErrorCode", 90), "AddPartitionsToTxn", "PRODUCER_FENCED", True),
        (ADD_OFFSETS, {"errorCode": 48}, "AddOffsetsToTxn", "INVALID_TXN_STATE", True),
        (INIT, {"errorCode": 90}, "InitProducerId", "PRODUCER_FENCED", True),
    ],
)
def test_what_a_client_must_report(client: Client, api: int, answer: Body, call: str, code: str, fatal: bool) -> None:
    client.add()
    client.send(api, ID, answer)
    error = client.last()
    assert (error["event"], error["call"], error["code"]) == ("error", call, code)
    assert (error["fatal"], error["abortable"]) == (fatal, not fatal)
    began_anew = api == INIT
    assert (error["transaction"], len(client.told)) == (None if began_anew else 1, 2 + began_anew)


@pytest.mark.parametrize(
    ("api", "code"), [(SYNC_GROUP, 25), (HEARTBEAT, 110), (END, NOT_COORDINATOR), (PRODUCE, 6), (OFFSET_FETCH, 25)]
)
def test_what_a_client_repeats_or_reads_is_no_error(client: Client, api: int, code: int) -> None:
    client.add()
    client.send(api, ID | {"committed": True}, {"errorCode": code})
    assert "error" not in client.kinds()


def test_whose_member_ids_and_transactional_ids(client: Client) -> None:
    client.send(SYNC_GROUP, {"memberId": "one"}, {})
    client.send(HEARTBEAT, {"memberId": "two"}, {})
    client.send(TXN_OFFSET, {**ID, "memberId": "three"}, {})
    assert client.narrator.members == {0: {"one", "two"}}
    assert client.narrator.transactional_ids == {0: "app"}


def test_committed_offsets_of_an_application_without_transactions(client: Client) -> None:
    client.narrator = Narrator(
        read=lambda _: "in", emit=lambda _, event: client.told.append(event), transactional=False
    )
    client.narrator.started(0, 1)

    def commit(position: int, topic: str = "in", error: int = 0) -> None:
        asked = {"partitionIndex": 3, "committedOffset": position}
        told = {"partitionIndex": 3, "errorCode": error}
        topics = ([{"name": topic, "partitions": [each]}] for each in (asked, told))
        client.send(OFFSET_COMMIT, {"topics": next(topics)}, {"topics": next(topics)})

    commit(12, error=25)
    commit(12, topic="other")
    assert client.told == []
    commit(0)  # where it begins
    assert client.told == []
    commit(12)
    commit(12)
    commit(30)
    assert client.kinds() == ["begin", "ok", "begin", "ok"]
    assert client.last()["sources"] == {"3": (12, 30)} and client.last()["transaction"] == 2
    answered = [{"name": "in", "partitions": [{"partitionIndex": 3, "errorCode": 0}]}]
    client.send(TXN_OFFSET, {"groupId": "g", "topics": []}, {"topics": answered})
    assert len(client.kinds()) == 4


def test_offsets_outside_of_transactions_are_no_transaction(client: Client) -> None:
    topics = [{"name": "in", "partitions": [{"partitionIndex": 3, "committedOffset": 12, "errorCode": 0}]}]
    client.send(OFFSET_COMMIT, {"topics": topics}, {"topics": topics})
    assert client.told == []
