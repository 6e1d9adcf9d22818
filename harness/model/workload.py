"""A workload: the pipeline that the workers run, and its expected outputs as Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol

from onceproof.harness.model.contract import NO_OTHER_FIELDS, Contract

CONTENT = "xxhash64(key, value)"
_TOPIC = re.compile("[a-z][a-z-]{0,79}")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A record as a worker polled it.

    `header` is the record's provenance header, or empty if it has none. `stage` is 0 for a record of the input topic
    and 1 for one of the intermediate topic.
    """

    partition: int
    offset: int
    key: bytes
    value: bytes
    header: bytes = b""
    stage: int = 0


@dataclass(frozen=True, kw_only=True)
class Output:
    """An output record. `topic` is the workload's own name of the topic (`output`), not its name on the cluster."""

    topic: str
    partition: int
    key: bytes
    value: bytes


class State(Protocol):
    """The state that a pipeline keeps for each input partition and restores from its changelog."""

    def restore(self, partition: int, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Replace the state of a partition by that of its changelog, given as (key, value) in the order of the log."""
        ...

    def process(self, source: Source) -> Iterable[Output]:
        """Update the state with an input and return its outputs, those to the changelog included."""
        ...


def one_on_each(*topics: str) -> str:
    """Return `Declaration.expected` for one output per input on each of these topics, in the partition of the input."""
    return " UNION ALL ".join(
        f"SELECT '{topic}' AS topic, partition, number, digest, input FROM inputs" for topic in topics
    )


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """The expected totals of an aggregation, as Spark SQL expressions.

    Each total must be the previous total of its key in its partition plus the amount of its own input, in the order of
    the inputs.

    `total`     the total, an integer, over an output's `key` and `value`
    `amount`    the amount, an integer, over an output's `topic` and its input's `number`
    `over`      over an output's `topic`; outputs with the same value share their totals, and those with null have none
    `state`     for a changelog whose records hold the totals of several topics: a hash over an output's `key` and
                `value` of the key's hash and the total of each of these topics, in the order of `state_of`
    `state_of`  those topics; the outputs on them that were made from the same input must have these keys and totals
    """

    __pydantic_config__ = NO_OTHER_FIELDS  # for `harness/model/declaration.py`
    total: str
    amount: str
    over: str = "topic"
    state: str = ""
    state_of: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a pipeline promises, whatever its wiring does. The verdict compares the log with the claim.

    `transactional`   whether every output is written in a transaction
    `position`        whether the offsets that the group commits are in the transaction of their outputs
                      (in-transaction), in any transaction, as those of an application with several steps
                      (transactional), or anywhere (group); or that it commits none, since it keeps its place in its
                      input with the outputs in a database (database), or elsewhere (none)
    """

    transactional: bool = True
    position: Literal["in-transaction", "transactional", "group", "database", "none"] = "in-transaction"


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """How a worker uses its client. The defaults give exactly-once; a negative control changes one of them.

    `transactional`           whether the producer is transactional
    `idempotent`              whether the producer is idempotent (KIP-98)
    `position`                how offsets are committed: in the transaction of the outputs, by the consumer after or
                              before the outputs, or by the consumer's auto-commit (auto)
    `seek_back`               whether the consumer seeks to the committed offsets after an abort
    `transactional_id_scope`  one transactional id per worker, per input partition (each with its own producer), or a
                              new one per process
    `generation`              whether the offsets in a transaction carry the generation of the group (KIP-447)
    `assignment`              whether the group or the configuration (fixed) assigns the partitions
    `each_topic`              whether each output topic has a transaction of its own
    `fenced`                  whether a database refuses the positions of a worker whose partition has another owner
    `remembers`               of how many inputs a database remembers the ids, to skip those that are delivered again;
                              None for all of them, which is right if they are delivered at least once
    `isolation`               the isolation level of the second service of a chain
    """

    __pydantic_config__ = NO_OTHER_FIELDS
    transactional: bool = True
    idempotent: bool = True
    position: Literal["in-transaction", "after", "before", "auto"] = "in-transaction"
    seek_back: bool = True
    transactional_id_scope: Literal["worker", "partition", "process"] = "worker"
    generation: bool = True
    assignment: Literal["group", "fixed"] = "group"
    each_topic: bool = False
    fenced: bool = True
    remembers: int | None = 0
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """The part of a workload that is data: what a verdict needs. A run folder has it as `workload.json`.

    `name`                the name of the workload in a scenario
    `about`               a description of one line
    `expected`            Spark SQL over the view `inputs(partition, offset, number, digest, grouping, input)`, which
                          has one row per input; `grouping` is the hash of its key. It returns one row per output:
                          `topic, partition, number, digest, input`. `input` identifies the input of an output and must
                          be passed on unchanged
    `topics`              the workload's own names of the topics that the workers write
    `intermediate_topic`  the topic between the two services of a chain; empty for other workloads
    `claim`               what the pipeline promises; by default that outputs and offsets are in one transaction
    `wiring`              how a worker uses its client
    `identity`            Spark SQL over an output's `key` and `value`: the digest that is compared with `digest` of
                          `expected`
    `changelog`           the topic that holds the state, in the partition of the input; empty for a stateless workload
    `aggregate`           the expected totals; None for a workload without totals
    `tables`              tables of a database that have the outputs, in place of topics
    `contract`            what the outputs of an application are compared with; None for a workload with a name

    In a chain, workers with even numbers read the input and write the intermediate topic, and workers with odd numbers
    read the intermediate topic. Its records are not compared, because they may be deleted below the committed offset;
    only the outputs at the end of the chain are.
    """

    __pydantic_config__ = NO_OTHER_FIELDS
    name: str
    about: str
    expected: str
    topics: tuple[str, ...] = ("output",)
    intermediate_topic: str = ""
    claim: Claim = Claim()
    wiring: Wiring = Wiring()
    identity: str = CONTENT
    changelog: str = ""
    aggregate: Aggregate | None = None
    contract: Contract | None = None
    tables: tuple[str, ...] = ()

    def problem(self) -> str:
        """Return the first attribute that cannot be used, as `attribute: problem`; empty if there is none."""
        for prefix, part in (("", self), ("wiring.", self.wiring), ("aggregate.", self.aggregate)):
            if part is not None and (wrong := _wrong_type(part)):
                return prefix + wrong
        for topic in self.topics:
            if not _TOPIC.fullmatch(topic) or topic == "input" or self.topics.count(topic) > 1:
                return f"topics: {topic!r:.80}; allowed: different names of a-z and -, other than input"
        if not self.topics and not self.tables:
            return "topics: (); allowed: at least one name, or tables"
        for name in ("intermediate_topic", "changelog"):
            if getattr(self, name) not in ("", *self.topics):
                return f"{name}: {getattr(self, name)!r:.80}; allowed: {', '.join(self.topics)}"
        return ""

    @property
    def sends_positions(self) -> bool:
        """Whether the pipeline claims that the offsets of the records it read are in the transaction of its outputs."""
        return self.claim.transactional and self.claim.position == "in-transaction"

    @property
    def read_topics(self) -> tuple[str, ...]:
        """The topics that a group of workers reads: the input, and the intermediate topic of a chain."""
        return tuple(filter(None, ("input", self.intermediate_topic)))

    @property
    def own_tables(self) -> tuple[str, ...]:
        """The tables that onceproof's own workers write, not those of an application."""
        return self.tables if self.contract is None else ()

    @property
    def in_database(self) -> bool:
        """Whether the workers keep their positions in a database, with the outputs."""
        return self.claim.position == "database"

    @property
    def commits_in_transactions(self) -> bool:
        """Whether the pipeline claims that every offset is committed in a transaction, of whichever outputs."""
        return self.claim.transactional and self.claim.position in ("in-transaction", "transactional")

    @property
    def identified(self) -> bool:
        """Whether outputs are compared with inputs: an output names its input."""
        return self.contract is None or bool(self.contract.ids)

    @property
    def placed(self) -> bool:
        """Whether an output must be in the partition that `expected` says."""
        return self.contract is None or self.contract.same_partition

    @property
    def compared(self) -> tuple[str, ...]:
        """The topics and tables whose records or rows are compared with the expected outputs."""
        return (*self.judged, *self.tables)

    @property
    def judged(self) -> tuple[str, ...]:
        """The topics whose records are compared with the expected outputs."""
        return tuple(topic for topic in self.topics if topic != self.intermediate_topic)


def _wrong_type(part: Any) -> str:
    """Return the first field of a dataclass whose value is not of its type, as `field: problem`, or an empty string."""
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(type(part)).validate_python({each.name: getattr(part, each.name) for each in fields(part)})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']} (got {first['input']!r:.60})"
    return ""


@dataclass(frozen=True, kw_only=True)
class Workload(Declaration):
    """A pipeline: its declaration and its code.

    `transform`  returns the outputs of an input; None for a workload with `state`
    `state`      returns a new, empty state; None for a stateless workload
    """

    transform: Callable[[Source], Iterable[Output]] | None = None
    state: Callable[[], State] | None = None

    def problem(self) -> str:
        """Return the first attribute that cannot be used, as `attribute: problem`; empty if there is none."""
        if problem := super().problem():
            return problem
        if (self.transform is None) == (self.state is None):
            return "transform: give exactly one of transform and state"
        if (self.state is None) != (not self.changelog):
            return "changelog: needed with state, and only with state"
        return ""
