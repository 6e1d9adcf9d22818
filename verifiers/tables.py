"""A run's tables, as every check gets them: plan, history, pinned facts, and Spark frames. No cluster is needed.

    tables = Tables(folder, spark, planned, events)
    tables.truth      one row an input: number, partition, offset, digest, least (0 or 1 outputs that it must have)
    tables.outputs    one row an output that a read_committed reader saw when the run was at rest
    tables.observed   one row an output that the live observer saw while the run went on
    tables.batches    batch headers of every replica

Two modes. The full proof reads the input topic; the ledger mode does not, and trusts what the brokers acknowledged: it
cannot see an input that was lost, changed or written by somebody else, and an input that the ledger calls `info`
explains at most one output.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from harness import documents, registry
from harness.history import Event
from harness.plan import Plan
from harness.protocols import Workload
from harness.provenance import parts_sql
from harness.verdict import SAMPLES_MAX
from verifiers.spark import small

SCHEMA_VERSION = 5
# Given, not inferred: inferring costs a Spark job a table, and would let a wrong table pass.
LEDGER = "number bigint, partition int, offset bigint, digest bigint, acknowledged boolean"
INPUTS = "partition int, offset bigint, number bigint, digest bigint"
OUTPUTS = ("topic string, partition int, offset bigint, number bigint, digest bigint, told_0 bigint, told_1 bigint, "
           "told_2 bigint, content bigint, total bigint, grouping bigint")  # fmt: skip
OBSERVED = "topic string, partition int, offset bigint, number bigint, digest bigint, at double"
BATCHES = ("topic string, partition int, broker string, first bigint, last bigint, records int, producer_id bigint, "
           "producer_epoch smallint, sequence int, transactional boolean, control string, crc bigint, "
           "coordinator_epoch int, fate string")  # fmt: skip
COMMITS = ("offset bigint, partition int, position bigint, worker int, incarnation int, transaction bigint, "
           "producer_id bigint, producer_epoch smallint, fate string")  # fmt: skip
_EVENTS = ("event string, source string, incarnation int, transaction bigint, type string, t double, "
           "sources map<string, array<bigint>>, outputs map<string, array<bigint>>")  # fmt: skip
SMALL = 500_000  # outputs: a run of as many is judged sooner by few tasks than by many
TRANSACTION = ["worker", "incarnation", "transaction"]
PLACE = ["topic", "partition", "offset"]


Result = TypeVar("Result")


def kept(function: Callable[["Tables"], Result]) -> Callable[["Tables"], Result]:
    """What a function of the tables returns, computed once for each Tables, since several checks ask for it, in threads
    of their own. (Functions that ask for each other would wait for ever; so none may.)"""

    @wraps(function)
    def once(tables: "Tables") -> Result:
        with tables.locks.setdefault(function, RLock()):
            if function not in tables.results:  # speed
                tables.results[function] = function(tables)
            found: Result = tables.results[function]
            return found

    return once


def worker_of(event: Event) -> int:
    """The number of the worker that an event is of."""
    return int(event["source"].removeprefix("worker-"))


def _without_offset(part: Path, footer: Any) -> int:
    """How many rows of a file of the ledger have none: its footer says it."""
    column = footer.schema.names.index("offset")
    told = [footer.row_group(number).column(column).statistics for number in range(footer.num_row_groups)]
    if all(each is not None and each.has_null_count for each in told):  # speed
        return sum(each.null_count for each in told)
    return int(pq.read_table(part, columns=["offset"])["offset"].null_count)


def over_earlier(lane: Sequence[str], order: str) -> str:
    """Spark SQL: the window of the rows of a row's lane that are before it."""
    return f"OVER (PARTITION BY {', '.join(lane)} ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"


class Tables:
    """`samples_max`: how many samples a finding keeps; the tests that compare every coordinate ask for more.
    `look`: reads the topics once more, for `hidden`; None when the cluster is gone."""

    def __init__(
        self, folder: Path, spark: SparkSession, planned: Plan, events: list[Event], *,
        samples_max: int = SAMPLES_MAX, look: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self.folder, self.spark, self.samples_max = folder.resolve(), spark, samples_max
        self.plan, self.events = planned, events
        self.facts: dict[str, Any] = documents.read(
            folder / "tables" / "collect.json", schema_version=SCHEMA_VERSION,
            missing="the run ended before its tables were collected",
        )  # fmt: skip
        self.results: dict[Any, Any] = {}
        self.locks: dict[Any, RLock] = {}
        self.look = look
        self.workload: Workload = registry.workload(self.plan.scenario.workload.name)

    # Frames

    @property
    @kept
    def inputs(self) -> DataFrame:
        """Of the full proof only."""
        return self.parquet("tables/inputs.parquet", INPUTS)

    @property
    @kept
    def outputs(self) -> DataFrame:
        return self.told("tables/outputs.parquet")

    def told(self, path: str) -> DataFrame:
        """Outputs of a file, with what their headers say, part by part: source_partition, source_offset, worker,
        incarnation, transaction (null where there is no such header), via_partition, via_offset."""
        return self.parquet(path, OUTPUTS).selectExpr("* EXCEPT (told_0, told_1, told_2)", *parts_sql())

    @property
    @kept
    def ledger(self) -> DataFrame:
        return self.parquet("ledger/sent-*.parquet", LEDGER)

    @property
    @kept
    def ledger_files(self) -> dict[Path, Any]:
        """Its files, each with its footer."""
        return {part: pq.read_metadata(part) for part in self.folder.glob("ledger/sent-*.parquet")}

    @property
    @kept
    def observed(self) -> DataFrame | None:
        """None when nobody watched."""
        if not any(self.folder.glob("ledger/*/observed-*.parquet")):
            return None
        return self.parquet("ledger/*/observed-*.parquet", OBSERVED).withColumn("topic", self.role_of(F.col("topic")))

    @property
    @kept
    def batches(self) -> DataFrame:
        return self.parquet("tables/batches.parquet", BATCHES)

    @property
    @kept
    def commits(self) -> DataFrame:
        """Positions that the group committed, in the order of the log; `offset` is their place in it."""
        return self.gathered(self.parquet("tables/commits.parquet", COMMITS))

    @property
    @kept
    def log(self) -> DataFrame:
        """The batches of each judged partition's leader; `topic` is the workload's own name."""
        leaders = small(
            self.spark, [(each["topic"], each["partition"], each["leader"]) for each in self.pinned],
            "topic string, partition int, broker string",
        )  # fmt: skip
        mine = self.batches.join(F.broadcast(leaders), ["topic", "partition", "broker"])
        return self.gathered(mine.withColumn("topic", self.role_of(F.col("topic"))).drop("broker", "crc"))

    @property
    @kept
    def truth(self) -> DataFrame:
        """What the inputs are. An acknowledged one comes from the ledger, so it survives delete-records; where that
        does not know its offset, it is where the log has it first. One that the ledger calls `info` counts when it is
        in the log; if it is not, it explains at most one output (least 0)."""
        placed = self.ledger.where("offset IS NOT NULL").drop("acknowledged").withColumn("least", F.lit(1))
        if not self.unplaced:  # speed: what follows finds none
            return placed
        told = self.ledger.where("offset IS NULL").drop("offset")
        nowhere = F.lit(None).cast("struct<partition: int, offset: bigint>")
        either = told.join(self.first_of_unplaced, ["number", "digest"], "left") if self.full else \
            told.withColumn("at", nowhere)
        return placed.unionByName(either.select(
            "number", F.coalesce("at.partition", "partition").alias("partition"), "at.offset", "digest",
            F.expr("at IS NOT NULL OR acknowledged").cast("int").alias("least"),
        ))  # fmt: skip

    @property
    @kept
    def transactions(self) -> DataFrame:
        """The history's transactions: worker, incarnation, transaction, event (begin, invoke, outcome), type, sources,
        outputs, t (seconds, by the clock of the observer's `at`). Read by Spark, since there is a line for each."""
        told = self.spark.read.schema(_EVENTS).json(str(self.folder / "history.jsonl"))
        mine = told.where("event IN ('begin', 'invoke', 'outcome')")  # speed: no other says how one ended
        return self.gathered(mine.withColumn("worker", F.substring("source", 8, 9).cast("int")).drop("source"))

    @property
    @kept
    def unplaced(self) -> int:
        """How many inputs there are of which the ledger does not know where in the log they are, if they are in it."""
        return sum(_without_offset(part, footer) for part, footer in self.ledger_files.items())

    @property
    @kept
    def first_of_unplaced(self) -> DataFrame:
        """Where the log has those first, by partition and offset: number, digest, at. Of the full proof only."""
        place, key = F.struct("partition", "offset"), ["number", "digest"]
        mine = self.inputs.join(self.ledger.where("offset IS NULL").select(*key), key, "left_semi")
        return mine.groupBy(*key).agg(F.min(place).alias("at"))

    @property
    @kept
    def starts(self) -> DataFrame:
        """The log start of each judged partition: topic (the workload's own name), partition, start."""
        return small(
            self.spark, [(self.role(each["topic"]), each["partition"], each["start"]) for each in self.pinned],
            "topic string, partition int, start bigint",
        )  # fmt: skip

    @property
    @kept
    def positions_frame(self) -> DataFrame:
        """`positions` as a small frame: partition, position."""
        return small(self.spark, list(self.positions.items()), "partition int, position bigint")

    # Facts

    @property
    def full(self) -> bool:
        """Whether the input topic was read."""
        return bool(self.facts["mode"] == "full")

    @property
    def pinned(self) -> Sequence[dict[str, Any]]:
        """Each judged partition: topic, partition, start, end (the LSO), high_watermark, leader, replicas (nodes)."""
        found: list[dict[str, Any]] = self.facts["partitions"]
        return found

    @property
    def input_topic(self) -> str:
        """The input's name on the cluster; it is the first of the pinned ones."""
        name: str = self.pinned[0]["topic"]
        return name

    @property
    def from_the_first(self) -> bool:
        """Whether each input partition starts at its first record."""
        return not any(each["start"] for each in self.pinned if each["topic"] == self.input_topic)  # speed

    def topic(self, role: str) -> str:
        return self.input_topic.removesuffix("input") + role

    def role(self, topic: str) -> str:
        """The workload's own name of a topic."""
        return topic.removeprefix(self.topic(""))

    def role_of(self, topic: Column) -> Column:
        """`role` as a column. By name where it is one of the run's, since a row of its own makes no string then."""
        role = F.substring(topic, len(self.topic("")) + 1, 1_000)
        for name in {each["topic"] for each in self.pinned}:
            role = F.when(topic == name, self.role(name)).otherwise(role)  # speed
        return role

    @property
    def input_ends(self) -> dict[int, int]:
        """The high watermark of each input partition."""
        return {each["partition"]: each["high_watermark"] for each in self.pinned if each["topic"] == self.input_topic}

    @property
    def positions(self) -> dict[int, int]:
        """The group's committed position on each input partition."""
        return {each["partition"]: each["offset"] for each in self.facts["positions"]}

    @property
    def deletes(self) -> list[dict[str, Any]]:
        """Partitions of the input whose records a fault deleted: partition, position, low_watermark."""
        return self.deletes_of("input")

    def reads_input(self, event: Event) -> bool:
        """Whether the worker of an event reads the input: in a chain every second one reads the topic between."""
        return not self.workload.via or worker_of(event) % 2 == 0

    def deletes_of(self, role: str) -> list[dict[str, Any]]:
        """The same of any topic."""
        deleted = (e for e in self.events if e["event"] == "records-deleted" and e.get("topic", "input") == role)
        return [mark for e in deleted for mark in e["partitions"]]

    def gathered(self, frame: DataFrame) -> DataFrame:
        """A frame kept in memory that is small beside the outputs. Of a small run it is in one part, so that to group,
        order or join it takes one task and no exchange, and stands for itself: who asks it plans no more than that."""
        return frame.coalesce(1).localCheckpoint(eager=False) if self._is_small else frame.persist()  # speed

    def few(self, frame: DataFrame) -> DataFrame:
        """The side of a join of gathered frames that is made a hash table. Of a large run in parts, not sent to all:
        where outputs are in no order, there are as many stretches as outputs."""
        return (frame.coalesce(1) if self._is_small else frame).hint("shuffle_hash")  # speed

    @property
    def _is_small(self) -> bool:
        return bool(self.facts["rows"]["outputs"] <= SMALL)

    def parquet(self, name: str, schema: str) -> DataFrame:
        """A table of the folder, by its file's name."""
        return self.spark.read.schema(schema).parquet(str(self.folder / name))
