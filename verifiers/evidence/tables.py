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

from onceproof.harness.model import registry
from onceproof.harness.model.plan import Plan
from onceproof.harness.model.workload import Workload
from onceproof.harness.record import documents
from onceproof.harness.record.events import DeletedTo, Event, Outcome, RecordsDeleted
from onceproof.harness.record.history import Events
from onceproof.harness.record.provenance import parts_sql
from onceproof.harness.record.results import SAMPLES_MAX
from onceproof.harness.record.tables import (
    BATCHES,
    COMMITS,
    INPUTS,
    LEDGER,
    OBSERVED,
    OUTPUTS,
    SCHEMA_VERSION,
    TRANSACTIONS,
    Table,
)
from onceproof.verifiers.evidence.spark import small

_UNITS = {"commits": "committed offsets", "observed": "observed records"}
SMALL = 500_000  # outputs: a run of as many is judged sooner by few tasks than by many
TRANSACTION = ["worker", "incarnation", "transaction"]
PLACE = ["topic", "partition", "offset"]


Result = TypeVar("Result")


def cached(function: Callable[["Tables"], Result]) -> Callable[["Tables"], Result]:
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
        self,
        folder: Path,
        spark: SparkSession,
        planned: Plan,
        events: Events,
        *,
        samples_max: int = SAMPLES_MAX,
        look: Callable[[], None] | None = None,
    ) -> None:
        self.folder, self.spark, self.samples_max = folder.resolve(), spark, samples_max
        self.plan, self.events = planned, events
        self.facts: dict[str, Any] = documents.read(
            folder / "tables" / "collect.json",
            schema_version=SCHEMA_VERSION,
            missing="the run ended before its tables were collected",
        )
        for table, name in ((BATCHES, "batches"), (COMMITS, "commits")):
            table.check(folder.glob(f"tables/{name}.parquet"))
        self.results: dict[Any, Any] = {}
        self.locks: dict[Any, RLock] = {}
        self.look = look
        self.workload: Workload = registry.workload(self.plan.scenario.workload.name)

    # Frames

    @property
    @cached
    def inputs(self) -> DataFrame:
        """Of the full proof only."""
        return self.parquet("tables/inputs.parquet", INPUTS.spark)

    @property
    @cached
    def outputs(self) -> DataFrame:
        return self.told("tables/outputs.parquet")

    def told(self, path: str) -> DataFrame:
        """Outputs of a file, with what their headers say, part by part: source_partition, source_offset, worker,
        incarnation, transaction (null where there is no such header), intermediate_partition, intermediate_offset."""
        return self.parquet(path, OUTPUTS.spark).selectExpr("* EXCEPT (told_0, told_1, told_2)", *parts_sql())

    @property
    @cached
    def ledger(self) -> DataFrame:
        return self.parquet("ledger/sent-*.parquet", LEDGER.spark)

    @property
    @cached
    def ledger_files(self) -> dict[Path, Any]:
        """Its files, each with its footer."""
        return LEDGER.check(self.folder.glob("ledger/sent-*.parquet"))

    @property
    @cached
    def observed(self) -> DataFrame | None:
        """None when nobody watched."""
        if not any(self.folder.glob("ledger/*/observed-*.parquet")):
            return None
        return self.parquet("ledger/*/observed-*.parquet", OBSERVED.spark).withColumn(
            "topic", self.role_of(F.col("topic"))
        )

    @property
    @cached
    def batches(self) -> DataFrame:
        return self.parquet("tables/batches.parquet", BATCHES.spark)

    @property
    @cached
    def commits(self) -> DataFrame:
        """Positions that the group committed, in the order of the log; `offset` is their place in it."""
        return self.gathered(self.parquet("tables/commits.parquet", COMMITS.spark))

    @property
    @cached
    def log(self) -> DataFrame:
        """The batches of each judged partition's leader; `topic` is the workload's own name."""
        leaders = small(
            self.spark,
            [(each["topic"], each["partition"], each["leader"]) for each in self.pinned],
            "topic string, partition int, broker string",
        )
        mine = self.batches.join(F.broadcast(leaders), ["topic", "partition", "broker"])
        return self.gathered(mine.withColumn("topic", self.role_of(F.col("topic"))).drop("broker", "crc"))

    @property
    @cached
    def truth(self) -> DataFrame:
        """What the inputs are. An acknowledged one comes from the ledger, so it survives delete-records; where that
        does not know its offset, it is where the log has it first. One that the ledger calls `info` counts when it is
        in the log; if it is not, it explains at most one output (least 0)."""
        placed = self.ledger.where("offset IS NOT NULL").drop("acknowledged").withColumn("least", F.lit(1))
        if not self.unplaced:  # speed: what follows finds none
            return placed
        told = self.ledger.where("offset IS NULL").drop("offset")
        nowhere = F.lit(None).cast("struct<partition: int, offset: bigint>")
        either = (
            told.join(self.first_of_unplaced, ["number", "digest"], "left")
            if self.full
            else told.withColumn("at", nowhere)
        )
        return placed.unionByName(
            either.select(
                "number",
                F.coalesce("at.partition", "partition").alias("partition"),
                "at.offset",
                "digest",
                F.expr("at IS NOT NULL OR acknowledged").cast("int").alias("least"),
            )
        )

    @property
    @cached
    def transactions(self) -> DataFrame:
        """The history's transactions: worker, incarnation, transaction, event (begin, invoke, outcome), type, sources,
        outputs, t (seconds, by the clock of the observer's `at`). Read by Spark, since there is a line for each."""
        told = self.spark.read.schema(TRANSACTIONS.spark).json(str(self.folder / "history.jsonl"))
        mine = told.where("event IN ('begin', 'invoke', 'outcome')")  # speed: no other says how one ended
        return self.gathered(mine.withColumn("worker", F.substring("source", 8, 9).cast("int")).drop("source"))

    @property
    @cached
    def unplaced(self) -> int:
        """How many inputs there are of which the ledger does not know where in the log they are, if they are in it."""
        return sum(_without_offset(part, footer) for part, footer in self.ledger_files.items())

    @property
    @cached
    def first_of_unplaced(self) -> DataFrame:
        """Where the log has those first, by partition and offset: number, digest, at. Of the full proof only."""
        place, key = F.struct("partition", "offset"), ["number", "digest"]
        mine = self.inputs.join(self.ledger.where("offset IS NULL").select(*key), key, "left_semi")
        return mine.groupBy(*key).agg(F.min(place).alias("at"))

    @property
    @cached
    def starts(self) -> DataFrame:
        """The log start of each judged partition: topic (the workload's own name), partition, start."""
        return small(
            self.spark,
            [(self.role(each["topic"]), each["partition"], each["start"]) for each in self.pinned],
            "topic string, partition int, start bigint",
        )

    @property
    @cached
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
    @cached
    def _sizes(self) -> dict[str, int]:
        return {
            "inputs": sum(footer.num_rows for footer in self.ledger_files.values()),
            "outputs": self.facts["rows"]["outputs"],
            "transactions": len(self.events.of(Outcome)),
            "batches": self._rows(BATCHES, "tables/batches.parquet"),
            "commits": self._rows(COMMITS, "tables/commits.parquet"),
            "observed": self._rows(OBSERVED, "ledger/*/observed-*.parquet"),
            "partitions": len(self.pinned),
            "offsets": sum(max(0, each["end"] - each["start"]) for each in self.pinned),
            "replicas": sum(len(each["replicas"]) for each in self.pinned),
        }

    def _rows(self, table: Table, files: str) -> int:
        return sum(footer.num_rows for footer in table.check(self.folder.glob(files)).values())

    def sizes(self, *units: str) -> dict[str, int]:
        """How many there are of these in the run: inputs, outputs, transactions, batches (of all replicas), committed
        offsets, observed records, partitions, offsets, replicas. What a check that reads all of them says it compared;
        it costs no Spark job."""
        return {_UNITS.get(unit, unit): self._sizes[unit] for unit in units}

    @property
    def deletes(self) -> list[DeletedTo]:
        """Partitions of the input whose records a fault deleted: partition, position, low_watermark."""
        return self.deletes_of("input")

    def reads_input(self, event: Event) -> bool:
        """Whether the worker of an event reads the input: in a chain every second one reads the topic between."""
        return not self.workload.intermediate_topic or event.worker % 2 == 0

    def deletes_of(self, role: str) -> list[DeletedTo]:
        """The same of any topic."""
        return [mark for each in self.events.of(RecordsDeleted, topic=role) for mark in each.partitions]

    def gathered(self, frame: DataFrame) -> DataFrame:
        """A frame kept in memory that is small beside the outputs. Of a small run it is in one part, so that to group,
        order or join it takes one task and no exchange, and stands for itself: who asks it plans no more than that."""
        return frame.coalesce(1).localCheckpoint(eager=False) if self._is_small else frame.persist()  # speed

    def few(self, frame: DataFrame) -> DataFrame:
        """The side of a join of gathered frames that is made a hash table. Of a large run in parts, not sent to all:
        where outputs are in no order, there are as many contiguous ranges as outputs."""
        return (frame.coalesce(1) if self._is_small else frame).hint("shuffle_hash")  # speed

    @property
    def _is_small(self) -> bool:
        return bool(self.facts["rows"]["outputs"] <= SMALL)

    def parquet(self, name: str, schema: str) -> DataFrame:
        """A table of the folder, by its file's name."""
        return self.spark.read.schema(schema).parquet(str(self.folder / name))
