"""Match the spans of each lane with the decisions that name its partition, in their order.

    decisions on output/3:   commit 7,  commit 8,  abort 9
    log of output/3:         [0..9] commit 7   commit 7   [12..20] commit 8   abort 9          matched
                             [0..9] commit 7   [11..15] commit 7   [17..20] commit 8           the second one is torn
                             [0..9] commit 7   [11..20] abort 9                                commit 8 has no marker

With transaction version 2 each transaction has an epoch of its own, and its markers have the next one (KIP-890). With
versions 0 and 1 many transactions have the same epoch, and the order decides.

Where spans and decisions do not fit each other exactly, `alignment` looks for the matching with the fewest errors. This
module knows neither Spark nor the workers' history, so that `onceproof audit` uses it as well.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from onceproof.verifiers.evidence import alignment
from onceproof.verifiers.evidence.decisions import Decision, Lane, Span


def lanes(
    spans: Mapping[tuple[str, int], Sequence[Span]],
    decided: Mapping[int, Sequence[Decision]],
    *,
    partial: bool = False,
    cut: Collection[str] = (),
) -> Iterator[Lane]:
    """Yield a matched lane for each ("topic/partition", producer id) that has spans or decisions.

    `partial` says that earlier decisions may not be known, and `cut` are the partitions that do not begin at offset 0.
    """
    named: dict[tuple[str, int], list[Decision]] = defaultdict(list)
    for producer, each in decided.items():
        for decision in each:
            for place in decision.partitions:
                named[place, producer].append(decision)
    for place, producer in sorted(spans.keys() | named.keys()):
        ended = sorted(spans.get((place, producer), ()), key=lambda span: (span.marker is None, span.marker or 0))
        lane = Lane(place=place, spans=ended, decisions=named.get((place, producer), []))
        if not _exactly(lane, partial=partial, cut=place in cut):  # speed: `align` finds the same
            alignment.align(lane, partial=partial, cut=place in cut)
        yield lane


_UNKNOWN = -1  # the number of matched decisions before the first known one

# The number of matched decisions after a span → the numbers before it, each with the index of the span's decision.
Step = dict[int, list[tuple[int, int | None]]]


def _exactly(lane: Lane, *, partial: bool, cut: bool) -> bool:
    """Fill `of` and `unknown` of a lane in which nothing is wrong; return whether that is so.

    With versions 0 and 1, an empty span may be a repeated marker or the next transaction, and it is not known how many
    transactions came before a partition that is cut. So all possible numbers of matched decisions are kept, and a span
    that may belong to several decisions gets none.
    """
    told = lane.decisions
    if not partial and _one_by_one(lane):  # speed
        lane.of.extend(told)
        return True
    steps: list[Step] = []
    possible: Collection[int] = range(_UNKNOWN if partial else 0, len(told) + 1 if cut else 1)  # speed
    for span in lane.spans:
        step: Step = {each: [(each, None)] for each in possible}
        if span.marker is not None:
            step = _after(span, told, possible)
        if not step:
            return False
        steps.append(step)
        possible = step.keys()
    ends = {count for count in possible if not any(each.done for each in told[max(0, count) :])}
    if not ends:
        return False
    for span, step in zip(reversed(lane.spans), reversed(steps), strict=True):
        lane.unknown += ends == {_UNKNOWN} and span.batches > 0
        ways = [way for count in ends for way in step[count]]
        owns = {own for _, own in ways}
        own = owns.pop() if len(owns) == 1 else None
        lane.of.append(None if own is None else told[own])
        ends = {count for count, _ in ways}
    lane.of.reverse()
    return True


def _one_by_one(lane: Lane) -> bool:
    """Return whether the spans end with the markers of the decisions, one for each, and all of them have batches."""
    if len(lane.spans) != len(lane.decisions):
        return False
    pairs = zip(lane.spans, lane.decisions, strict=True)
    return all(span.batches and span.marker is not None and span.ends(each) for span, each in pairs)


def _after(span: Span, told: Sequence[Decision], possible: Iterable[int]) -> Step:
    """Return the numbers of decisions that may be matched after this span."""
    following: Step = defaultdict(list)
    for count in possible:
        if count == _UNKNOWN:  # speed
            following[_UNKNOWN].append((_UNKNOWN, None))
        after = max(0, count)
        if after < len(told) and span.ends(told[after]):  # speed
            following[after + 1].append((count, after))
        if count > 0 and not span.batches and span.ends(told[count - 1]):  # speed
            following[count].append((count, count - 1))
    return following
