"""A run's tables, as every check gets them: plan, history, pinned facts, and Spark frames. No cluster is needed.

    tables = Tables.read(folder, spark)
    tables.truth      one row an input: number, partition, offset, digest, least (0 or 1 outputs that it must have)
    tables.outputs    one row an output that a read_committed reader sees
    tables.batches    batch headers of every replica
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from harness import documents, history, plan, registry
from harness.history import Event
from harness.plan import Plan
from harness.protocols import Workload

SCHEMA_VERSION = 1
_AROUND_MAX = 12
# Given, not inferred: inferring costs a Spark job a table, and would let a wrong table pass.
LEDGER = "number bigint, partition int, offset bigint, digest bigint"
INPUTS = "partition int, offset bigint, number bigint, digest bigint"
OUTPUTS = ("topic string, partition int, offset bigint, number bigint, digest bigint, source_partition int, "
           "source_offset bigint, worker int, incarnation int, transaction bigint")  # fmt: skip
BATCHES = ("topic string, partition int, broker string, first bigint, last bigint, records int, producer_id bigint, "
           "producer_epoch smallint, sequence int, transactional boolean, control string, crc bigint, "
           "coordinator_epoch int, fate string")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Span:
    """Offsets [first, after) of one input partition."""

    partition: int
    first: int
    after: int


class Tables:
    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark = folder.resolve(), spark
        self.plan: Plan = plan.read(folder / "plan.json")
        self.events: list[Event] = history.read(folder / "history.jsonl")
        self.facts: dict[str, Any] = documents.read(
            folder / "tables" / "collect.json", schema_version=SCHEMA_VERSION,
            missing="the run ended before its tables were collected",
        )  # fmt: skip
        self.workload: Workload = registry.workload(self.plan.scenario.workload.name)

    @cached_property
    def inputs(self) -> DataFrame:
        return self._parquet("tables/inputs.parquet", INPUTS)

    @cached_property
    def outputs(self) -> DataFrame:
        return self._parquet("tables/outputs.parquet", OUTPUTS)

    @cached_property
    def ledger(self) -> DataFrame:
        return self._parquet("ledger/sent-*.parquet", LEDGER)

    @cached_property
    def batches(self) -> DataFrame:
        return self._parquet("tables/batches.parquet", BATCHES)

    @cached_property
    def truth(self) -> DataFrame:
        """What the inputs are. An acknowledged one comes from the ledger, so it survives delete-records. One that the
        ledger calls `info` counts when it is in the log; if it is not, it explains at most one output (least 0)."""
        acknowledged = self.ledger.where("offset IS NOT NULL").withColumn("least", F.lit(1))
        if not self.unacknowledged:
            return acknowledged
        unknown = self.ledger.where("offset IS NULL").select("number", "digest", F.col("partition").alias("sent_to"))
        found = unknown.join(self.inputs.select("number", "partition", "offset"), "number", "left").select(
            "number",
            F.coalesce("partition", "sent_to").alias("partition"),
            "offset",
            "digest",
            F.when(F.col("offset").isNull(), 0).otherwise(1).alias("least"),
        )
        return acknowledged.unionByName(found)

    @cached_property
    def unacknowledged(self) -> int:
        """How many inputs the ledger calls `info`."""
        return self.ledger.where("offset IS NULL").count()

    @property
    def pinned(self) -> Sequence[dict[str, Any]]:
        """Each judged partition: topic, partition, start, end (the LSO), high_watermark, leader."""
        found: list[dict[str, Any]] = self.facts["partitions"]
        return found

    @property
    def input_topic(self) -> str:
        """The input's name on the cluster; it is the first of the pinned ones."""
        name: str = self.pinned[0]["topic"]
        return name

    def topic(self, role: str) -> str:
        return self.input_topic.removesuffix("input") + role

    @property
    def positions(self) -> dict[int, int]:
        """The group's committed position on each input partition."""
        return {each["partition"]: each["offset"] for each in self.facts["positions"]}

    @property
    def deletes(self) -> list[dict[str, Any]]:
        """Partitions of the input whose records a fault deleted: partition, position, low_watermark."""
        return [mark for e in self.events if e["event"] == "records-deleted" for mark in e["partitions"]]

    def around(self, partition: int, offset: int) -> list[dict[str, Any]]:
        """The transactions that had an input in their source ranges, as the history tells them."""
        keys = ("at", "source", "incarnation", "transaction", "event", "type")
        found: list[dict[str, Any]] = []
        for event in self.events:
            first, after = event.get("sources", {}).get(str(partition), (0, 0))
            if event["event"] in ("invoke", "outcome") and first <= offset < after:
                found.append({str(key): event[key] for key in keys if key in event})
        return found[:_AROUND_MAX]

    def _parquet(self, name: str, schema: str) -> DataFrame:
        return self.spark.read.schema(schema).parquet(str(self.folder / name))
