"""The provenance header `onceproof` of an output: its input and its transaction, as decimal numbers of fixed widths.

    00003 0000000000041 000 00001 0000000012                        36 bytes, without the spaces
    the input's partition and offset, worker, incarnation, transaction

    00003 0000000000041 001 00001 0000000007 00003 0000000000044    54 bytes: an output of the second service of a chain
    the same, and then the partition and offset of the record in the intermediate topic

The widths are fixed because cutting at fixed places is much faster than splitting. A record with a header of another
length, or with more than one, counts as a record without a header.
"""

from typing import NamedTuple

HEADER = "onceproof"


class _Part(NamedTuple):
    name: str
    width: int
    type: str


_PLACE = (_Part("source_partition", 5, "int"), _Part("source_offset", 13, "bigint"))
_OWNER = (_Part("worker", 3, "int"), _Part("incarnation", 5, "int"), _Part("transaction", 10, "bigint"))
_INTERMEDIATE = (_Part("intermediate_partition", 5, "int"), _Part("intermediate_offset", 13, "bigint"))
_GROUPS = (_PLACE, _OWNER, _INTERMEDIATE)


def _length(parts: tuple[_Part, ...]) -> int:
    return sum(part.width for part in parts)


def provenance(partition: int, offset: int, worker: int, incarnation: int, transaction: int) -> bytes:
    """Return the header of an output made from the input at this partition and offset."""
    return b"%05d%013d%03d%05d%010d" % (partition, offset, worker, incarnation, transaction)


def passed_on(header: bytes, worker: int, incarnation: int, transaction: int, partition: int, offset: int) -> bytes:
    """Return the header of an output made from a record with this header in the intermediate topic.

    `partition` and `offset` are those of that record; the input's are taken from `header`.
    """
    return header[: _length(_PLACE)] + b"%03d%05d%010d%05d%013d" % (worker, incarnation, transaction, partition, offset)


def packed_owner(worker: int, incarnation: int, transaction: int) -> int:
    """Return the integer `told_1` of a header with this transaction."""
    return int(b"%03d%05d%010d" % (worker, incarnation, transaction))


def owner(packed: int) -> tuple[int, int, int]:
    """Return worker, incarnation and transaction of the integer `told_1` of a header."""
    rest, transaction = divmod(packed, 10 ** _OWNER[2].width)
    worker, incarnation = divmod(rest, 10 ** _OWNER[1].width)
    return worker, incarnation, transaction


def packed_place_sql(partition: str, offset: str) -> str:
    """Return Spark SQL for the integer `told_0` of a header with an input's partition and offset."""
    return f"{partition} * {10 ** _PLACE[1].width}L + {offset}"


def widths(*, intermediate: bool) -> list[int]:
    """Return the number of digits of each of the integers `told_0`, `told_1`, … into which the header is cut.

    With `intermediate`, the header has its longer form. An integer has up to eighteen digits; reading a few long
    integers takes less time and space than reading many short ones.
    """
    return [_length(group) for group in (_GROUPS if intermediate else _GROUPS[:2])]


def parts_sql() -> list[str]:
    """Return a Spark SQL expression for each part of the header, computed from the integers `told_0`, `told_1`, ….

    The first part of each integer is not limited to its width, because in a folder that combines several runs it may
    have more digits than in a header.
    """
    found = []
    for index, group in enumerate(_GROUPS):
        digits_after = _length(group)
        for part in group:
            digits_after -= part.width
            digits = f"told_{index} div {10**digits_after}L" + (f" % {10**part.width}L" if part is not group[0] else "")
            found.append(f"cast({digits} AS {part.type}) AS {part.name}")
    return found
