"""What is pinned before the topics are read, and which of the logs' records become rows of the tables."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from onceproof.harness.model import registry
from onceproof.harness.record import manifest, provenance
from onceproof.harness.record.narrator import Narrator
from onceproof.verifiers.collect import collect as module
from onceproof.verifiers.collect import owners, records, topics
from onceproof.verifiers.collect.collect import collect
from onceproof.verifiers.collect.pinned import pin
from onceproof.verifiers.collect.records import read_inputs, read_outputs
from onceproof.verifiers.collect.standing import standing
from onceproof.verifiers.collect.written import write
from onceproof.verifiers.evidence import executors, reading
from tests.kafka_writer import (
    batch,
    committed_offset,
    group_partition,
    marker,
    plain_batch,
    transaction_state,
    transactional_id,
)
from tests.unit.still_cluster import COORDINATORS, OFFSETS, StillContext, held, stuck, transaction

BROKERS = ("broker1", "broker2", "broker3")


@pytest.fixture(autouse=True)
def no_topic_is_read(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    """Spark reads the logs only: `test_topics` and the scenarios read topics, on real clusters."""
    monkeypatch.setattr(module, "session", lambda master, **_: spark)
    monkeypatch.setattr(module, "read_outputs", lambda *_: {"output": None})
    monkeypatch.setattr(module, "read_inputs", lambda *_: None)
    monkeypatch.setattr(module, "write", lambda frame, target: 5 if frame is None else write(frame, target))

    class Watch:
        def __init__(self, *_: object, **__: object) -> None: ...

        def __enter__(self) -> "Watch":
            return self

        def __exit__(self, *_: object) -> None: ...

        def run(self, what: str, work: Any) -> Any:
            return work()

    monkeypatch.setattr(module, "Watch", Watch)


def logs(folder: Path, still: StillContext, *, topic: str = "output", internal: str = "broker2") -> dict[str, Path]:
    """The data directories of three brokers: a topic, and the records of internal topics of this run and of others.

    Only the broker `internal` has the records of the internal topics; the others lag behind.
    """
    output = still.names.topic(topic)
    written = {f"{output}-0": batch(0, [(b"k", b"v")] * 10, "none") + marker(10, True)}
    offsets = []
    for group, read in (*still.names.read, ("another", still.names.input), (still.names.group, "another")):
        offsets.append((group_partition(group, read, 0), committed_offset(10, "0,1,1")))
    written[f"{OFFSETS}-0"] = plain_batch(0, offsets)
    states: list[tuple[bytes, bytes | None]] = []
    for name, of_topic in (("mine", output), ("another's", "orders")):
        states.append((transactional_id(name), transaction_state(1, topic=of_topic, partitions=(0,))))
        states.append((transactional_id(name), None))
    written[f"{COORDINATORS}-1"] = plain_batch(0, states)
    for broker in BROKERS:
        for name, segment in written.items():
            (folder / broker / name).mkdir(parents=True)
            held = segment if name.startswith(output) or broker == internal else b""
            (folder / broker / name / "00000000000000000000.log").write_bytes(held)
    return {broker: folder / broker for broker in BROKERS}


def collected(still: StillContext, folder: Path, **options: Any) -> dict[str, Any]:
    (folder / "history.jsonl").parent.mkdir(parents=True, exist_ok=True)
    (folder / "history.jsonl").write_text("")
    collect(still.context, folder, **options)
    found: dict[str, Any] = json.loads((folder / "tables" / "collect.json").read_text())
    return found


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / "tables" / f"{table}.parquet").to_pylist()
    return found


def test_what_is_pinned_of_a_partition() -> None:
    still = StillContext()
    topic = still.names.topic("output")
    still.admin.starts, still.admin.stable, still.admin.high = {(topic, 1): 2}, {(topic, 1): 8}, {(topic, 1): 9}
    still.admin.states = held(topic, leader=None, isr=(1, 3))
    [first, second] = pin(still.admin, [(topic, 0), (topic, 1)])  # type: ignore[arg-type]
    assert (first["leader"], first["isr"], first["replicas"]) == ("broker2", list(BROKERS), list(BROKERS))
    assert second == {
        "topic": topic,
        "partition": 1,
        "start": 2,
        "end": 8,
        "high_watermark": 9,
        "leader": None,
        "replicas": list(BROKERS),
        "isr": ["broker1", "broker3"],
    }


@pytest.mark.parametrize("mode", ["full", "ledger"])
def test_the_logs_of_this_run_become_rows(tmp_path: Path, mode: str) -> None:
    still = StillContext(logs={})
    still.context.cluster.log_dirs = lambda: logs(tmp_path / "data", still)  # type: ignore[method-assign]
    still.admin.committed = {
        still.names.group: {(still.names.input, 0): (10, "0,1,1"), ("another", 0): (3, "")},
    }
    facts = collected(still, tmp_path / "run", mode=mode)
    assert facts["rows"] == {
        "outputs": 5,
        **({"inputs": 5} if mode == "full" else {}),
        "batches": 7,
        "commits": 1,
        "states": 2,
    }
    assert [each["offset"] for each in facts["positions"]] == [10]
    assert {(each["topic"], each["partition"], each["compacted"]) for each in facts["internal"]} == {
        (OFFSETS, 0, 0),
        (COORDINATORS, 0, 0),
        (COORDINATORS, 1, 0),
    }
    assert [row["transactional_id"] for row in rows(tmp_path / "run", "states")] == ["mine", "mine"]
    [commit] = rows(tmp_path / "run", "commits")
    assert (commit["topic"], commit["position"], commit["worker"]) == (still.names.input, 10, 0)
    assert manifest.damage(tmp_path / "run") == []


@pytest.mark.parametrize(("mode", "total"), [("full", 40), ("ledger", 20)])
def test_what_is_read_of_how_many_records_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, total: int
) -> None:
    """Of two partitions of the input, which ledger mode does not read, and of two of the output."""
    told: list[int] = []

    @contextmanager
    def telling(_: object, __: object, *, total: int) -> Iterator[None]:
        told.append(total)
        yield

    monkeypatch.setattr(reading, "told", telling)
    collected(StillContext(capabilities=["transaction-state"]), tmp_path / "run", mode=mode)
    assert told == [total]


@pytest.mark.parametrize("capabilities", [("log-access", "transaction-state"), ("transaction-state",)])
def test_executors_elsewhere_are_asked_for_the_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capabilities: tuple[str, ...]
) -> None:
    asked: list[Path] = []
    for check in ("check_folder", "check_reads"):
        monkeypatch.setattr(executors, check, lambda _, folder: asked.append(folder))
    still = StillContext(logs={}, capabilities=capabilities)
    cluster: Any = still.context.cluster
    cluster.folder, cluster.log_dirs = tmp_path / "cluster", lambda: logs(tmp_path / "data", still)
    collected(still, tmp_path / "run", master="yarn")
    reads = "log-access" in capabilities
    assert asked == [tmp_path / "run", *([tmp_path / "cluster"] if reads else [])]


@pytest.mark.parametrize(
    ("mode", "topic", "follower"),
    [("full", "output", True), ("full", "input", True), ("ledger", "output", True), ("ledger", "input", None)],
)
def test_crcs_are_checked_where_no_consumer_has_read(
    tmp_path: Path, mode: str, topic: str, follower: bool | None
) -> None:
    """The leader of a topic that is read has had its CRCs checked; nobody needs those of an unread input."""
    still = StillContext()
    still.context.cluster.log_dirs = lambda: logs(tmp_path / "data", still, topic=topic)  # type: ignore[method-assign]
    collected(still, tmp_path / "run", mode=mode)
    name = still.names.topic(topic)
    intact = {row["broker"]: row["intact"] for row in rows(tmp_path / "run", "batches") if row["topic"] == name}
    assert intact == {"broker1": follower, "broker2": None, "broker3": follower}


def test_the_crcs_of_an_intermediate_topic_are_all_checked(tmp_path: Path) -> None:
    still = StillContext("chain")
    still.context.cluster.log_dirs = lambda: logs(tmp_path / "data", still, topic="middle")  # type: ignore[method-assign]
    collected(still, tmp_path / "run")
    middle = still.names.topic("middle")
    assert {row["intact"] for row in rows(tmp_path / "run", "batches") if row["topic"] == middle} == {True}


def test_a_system_without_logs_or_transaction_states(tmp_path: Path) -> None:
    still = StillContext(capabilities=[])
    facts = collected(still, tmp_path / "run")
    assert facts["open_transactions"] is None and "internal" not in facts
    assert facts["rows"] == {"outputs": 5, "inputs": 5}


def test_a_cluster_without_transactions_has_no_coordinators_log(tmp_path: Path) -> None:
    still = StillContext()
    still.admin.internal = {OFFSETS}
    still.context.cluster.log_dirs = lambda: logs(tmp_path / "data", still)  # type: ignore[method-assign]
    facts = collected(still, tmp_path / "run")
    assert [each["topic"] for each in facts["internal"]] == [OFFSETS]
    assert facts["rows"]["states"] == 0


def test_an_offsets_partition_without_a_leader_is_read_from_a_replica(tmp_path: Path) -> None:
    still = StillContext()
    still.admin.states = held(COORDINATORS, leader=None)
    data = logs(tmp_path / "data", still, internal="broker1")
    still.context.cluster.log_dirs = lambda: data  # type: ignore[method-assign]
    collected(still, tmp_path / "run")
    assert [row["transactional_id"] for row in rows(tmp_path / "run", "states")] == ["mine", "mine"]


@pytest.mark.parametrize(
    ("state", "known"), [("Ongoing", True), ("PrepareCommit", True), ("CompleteCommit", False), (None, False)]
)
def test_an_open_transaction_is_known_to_its_coordinator(tmp_path: Path, state: str | None, known: bool) -> None:
    still = StillContext(capabilities=["transaction-state"])
    place = still.names.topic("output"), 0
    still.admin.producers = [stuck(7, place)]
    if state:
        still.admin.transactions["id"] = transaction("id", state, place)
    [told] = collected(still, tmp_path / "run")["open_transactions"]
    assert told["known_as"] == ("id" if known else None)
    assert still.context.cluster.used_up == (not known)


def test_a_transaction_that_ended_between_two_questions_is_not_known_as_open(tmp_path: Path) -> None:
    still = StillContext(capabilities=["transaction-state"])
    place = still.names.topic("output"), 0
    still.admin.producers = [stuck(7, place)]
    still.admin.transactions["id"] = transaction("id", "CompleteCommit", place)
    still.admin.transactional_ids = lambda prefix: {"id": "Ongoing"}  # type: ignore[method-assign]
    [told] = collected(still, tmp_path / "run")["open_transactions"]
    assert told["known_as"] is None


@pytest.mark.parametrize(
    ("moves", "names"),
    [("starts", ["start"]), ("stable", ["end"]), ("high", ["end", "high_watermark"]), ("", [])],
)
def test_an_offset_that_moved_while_the_topics_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: str, names: list[str]
) -> None:
    still = StillContext(capabilities=[])
    place = still.names.topic("output"), 1

    def moving(frame: object, target: Path) -> int:
        if moves:
            getattr(still.admin, moves)[place] = 4
        return 0

    monkeypatch.setattr(module, "write", moving)
    moved = collected(still, tmp_path / "run", mode="ledger")["moved"]
    assert [each.partition(": ")[2].partition(" ")[0] for each in moved] == names


# Columns


_OF_TOTALS = ["content", "total", "grouping"]


class Columns:
    """In the place of a frame: the columns that are selected."""

    def selectExpr(self, *columns: str) -> dict[str, str]:
        return {name: expression for expression, _, name in (column.rpartition(" AS ") for column in columns)}


@pytest.mark.parametrize(
    ("workload", "inputs", "outputs"),
    [
        ("copy", [], {"output": []}),
        ("chain", [], {"output": ["told_2"]}),
        ("sums", ["grouping"], dict.fromkeys(("sums", "changelog"), _OF_TOTALS)),
        ("bank", ["grouping"], dict.fromkeys(("debits", "credits", "balances"), _OF_TOTALS)),
    ],
)
def test_the_columns_that_a_workload_needs(
    monkeypatch: pytest.MonkeyPatch, workload: str, inputs: list[str], outputs: dict[str, list[str]]
) -> None:
    still = StillContext(workload)
    monkeypatch.setattr(topics, "read", lambda *_, **__: Columns())
    where: Any = (None, "lane-0", still.context, [])
    read: Any = read_inputs(*where)
    written: dict[str, Any] = dict(read_outputs(*where, "read_committed", Path()))  # type: ignore[call-arg]
    common = ["partition", "offset", "number", "digest", "told_0", "told_1"]
    assert list(read) == [*common[:4], *inputs]
    assert {role: sorted(set(each) - set(common)) for role, each in written.items()} == {
        role: sorted(each) for role, each in outputs.items()
    }
    right = registry.workload(workload).aggregate
    for role, each in written.items():
        assert each.get("total") == (right and (right.state if role == "balances" else right.total))


class Requests:
    """A journal of three requests."""

    def write(self, path: Path, names: dict[str, str]) -> int:
        return 3


def test_requests_are_a_table_where_a_scenario_wants_them(tmp_path: Path) -> None:
    still = StillContext(capabilities=[], collect={"requests": True})
    still.context.requests = Requests()  # type: ignore[misc, assignment]
    still.admin.topic_names = dict  # type: ignore[attr-defined]
    assert collected(still, tmp_path / "run")["rows"] == {"outputs": 5, "inputs": 5, "requests": 3}


def test_what_an_application_wrote_is_named_by_its_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[Any] = []
    read: list[None] = []
    monkeypatch.setattr(module, "read_inputs", lambda *_: read.append(None))
    monkeypatch.setattr(owners, "named", lambda *about: named.append(about[2]))
    monkeypatch.setattr(owners, "places", lambda *_: None)
    still = StillContext()
    data = logs(tmp_path / "data", still)
    still.context.cluster.log_dirs = lambda: data  # type: ignore[method-assign]
    still.context.requests = Requests()  # type: ignore[misc, assignment]
    still.admin.topic_names = dict  # type: ignore[attr-defined]
    output = still.names.topic("output")
    narrator = Narrator(read=lambda _: still.names.input, emit=lambda *_: None)
    still.context.workers.narrator = narrator  # type: ignore[misc]
    facts = collected(still, tmp_path / "first")
    assert (facts["rows"]["requests"], facts["rows"]["batches"], named) == (3, 7, [[]])
    batch_of = {row["topic"]: row for row in rows(tmp_path / "first", "batches") if row["control"] is None}
    sent, held = batch_of[output], batch_of[OFFSETS]
    key = (sent["producer_id"], sent["producer_epoch"], output, 0, sent["sequence"])
    narrator.batches[key] = {sent["crc"] + 1: (0, 1, 6), sent["crc"]: (0, 1, 7)}
    narrator.positions[held["producer_id"], held["producer_epoch"], 0, 10] = [(0, 1, 8)]
    collected(still, tmp_path / "second")
    assert named[1] == [(0, 0, 9, provenance.packed_owner(0, 1, 7))]
    [commit] = rows(tmp_path / "second", "commits")
    assert (commit["worker"], commit["incarnation"], commit["transaction"]) == (0, 1, 8)
    assert len(read) == 2, "for the table of inputs, of each run"
    collected(still, tmp_path / "third", mode="ledger")
    assert len(read) == 2


@pytest.mark.parametrize("alive", [True, False])
def test_spark_is_started_again_only_if_its_process_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alive: bool
) -> None:
    failures = [RuntimeError("the topic is gone")]

    def fails_once(_: object, __: object) -> int:
        if failures:
            raise failures.pop()
        return 5

    monkeypatch.setattr(module, "write", fails_once)
    monkeypatch.setattr(module, "lives", lambda _: alive)
    still = StillContext(capabilities=[])
    if not alive:
        assert collected(still, tmp_path / "run")["rows"] == {"outputs": 5, "inputs": 5}
        return
    with pytest.raises(RuntimeError, match="the topic is gone"):
        collected(still, tmp_path / "run")


def test_the_positions_of_a_database_are_those_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "positions", lambda *_: {1: 9, 0: 7})
    still = StillContext("database", capabilities=[])
    spark: Any = None
    found = standing(spark, still.context, tmp_path, [])
    assert [(each["partition"], each["offset"]) for each in found["positions"]] == [(0, 7), (1, 9)]


def test_a_table_that_is_whole_is_kept_and_one_that_is_not_is_written_anew(spark: SparkSession, tmp_path: Path) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    assert write(spark.range(3), whole) == 3
    assert write(spark.range(5), whole) == 3, "it is not written again"
    assert write(spark.range(3), part) == 3
    (part / "_SUCCESS").unlink()
    assert write(spark.range(5), part) == 5
