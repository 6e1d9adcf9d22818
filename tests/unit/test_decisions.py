"""How the spans of a partition are matched with the coordinator's decisions."""

from collections.abc import Sequence

import pytest

from onceproof.verifiers import coordinator
from onceproof.verifiers.evidence.decisions import Decision, Lane, Span, lanes

Step = tuple[str, int, int]  # the marker's kind, its epoch, and the number of batches before it
COMMIT, ABORT = "commit", "abort"
PLACE = "output/3"


def decided(*steps: tuple[str, int], version: int = 0) -> list[Decision]:
    return [
        Decision(
            transactional_id="id",
            producer_id=1,
            epoch=epoch,
            commit=kind == COMMIT,
            partitions=frozenset([PLACE]),
            version=version,
            log=0,
            offset=offset,
            done=True,
        )
        for offset, (kind, epoch) in enumerate(steps)
    ]


def spans(*steps: Step, data_epoch: int = 0) -> list[Span]:
    """Spans of ten records for each batch; the marker comes behind them."""
    made, offset = [], 0
    for kind, epoch, batches in steps:
        marker = offset + 10 * batches
        made.append(
            Span(
                producer_id=1,
                first=offset,
                batches=batches,
                lowest=epoch + data_epoch,
                highest=epoch + data_epoch,
                marker=marker,
                commit=kind == COMMIT,
                epoch=epoch,
            )
        )
        offset = marker + 1
    return made


def match(told: Sequence[Span], decisions: Sequence[Decision], *, partial: bool = False, cut: bool = False) -> Lane:
    [lane] = lanes({(PLACE, 1): told}, {1: decisions}, partial=partial, cut=[PLACE] if cut else [])
    return lane


def numbers(lane: Lane) -> list[int | None]:
    return [None if each is None else each.offset for each in lane.of]


def test_a_marker_may_be_sent_again() -> None:
    lane = match(
        spans((COMMIT, 7, 1), (COMMIT, 7, 0), (COMMIT, 8, 1), (ABORT, 9, 0)),
        decided((COMMIT, 7), (COMMIT, 8), (ABORT, 9)),
    )
    assert numbers(lane) == [0, 0, 1, 2]
    assert not lane.strange and not lane.unended


def test_a_late_marker_ends_the_next_transaction() -> None:
    lane = match(spans((COMMIT, 7, 1), (COMMIT, 7, 1), (COMMIT, 8, 1)), decided((COMMIT, 7), (COMMIT, 8)))
    assert [span.marker for span in lane.strange] == [21]
    assert numbers(lane) == [0, None, 1]


def test_a_marker_of_the_other_kind() -> None:
    lane = match(spans((ABORT, 7, 1)), decided((COMMIT, 7)))
    assert [span.marker for span in lane.strange] == [10] and lane.unended == [] and lane.of == [None]


def test_a_decision_without_a_marker() -> None:
    lane = match(spans((COMMIT, 7, 1), (ABORT, 9, 1)), decided((COMMIT, 7), (COMMIT, 8), (ABORT, 9)))
    assert [each.offset for each in lane.unended] == [1]
    assert numbers(lane) == [0, 2]


@pytest.mark.parametrize("count", [3, 4])
def test_with_one_epoch_an_empty_span_is_a_repetition_or_a_transaction(count: int) -> None:
    lane = match(spans((COMMIT, 0, 1), (COMMIT, 0, 0), (COMMIT, 0, 1), (COMMIT, 0, 1)), decided(*[(COMMIT, 0)] * count))
    assert not lane.strange and not lane.unended
    assert numbers(lane) == ([0, 0, 1, 2] if count == 3 else [0, 1, 2, 3])


def test_more_transactions_than_decisions() -> None:
    lane = match(spans(*[(COMMIT, 0, 1)] * 3), decided(*[(COMMIT, 0)] * 2))
    assert len(lane.strange) == 1


def test_before_the_first_known_decision_nothing_is_judged() -> None:
    lane = match(spans((COMMIT, 7, 1), (COMMIT, 8, 1)), decided((COMMIT, 8)), partial=True)
    assert (lane.unknown, lane.strange, numbers(lane)) == (1, [], [None, 0])


def test_the_beginning_of_a_partition_may_be_deleted() -> None:
    lane = match(spans((COMMIT, 8, 1)), decided((COMMIT, 7), (COMMIT, 8)), cut=True)
    assert (lane.unended, numbers(lane)) == ([], [1])


def test_no_decision_no_marker_and_a_batch() -> None:
    span = Span(producer_id=1, first=12, batches=1, lowest=3, highest=3)
    [lane] = lanes({(PLACE, 1): [span]}, {})
    assert [(cls, offset) for cls, offset, _ in coordinator.problems(lane, {})] == [("hung-transaction", 12)]
    assert not list(coordinator.problems(lane, {(1, PLACE): "id"}))


def test_with_version_2_the_data_has_the_epoch_before_the_marker() -> None:
    told = decided((COMMIT, 7), version=2)
    right, newer, older = (match(spans((COMMIT, 7, 1), data_epoch=by), told) for by in (-1, 0, -2))
    assert not list(coordinator.problems(right, {}))
    assert [cls for cls, _, _ in coordinator.problems(newer, {})] == ["torn-transaction"]
    assert [cls for cls, _, _ in coordinator.problems(older, {})] == ["zombie-write"]


def test_a_coordinator_epoch_that_goes_back() -> None:
    first, second = spans((COMMIT, 7, 1), (COMMIT, 7, 0))
    old = Span(**{**vars(second), "coordinator_epoch": 3})
    lane = match([Span(**{**vars(first), "coordinator_epoch": 4}), old], decided((COMMIT, 7)))
    assert [(cls, offset) for cls, offset, _ in coordinator.problems(lane, {})] == [("zombie-write", 11)]
