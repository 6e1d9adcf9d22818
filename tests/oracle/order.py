"""The outputs of a source partition are in its order: reordered."""

from tests.oracle.case import Case, place_of
from tests.oracle.counting import Counting


def judge(case: Case, counting: Counting) -> None:
    before: dict[tuple[str, int, int], int] = {}
    for row in sorted(counting.fitting, key=lambda row: int(row["offset"])):
        lane = row["topic"], row["partition"], row["source_partition"]
        if row["source_offset"] is None:
            continue
        if row["source_offset"] < before.get(lane, -1):
            case.add("reordered", *place_of(row))
        before[lane] = row["source_offset"]
