"""Find what is unsafe in the requests that the workers' clients sent, from tables/requests.parquet.

A lint is no finding: nothing needs to have broken. It names a request that is legal, and with which a failure at the
wrong moment breaks exactly-once.

    no-generation            TxnOffsetCommit without the generation and the member of the group (KIP-447)
    unstable-offsets         OffsetFetch that does not wait for offsets of open transactions (KIP-447)
    read-uncommitted         Fetch with isolation level 0 from a topic that is written in transactions (KIP-98)
    offsets-apart            OffsetCommit, in a pipeline that claims to commit offsets in transactions (KIP-98)
    acks                     Produce with acks other than all (KIP-98)
    not-idempotent           Produce of batches without a producer id (KIP-98)
    outside-transaction      Produce of batches outside of a transaction, in a pipeline that claims to use them (KIP-98)
    new-transactional-id     a transactional id for each start of a worker, and no generation (KIP-447)
    empty-commit             EndTxn that commits a transaction in which nothing was sent (KIP-98)
    short-timeout            a transaction that took longer than its transaction.timeout.ms (KIP-98)
    unnamed-topic            Produce to a topic that the scenario does not name, whose records are not judged
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from onceproof.harness.model.workload import Declaration
from onceproof.harness.record import collected
from onceproof.harness.record.results import Lint
from onceproof.harness.record.tables import BATCHES, REQUESTS

_PRODUCE, _FETCH, _OFFSET_COMMIT, _OFFSET_FETCH = 0, 1, 8, 9
_JOIN_GROUP, _CONSUMER_GROUP_HEARTBEAT = 11, 68
_INIT_PRODUCER_ID, _ADD_PARTITIONS, _ADD_OFFSETS, _END_TXN, _TXN_OFFSET_COMMIT = 22, 24, 25, 26, 28
_OF_TRANSACTION = (_ADD_PARTITIONS, _ADD_OFFSETS, _TXN_OFFSET_COMMIT)
_SAYS = {
    "no-generation": (
        "KIP-447",
        "offsets were sent in a transaction without the generation and member of the group, so a worker that has lost "
        "its partitions can still commit them",
    ),
    "unstable-offsets": (
        "KIP-447",
        "committed offsets were fetched without waiting for those of open transactions, so inputs may be processed "
        "twice after a rebalance",
    ),
    "read-uncommitted": (
        "KIP-98",
        "a topic that is written in transactions is read with isolation level read_uncommitted, so records of aborted "
        "transactions are processed",
    ),
    "offsets-apart": (
        "KIP-98",
        "offsets were committed outside of a transaction, so a failure between the outputs and the offsets duplicates "
        "or loses outputs",
    ),
    "acks": ("KIP-98", "records were sent with acks other than all, so a new leader may lack what was acknowledged"),
    "not-idempotent": ("KIP-98", "records were sent without a producer id, so a retry may append them twice"),
    "outside-transaction": (
        "KIP-98",
        "records were sent outside of any transaction, so they are visible although their offsets may not be committed",
    ),
    "new-transactional-id": (
        "KIP-447",
        "a worker has a new transactional id at each start and sends no generation, so nothing fences its predecessor",
    ),
    "empty-commit": ("KIP-98", "transactions were committed in which nothing was sent"),
    "short-timeout": (
        "KIP-98",
        "transactions took longer than their time-out, so the coordinator may abort them while they are in progress",
    ),
    "unnamed-topic": (
        "KIP-98",
        "records were sent to a topic that the scenario does not name, and are not judged",
    ),
}
Row = dict[str, Any]


@dataclass
class _Seen:
    """What is known of the requests so far, by worker and transactional id."""

    ids: dict[int, set[str]] = field(default_factory=dict)
    timeout_s: dict[str, float] = field(default_factory=dict)
    began: dict[str, float] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    members: set[int] = field(default_factory=set)
    without_generation: set[int] = field(default_factory=set)


def lints(folder: Path, workload: Declaration, *, faults: bool = False) -> list[Lint] | None:
    """Return the lints of a run's folder, the rules in order; None if the run did not record the requests.

    With `faults`, how long transactions took says nothing of the pipeline, and is not looked at. Raises BadInput when a
    table is damaged.
    """
    path = folder / "tables" / "requests.parquet"
    if not path.exists():
        return None
    REQUESTS.check([path])
    found: dict[str, list[Row]] = {}
    seen = _Seen()
    transactional, foreign = _transactional(folder, workload), _foreign(folder)
    for row in pq.read_table(path).to_pylist():
        body = json.loads(row["request"])
        names = list(_rules(row, body, seen, workload, transactional))
        if any(foreign(batch.get("topic", "")) for batch in body.get("batches", ())):
            names.append("unnamed-topic")
        for name in names:
            found.setdefault(name, []).append(row)
    return [
        Lint(
            name=name,
            kip=kip,
            count=len(found[name]),
            says=says,
            first={"at": found[name][0]["at"], "worker": found[name][0]["worker"], "link": found[name][0]["link"]},
        )
        for name, (kip, says) in _SAYS.items()
        if name in found and not (faults and name == "short-timeout")
    ]


def _transactional(folder: Path, workload: Declaration) -> Callable[[int], bool]:
    """Return a function that says of a worker whether the topic that it reads is written in transactions."""
    path = folder / "tables" / "batches.parquet"
    if not path.exists():  # the segments of this system cannot be read
        return lambda _: False
    BATCHES.check([path])
    columns = pq.read_table(path, columns=["topic"], filters=[("transactional", "=", True)])
    written = set(columns["topic"].unique().to_pylist())
    stages = ["input", workload.intermediate_topic] if workload.intermediate_topic else ["input"]
    return lambda worker: any(topic.endswith(f"-{stages[worker % len(stages)]}") for topic in written)


def _foreign(folder: Path) -> Callable[[str], bool]:
    """Return a function that says of a topic whether it is none of the run.

    The name of a topic that Kafka Streams makes for itself begins with that of its group.
    """
    path = folder / "tables" / "collect.json"
    if not path.exists():
        return lambda _: False
    named = {each["topic"] for each in collected.read(folder, missing="")["partitions"]}
    group = next(each.removesuffix("input") for each in named if each.endswith("-input")) + "group-"
    return lambda topic: bool(topic) and topic not in named and not topic.startswith(group)


def _rules(
    row: Row, body: Row, seen: _Seen, workload: Declaration, transactional: Callable[[int], bool]
) -> Iterator[str]:
    """Yield the names of the rules that a request breaks. `seen` is updated."""
    api, worker = row["api"], row["worker"]
    if api == _PRODUCE:
        yield from _of_produce(body, workload)
    elif api == _FETCH and body.get("isolationLevel", 0) == 0 and transactional(worker):
        yield "read-uncommitted"
    elif api == _OFFSET_FETCH and not body.get("requireStable", False):
        yield "unstable-offsets"
    elif api == _OFFSET_COMMIT and workload.commits_in_transactions:
        yield "offsets-apart"
    elif api in (_JOIN_GROUP, _CONSUMER_GROUP_HEARTBEAT):
        seen.members.add(worker)
    elif api == _TXN_OFFSET_COMMIT and _unfenced(body, worker, seen, workload):
        seen.without_generation.add(worker)
        yield "no-generation"
    elif api == _INIT_PRODUCER_ID and body.get("transactionalId"):
        yield from _of_start(body, worker, seen)
    yield from _of_transaction(row, body, seen)


def _unfenced(body: Row, worker: int, seen: _Seen, workload: Declaration) -> bool:
    """Return whether a group member sends offsets that would be accepted after it has lost its partitions.

    A transactional id that is bound to a partition is fenced when the partition's next owner initialises it.
    """
    bound = workload.wiring.transactional_id_scope == "partition"
    without = body.get("generationId", -1) < 0 or not body.get("memberId")
    return without and worker in seen.members and not bound


def _of_produce(body: Row, workload: Declaration) -> Iterator[str]:
    if body.get("acks", -1) != -1:
        yield "acks"
    batches: Sequence[Row] = body.get("batches", ())
    if any(batch["producerId"] < 0 for batch in batches):
        yield "not-idempotent"
    if workload.claim.transactional and any(not batch["transactional"] for batch in batches):
        yield "outside-transaction"


def _of_start(body: Row, worker: int, seen: _Seen) -> Iterator[str]:
    name = body["transactionalId"]
    seen.timeout_s[name] = body.get("transactionTimeoutMs", 0) / 1000
    seen.began.pop(name, None)
    seen.done.discard(name)
    mine = seen.ids.setdefault(worker, set())
    if name not in mine and worker in seen.without_generation:
        yield "new-transactional-id"
    mine.add(name)


def _of_transaction(row: Row, body: Row, seen: _Seen) -> Iterator[str]:
    """Follow the transactions of a transactional id: a retry of EndTxn commits no further transaction."""
    name = body.get("transactionalId") or body.get("v3AndBelowTransactionalId") or ""
    if row["api"] in _OF_TRANSACTION or row["api"] == _PRODUCE:
        seen.began.setdefault(name, row["at"])
        seen.done.discard(name)
    elif row["api"] == _END_TXN:
        began = seen.began.pop(name, None)
        if began is None and body.get("committed") and name not in seen.done:
            yield "empty-commit"
        if began is not None and row["at"] - began > seen.timeout_s.get(name, float("inf")):
            yield "short-timeout"
        seen.done.add(name)
