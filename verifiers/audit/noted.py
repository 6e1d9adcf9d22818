"""What a broker notes of its replicas beside their segments.

    replication-offset-checkpoint      the high watermark of each replica, below which its log cannot change
    cleaner-offset-checkpoint          the first offset of each compacted log that its cleaner has not reached
    leader-epoch-checkpoint            in the folder of a replica: leader epochs, each with its first offset (KIP-101)

A broker writes the first one every five seconds and at its shutdown, and the others when they change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

Place = tuple[str, int]
_MARKS, _CLEANED, _EPOCHS = "replication-offset-checkpoint", "cleaner-offset-checkpoint", "leader-epoch-checkpoint"


@dataclass(frozen=True, kw_only=True)
class Noted:
    """What is known of a replica besides its batches.

    `hw` is its high watermark, and `cleaned` the offset below which its cleaner has removed and rewritten batches; None
    if that is not known. `base` is the base offset of its last segment, and `epochs` the leader epochs with their first
    offsets.
    """

    hw: int | None = None
    cleaned: int | None = None
    base: int = 0
    epochs: Sequence[tuple[int, int]] = ()

    def epoch(self, last: int) -> int:
        """Return the leader epoch of the batch that ends a log with this last offset; −1 if none is known."""
        return max((epoch for epoch, first in self.epochs if first <= last), default=-1)


class Notes:
    """The checkpoints of a log directory."""

    def __init__(self, directory: Path) -> None:
        self._marks, self._cleaned = (dict(_of_partitions(directory / name)) for name in (_MARKS, _CLEANED))

    def of(self, place: Place, folder: Path) -> Noted:
        """Return what is noted of a replica, whose segments are in `folder`."""
        bases = [int(segment.stem) for segment in folder.glob("*.log") if segment.stem.isdigit()]
        return Noted(
            hw=self._marks.get(place),
            cleaned=self._cleaned.get(place),
            base=max(bases, default=0),
            epochs=list(_numbers(folder / _EPOCHS)),
        )


def _of_partitions(path: Path) -> Iterator[tuple[Place, int]]:
    for topic, number, offset in _entries(path, 3):
        if number.isdigit() and offset.isdigit():
            yield (topic, int(number)), int(offset)


def _numbers(path: Path) -> Iterator[tuple[int, int]]:
    return ((int(one), int(other)) for one, other in _entries(path, 2) if one.isdigit() and other.isdigit())


def _entries(path: Path, fields: int) -> Iterator[list[str]]:
    """Yield the entries of a checkpoint file: a version, the number of entries, and a line for each."""
    if path.is_file():
        for line in path.read_text(errors="replace").splitlines()[2:]:
            if len(entry := line.rsplit(" ", fields - 1)) == fields:
                yield entry
