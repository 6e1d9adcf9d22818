"""The curves of a report: throughput, lag, transactions that are open, in-sync replicas, and the latency of commits.

    {"sampled": {"at": [1000, 2004, …], "in": […], "lag": […], "behind": […], "of": {"output/3": […]}},
     "isr": {"at": […], "least": […]}, "open": {"at": […], "count": […]},
     "commits": {"at": […], "records": […], "p50": […], "p95": […], "p99": […]}}

Times are milliseconds since the start of the run, rates are records a second, and latencies are milliseconds from the
request to commit until its answer. A value that is not known is None.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence

from onceproof.harness.record.events import ClusterSample, ReplicasChanged
from onceproof.harness.record.history import Events
from onceproof.report.timeline import COMMITTED, Json, Transaction, ms

_POINTS_MAX = 1_000  # of a curve over the whole run
_PARTITIONS_MAX = 24  # curves of single partitions, those that were furthest behind


def of(events: Events, told: Sequence[Transaction]) -> Json:
    """Return all curves of a run."""
    return {
        "sampled": _sampled(events),
        "isr": _isr(events),
        "open": _open(told),
        "commits": _commits(told, events[-1].at - events[0].at),
    }


def _sampled(events: Events) -> Json:
    samples = _thinned(events.of(ClusterSample))
    rates = [None, *(_rate(before, after) for before, after in itertools.pairwise(samples))]
    grouped = any(each.committed for each in samples)  # otherwise the positions are not those of a group
    most: dict[str, int] = defaultdict(int)
    for each in samples:
        for name, lag in each.behind.items():
            most[name] = max(most[name], lag)
    shown = sorted(sorted(most, key=lambda name: -most[name])[:_PARTITIONS_MAX])
    return {
        "at": [ms(each.at - events[0].at) for each in samples],
        "in": rates[: len(samples)],
        "lag": [max(0, each.input_end - each.committed) if grouped else None for each in samples],
        "behind": [max(0, each.output_hw - each.output_lso) for each in samples],
        "of": {name: [each.behind.get(name, 0) for each in samples] for name in shown},
    }


def _thinned(samples: Sequence[ClusterSample]) -> Sequence[ClusterSample]:
    """Return so many of the samples as a curve can have; of samples that are left out, rates still tell."""
    step = math.ceil(len(samples) / _POINTS_MAX) or 1
    return samples[::step]


def _rate(before: ClusterSample, after: ClusterSample) -> int:
    return round(max(0, after.input_end - before.input_end) / max(after.at - before.at, 0.001))


def _isr(events: Events) -> Json:
    """Return the size of the smallest set of in-sync replicas of any partition, at each change of it."""
    sizes: dict[tuple[str, int], int] = {}
    at: list[int] = []
    least: list[int] = []
    for event in events.of(ReplicasChanged):
        sizes[event.topic, event.partition] = len(event.isr)
        now, smallest = ms(event.at - events[0].at), min(sizes.values())
        if at and at[-1] == now:
            least[-1] = smallest
        elif not least or least[-1] != smallest:
            at.append(now)
            least.append(smallest)
    return {"at": at, "least": least}


def _open(told: Sequence[Transaction]) -> Json:
    """Return how many transactions are open, at each change; of many changes, the greatest number of an interval."""
    changes = sorted([(ms(each.begin), 1) for each in told] + [(ms(each.end), -1) for each in told])
    width = max(1, (changes[-1][0] - changes[0][0]) // _POINTS_MAX) if changes else 1
    count, most = 0, dict[int, int]()
    for at, change in changes:
        count += change
        bucket = at // width * width
        most[bucket] = max(most.get(bucket, 0), count)
    return {"at": list(most), "count": list(most.values())}


def _commits(told: Sequence[Transaction], length_s: float) -> Json:
    """Return the committed records a second and the latencies of commits, by second or by a longer interval."""
    width = max(1.0, length_s / _POINTS_MAX)
    records: dict[int, int] = defaultdict(int)
    spent: dict[int, list[float]] = defaultdict(list)
    for each in told:
        if each.outcome == COMMITTED:
            bucket = int(each.end / width)
            records[bucket] += each.records
            if each.asked is not None:
                spent[bucket].append((each.end - each.asked) * 1000)
    buckets = range(max(records) + 1) if records else range(0)
    found: Json = {
        "at": [ms(bucket * width) for bucket in buckets],
        "records": [round(records.get(bucket, 0) / width) for bucket in buckets],
    }
    for percent in (50, 95, 99):
        found[f"p{percent}"] = [_percentile(spent.get(bucket, ()), percent) for bucket in buckets]
    return found


def _percentile(values: Sequence[float], percent: int) -> float | None:
    """Return a percentile by the nearest rank, None of no values."""
    ordered = sorted(values)
    return round(ordered[math.ceil(len(ordered) * percent / 100) - 1], 1) if ordered else None
