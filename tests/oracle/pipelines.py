"""Which outputs an input must have, pipeline by pipeline, in Python; and what the pipeline claims.

copy, chain, produce   a copy in the partition of its input
fan-out                the same on two topics
sums                   a record on two topics, identified by the hash of its key and the digest of its input
bank                   a record on three topics, identified by the hash of an account and the digest of its input
anywhere, unnamed      a copy in any partition; of which the second one does not say of which input it is
twice, spread          two copies on one topic; for a pair of inputs the second one is in another partition
"""

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import xxhash

from onceproof.harness.model import registry
from tests.mutants.twice import PAIR
from tests.rundata import Row, RunData

_SEED = 42  # of Spark's xxhash64
Expected = Iterator[tuple[str, int, int]]  # topic, partition, digest


@dataclass(frozen=True)
class Pipeline:
    """`judged` are the topics whose records are compared, `between` the topic between two services."""

    name: str
    topics: tuple[str, ...]
    judged: tuple[str, ...]
    between: str
    transactional: bool
    claims_transactions: bool
    claims_positions: bool
    each_topic: bool
    fixed: bool
    workers: int
    observer: bool
    placed: bool
    identified: bool
    commits: bool
    in_database: bool
    expected: Callable[[Row], Expected]

    def stage_of(self, worker: int) -> int:
        """Which of two services a worker belongs to."""
        return worker % 2 if self.between else 0


def pipeline_of(run: RunData) -> Pipeline:
    scenario = json.loads(run.plan_json)["scenario"]
    planned = scenario["workload"]
    declared = registry.workload(planned["name"])
    return Pipeline(
        name=declared.name,
        topics=declared.topics,
        judged=tuple(each for each in declared.topics if each != declared.intermediate_topic),
        between=declared.intermediate_topic,
        transactional=declared.wiring.transactional,
        claims_transactions=declared.claim.transactional,
        claims_positions=declared.claim.transactional and declared.claim.position == "in-transaction",
        each_topic=declared.wiring.each_topic,
        fixed=declared.wiring.assignment == "fixed",
        workers=planned.get("workers", 2),
        observer=planned.get("observer", True),
        placed=declared.name != "anywhere",
        identified=declared.name != "unnamed",
        commits=declared.claim.position != "none",
        in_database=declared.claim.position == "database",
        expected=_OF.get(declared.name) or _copies(declared.topics, declared.intermediate_topic),
    )


def _copies(topics: tuple[str, ...], between: str) -> Callable[[Row], Expected]:
    def expected(row: Row) -> Expected:
        for topic in topics:
            if topic != between:
                yield topic, row["partition"], row["digest"]

    return expected


def hash_of(*parts: int | bytes) -> int:
    """Spark's xxhash64 of bigints and binaries: each part's hash is the seed of the next one's."""
    seed = _SEED
    for part in parts:
        content = part if isinstance(part, bytes) else struct.pack("<q", part)
        seed = xxhash.xxh64_intdigest(content, seed=seed)
    return seed - (1 << 64) if seed >> 63 else seed


def _sums(row: Row) -> Expected:
    for topic in ("sums", "changelog"):
        yield topic, row["partition"], hash_of(row["grouping"], row["digest"])


def accounts(partition: int, number: int) -> tuple[bytes, bytes]:
    """Who pays and who is paid: eight accounts in each partition."""
    payer, step = number % 8, 1 + number // 8 % 7
    return f"a{partition}-{payer}".encode(), f"a{partition}-{(payer + step) % 8}".encode()


def _bank(row: Row) -> Expected:
    payer, payee = accounts(row["partition"], row["number"])
    for topic, account in (("debits", payer), ("credits", payee), ("balances", payer)):
        yield topic, row["partition"], hash_of(account, row["digest"])


def _twice(row: Row) -> Expected:
    for _ in range(2):
        yield "output", row["partition"], row["digest"]


def _spread(row: Row) -> Expected:
    yield "output", row["partition"], row["digest"]
    yield "output", PAIR[row["number"]] if row["number"] in PAIR else row["partition"], row["digest"]


_OF = {"sums": _sums, "bank": _bank, "twice": _twice, "spread": _spread}
