"""What the lints say of single requests, as the request proxy records them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onceproof.harness.context.journal import Journal, TopicNames
from onceproof.harness.model import registry
from onceproof.harness.record.tables import BATCHES, REQUESTS
from onceproof.verifiers import lints
from tests.unit.good_run import GoodRun

PRODUCE, FETCH, OFFSET_COMMIT, OFFSET_FETCH, INIT, ADD, END, TXN_OFFSET = 0, 1, 8, 9, 22, 24, 26, 28
JOIN: tuple[int, dict[str, Any]] = (11, {"groupId": "g"})
BATCH = {"producerId": 4000, "transactional": True}
Request = tuple[int, dict[str, Any]]


def produced(**batch: Any) -> Request:
    return PRODUCE, {"transactionalId": "app", "acks": -1, "batches": [{**BATCH, **batch}]}


def started(name: str = "app", timeout_ms: int = 60_000) -> Request:
    return INIT, {"transactionalId": name, "transactionTimeoutMs": timeout_ms}


def ended(*, committed: bool = True) -> Request:
    return END, {"transactionalId": "app", "committed": committed}


def sent(generation: int = 3, member: str = "m", name: str = "app") -> Request:
    return TXN_OFFSET, {"transactionalId": name, "generationId": generation, "memberId": member}


def linted(tmp_path: Path, *requests: Request, workload: str = "copy", written: str = "", worker: int = 0) -> list[str]:
    """The lints of these requests of a worker, one each second; `written` is a topic with transactions."""
    journal = Journal()
    for number, (api, body) in enumerate(requests):
        about = {"link": f"lane{worker + 1}->broker1", "connection": 1, "correlation": number}
        asked = {"at": float(number), "api": api, "version": 9, "client": "worker-0", "body": body}
        assert journal.takes({"event": "request", **about, **asked})
    (tmp_path / "tables").mkdir()
    table = tmp_path / "tables" / "requests.parquet"
    assert journal.write(table, {}) == len(requests)
    first = pq.read_table(table)
    assert journal.write(table, {}) == len(requests)
    assert pq.read_table(table) == first, "it can be written again"
    if not written:  # a system whose segments cannot be read
        return [each.name for each in lints.lints(tmp_path, registry.workload(workload)) or ()]
    batch = dict.fromkeys(BATCHES.columns) | {"topic": written, "transactional": bool(written)}
    pq.write_table(pa.Table.from_pylist([batch], BATCHES.arrow), tmp_path / "tables" / "batches.parquet")
    found = lints.lints(tmp_path, registry.workload(workload))
    assert found is not None
    return [each.name for each in found]


GOOD = (JOIN, started(), (ADD, {"v3AndBelowTransactionalId": "app"}), produced(), sent(), ended())


def test_a_right_pipeline_has_none(tmp_path: Path) -> None:
    uncommitted = FETCH, {"isolationLevel": 0}
    stable = OFFSET_FETCH, {"requireStable": True}
    assert linted(tmp_path, stable, uncommitted, *GOOD, ended(), written="op-1-output") == []


@pytest.mark.parametrize(
    ("requests", "name"),
    [
        ([JOIN, started(), sent(generation=-1)], "no-generation"),
        ([JOIN, started(), sent(member="")], "no-generation"),
        ([(OFFSET_FETCH, {"requireStable": False})], "unstable-offsets"),
        ([(OFFSET_FETCH, {})], "unstable-offsets"),
        ([(OFFSET_COMMIT, {"groupId": "g"})], "offsets-apart"),
        ([(PRODUCE, {"acks": 1, "batches": [BATCH]})], "acks"),
        ([produced(producerId=-1)], "not-idempotent"),
        ([produced(transactional=False)], "outside-transaction"),
        ([started(), ended()], "empty-commit"),
        ([*GOOD, started(), ended()], "empty-commit"),
        ([started(timeout_ms=500), produced(), ended()], "short-timeout"),
    ],
)
def test_a_request_that_breaks_a_rule(tmp_path: Path, requests: list[Request], name: str) -> None:
    assert linted(tmp_path, *requests) == [name]


@pytest.mark.parametrize(
    "requests",
    [
        [started(), ended(committed=False)],  # an abort of nothing
        [*GOOD, ended(), ended()],  # two retries of one EndTxn
        [started(timeout_ms=1_500), produced(), ended()],
        [(INIT, {"transactionalId": None, "transactionTimeoutMs": -1}), produced(transactional=True)],
        [started(), sent(generation=-1)],  # the partitions are its own by configuration
        [started(), (ADD, {"v3AndBelowTransactionalId": "app"}), ended()],  # what it sent was not acknowledged
    ],
)
def test_what_breaks_no_rule(tmp_path: Path, requests: list[Request]) -> None:
    assert linted(tmp_path, *requests) == []


def test_faults_may_make_transactions_long(tmp_path: Path) -> None:
    linted(tmp_path, started(timeout_ms=500), produced(), ended(), (OFFSET_FETCH, {}))
    found = lints.lints(tmp_path, registry.workload("copy"), faults=True) or []
    assert [each.name for each in found] == ["unstable-offsets"]


def test_read_uncommitted_is_one_of_a_topic_with_transactions_only(tmp_path: Path) -> None:
    fetch = FETCH, {"isolationLevel": 0}
    assert linted(tmp_path, JOIN, fetch, written="op-1-input") == ["read-uncommitted"]


def test_a_producer_without_transactions_is_no_new_id(tmp_path: Path) -> None:
    alone = INIT, {"transactionalId": None, "transactionTimeoutMs": -1}
    assert linted(tmp_path, JOIN, started(), sent(generation=-1), alone) == ["no-generation"]


def test_each_worker_of_one_service_reads_the_input(tmp_path: Path) -> None:
    assert linted(tmp_path, (FETCH, {"isolationLevel": 0}), written="op-1-input", worker=1) == ["read-uncommitted"]


@pytest.mark.parametrize(("worker", "expected"), [(0, []), (1, ["read-uncommitted"]), (3, ["read-uncommitted"])])
def test_the_second_service_of_a_chain_reads_transactions(tmp_path: Path, worker: int, expected: list[str]) -> None:
    fetch = FETCH, {"isolationLevel": 0}
    assert linted(tmp_path, fetch, workload="chain", written="op-1-middle", worker=worker) == expected


def test_a_reader_of_committed_records_of_a_topic_with_transactions(tmp_path: Path) -> None:
    assert linted(tmp_path, JOIN, (FETCH, {"isolationLevel": 1}), written="op-1-input") == []


def test_a_new_id_at_each_start(tmp_path: Path) -> None:
    again = [JOIN, started("a"), sent(-1, name="a"), started("b"), sent(-1, name="b")]
    assert linted(tmp_path, *again) == ["no-generation", "new-transactional-id"]


def test_the_same_id_at_each_start(tmp_path: Path) -> None:
    assert linted(tmp_path, JOIN, started(), sent(-1), started()) == ["no-generation"]


def test_an_id_that_is_bound_to_a_partition_needs_no_generation(tmp_path: Path) -> None:
    assert linted(tmp_path, JOIN, started(), sent(generation=-1), workload="copy-per-partition") == []


def test_a_new_id_with_a_generation(tmp_path: Path) -> None:
    assert linted(tmp_path, started("a"), sent(name="a"), started("b"), sent(name="b")) == []


def test_what_a_pipeline_does_not_claim_is_not_asked_of_it(tmp_path: Path) -> None:
    outside = [produced(transactional=False), (OFFSET_COMMIT, {"groupId": "g"})]
    assert linted(tmp_path, *outside, workload="produce") == []


def test_the_journal_pairs_requests_with_responses(tmp_path: Path) -> None:
    journal = Journal()
    about = {"link": "lane2->broker3", "connection": 4, "correlation": 7}
    body = {"topics": [{"topicId": "id-1"}, {"topicId": "id-2"}], "batches": [{"topicId": "id-1", "partition": 3}]}
    journal.takes({"event": "request", **about, "at": 1.0, "api": END, "version": 5, "client": "c", "body": body})
    journal.takes({"event": "response", **about, "at": 1.5, "body": {"errorCode": 0}})
    journal.takes({"event": "response", **about, "at": 1.6, "body": {"errorCode": 9}})  # of no request
    assert not journal.takes({"event": "matched", **about})
    journal.write(tmp_path / "requests.parquet", {"id-1": "orders"})
    [row] = pq.read_table(tmp_path / "requests.parquet").to_pylist()
    assert set(row) == set(REQUESTS.columns)
    assert (row["worker"], row["at"], row["answered"]) == (1, 1.0, 1.5)
    assert json.loads(row["response"]) == {"errorCode": 0}
    named = json.loads(row["request"])
    assert [each.get("name") for each in named["topics"]] == ["orders", None]
    assert named["batches"][0]["topic"] == "orders"


def test_a_run_without_the_table_has_no_lints(tmp_path: Path) -> None:
    assert lints.lints(tmp_path, registry.workload("copy")) is None


@pytest.mark.parametrize(
    ("topic", "found"),
    [
        ("op-test-1-output", []),
        ("", []),  # a topic whose id nobody knows
        ("op-test-1-group-store-changelog", []),
        ("op-test-1-other", ["unnamed-topic"]),
        ("audit", ["unnamed-topic"]),
    ],
)
def test_a_topic_that_no_scenario_names(tmp_path: Path, good_run: GoodRun, topic: str, found: list[str]) -> None:
    journal = Journal()
    api, body = produced(topic=topic, partition=0)
    about = {"link": "lane1->broker1", "connection": 1, "correlation": 1}
    journal.takes({"event": "request", **about, "at": 1.0, "api": api, "version": 9, "client": "c", "body": body})
    folder = good_run.write(tmp_path / "run")
    journal.write(folder / "tables" / "requests.parquet", {})
    told = lints.lints(folder, registry.workload("copy"))
    assert told is not None and [each.name for each in told] == found


def test_the_names_of_new_topics_are_asked_for() -> None:
    known = [{"a": "orders"}, {"a": "orders", "b": "store-changelog"}]
    asked: list[dict[str, str]] = []

    def ask() -> dict[str, str]:
        asked.append(known[min(len(asked), 1)])
        return asked[-1]

    names = TopicNames(ask)
    assert names.named({"topicId": "a"})["name"] == "orders" and len(asked) == 1
    assert names.named([{"topicId": "a"}, {"topicId": "b"}])[1]["name"] == "store-changelog" and len(asked) == 2
    for _ in range(10):
        assert "name" not in names.named({"topicId": "none"})
    assert len(asked) == 5
