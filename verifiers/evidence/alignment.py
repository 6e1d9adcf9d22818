"""Match a lane in which something is wrong, so that as little as possible is wrong.

A matching goes through the spans and the decisions of a lane in their order. Each of its steps is one of these:

    match       the span's marker is the decision's
    again       an empty span repeats the marker of the last decision
    other       the marker of a span stands for the decision, but is of the other kind                    wrong
    span        a span belongs to no decision                                             wrong, unless it is empty
    decision    a decision has no marker                              wrong, unless markers of it are still to come

    decisions   commit 7            commit 7            abort 7
    log         [0..9] commit 7     [11..15] commit 7   [17..20] commit 7     [22..30] abort 7
                match               match               span                  match

With transaction versions 0 and 1, where many decisions are alike, several matchings may be equally good. Then errors
come as late as possible, and a span that has another decision in another one of these matchings gets none, since the
order alone does not tell to which it belongs. An empty span without a decision costs as much as an error: otherwise it
would be left out in favour of a span with batches whose marker only repeats its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from onceproof.verifiers.evidence.decisions import Decision, Lane, Span

_BAND = 16  # how far spans and decisions may be apart, beyond the difference of their numbers
_NODES_MAX = 1_000_000
_WRONG, _UNKNOWN = 1 << 20, 1  # costs: an error is worse than any number of spans of which nothing is known

Name = Literal["match", "again", "other", "span", "decision"]
Node = tuple[int, int]  # how many spans and how many decisions are behind


@dataclass(frozen=True, kw_only=True)
class _Step:
    name: Name
    before: Node
    after: Node
    cost: int


@dataclass(frozen=True, kw_only=True)
class _Grid:
    """The nodes of all matchings: those at which the numbers of spans and decisions differ by at most `band`."""

    spans: Sequence[Span]
    told: Sequence[Decision]
    partial: bool
    cut: bool
    band: int

    @property
    def end(self) -> Node:
        return len(self.spans), len(self.told)

    def nodes(self) -> Iterator[Node]:
        for i in range(len(self.spans) + 1):
            for j in range(max(0, i - self.band), min(len(self.told), i + self.band) + 1):
                yield i, j

    def steps(self, at: Node) -> Iterator[_Step]:
        """Yield the steps from a node. Those that leave something alone come last, see `_forwards`.

        Decisions whose markers are still to come, or may be deleted, cost nothing.
        """
        i, j = at
        span = self.spans[i] if i < len(self.spans) else None
        decision = self.told[j] if j < len(self.told) else None
        if span is not None and decision is not None:
            if span.ends(decision):
                yield _Step(name="match", before=at, after=(i + 1, j + 1), cost=0)
            elif span.batches and span.epoch == decision.epoch:
                yield _Step(name="other", before=at, after=(i + 1, j + 1), cost=_WRONG)
        if span is not None:
            again = j > 0 and not span.batches and span.ends(self.told[j - 1])
            cost = 0 if again else _UNKNOWN if self.partial and j == 0 else _WRONG
            yield _Step(name="again" if again else "span", before=at, after=(i + 1, j), cost=cost)
        if decision is not None:
            due = decision.done and not (self.cut and i == 0)
            yield _Step(name="decision", before=at, after=(i, j + 1), cost=_WRONG if due else 0)


def align(lane: Lane, *, partial: bool, cut: bool) -> None:
    """Fill `of`, `strange`, `unended` and `unknown` of the lane by its best matching.

    `partial` says that earlier decisions may not be known, and `cut` that the partition does not begin at offset 0. A
    lane that would take too long is not judged, and its `unaligned` is the number of its spans.
    """
    spans = [each for each in lane.spans if each.marker is not None]
    band = abs(len(spans) - len(lane.decisions)) + _BAND
    if len(spans) * band > _NODES_MAX:
        lane.unaligned, lane.of = sum(each.batches > 0 for each in lane.spans), [None] * len(lane.spans)
        return
    grid = _Grid(spans=spans, told=lane.decisions, partial=partial, cut=cut, band=band)
    costs, came = _forwards(grid)
    of: dict[int, Decision | None] = {}
    for step in _path(grid, came):
        i, j = step.before
        if step.name == "decision":
            lane.unended += [grid.told[j]] if step.cost else []
            continue
        of[i] = grid.told[j] if step.name == "match" else grid.told[j - 1] if step.name == "again" else None
        if spans[i].batches:
            lane.strange += [spans[i]] if step.cost == _WRONG else []
            lane.unknown += step.cost == _UNKNOWN
    for i in _unsure(grid, costs, of):
        of[i] = None
    marked = iter(range(len(spans)))
    lane.of = [None if each.marker is None else of[next(marked)] for each in lane.spans]
    lane.strange.reverse()
    lane.unended.reverse()


def _forwards(grid: _Grid) -> tuple[dict[Node, int], dict[Node, _Step]]:
    """Return the least cost of each node from the beginning, and the step that leads there.

    Of equally good steps, the last one that is found is one that leaves a span or a decision alone. So errors come as
    late as possible.
    """
    costs: dict[Node, int] = {(0, 0): 0}
    came: dict[Node, _Step] = {}
    for at in grid.nodes():
        for step in grid.steps(at):
            cost = costs[at] + step.cost
            if step.after not in costs or cost <= costs[step.after]:
                costs[step.after], came[step.after] = cost, step
    return costs, came


def _path(grid: _Grid, came: dict[Node, _Step]) -> Iterator[_Step]:
    """Yield the steps of the best matching, the last one first."""
    at = grid.end
    while at != (0, 0):
        yield came[at]
        at = came[at].before


def _unsure(grid: _Grid, costs: dict[Node, int], of: dict[int, Decision | None]) -> list[int]:
    """Return the spans that belong to another decision in another matching that is as good."""
    left = {grid.end: 0}
    found = []
    for at in reversed(list(grid.nodes())):
        for step in grid.steps(at):
            if step.after not in left:
                continue
            cost = left[step.after] + step.cost
            left[at] = min(cost, left.get(at, cost))
            i, j = at
            if step.name == "match" and costs[at] + cost == costs[grid.end] and of[i] not in (None, grid.told[j]):
                found.append(i)
    return found
