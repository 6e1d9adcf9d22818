"""Draw the chart of a report as SVG: faults on a time line above throughput, lag and transaction latency.

Matplotlib draws it. Text remains text in the SVG, so that a report can be searched and read by a screen reader.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from onceproof.harness.record.events import (
    Began,
    ClusterSample,
    FaultBegins,
    FaultHealed,
    FaultInjected,
    FaultTarget,
    Outcome,
    RecordsDeleted,
)
from onceproof.harness.record.history import Events

_INK, _FAINT, _FAULT, _GOOD, _ABORT, _INFO = "#1f2933", "#9aa5b1", "#d64545", "#2680c2", "#e9b949", "#8719e0"
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "onceproof",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.grid": True,
    "grid.color": "#e4e7eb",
    "grid.linewidth": 0.6,
}


@dataclass(frozen=True, kw_only=True)
class FaultSpan:
    """One fault on the time line; `begin` and `end` are seconds since the run's start, `note` names its target."""

    id: str
    begin: float
    end: float
    note: str


def fault_spans(events: Events) -> list[FaultSpan]:
    """Return the faults that were injected, in the order of their injection."""
    start, last = events[0].at, events[-1].at
    spans = []
    for injected in events.of(FaultInjected):
        fault = injected.fault
        target, deleted = events.first(FaultTarget, fault=fault), events.first(RecordsDeleted, fault=fault)
        healed = events.first(FaultHealed, fault=fault)
        note = (target.node or target.role) if target else deleted.to if deleted else ""
        begin = (events.first(FaultBegins, fault=fault) or injected).at  # a damaged history may lack the first one
        end = healed.at if healed else last
        spans.append(FaultSpan(id=fault, begin=begin - start, end=end - start, note=note))
    return spans


def timeline(events: Events) -> str:
    """Return the chart as one SVG element: four panels that share their time axis."""
    start = events[0].at
    outcomes = events.of(Outcome)
    spans = fault_spans(events)
    with plt.rc_context(STYLE):
        heights = [0.35 + 0.22 * max(1, len(spans)), 1.3, 1.1, 1.3]
        figure, axes = plt.subplots(
            4, 1, sharex=True, figsize=(10.5, sum(heights) + 0.9), height_ratios=heights, layout="constrained"
        )
        _faults(axes[0], spans)
        _throughput(axes[1], outcomes, start)
        _lag(axes[2], events, start)
        _latency(axes[3], events, start)
        for axis in axes[1:]:
            for span in spans:
                axis.axvspan(span.begin, max(span.end, span.begin + 0.1), color=_FAULT, alpha=0.08, linewidth=0)
        axes[3].set_xlabel("seconds since the run began")
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        plt.close(figure)
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def _faults(axis: Axes, spans: Sequence[FaultSpan]) -> None:
    for row, span in enumerate(spans):
        axis.barh(row, max(span.end - span.begin, 0.15), left=span.begin, color=_FAULT, height=0.6)
        axis.text(span.end + 0.2, row, f"{span.id} · {span.note}", va="center", fontsize=8, color=_INK)
    axis.set_ylim(max(len(spans), 1) - 0.4, -0.6)
    axis.set_yticks([])
    axis.set_ylabel("faults")
    axis.grid(visible=False)


def _throughput(axis: Axes, outcomes: Sequence[Outcome], start: float) -> None:
    committed: dict[int, int] = {}
    for event in outcomes:
        if event.type == "ok":
            second = int(event.at - start)
            committed[second] = committed.get(second, 0) + event.records
    if committed:
        seconds = range(min(committed), max(committed) + 1)
        axis.fill_between(list(seconds), [committed.get(s, 0) for s in seconds], step="post", color=_GOOD, alpha=0.75)
    axis.set_ylabel("committed\nrecords/s")
    axis.set_ylim(bottom=0)


def _lag(axis: Axes, events: Events, start: float) -> None:
    samples = events.of(ClusterSample)
    times = [each.at - start for each in samples]
    if any(each.committed for each in samples):  # otherwise the positions are not those of a group
        lag = [max(0, each.input_end - each.committed) for each in samples]
        axis.plot(times, lag, color=_GOOD, linewidth=1, label="lag")
    behind = [max(0, each.output_hw - each.output_lso) for each in samples]
    axis.plot(times, behind, color=_INFO, linewidth=1, label="HW − LSO")
    axis.set_ylabel("records")
    axis.set_ylim(bottom=0)
    if samples:
        axis.legend(loc="upper left", frameon=False, ncols=2, fontsize=8)


def _latency(axis: Axes, events: Events, start: float) -> None:
    begun: dict[str, float] = {}
    points: dict[str, list[tuple[float, float]]] = {"ok": [], "fail": [], "info": []}
    for event in events:
        if isinstance(event, Began):
            begun[event.source] = event.t
        elif isinstance(event, Outcome) and event.source in begun:
            points[event.type].append((event.at - start, max(0.1, (event.t - begun[event.source]) * 1000)))
    looks = {"ok": (_GOOD, "committed"), "fail": (_ABORT, "aborted"), "info": (_INFO, "indeterminate")}
    for kind, (colour, label) in looks.items():
        if points[kind]:
            times, spent = zip(*points[kind], strict=True)
            axis.scatter(times, spent, s=7, color=colour, label=label, linewidth=0)
    axis.set_yscale("log")
    axis.set_ylabel("transaction ms")
    if any(points.values()):
        axis.legend(loc="upper left", frameon=False, ncols=3, fontsize=8)
