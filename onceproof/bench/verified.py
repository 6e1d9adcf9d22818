"""What `onceproof bench verify` measured: turns of each reader, medians, targets, and their tables in Markdown."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

KAFKA, PLAIN = "Kafka's ConsumerPerformance", "plain Python consumer with a dict"
SOURCE = "our source, records discarded"
FULL, LEDGER = "full", "ledger"
READERS = {"kafka": KAFKA, "source": SOURCE, "full": FULL, "ledger": LEDGER, "plain": PLAIN}
_FILLS_THE_HEAP = 10_000_000
_LARGE_BYTES = 500  # for records of at least this size, reading takes most of the time, and so the target is closer


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One measurement of a reader: the seconds of each part, and the peak memory in MB."""

    seconds: Mapping[str, float]
    peak_mb: float

    @property
    def whole(self) -> float:
        """Return the seconds of all parts together."""
        return sum(self.seconds.values())


@dataclass(kw_only=True)
class Measured:
    """The measurements of one filling: `records` records of `record_bytes` bytes, and the turns of each reader.

    `cold` is a full proof with a new JVM. `further_mb` are the peaks of more full proofs, whose time does not count.
    """

    records: int
    record_bytes: int
    compressed: bool = False
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    cold: Turn | None = None
    further_mb: list[float] = field(default_factory=list)

    def median(self, name: str, part: str | None = None) -> float:
        """Return the median seconds of a reader, or of one part of it."""
        return statistics.median(turn.seconds[part] if part else turn.whole for turn in self.turns[name])

    def peak(self, name: str) -> float:
        """Return the highest peak memory of a reader, in MB."""
        further = self.further_mb if name == FULL else []
        return max([*(turn.peak_mb for turn in self.turns[name]), *further])


@dataclass(frozen=True, kw_only=True)
class Target:
    """A target: `value` must be at most `most`."""

    says: str
    value: float
    most: float

    @property
    def held(self) -> bool:
        """Return whether the target is met."""
        return self.value <= self.most


def targets(found: Sequence[Measured]) -> list[Target]:
    """Return the targets for `found`, which has two fillings for each size: a tenth of the records, and all.

    A target that compares with a reader which was not measured is left out, and so are those relative to other readers
    if records are compressed: reading these takes a broker and the network less time, and judging them does not.
    """
    return [
        target
        for small, large in zip(found[::2], found[1::2], strict=True)
        for target in (*_relative(large), *_growth(small, large))
    ]


def _relative(large: Measured) -> Iterator[Target]:
    """Yield the targets relative to other readers of the same topics."""
    if large.compressed:
        return
    near = 1.4 if large.record_bytes >= _LARGE_BYTES else 1.8
    for ours, says, other, named, most in (
        (FULL, "full proof", KAFKA, "Kafka's tool", near),
        (LEDGER, "ledger mode", KAFKA, "Kafka's tool", 1.3),
        (FULL, "full proof", PLAIN, "plain Python", 1.0),
    ):
        if {ours, other} <= large.turns.keys():
            value = large.median(ours) / large.median(other)
            yield Target(says=f"{large.record_bytes} B: {says} relative to {named}", value=value, most=most)
    if {FULL, PLAIN} <= large.turns.keys():
        says = f"{large.record_bytes} B: memory of the full proof relative to plain Python"
        yield Target(says=says, value=large.peak(FULL) / large.peak(PLAIN), most=1.0)


def _growth(small: Measured, large: Measured) -> Iterator[Target]:
    """Yield the targets for the full proof relative to that of a tenth of the records.

    The heap is filled by ten million records; before that, memory grows with them. A JVM also grows with the code that
    it has compiled and the classes that it has loaded, so both have judged as many records when they are compared.
    """
    if FULL not in large.turns:
        return
    says = f"{large.record_bytes} B: %s relative to a tenth of the records"
    yield Target(says=says % "full proof", value=large.median(FULL) / small.median(FULL), most=11.0)
    if small.records >= _FILLS_THE_HEAP:
        yield Target(says=says % "its memory", value=large.peak(FULL) / small.peak(FULL), most=1.2)


def table(found: Sequence[Measured]) -> str:
    """Return the medians and the targets as two tables in Markdown."""
    lines = [
        "| records | bytes each | reader | seconds | seconds of collect, verify | relative to Kafka's tool | peak MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in found:
        lines += [_row(each, name, each.median(name), _parts(each, name), each.peak(name)) for name in each.turns]
        if each.cold is not None:
            parts = ", ".join(f"{spent:.1f}" for spent in each.cold.seconds.values())
            lines.append(_row(each, "full, cold", each.cold.whole, parts, each.cold.peak_mb))
    lines += ["", "| target | measured | at most | result |", "|---|---|---|---|"]
    lines += [
        f"| {each.says} | {each.value:.2f} | {each.most:g} | {'met' if each.held else '**missed**'} |"
        for each in targets(found)
    ]
    return "\n".join(lines) + "\n"


def _row(each: Measured, name: str, seconds: float, parts: str, peak_mb: float) -> str:
    ratio = f"{seconds / each.median(KAFKA):.2f}" if KAFKA in each.turns else ""
    return f"| {each.records:,} | {each.record_bytes} | {name} | {seconds:.1f} | {parts} | {ratio} | {peak_mb:.0f} |"


def _parts(each: Measured, name: str) -> str:
    if name not in (FULL, LEDGER):
        return ""
    return ", ".join(f"{each.median(name, part):.1f}" for part in ("collect", "verify"))
