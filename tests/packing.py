"""Many small runs in one folder, so that one verify judges them all: a case is a range of partitions.

    folder = pack(runs).write(path)
    found = judge(folder, spark, cases)    what the checks say, case by case
    each = judge_each(folder, spark, cases)        the same, of each check

The verifiers know nothing of this: partitions, numbers, workers and producer ids of one case are made not to meet those
of another. All runs of a pack have the same workload.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from onceproof.harness.model import plan
from onceproof.harness.record import history
from onceproof.verifiers import completeness, verify
from onceproof.verifiers.evidence import tables
from onceproof.verifiers.evidence.check import Check
from onceproof.verifiers.evidence.spark import let_go
from tests.rundata import Row, RunData

PREFIX = "op-pack-"
PARTITIONS, WORKERS, NUMBERS = 8, 8, 1_000_000
_OFFSETS = "__consumer_offsets"
_LOGS = 100  # partitions of __transaction_state, at most
_LEADER = "broker1"  # of the internal topics of a pack
_SAMPLES_MAX = 100_000  # of a finding, in a whole folder; Spark takes memory for as many when it sorts them
TABLES = (
    "ledger",
    "inputs",
    "outputs",
    "observed",
    "batches",
    "commits",
    "other_commits",
    "states",
    "partitions",
    "open_transactions",
    "other_positions",
)
Place = tuple[str, int, int]


@dataclass
class Found:
    """What was found in one case: class → places (topic, partition, offset), and the partitions that are not whole.
    `reasons`, how many findings of each class, and `idle` (a check was not judged) stand in the first case: nobody says
    which one they come from."""

    findings: dict[str, set[Place]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list, compare=False)
    incomplete: set[tuple[str, int]] = field(default_factory=set)
    idle: bool = field(default=False, compare=False)


def pack(runs: Sequence[RunData]) -> RunData:
    """One run that holds all of these; the plan is the first one's."""
    packed = RunData()
    packed.plan_json, packed.mode = runs[0].plan_json, runs[0].mode
    packed.numbered = any(run.numbered for run in runs)
    packed.moved = [each for run in runs for each in run.moved]
    packed.events = [next(event for event in runs[0].events if event["event"] == "history")]
    for case, run in enumerate(runs):
        move = _Move(case, run.prefix)
        for name in TABLES:
            getattr(packed, name).extend(move.row(row) for row in _of_one_leader(run, name))
        for each in run.internal:
            known = [one for one in packed.internal if _place(one) == _place(each)]
            if known:
                known[0]["compacted"] += each["compacted"]
            else:
                packed.internal.append({**each, "leader": _LEADER, "replicas": [_LEADER], "isr": [_LEADER]})
        packed.events.extend(move.event(event) for event in run.events if event["event"] != "history")
        packed.positions |= {move.partition(p): offset for p, offset in run.positions.items()}
    packed.partitions.sort(key=lambda each: str(each["topic"]) != PREFIX + "input")
    return packed


def _place(row: Row) -> tuple[str, int]:
    return row["topic"], row["partition"]


def _of_one_leader(run: RunData, name: str) -> Iterable[Row]:
    """The rows of a table; of internal topics, which all runs of a pack share, only those of the leader's replica."""
    if name != "batches":
        yield from getattr(run, name)
        return
    leaders = {_place(each): each["leader"] for each in run.internal}
    for row in run.batches:
        leader = leaders.get(_place(row))
        if leader is None:
            yield row
        elif leader == row["broker"]:
            yield {**row, "broker": _LEADER}


def judge(folder: Path, spark: SparkSession, cases: int, checks: Sequence[Check] = ()) -> list[Found]:
    """Run the checks (default: all) on a packed folder; what each case is found to have. An exception of one is
    not caught."""
    return together(judge_each(folder, spark, cases, checks), cases)


def judge_each(folder: Path, spark: SparkSession, cases: int, checks: Sequence[Check] = ()) -> dict[str, list[Found]]:
    """As `judge`, apart: a check's name → what it finds in each case."""
    planned, events = plan.read(folder / "plan.json"), history.read(folder / "history.jsonl")
    run = tables.Tables(folder, spark, planned, events, samples_max=_SAMPLES_MAX)
    checks = checks or verify.all_checks()
    each = {check.name: [Found() for _ in range(cases)] for check in checks}
    try:
        results = verify.in_threads(lambda check: check.judge(run), checks)
        for check, result in zip(checks, results, strict=True):
            found = each[check.name]
            found[0].reasons += [f"{reason.kind}: {reason.says}" for reason in result.reasons]
            found[0].idle = bool(result.not_judged)
            found[0].reasons += [f"{finding.cls} × {finding.count}" for finding in result.findings]
            for finding in result.findings:
                for sample in finding.samples:
                    case, place = _home(sample)
                    found[case].findings.setdefault(finding.cls, set()).add(place)
        for topic, partition in completeness.incomplete(run):
            for found in each.values():
                found[partition // PARTITIONS].incomplete.add((topic, partition % PARTITIONS))
    finally:
        let_go(spark)
    return each


def together(each: Mapping[str, Sequence[Found]], cases: int) -> list[Found]:
    """What several checks found, case by case."""
    whole = [Found() for _ in range(cases)]
    for found in each.values():
        for case, one in zip(whole, found, strict=True):
            for cls, places in one.findings.items():
                case.findings.setdefault(cls, set()).update(places)
            case.incomplete |= one.incomplete
            whole[0].reasons += one.reasons
    return whole


def _home(sample: Row) -> tuple[int, Place]:
    if sample["topic"] == _OFFSETS:
        case, offset = divmod(sample["offset"], NUMBERS)
        return case, (_OFFSETS, sample["partition"], offset)
    case, partition = divmod(sample["partition"], PARTITIONS)
    return case, (sample["topic"].removeprefix(PREFIX), partition, sample["offset"])


_OF_A_CASE = re.compile(r"(?P<partition>(?<=[a-z]/)\d+|(?<=partition )\d+)|(?P<worker>(?<=worker-)\d+)")


def moved_text(text: str, case: int) -> str:
    """A part of a reason as it reads in a case: with its partitions and workers there."""

    def moved(found: re.Match[str]) -> str:
        return str(int(found[0]) + case * (WORKERS if found["worker"] else PARTITIONS))

    return _OF_A_CASE.sub(moved, text)


class _Move:
    """Moves what belongs to a case to where nothing of another case is."""

    def __init__(self, case: int, prefix: str) -> None:
        self._case, self._prefix = case, prefix

    def partition(self, partition: int) -> int:
        return partition + self._case * PARTITIONS

    def row(self, row: Row) -> Row:
        moved = dict(row)
        for name in ("partition", "source_partition", "intermediate_partition"):
            if moved.get(name) is not None and moved.get("topic") != _OFFSETS:
                moved[name] = self.partition(moved[name])
        for name, by in (("number", NUMBERS), ("producer_id", NUMBERS), ("worker", WORKERS)):
            if moved.get(name) is not None and moved[name] >= 0:
                moved[name] += self._case * by
        if moved.get("topic") == _OFFSETS or "committed_ms" in moved:  # all cases share the groups' logs
            for name in ("first", "last", "offset", "marker"):
                if moved.get(name) is not None:
                    moved[name] += self._case * NUMBERS
        if str(moved.get("topic", "")).startswith(self._prefix):
            moved["topic"] = PREFIX + moved["topic"].removeprefix(self._prefix)
        if "transactional_id" in moved:
            moved["transactional_id"] = f"{moved['transactional_id']} of case {self._case}"
            moved["partitions"] = [self._place(place) for place in moved["partitions"]]
            moved["offset"] += self._case * NUMBERS
            moved["log"] += self._case * _LOGS  # a coordinator's epochs are compared among all of its markers
        return moved

    def event(self, event: Row) -> Row:
        moved = deepcopy(event)
        if moved["source"].startswith("worker-"):
            moved["source"] = f"worker-{int(moved['source'][7:]) + self._case * WORKERS}"
        if isinstance(moved.get("outputs"), dict):
            moved["outputs"] = {self._place(place): span for place, span in moved["outputs"].items()}
        if isinstance(moved.get("sources"), dict):
            moved["sources"] = {str(self.partition(int(p))): span for p, span in moved["sources"].items()}
        if isinstance(moved.get("partition"), int):
            moved["partition"] = self.partition(moved["partition"])
        if isinstance(moved.get("partitions"), list):
            moved["partitions"] = list(self._partitions(moved["partitions"]))
        return moved

    def _place(self, place: str) -> str:
        topic, _, partition = place.rpartition("/")
        if not topic.startswith(self._prefix):
            return place
        return f"{PREFIX}{topic.removeprefix(self._prefix)}/{self.partition(int(partition))}"

    def _partitions(self, each: Iterable[Any]) -> Iterable[Any]:
        for item in each:
            if isinstance(item, int):
                yield self.partition(item)
            else:
                yield {**item, "partition": self.partition(item["partition"])}
