"""How the spans of a partition are matched with the coordinator's decisions."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from onceproof.verifiers.evidence.decisions import Decision, Lane, Span, decisions, ongoing
from onceproof.verifiers.evidence.matching import lanes

Row = dict[str, object]
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


def markers(lane: Lane) -> list[int | None]:
    """The offsets of the markers that match no decision."""
    return [span.marker for span in lane.strange]


def unended(lane: Lane) -> list[int]:
    """The decisions without a marker."""
    return [each.offset for each in lane.unended]


def test_a_marker_that_ends_nothing_and_matches_nothing_is_no_problem() -> None:
    lane = match(spans((COMMIT, 7, 1), (ABORT, 9, 0)), decided((COMMIT, 7)))
    assert (markers(lane), unended(lane), numbers(lane)) == ([], [], [0, None])
    lane = match(spans((ABORT, 7, 0), (COMMIT, 7, 1)), decided((COMMIT, 7)))
    assert (markers(lane), unended(lane), numbers(lane)) == ([], [], [None, 0])


def test_the_first_decision_has_no_marker() -> None:
    lane = match(spans((COMMIT, 8, 1)), decided((COMMIT, 7), (COMMIT, 8)))
    assert (markers(lane), unended(lane), numbers(lane)) == ([], [0], [1])


def test_a_marker_again_although_the_next_one_of_its_kind_is_to_come() -> None:
    one_more = spans((COMMIT, 0, 1), (COMMIT, 0, 1), (ABORT, 0, 1), (COMMIT, 0, 1))
    lane = match(one_more, decided((COMMIT, 0), (ABORT, 0), (COMMIT, 0)))
    assert (markers(lane), unended(lane), numbers(lane)) == ([21], [], [0, None, 1, 2])


def test_a_marker_of_the_other_kind_before_an_open_span_or_a_repeated_marker() -> None:
    wrong = spans((ABORT, 7, 1))
    still_open = Span(producer_id=1, first=11, batches=1, lowest=7, highest=7)
    for more in (still_open, wrong[0]._replace(marker=11, batches=0)):
        lane = match([*wrong, more], decided((COMMIT, 7)))
        assert (markers(lane), unended(lane), numbers(lane)) == ([10], [], [None, None])


def test_a_marker_of_no_decision_does_not_stand_for_a_later_one() -> None:
    lane = match(spans((ABORT, 3, 1)), decided((COMMIT, 7), (COMMIT, 8)))
    assert (markers(lane), unended(lane)) == ([10], [0, 1])


def test_a_marker_of_nothing_before_its_transaction_is_that_decisions() -> None:
    lane = match(spans((COMMIT, 7, 0), (COMMIT, 7, 1)), decided((COMMIT, 7)))
    assert (markers(lane), unended(lane), numbers(lane)) == ([11], [], [0, None])


def test_as_many_spans_as_decisions_may_still_fit_in_two_ways() -> None:
    [first, second] = decided((COMMIT, 0), (COMMIT, 0))
    late = [first, replace(second, done=False)]
    assert numbers(match(spans((COMMIT, 0, 1), (COMMIT, 0, 0)), late)) == [0, None]
    assert numbers(match(spans((COMMIT, 0, 1), (COMMIT, 0, 1)), late)) == [0, 1]
    lane = match(spans((COMMIT, 0, 1), (COMMIT, 0, 1)), late, partial=True)
    assert numbers(lane) == [None, None]


def test_an_open_span_ends_with_no_decision() -> None:
    still_open = Span(producer_id=1, first=0, batches=1, lowest=-1, highest=-1)
    lane = match([still_open], decided((ABORT, -1)))
    assert (unended(lane), numbers(lane)) == ([0], [None])


def test_a_decision_whose_markers_are_still_to_come() -> None:
    [first, second] = decided((COMMIT, 7), (COMMIT, 8))
    told = [first, replace(second, done=False)]
    lane = match(spans((COMMIT, 7, 1)), told)
    assert (markers(lane), unended(lane)) == ([], [])
    lane = match(spans((COMMIT, 7, 1), (ABORT, 3, 1)), told)
    assert (markers(lane), unended(lane)) == ([21], [])


def test_of_a_partition_that_was_cut_only_the_first_markers_may_be_gone() -> None:
    lane = match(spans((COMMIT, 7, 1), (ABORT, 3, 1)), decided((COMMIT, 5), (COMMIT, 7)), cut=True)
    assert (markers(lane), unended(lane), numbers(lane)) == ([21], [], [1, None])
    lane = match(spans((COMMIT, 7, 1), (ABORT, 9, 1)), decided((COMMIT, 7), (COMMIT, 8), (ABORT, 9)), cut=True)
    assert (markers(lane), unended(lane), numbers(lane)) == ([], [1], [0, 2])


def test_a_marker_again_beside_an_error() -> None:
    lane = match(spans((COMMIT, 7, 1), (COMMIT, 7, 0), (ABORT, 3, 1)), decided((COMMIT, 7)))
    assert (markers(lane), unended(lane), numbers(lane)) == ([22], [], [0, 0, None])


def test_a_marker_again_does_not_stand_for_a_later_decision() -> None:
    one_missing = spans((COMMIT, 0, 1), (COMMIT, 0, 0), (COMMIT, 0, 1))
    lane = match(one_missing, decided((COMMIT, 0), (ABORT, 0), (COMMIT, 0)))
    assert (markers(lane), unended(lane), numbers(lane)) == ([], [1], [0, 0, 2])


def test_a_marker_of_the_other_kind_that_ends_nothing_stands_for_no_decision() -> None:
    lane = match(spans((ABORT, 7, 0), (ABORT, 3, 1)), decided((COMMIT, 7)))
    assert (markers(lane), unended(lane), numbers(lane)) == ([11], [0], [None, None])


def test_one_error_among_many_transactions_moves_no_other_span() -> None:
    steps = [(COMMIT if number % 3 else ABORT, 0, 1) for number in range(60)]
    told = decided(*[step[:2] for step in steps])
    lane = match(spans(*steps[:30], (ABORT, 9, 1), *steps[30:]), told)
    assert (markers(lane), unended(lane)) == ([30 * 11 + 10], [])
    assert numbers(lane) == [*range(30), None, *range(30, 60)]
    lane = match(spans(*steps[:30], *steps[31:]), told)
    assert (markers(lane), len(unended(lane))) == ([], 1)


def test_a_span_that_may_belong_to_one_of_two_decisions_belongs_to_none() -> None:
    lane = match(spans(*[(COMMIT, 0, 1)] * 3), decided(*[(COMMIT, 0)] * 2))
    assert (markers(lane), numbers(lane)) == ([32], [0, None, None])


def test_a_lane_that_would_take_too_long_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onceproof.verifiers.evidence.alignment._NODES_MAX", 30)
    lane = match(spans((COMMIT, 7, 1), (ABORT, 3, 1), (ABORT, 3, 0)), decided((COMMIT, 7)))
    assert (lane.unknown, lane.unaligned, markers(lane), unended(lane), numbers(lane)) == (0, 2, [], [], [None] * 3)


def test_errors_after_the_first_known_decision_are_found() -> None:
    told = spans((COMMIT, 6, 0), (COMMIT, 7, 1), (COMMIT, 8, 1), (ABORT, 3, 1))
    lane = match(told, decided((COMMIT, 8)), partial=True)
    assert (lane.unknown, markers(lane), numbers(lane)) == (1, [33], [None, None, 0, None])


def test_before_the_first_known_decision_nothing_is_judged() -> None:
    lane = match(spans((COMMIT, 7, 1), (COMMIT, 8, 1)), decided((COMMIT, 8)), partial=True)
    assert (lane.unknown, lane.strange, numbers(lane)) == (1, [], [None, 0])
    lane = match(spans((COMMIT, 7, 0), (COMMIT, 7, 1), (COMMIT, 8, 1)), decided((COMMIT, 8)), partial=True)
    assert (lane.unknown, lane.strange, numbers(lane)) == (1, [], [None, None, 0])


def test_the_beginning_of_a_partition_may_be_deleted() -> None:
    lane = match(spans((COMMIT, 8, 1)), decided((COMMIT, 7), (COMMIT, 8)), cut=True)
    assert (lane.unended, numbers(lane)) == ([], [1])


def test_a_marker_again_in_a_partition_that_was_cut_leaves_open_which_decisions_came_before() -> None:
    """The empty span is the marker of decision 2 again, or that of decision 2 after one of decision 1."""
    told = decided((COMMIT, 7), (COMMIT, 7), (COMMIT, 7), (ABORT, 8))
    lane = match(spans((COMMIT, 7, 1), (COMMIT, 7, 0), (ABORT, 8, 1)), told, cut=True)
    assert (markers(lane), unended(lane), numbers(lane)) == ([], [], [None, 2, 3])
    whole = match(spans((COMMIT, 7, 1), (COMMIT, 7, 1), (COMMIT, 7, 1), (COMMIT, 7, 0), (ABORT, 8, 1)), told)
    assert numbers(whole) == [0, 1, 2, 2, 3]
    certain = match(spans((COMMIT, 7, 1), (COMMIT, 7, 1), (ABORT, 8, 1)), told, cut=True)
    assert numbers(certain) == [1, 2, 3]


def test_which_of_two_empty_spans_is_a_repetition_does_not_move_the_span_between_them_silently() -> None:
    told = decided((COMMIT, 7), (COMMIT, 7), (COMMIT, 7))
    lane = match(spans((COMMIT, 7, 1), (COMMIT, 7, 0), (COMMIT, 7, 1), (COMMIT, 7, 0)), told)
    assert (markers(lane), unended(lane), numbers(lane)) == ([], [], [0, None, None, 2])


# The coordinator's log


def state(offset: int, name: str, state: str, *, version: int | None = 2, partitions: Sequence[str] = (PLACE,)) -> Row:
    producer = {"producer_id": 1, "producer_epoch": 7, "version": version, "partitions": partitions}
    return {"log": 2, "offset": offset, "transactional_id": name, "state": state, **producer}


def test_each_prepared_state_is_a_decision() -> None:
    rows = [
        state(5, "a", "PrepareAbort"),
        state(6, "a", "CompleteAbort", partitions=()),
        state(0, "a", "Ongoing"),
        state(1, "a", "PrepareCommit"),
        state(3, "a", "CompleteCommit", partitions=()),
        state(2, "b", "PrepareCommit", version=None),
    ]
    found = [(each.transactional_id, each.offset, each.commit, each.done) for each in decisions(rows)[1]]
    assert sorted(found) == [("a", 1, True, True), ("a", 5, False, True), ("b", 2, True, False)]
    assert {(each.version, each.log, each.epoch, each.partitions) for each in decisions(rows)[1]} == {
        (2, 2, 7, frozenset([PLACE])),
        (0, 2, 7, frozenset([PLACE])),
    }


@pytest.mark.parametrize("again", ["PrepareCommit", "Ongoing"])
def test_a_decision_that_is_followed_by_an_open_state_is_not_done(again: str) -> None:
    first, _ = decisions([state(1, "a", "PrepareCommit"), state(2, "a", "PrepareCommit")])[1]
    assert not first.done
    assert not decisions([state(1, "a", "PrepareCommit"), state(2, "a", again)])[1][0].done


@pytest.mark.parametrize(
    ("last", "known"),
    [("Ongoing", True), ("PrepareCommit", True), ("PrepareAbort", True), ("CompleteCommit", False), ("Empty", False)],
)
def test_the_last_state_says_whether_a_transaction_is_open(last: str, known: bool) -> None:
    rows = [state(2, "a", last), state(1, "a", "CompleteCommit" if known else "Ongoing")]
    assert ongoing(rows) == ongoing(rows[::-1]) == ({(1, PLACE): "a"} if known else {})
