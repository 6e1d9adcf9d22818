"""Which decision each marker of a producer in a partition carries out, by dynamic programming over both sequences.

Both are in their order. A pair fits if kind and epoch are equal. Otherwise something is wrong, and the alignment with
the fewest errors counts; of several, the one whose errors come last. A span that has not the same decision in all of
them has none for sure.

    decisions  c7 c7 a7        markers  [..]c7 [..]c7 [..]a7              a pair each
    decisions  c7 c7           markers  [..]c7 c7 [..]c7                  the second marker repeats the first
    decisions  c7 c7           markers  [..]c7 [..]c7 [..]c7              the last one is stray
    decisions  c7 c7 c7        markers  [..]c7 [..]c7                     the last decision is unheard
    decisions  c7 a7           markers  [..]c7 [..]c7                     the second pair contradicts itself
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_INFINITE = 1 << 30


@dataclass(frozen=True)
class Marker:
    kind: str
    epoch: int
    empty: bool  # nothing stands between it and the marker before it


@dataclass(frozen=True)
class Decision:
    kind: str
    epoch: int
    coming: bool = False  # its coordinator has not said that all markers are written


@dataclass
class Alignment:
    """`of` is the decision of each marker, None where it is not certain; the others are numbers of markers, or of
    decisions, with which something is wrong."""

    of: list[int | None]
    stray: list[int] = field(default_factory=list)
    contrary: list[int] = field(default_factory=list)
    unheard: list[int] = field(default_factory=list)


def align(markers: Sequence[Marker], decisions: Sequence[Decision], *, cut: bool = False) -> Alignment:
    """`cut` says that the beginning of one of the two may be gone."""
    return _straight(markers, decisions) or _Table(markers, decisions, cut=cut).best()


def _fits(marker: Marker, decision: Decision) -> bool:
    return (marker.kind, marker.epoch) == (decision.kind, decision.epoch)


def _contradicts(marker: Marker, decision: Decision) -> bool:
    return marker.epoch == decision.epoch and marker.kind != decision.kind


def _repeats(marker: Marker, decisions: Sequence[Decision], done: int) -> bool:
    return marker.empty and done > 0 and _fits(marker, decisions[done - 1])


def _straight(markers: Sequence[Marker], decisions: Sequence[Decision]) -> Alignment | None:
    """The alignment without any error, if the first choice at each marker leads to it."""
    done, of = 0, list[int | None]()
    for marker in markers:
        if done < len(decisions) and _fits(marker, decisions[done]):
            of.append(done)
            done += 1
        elif _repeats(marker, decisions, done):
            of.append(done - 1)
        else:
            return None
    return Alignment(of) if all(each.coming for each in decisions[done:]) else None


class _Table:
    """`_after[i][j]`: the fewest errors from marker i and decision j on."""

    def __init__(self, markers: Sequence[Marker], decisions: Sequence[Decision], *, cut: bool) -> None:
        self._markers, self._decisions, self._cut = markers, decisions, cut
        rows, columns = len(markers), len(decisions)
        self._after = [[_INFINITE] * (columns + 1) for _ in range(rows + 1)]
        self._after[rows][columns] = 0
        for i in range(rows, -1, -1):
            for j in range(columns, -1, -1):
                for cost, *_, after_i, after_j in self._steps(i, j):
                    self._after[i][j] = min(self._after[i][j], cost + self._after[after_i][after_j])

    def _steps(self, i: int, j: int) -> Iterator[tuple[int, str, int | None, int, int]]:
        """Cost, name, decision of the marker, and where it leads; those that are no error come first."""
        more, left = i < len(self._markers), j < len(self._decisions)
        if more and left and _fits(self._markers[i], self._decisions[j]):
            yield 0, "pair", j, i + 1, j + 1
        if more and _repeats(self._markers[i], self._decisions, j):
            yield 0, "again", j - 1, i + 1, j
        if more and left and _contradicts(self._markers[i], self._decisions[j]):
            yield 1, "contrary", j, i + 1, j + 1
        if left:
            free = self._decisions[j].coming or (self._cut and i == 0)
            yield int(not free), "" if free else "unheard", None, i, j + 1
        if more:
            free = self._cut and j == 0
            yield int(not free), "" if free or self._markers[i].empty else "stray", None, i + 1, j

    def best(self) -> Alignment:
        found = Alignment([None] * len(self._markers))
        i = j = 0
        while (i, j) != (len(self._markers), len(self._decisions)):
            for cost, name, decision, after_i, after_j in self._steps(i, j):
                if cost + self._after[after_i][after_j] == self._after[i][j]:
                    if name in ("stray", "contrary"):
                        getattr(found, name).append(i)
                    elif name == "unheard":
                        found.unheard.append(j)
                    if after_i > i:
                        found.of[i] = decision
                    i, j = after_i, after_j
                    break
        for number, several in enumerate(self._choices()):
            if len(several) > 1:
                found.of[number] = None
        return found

    def _choices(self) -> list[set[int | None]]:
        """The decisions that each marker has in any of the best alignments."""
        choices: list[set[int | None]] = [set() for _ in self._markers]
        reached = {(0, 0)}
        for i in range(len(self._markers) + 1):
            for j in range(len(self._decisions) + 1):
                if (i, j) not in reached:
                    continue
                for cost, _, decision, after_i, after_j in self._steps(i, j):
                    if cost + self._after[after_i][after_j] == self._after[i][j]:
                        reached.add((after_i, after_j))
                        if after_i > i:
                            choices[i].add(decision)
        return choices
