"""Give every check a run's tables: plan, history, pinned facts, and Spark frames. No cluster is needed.

    tables = Tables(folder, spark, planned, events)
    tables.truth      one row for each input: number, partition, offset, digest, least (0 or 1: outputs it must have)
    tables.outputs    one row for each output that a read_committed reader reads when the run is at rest
    tables.observed   one row for each output that the live observer read during the run
    tables.batches    one row for each batch header of every replica

There are two modes. The full proof reads the input topic. Ledger mode does not, and trusts what the brokers
acknowledged: it cannot detect an input that was lost, changed or written by another producer, and an input that the
ledger calls `info` explains at most one output.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from onceproof.harness.model.plan import Plan
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
    TRANSACTIONS,
)
from onceproof.verifiers.evidence.cached import cached
from onceproof.verifiers.evidence.facts import Facts
from onceproof.verifiers.evidence.frames import rows, small, unless_empty
from onceproof.verifiers.evidence.spark import adapt, in_one_process

SMALL = 500_000  # outputs; a run with this many or fewer is judged faster by few Spark tasks that are not compiled
_OUTPUTS_OF_A_RANGE = 100  # at least, as a rule: those of a transaction in a partition
TRANSACTION = ["worker", "incarnation", "transaction"]
PLACE = ["topic", "partition", "offset"]


def over_earlier(lane: Sequence[str], order: str) -> str:
    """Return Spark SQL for the window over the rows before the current row, by `lane` and in the order of `order`."""
    return f"OVER (PARTITION BY {', '.join(lane)} ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"


class Tables(Facts):
    """The tables, plan and history of a run's folder.

    `samples_max` is the number of samples that a finding keeps; tests that compare every coordinate ask for more.
    `look` reads the hidden records from the topics; None if the cluster is gone. `at` is the URI of a copy of the
    folder that Spark reads; None if Spark reads the folder itself. Raises BadInput when a table is
    missing, or has another schema version or other columns.
    """

    def __init__(
        self,
        folder: Path,
        spark: SparkSession,
        planned: Plan,
        events: Events,
        *,
        samples_max: int = SAMPLES_MAX,
        look: Callable[[], None] | None = None,
        at: str | None = None,
    ) -> None:
        super().__init__(folder, planned, events)
        self.spark, self.samples_max, self.look = spark, samples_max, look
        self._at = str(self.folder) if at is None else at
        sizes = self.facts["rows"]
        ranges = sizes["outputs"] // _OUTPUTS_OF_A_RANGE
        adapt(spark, rows=max(ranges, sizes.get("batches", 0), sizes.get("commits", 0)), few=self._is_small)

    @property
    @cached
    def inputs(self) -> DataFrame:
        """Return the records of the input topic; full proof only."""
        return self.parquet("tables/inputs.parquet", INPUTS.spark)

    @property
    @cached
    def outputs(self) -> DataFrame:
        """Return the records of the judged topics, as `told` does, that a read_committed reader reads at rest."""
        return self.told("tables/outputs.parquet")

    def told(self, path: str) -> DataFrame:
        """Return the outputs in a file, with their provenance headers split into columns.

        These are source_partition, source_offset, worker, incarnation, transaction, intermediate_partition and
        intermediate_offset; they are null if the record has no such header.
        """
        return self.parquet(path, OUTPUTS.spark).selectExpr("* EXCEPT (told_0, told_1, told_2)", *parts_sql())

    @property
    @cached
    def ledger(self) -> DataFrame:
        """Return the inputs that the generator sent: number, partition, offset (may be null), digest, acknowledged."""
        return self.parquet("ledger/sent-*.parquet", LEDGER.spark)

    @property
    @cached
    def observed(self) -> DataFrame | None:
        """Return the outputs that the live observer read during the run; None if there was no observer."""
        if not any(self.folder.glob("ledger/*/observed-*.parquet")):
            return None
        return self.parquet("ledger/*/observed-*.parquet", OBSERVED.spark).withColumn(
            "topic", self.role_of(F.col("topic"))
        )

    @property
    @cached
    def batches(self) -> DataFrame:
        """Return the batch headers of every replica, as `collect.segments` describes them."""
        return self.parquet("tables/batches.parquet", BATCHES.spark)

    @property
    @cached
    def commits(self) -> DataFrame:
        """Return the offsets that the group of the input committed (`position`); `offset` is the commit's own."""
        return self.gathered(self.all_commits.where(F.col("topic") == self.input_topic).drop("topic"))

    @property
    @cached
    def all_commits(self) -> DataFrame:
        """Return the offsets that all groups of the pipeline committed, with the `topic` (on the cluster) they read."""
        return self.gathered(self.parquet("tables/commits.parquet", COMMITS.spark))

    def of_leaders(self, partitions: Iterable[Mapping[str, Any]]) -> DataFrame:
        """Return `batches` of the leaders of these partitions: entries of `pinned`, or of the fact `internal`."""
        leaders = small(
            self.spark,
            [(each["topic"], each["partition"], each["leader"]) for each in partitions],
            "topic string, partition int, broker string",
        )
        return self.batches.join(F.broadcast(leaders), ["topic", "partition", "broker"])

    @property
    @cached
    def log(self) -> DataFrame:
        """Return the batches of each judged partition's leader; `topic` is the workload's own name of it."""
        mine = self.of_leaders(self.pinned)
        return self.gathered(mine.withColumn("topic", self.role_of(F.col("topic"))).drop("broker", "crc"))

    @property
    @cached
    def truth(self) -> DataFrame:
        """Return the inputs of the run: number, partition, offset, digest, grouping, least.

        They come from the ledger, so they survive delete-records. If the ledger has no offset for an input, it is
        placed where the log has it first. An input that the ledger calls `info` counts if it is in the log; if it is
        not, it explains at most one output (`least` is 0).
        """
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
                "grouping",
                F.expr("at IS NOT NULL OR acknowledged").cast("int").alias("least"),
            )
        )

    @property
    @cached
    def transactions(self) -> DataFrame:
        """Return the events of transactions in the history, read by Spark since there are several for each transaction.

        Columns: worker, incarnation, transaction, event (begin, invoke, outcome), type, sources, outputs, t (seconds
        of the same clock as the observer's `at`).
        """
        told = self.spark.read.schema(TRANSACTIONS.spark).json(self.at("history.jsonl"))
        mine = told.where("event IN ('begin', 'invoke', 'outcome')")  # speed: other events do not say how one ended
        return self.gathered(mine.withColumn("worker", F.substring("source", 8, 9).cast("int")).drop("source"))

    @property
    @cached
    def first_of_unplaced(self) -> DataFrame:
        """Return the first place in the log of each input that has no offset in the ledger; full proof only.

        Columns: number, digest, at (partition, offset).
        """
        place, key = F.struct("partition", "offset"), ["number", "digest"]
        mine = self.inputs.join(self.ledger.where("offset IS NULL").select(*key), key, "left_semi")
        return mine.groupBy(*key).agg(F.min(place).alias("at"))

    @property
    @cached
    def starts(self) -> DataFrame:
        """Return the log start of each judged partition: topic (the workload's own name of it), partition, start."""
        return small(
            self.spark,
            [(self.role(each["topic"]), each["partition"], each["start"]) for each in self.pinned],
            "topic string, partition int, start bigint",
        )

    @property
    @cached
    def positions_frame(self) -> DataFrame:
        """Return `positions` as a small frame: partition, position."""
        return small(self.spark, list(self.positions.items()), "partition int, position bigint")

    def role_of(self, topic: Column) -> Column:
        """Return `role` as a column. A known topic becomes a literal, so that no string is made for each row."""
        role = F.substring(topic, len(self.topic("")) + 1, 1_000)
        for name in {each["topic"] for each in self.pinned}:
            role = F.when(topic == name, self.role(name)).otherwise(role)  # speed
        return role

    @property
    @cached
    def positions(self) -> dict[int, int]:
        """Return the group's committed offset on each input partition.

        Of an application that commits none it is the offset after the last input that has an output: whether it has
        read the inputs behind it cannot be known.
        """
        if self.workload.claim.position == "none":
            done = self.truth.join(self.outputs.select("number").distinct(), "number", "left_semi")
            last = done.groupBy("partition").agg(F.max("offset").alias("offset"))
            return {row["partition"]: row["offset"] + 1 for row in rows(last)}
        return {e["partition"]: e["offset"] for e in self.facts["positions"] if e["topic"] == self.input_topic}

    def gathered(self, frame: DataFrame) -> DataFrame:
        """Keep a frame in memory that is smaller than the outputs.

        In a small run it becomes a single partition, so that grouping, ordering and joining it take one task and no
        exchange, and a checkpoint, so that queries on it do not plan its origin again. Executors of other processes may
        be lost with their part of a checkpoint, which cannot be computed again.
        """
        if not self._is_small:  # speed
            return frame.persist()
        whole = frame.coalesce(1)
        return whole.localCheckpoint(eager=False) if in_one_process(self.spark) else whole.persist()  # speed

    def unless_empty(self, frame: DataFrame) -> DataFrame | None:
        """Return the frame, kept in memory as by `gathered`; None if it has no rows."""
        return unless_empty(self.gathered(frame))

    def few(self, frame: DataFrame) -> DataFrame:
        """Mark a frame as the side of a join, with a gathered frame, from which the hash table is built.

        In a large run the frame is partitioned and not broadcast, since there may be as many contiguous ranges as
        outputs if the outputs are out of order.
        """
        return (frame.coalesce(1) if self._is_small else frame).hint("shuffle_hash")  # speed

    @property
    def _is_small(self) -> bool:
        return bool(self.facts["rows"]["outputs"] <= SMALL)

    def parquet(self, name: str, schema: str) -> DataFrame:
        """Return a table of the folder, by the name of its file or a pattern of such names; `schema` is Spark's DDL."""
        return self.spark.read.schema(schema).parquet(self.at(name))

    def at(self, name: str) -> str:
        """Return where Spark reads a file of the folder, by its name."""
        return f"{self._at}/{name}"
