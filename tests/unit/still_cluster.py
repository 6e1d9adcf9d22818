"""A cluster at rest as its admin client describes it, for tests of what is asked of it.

It holds no records. What a real cluster answers, and what is done with it, the chaos tests show.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from onceproof.harness.cluster.described import Member, OpenProducer, Partition, PartitionState, Transaction
from onceproof.harness.context.context import FaultContext
from onceproof.harness.model import plan
from onceproof.harness.model.names import Names, names
from onceproof.harness.model.scenario import parse
from onceproof.harness.record.events import Event

_WORKLOAD = {"partitions": 2, "transaction_timeout_ms": 1_000, "message_timeout_ms": 1_000}
OFFSETS, COORDINATORS = "__consumer_offsets", "__transaction_state"


@dataclass(kw_only=True)
class StillAdmin:
    """The answers of an admin client; a partition that is not named has the offsets 0 to 10 and a full ISR."""

    names: Names
    starts: dict[Partition, int] = field(default_factory=dict)
    stable: dict[Partition, int] = field(default_factory=dict)
    high: dict[Partition, int] = field(default_factory=dict)
    states: dict[Partition, PartitionState] = field(default_factory=dict)
    committed: dict[str, dict[Partition, tuple[int, str]]] = field(default_factory=dict)
    transactions: dict[str, Transaction] = field(default_factory=dict)
    producers: list[OpenProducer] = field(default_factory=list)
    internal: set[str] = field(default_factory=lambda: {OFFSETS, COORDINATORS})

    def offsets(self, partitions: Iterable[Partition], which: str, isolation: str) -> dict[Partition, int]:
        if which == "earliest":
            return {each: self.starts.get(each, 0) for each in partitions}
        found = {each: self.high.get(each, 10) for each in partitions}
        return (
            found if isolation == "read_uncommitted" else {each: self.stable.get(each, found[each]) for each in found}
        )

    def partitions(self, topic: str) -> dict[int, PartitionState]:
        whole = PartitionState(leader=2, replicas=(1, 2, 3), isr=(1, 2, 3))
        return {number: self.states.get((topic, number), whole) for number in range(2)}

    def topics(self) -> set[str]:
        return {*self.names.topics.values(), *self.internal}

    def group_offsets(self, group: str) -> dict[Partition, tuple[int, str]]:
        return self.committed.get(group, {})

    def offsets_partition(self, group: str) -> Partition:
        return OFFSETS, self.names.groups.index(group)

    def transactional_ids(self, prefix: str) -> dict[str, str]:
        return {name: each.state for name, each in self.transactions.items() if name.startswith(prefix)}

    def transaction(self, name: str) -> Transaction:
        return self.transactions[name]

    def open_producers(self, partitions: Iterable[Partition]) -> list[OpenProducer]:
        wanted = set(partitions)
        return [each for each in self.producers if each.partition in wanted]

    def members(self, group: str) -> list[Member]:
        return []


class StillContext:
    """The context of a run on such a cluster: two workers, two partitions; `noted` is what was noted."""

    def __init__(
        self,
        workload: str = "copy",
        *,
        logs: Mapping[str, Path] | None = None,
        capabilities: Iterable[str] = ("log-access", "transaction-state"),
        collect: Mapping[str, Any] | None = None,
        **tables: Any,
    ) -> None:
        """`tables` are further tables of the scenario, such as `app`."""
        raw: dict[str, Any] = {
            "name": "still",
            "about": "a cluster at rest",
            "workload": {"name": workload, **_WORKLOAD},
        }
        raw |= {"collect": dict(collect)} if collect else {}
        if "outputs" in tables:
            del raw["workload"]["name"]
        made = plan.make(parse(raw | tables, where="test"), 1)
        self.names = names(made.digest, 1, made.scenario.pipeline)
        self.admin = StillAdmin(names=self.names)
        self.noted: list[Event] = []
        self.calls: list[str] = []
        cluster = SimpleNamespace(
            admin=self.admin,
            system=SimpleNamespace(capabilities=frozenset(capabilities)),
            log_dirs=lambda: dict(logs or {}),
            bootstrap=lambda lane: f"lane-{lane}",
            proxies=SimpleNamespace(close_connections=lambda links: self.calls.append(f"close {len(list(links))}")),
            used_up=False,
        )
        workers = SimpleNamespace(
            narrator=None,
            failures=SimpleNamespace(check=lambda: None),
            stop_workers=lambda: self.calls.append("stop workers"),
            stop_observers=lambda: self.calls.append("stop observers"),
        )
        self.context = cast(
            FaultContext,
            SimpleNamespace(plan=made, names=self.names, cluster=cluster, workers=workers, note=self._note),
        )

    def _note(self, event: Event) -> Event:
        self.noted.append(event)
        return event


def transaction(name: str, state: str, partition: Partition, producer_id: int = 7) -> Transaction:
    """What a coordinator describes: a transactional id with one partition."""
    return Transaction(
        transactional_id=name,
        coordinator=1,
        state=state,
        producer_id=producer_id,
        producer_epoch=0,
        partitions=(partition,),
    )


def held(topic: str, *, leader: int | None = 2, isr: tuple[int, ...] = (1, 2, 3)) -> dict[Partition, PartitionState]:
    """Partition 1 of a topic with another leader or ISR than the rest."""
    return {(topic, 1): PartitionState(leader=leader, replicas=(1, 2, 3), isr=isr)}


def stuck(producer_id: int, partition: Partition) -> OpenProducer:
    """A producer with an open transaction, as a leader describes it."""
    return OpenProducer(partition=partition, producer_id=producer_id, producer_epoch=0, start_offset=4)


def of(context: StillContext, kind: type[Any]) -> list[Any]:
    """The events of a kind that were noted."""
    return [each for each in context.noted if isinstance(each, kind)]
