"""Check that what the workers say of their transactions is what their clients sent to the brokers and were told.

The history has the worker's word; the requests that the proxy recorded tell the same transactions (`record/narrator`):

    worker 0: commit of transaction 7 succeeded      an EndTxn that commits was sent, and answered without an error
    worker 0: transaction 8 was aborted              no EndTxn that commits was sent for it
    worker 0: 12 records in output/3, offsets 40..51 the responses to Produce say the same
    worker 0: transaction 7 read input/3 up to 44    TxnOffsetCommit has 44

Where the two differ, the history is no witness, and the verdict is `unknown` at best. A transaction of the requests is
that of the worker which began last before it, in the same process; a worker's transaction of which no request was sent
is not compared.
"""

import json
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq

from onceproof.harness.record.events import Began, Invoked, Outcome, Started
from onceproof.harness.record.narrator import Narrator
from onceproof.harness.record.results import Reason
from onceproof.harness.record.tables import REQUESTS as TABLE
from onceproof.verifiers.evidence.check import REQUESTS, TRANSACTIONAL, Check, Judged
from onceproof.verifiers.evidence.tables import Tables

CLAIM = "what the workers say of their transactions is what their clients sent and were told"
_SHOWN = 5
_OF_A_TRANSACTION = ("begin", "invoke", "outcome")
Key = tuple[int, int, int]


def narrated(tables: Tables) -> list[tuple[int, dict[str, Any]]]:
    """Return the events that the requests tell, each with its worker, in their order.

    Raises BadInput when the table is damaged.
    """
    path = tables.folder / "tables" / "requests.parquet"
    TABLE.check([path])
    stages = [tables.input_topic]
    if middle := tables.workload.intermediate_topic:
        stages.append(tables.topic(middle))
    found: list[tuple[int, dict[str, Any]]] = []
    narrator = Narrator(
        read=lambda worker: stages[worker % len(stages)], emit=lambda worker, event: found.append((worker, event))
    )
    for step in _steps(tables, pq.read_table(path).to_pylist(), narrator):
        step()
    return found


def _steps(tables: Tables, rows: list[dict[str, Any]], narrator: Narrator) -> Iterator[Any]:
    """Yield what the narrator is to do, in the order of the times of starts, requests and responses."""
    requests: dict[int, Any] = {}
    times: list[tuple[float, int, Any]] = [
        (each.at, 0, lambda each=each: narrator.started(each.worker, each.incarnation or 1))
        for each in tables.events.of(Started)
        if each.source.startswith("worker-")
    ]
    for number, row in enumerate(rows):
        body = json.loads(row["request"])

        def ask(number: int = number, row: dict[str, Any] = row, body: Any = body) -> None:
            requests[number] = narrator.asked(row, body)

        def tell(number: int = number, row: dict[str, Any] = row, body: Any = body) -> None:
            narrator.told(row, body, json.loads(row["response"]), requests[number])

        times.append((row["at"], 1, ask))
        if row["answered"] is not None:
            times.append((row["answered"], 2, tell))
    yield from (step for *_, step in sorted(times, key=lambda each: each[:2]))


def _judge(tables: Tables) -> Judged:
    told = narrated(tables)
    began = _began(tables)
    theirs = _by_transaction(tables)
    seen: dict[Key, dict[str, dict[str, Any]]] = {}
    of: dict[Key, Key | None] = {}
    for worker, event in (each for each in told if each[1]["event"] in _OF_A_TRANSACTION):
        mine = worker, event["incarnation"], event["transaction"]
        if (key := of.setdefault(mine, _own(began, worker, event))) is not None:  # its first event is `begin`
            seen.setdefault(key, {})[event["event"]] = event
    says = [
        f"transaction {number} of the requests of worker-{worker}.{incarnation} was begun by no worker"
        for (worker, incarnation, number), key in of.items()
        if key is None
    ]
    for key, events in sorted(seen.items()):
        says += _differences(key, theirs.get(key, {}), events)
    reasons = [Reason(kind="indeterminate", says=f"the witnesses differ: {each}") for each in says[:_SHOWN]]
    if len(says) > _SHOWN:
        reasons.append(Reason(kind="indeterminate", says=f"the witnesses differ in {len(says)} places"))
    return Judged(compared={"transactions": len(seen), "requests": tables.facts["rows"]["requests"]}, reasons=reasons)


def _began(tables: Tables) -> dict[tuple[int, int], tuple[list[float], list[int]]]:
    """Return when each process began its transactions, in order, and their numbers."""
    found: dict[tuple[int, int], tuple[list[float], list[int]]] = {}
    for each in sorted(tables.events.of(Began), key=lambda each: (each.t, each.transaction)):
        times, numbers = found.setdefault((each.worker, each.incarnation), ([], []))
        times.append(each.t)
        numbers.append(each.transaction)
    return found


def _own(began: dict[tuple[int, int], tuple[list[float], list[int]]], worker: int, event: dict[str, Any]) -> Key | None:
    """Return the worker's transaction that a transaction of the requests is: the last one that it had begun."""
    times, numbers = began.get((worker, event["incarnation"]), ([], []))
    place = bisect_right(times, event["t"])
    return (worker, event["incarnation"], numbers[place - 1]) if place else None


def _by_transaction(tables: Tables) -> dict[Key, dict[str, Any]]:
    """Return what the workers reported of each transaction: `invoke` and `outcome`, as events."""
    found: dict[Key, dict[str, Any]] = {}
    for each in (*tables.events.of(Invoked), *tables.events.of(Outcome)):
        found.setdefault((each.worker, each.incarnation, each.transaction), {})[each.kind] = each
    return found


def _differences(key: Key, theirs: dict[str, Any], seen: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield what a worker says of a transaction that its requests contradict."""
    worker, incarnation, number = key
    name = f"transaction {number} of worker-{worker}.{incarnation}"
    outcome, invoked = theirs.get("outcome"), theirs.get("invoke")
    told = seen.get("outcome", {}).get("type", "info")
    if outcome is not None and outcome.type == "ok" and told != "ok":
        yield f"{name} was committed, as the worker says, but no broker told its client so"
    elif outcome is not None and outcome.type == "fail" and "invoke" in seen:
        yield f"{name} was aborted, as the worker says, but its client asked for its commit"
    if invoked is None or told != "ok":
        return
    sent = seen["invoke"]
    known = {place: tuple(each) for place, each in invoked.outputs.items() if each[1] >= 0}
    if known != {place: tuple(each) for place, each in sent["outputs"].items() if place in known}:
        yield f"{name} has other outputs in the responses to its client than in the worker's report"
    ends = {partition: end for partition, (_, end) in invoked.sources.items()}
    sent_ends = {partition: end for partition, (_, end) in sent["sources"].items()}
    if sent_ends and ends != sent_ends:  # there are none if the offsets are not in the transaction
        yield f"{name} has other offsets in the requests of its client than in the worker's report"


CHECK = Check(name="witnesses", claim=CLAIM, run=_judge, needs=(TRANSACTIONAL, REQUESTS))
