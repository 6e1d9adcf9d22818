"""A workload is data: where records go, what one input gives, and what is right about it, as Spark SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

CONTENT = "xxhash64(key, value)"


@dataclass(frozen=True, kw_only=True)
class Source:
    """One record as a worker polled it. `key` and `value` are bytes, `offset` is its place in the log, `header` its
    provenance header, empty when it has none; `stage` is 0 when it is from the input, 1 from the topic between.
    """

    partition: int
    offset: int
    key: bytes
    value: bytes
    header: bytes = b""
    stage: int = 0


@dataclass(frozen=True, kw_only=True)
class Output:
    """One output record: `topic` is the workload's own name for it (`output`), not the name on the cluster."""

    topic: str
    partition: int
    key: bytes
    value: bytes


class State(Protocol):
    """What a pipeline keeps for each input partition, and can take up again from its changelog."""

    def restore(self, partition: int, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Forget the partition's state and take it up from its changelog's records: key and value, in their order."""
        ...

    def process(self, source: Source) -> Iterable[Output]:
        """Take one input in; its outputs, the changelog's among them."""
        ...


def one_on_each(*topics: str) -> str:
    """`expected` of a pipeline that gives one output for each input on each of these topics, in its partition."""
    return " UNION ALL ".join(
        f"SELECT '{topic}' AS topic, partition, number, digest, input FROM inputs" for topic in topics
    )


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """What is right about totals, as Spark SQL: `total` over an output's `key` and `value`, in integers; `amount` over
    an output's `topic` and its input's `number`. A total is the one before it of its key in its partition, plus its own
    input's amount. Before: in the order of the inputs, among the topics of which `over` says the same; outputs of which
    it says null have no total."""

    total: str
    amount: str
    over: str = "topic"


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """How a worker uses its client. The defaults are right; a negative control turns one of them.

    `position`                how offsets are committed: in the outputs' transaction, by the consumer after or before
                              the outputs, or by the consumer's auto-commit (auto)
    `transactional_id_scope`  one transactional id for each worker, for each input partition (with a producer each),
                              or a new one for each process
    `generation`              whether the offsets in a transaction carry the group's generation (KIP-447)
    `assignment`              by the group, or fixed by the configuration
    `each_topic`              a transaction for each output topic, instead of one for all
    """

    transactional: bool = True
    idempotent: bool = True
    position: Literal["in-transaction", "after", "before", "auto"] = "in-transaction"
    seek_back: bool = True
    transactional_id_scope: Literal["worker", "partition", "process"] = "worker"
    generation: bool = True
    assignment: Literal["group", "fixed"] = "group"
    each_topic: bool = False
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A pipeline and what is right about it.

    `expected` is Spark SQL over the view `inputs(partition, offset, number, digest, input)`, one row an input, giving
    one row an output: `topic, partition, number, digest, input`. `input` is passed on untouched: it says which input an
    output comes from.

    An input's outputs come from `transform`, or from `state`, which is kept in the topic `changelog`, in the partition
    of the input. `identity` is the digest by which an output is compared with what is expected, as Spark SQL over its
    `key` and `value`.

    A chain has an `intermediate_topic`: worker 0 reads the input and writes to it, worker 1 reads it, and so on in
    turns. The intermediate topic is judged by the end of the chain only, since its records may be deleted below the
    committed offset.
    """

    name: str
    about: str
    transform: Callable[[Source], Iterable[Output]] | None = None
    expected: str
    topics: tuple[str, ...] = ("output",)
    intermediate_topic: str = ""
    wiring: Wiring = Wiring()
    identity: str = CONTENT
    state: Callable[[], State] | None = None
    changelog: str = ""
    aggregate: Aggregate | None = None
    rows: tuple[str, ...] = field(default=())

    @property
    def sends_positions(self) -> bool:
        """Whether a worker's transaction has the position of what it read."""
        return self.wiring.transactional and self.wiring.position == "in-transaction" and not self.wiring.each_topic

    @property
    def one_transaction(self) -> bool:
        """Whether an input's outputs and its position are in one transaction, so that each must tell of the other. (In
        a chain the outputs are another service's than the input's position.)"""
        return self.sends_positions and not self.intermediate_topic

    @property
    def judged(self) -> tuple[str, ...]:
        """The topics whose records are compared with what is expected."""
        return tuple(topic for topic in self.topics if topic != self.intermediate_topic)
