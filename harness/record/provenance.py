"""What an output says of where it comes from, in its header `onceproof`: decimal digits of fixed widths.

    00003 0000000000041 000 00001 0000000012                        without the spaces: 36 bytes
    source partition and offset, worker, incarnation, transaction

    00003 0000000000041 001 00001 0000000007 00003 0000000000044    54 bytes: an output of a chain's later worker
    the input's partition and offset as before, and then the record's between, which it was made of

Of fixed widths, since reading it is a part of collecting a small record, and cutting at known places is far sooner done
than splitting. A header of another length, or two of them, count as none.
"""

from typing import NamedTuple

HEADER = "onceproof"


class _Part(NamedTuple):
    name: str
    width: int
    type: str


_PLACE = (_Part("source_partition", 5, "int"), _Part("source_offset", 13, "bigint"))
_WHOSE = (_Part("worker", 3, "int"), _Part("incarnation", 5, "int"), _Part("transaction", 10, "bigint"))
_INTERMEDIATE = (_Part("intermediate_partition", 5, "int"), _Part("intermediate_offset", 13, "bigint"))
_GROUPS = (_PLACE, _WHOSE, _INTERMEDIATE)


def _length(parts: tuple[_Part, ...]) -> int:
    return sum(part.width for part in parts)


def provenance(partition: int, offset: int, worker: int, incarnation: int, transaction: int) -> bytes:
    """The header's value."""
    return b"%05d%013d%03d%05d%010d" % (partition, offset, worker, incarnation, transaction)


def passed_on(header: bytes, worker: int, incarnation: int, transaction: int, partition: int, offset: int) -> bytes:
    """The header of what was made of a record with that header, at that place of the topic between."""
    return header[: _length(_PLACE)] + b"%03d%05d%010d%05d%013d" % (worker, incarnation, transaction, partition, offset)


def widths(*, intermediate: bool) -> list[int]:
    """How many digits of the header go into each of the integers `told_0` and so on (`parts_sql`); with
    `intermediate`, of the longer form. Up to eighteen digits fit into one: a few long integers take less time and
    space to read than many short ones."""
    return [_length(group) for group in (_GROUPS if intermediate else _GROUPS[:2])]


def parts_sql() -> list[str]:
    """Spark SQL: each part of the header, by its name, from those integers. The first part of each is what is left, and
    so not cut: in a folder of many runs it may have more digits than a header has."""
    found = []
    for index, group in enumerate(_GROUPS):
        behind = _length(group)
        for part in group:
            behind -= part.width
            digits = f"told_{index} div {10**behind}L" + (f" % {10**part.width}L" if part is not group[0] else "")
            found.append(f"cast({digits} AS {part.type}) AS {part.name}")
    return found
