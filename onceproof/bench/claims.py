"""Measure what is said of the cost of transactions, with librdkafka and the Java client.

    onceproof bench transactions

    throughput    records of 1 KB and a commit every 100 ms cost about 3% of the throughput
    cost          the cost of a transaction does not depend on the number of records in it
    isolation     a read_committed reader is as fast as a read_uncommitted one
    scope         a producer for each partition needs more connections and memory than one for each worker, and is
                  slower

The first three are from "Transactions in Apache Kafka" (Mehta and Gustafson, 2017), the last from KIP-447. Each claim
is measured in cells: one client with one setting. A cell has several pairs, which are measured in turns
(`onceproof.bench.clients`). All traffic goes through the lanes of one cluster with three brokers; topics have three
replicas, and two must be in sync.

    <folder>/transactions.json    every pair
    <folder>/transactions.md      the tables; <folder>/CLAIM.svg are the plots
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from onceproof.bench import baselines
from onceproof.bench.paired import Interval, interval
from onceproof.harness.artifacts import jars
from onceproof.harness.base.memory import resident_mb
from onceproof.harness.base.progress import Progress
from onceproof.harness.cluster import pool, topology
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.model.spec import ClusterSpec
from onceproof.run import ready

CLIENTS = ("librdkafka", "java")
LIBRDKAFKA = (sys.executable, "-P", "-m", "onceproof.bench.clients.librdkafka")
_JAVA = Path(__file__).parent / "clients" / "JavaClient.java"
_TOPIC = {"min.insync.replicas": "2", "retention.ms": "-1", "file.delete.delay.ms": "1000"}
SPREAD = 1_000  # records of a transaction on several partitions
Asked = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One client with one setting: what was measured in each pair, `without` and `with`.

    `pairs` are milliseconds of `cost`, seconds of `isolation`, and otherwise records per second. For `scope`, `peaks`
    is the peak memory in MB and the largest number of connections, without and with.
    """

    claim: str
    client: str
    setting: Mapping[str, int | str]
    pairs: Sequence[tuple[float, float]]
    peaks: tuple[tuple[float, float], tuple[float, float]] | None = None

    @property
    def effect(self) -> Interval:
        """What transactions change: of `cost` in milliseconds, of the others as a ratio, with divided by without."""
        if self.claim == "cost":
            return interval([after - before for before, after in self.pairs])
        return interval([after / before for before, after in self.pairs])


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What is varied."""

    clients: Sequence[str] = CLIENTS
    pairs: int = 9
    seconds: float = 2.0
    records: int = 300_000
    sizes: Sequence[int] = (100, 1_000, 10_000)
    intervals_ms: Sequence[int] = (10, 30, 100, 300, 1_000)
    in_transaction: Sequence[int] = (1, 10, 100, SPREAD, 10_000)
    partitions: Sequence[int] = (1, 8, 64)
    aborted_percent: Sequence[int] = (0, 10, 50)
    producers: Sequence[int] = (8, 32, 128, 512)


def measure(sweep: Sweep, claims: Sequence[str], progress: Progress) -> Iterator[Cell]:
    """Yield the cells of the claims, as they are measured. Raises HarnessError when a client fails."""
    spec = ClusterSpec()
    with pool.lease(spec, keep=False, say=progress.say) as cluster:
        runner = _Runner(cluster, spec.version)
        cells = {"throughput": throughput, "cost": cost, "isolation": reading, "scope": scopes}
        for claim in claims:
            for client in sweep.clients:
                progress.phase(f"measure {claim} with {client}")
                for cell in cells[claim](sweep, client, runner):
                    progress.say(described(cell))
                    yield cell


def described(cell: Cell) -> str:
    """Return a cell in one line."""
    setting = ", ".join(f"{name} {value}" for name, value in cell.setting.items())
    unit, effect = " ms" if cell.claim == "cost" else "", cell.effect
    return f"{cell.claim} {cell.client}, {setting}: {effect.median:.3g}{unit} ({effect.low:.3g} to {effect.high:.3g})"


def java(version: str) -> Sequence[str]:
    """Return the command that measures the Java client of a release, which is compiled before. Raises HarnessError."""
    kafka = jars.kafka(version)
    compiled = jars.compiled("client", [_JAVA], sorted(kafka.glob("*.jar")))
    return ["java", "-cp", f"{compiled}:{kafka}/*", "-Dlog4j2.level=OFF", "JavaClient"]


class _Runner:
    """Runs the processes of clients, each with a topic of its own."""

    def __init__(self, cluster: Cluster, version: str) -> None:
        self._cluster, self._number = cluster, 0
        self._commands = {"librdkafka": LIBRDKAFKA, "java": java(version)}

    def topic(self, partitions: int) -> str:
        """Make a topic, after the one before was deleted, and return its name."""
        admin = self._cluster.admin
        if self._number:
            admin.delete_topics([f"bench-{self._number}"])
        self._number += 1
        name = f"bench-{self._number}"
        admin.create_topics([name], partitions=partitions, replicas=3, config=_TOPIC)
        ready.await_leaders(admin, [name], partitions=partitions, replicas=3)
        return name

    def run(self, client: str, asked: Asked) -> tuple[list[Mapping[str, float]], float, float]:
        """Run a process, and return the lines that it printed, its peak memory in MB and its most connections."""
        bootstrap = self._cluster.bootstrap(topology.OBSERVER_LANE)
        command = [*self._commands[client], json.dumps({**asked, "bootstrap": bootstrap})]
        said, _, [mb, connections] = baselines.run(command, resident_mb, _connections)
        return [json.loads(line) for line in said.splitlines()], mb, connections

    def pairs(self, client: str, asked: Asked) -> list[tuple[float, float]]:
        """Run a process that measures pairs, and return them."""
        return [(each["without"], each["with"]) for each in self.run(client, asked)[0]]


def throughput(sweep: Sweep, client: str, runner: _Runner) -> Iterator[Cell]:
    """Yield `throughput`: sizes of records by the time between two commits."""
    for size in sweep.sizes:
        for interval_ms in sweep.intervals_ms:
            asked = {"what": "throughput", "topic": runner.topic(6), "bytes": size, "interval_ms": interval_ms}
            pairs = runner.pairs(client, {**asked, "pairs": sweep.pairs, "seconds": sweep.seconds})
            setting = {"bytes": size, "interval_ms": interval_ms}
            yield Cell(claim="throughput", client=client, setting=setting, pairs=pairs)


def cost(sweep: Sweep, client: str, runner: _Runner) -> Iterator[Cell]:
    """Yield `cost`: records in a transaction on one partition, then partitions in a transaction of as many records."""
    settings = [(records, 1) for records in sweep.in_transaction]
    settings += [(SPREAD, partitions) for partitions in sweep.partitions if partitions > 1]
    for records, partitions in settings:
        asked = {"what": "cost", "topic": runner.topic(partitions), "records": records, "partitions": partitions}
        pairs = runner.pairs(client, {**asked, "pairs": 5 * sweep.pairs})
        yield Cell(claim="cost", client=client, setting={"records": records, "partitions": partitions}, pairs=pairs)


def reading(sweep: Sweep, client: str, runner: _Runner) -> Iterator[Cell]:
    """Yield `isolation`: sizes of records by the share of transactions that were aborted."""
    for size in sweep.sizes[:2]:
        for percent in sweep.aborted_percent:
            aborted = sweep.records * percent // 100
            log = {"topic": runner.topic(6), "bytes": size, "committed": sweep.records - aborted, "aborted": aborted}
            runner.run("librdkafka", {**log, "what": "fill"})
            pairs = runner.pairs(client, {**log, "what": "read", "pairs": sweep.pairs})
            yield Cell(
                claim="isolation", client=client, setting={"bytes": size, "aborted_percent": percent}, pairs=pairs
            )


def scopes(sweep: Sweep, client: str, runner: _Runner) -> Iterator[Cell]:
    """Yield `scope`: the number of partitions, with one producer (without) and one for each partition (with)."""
    for partitions in sweep.producers:
        asked = {"what": "scope", "topic": runner.topic(partitions), "partitions": partitions, "records": 10}
        found: dict[str, list[tuple[list[Mapping[str, float]], float, float]]] = {"worker": [], "partition": []}
        for turn in range(sweep.pairs):
            for scope in ("worker", "partition") if turn % 2 else ("partition", "worker"):
                found[scope].append(runner.run(client, {**asked, "scope": scope, "seconds": sweep.seconds}))
        rates = [[lines[0]["rate"] for lines, _, _ in turns] for turns in found.values()]
        peaks = [(max(mb for _, mb, _ in turns), max(count for _, _, count in turns)) for turns in found.values()]
        pairs = list(zip(*rates, strict=True))
        yield Cell(
            claim="scope", client=client, setting={"partitions": partitions}, pairs=pairs, peaks=(peaks[0], peaks[1])
        )


def _connections(process: psutil.Process) -> float:
    return float(sum(each.status == psutil.CONN_ESTABLISHED for each in process.net_connections("tcp")))
