"""What is wrong in a matched lane, rule by rule."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from onceproof.verifiers.evidence import rules
from onceproof.verifiers.evidence.decisions import Lane, Span
from onceproof.verifiers.evidence.matching import lanes
from tests.unit.test_decisions import ABORT, COMMIT, PLACE, decided, match, spans

OPEN = Span(producer_id=1, first=12, batches=1, lowest=7, highest=7)


def found(
    lane: Lane, open_at: Mapping[tuple[int, str], str] | None = None, *, whole: bool = True
) -> list[tuple[str, int]]:
    """The class and the offset of each problem."""
    return [(cls, offset) for cls, offset, _ in rules.problems(lane, dict(open_at or {}), whole=whole)]


def test_no_decision_no_marker_and_a_batch() -> None:
    span = Span(producer_id=1, first=12, batches=1, lowest=3, highest=3)
    [lane] = lanes({(PLACE, 1): [span]}, {})
    assert [(cls, offset) for cls, offset, _ in rules.problems(lane, {})] == [("hung-transaction", 12)]
    assert not list(rules.problems(lane, {(1, PLACE): "id"}))


def test_with_version_2_the_data_has_the_epoch_before_the_marker() -> None:
    told = decided((COMMIT, 7), version=2)
    right, newer, older = (match(spans((COMMIT, 7, 1), data_epoch=by), told) for by in (-1, 0, -2))
    assert not list(rules.problems(right, {}))
    assert [cls for cls, _, _ in rules.problems(newer, {})] == ["torn-transaction"]
    assert [cls for cls, _, _ in rules.problems(older, {})] == ["zombie-write"]


def test_a_coordinator_epoch_that_goes_back() -> None:
    first, second = spans((COMMIT, 7, 1), (COMMIT, 7, 0))
    old = second._replace(coordinator_epoch=3)
    lane = match([first._replace(coordinator_epoch=4), old], decided((COMMIT, 7)))
    assert [(cls, offset) for cls, offset, _ in rules.problems(lane, {})] == [("zombie-write", 11)]


def ended(producer: int, *markers: tuple[int, int]) -> Lane:
    """A lane with one committed transaction, whose markers have these offsets and coordinator epochs."""
    made = [
        Span(
            producer_id=producer,
            first=offset if number else offset - 5,
            batches=0 if number else 1,
            lowest=7,
            highest=7,
            marker=offset,
            commit=True,
            epoch=7,
            coordinator_epoch=epoch,
        )
        for number, (offset, epoch) in enumerate(markers)
    ]
    decision = replace(decided((COMMIT, 7))[0], producer_id=producer, offset=producer)
    [lane] = lanes({(PLACE, producer): made}, {producer: [decision]})
    return lane


@pytest.mark.parametrize(
    ("markers", "wrong"),
    [
        pytest.param([(30, 5)], [30], id="an old coordinator's"),
        pytest.param([(30, 5), (40, 6)], [], id="sent again by its successor"),
        pytest.param([(10, 5)], [], id="before the successor's first one"),
        pytest.param([(30, 6)], [], id="the successor's"),
        pytest.param([(30, 7), (40, 6)], [], id="of its own producer: `problems` names it"),
    ],
)
def test_a_coordinator_epoch_below_that_for_another_producer(markers: list[tuple[int, int]], wrong: list[int]) -> None:
    found = rules.older_coordinators([ended(1, (20, 6)), ended(2, *markers)])
    assert [(place, offset) for place, offset, _ in found] == [(PLACE, offset) for offset in wrong]


def test_a_marker_that_may_be_sent_again_is_not_wrong_yet() -> None:
    other = ended(2, (30, 5))
    other.of = [each and replace(each, done=False) for each in other.of]
    assert not list(rules.older_coordinators([ended(1, (20, 6)), other]))


def test_coordinators_of_different_logs_are_not_compared() -> None:
    other = ended(2, (30, 5))
    moved = [each and replace(each, log=1) for each in other.of]
    assert not list(rules.older_coordinators([ended(1, (20, 6)), Lane(**{**vars(other), "of": moved})]))


def test_nothing_is_wrong_with_transactions_as_they_were_decided() -> None:
    lane = match(spans((COMMIT, 7, 1), (ABORT, 7, 2), (ABORT, 7, 0)), decided((COMMIT, 7), (ABORT, 7)))
    assert found(lane) == []


def test_a_marker_without_a_decision_is_said_with_its_span() -> None:
    lane = match(spans((COMMIT, 7, 1), (COMMIT, 7, 1)), decided((COMMIT, 7)))
    [(cls, offset, details)] = rules.problems(lane, {})
    assert (cls, offset) == ("torn-transaction", 21)
    assert details == {
        "producer_id": 1,
        "first": 11,
        "last": 21,
        "batches": 1,
        "lowest_epoch": 7,
        "highest_epoch": 7,
        "marker": 21,
        "kind": "commit",
        "marker_epoch": 7,
        "coordinator_epoch": -1,
    }


def test_aborts_are_said_so() -> None:
    [(_, _, span)] = rules.problems(match(spans((COMMIT, 7, 1), (ABORT, 7, 1)), decided((COMMIT, 7))), {})
    [(_, _, decision)] = rules.problems(match(spans((COMMIT, 7, 1)), decided((COMMIT, 7), (ABORT, 7))), {})
    assert (span["kind"], decision["decision"]) == ("abort", "abort")


def test_an_open_span_is_said_without_a_marker() -> None:
    [lane] = lanes({(PLACE, 1): [OPEN]}, {})
    [(_, _, details)] = rules.problems(lane, {})
    assert details == {
        "producer_id": 1,
        "first": 12,
        "last": 12,
        "batches": 1,
        "lowest_epoch": 7,
        "highest_epoch": 7,
    }


@pytest.mark.parametrize(
    ("told", "whole", "expected"),
    [
        pytest.param([], True, [0], id="nothing is there"),
        pytest.param([(COMMIT, 7, 1)], True, [11], id="behind the last marker"),
        pytest.param([(COMMIT, 7, 1)], False, [], id="it may be in what is missing of the partition"),
    ],
)
def test_a_decision_without_a_marker(told: list[tuple[str, int, int]], whole: bool, expected: list[int]) -> None:
    lane = match(spans(*told), decided(*[(COMMIT, 7)] * (len(told) + 1)))
    assert found(lane, whole=whole) == [("hung-transaction", offset) for offset in expected]


def test_batches_that_wait_for_the_marker_of_a_decision() -> None:
    """The decision is the problem, and not the batches as well; also in a partition that is incomplete."""
    lane = match([*spans((COMMIT, 7, 1)), OPEN], decided((COMMIT, 7), (COMMIT, 7)))
    assert found(lane) == found(lane, whole=False) == [("hung-transaction", 12)]
    [(_, _, details)] = rules.problems(lane, {})
    assert details == {
        "transactional_id": "id",
        "decision": "commit",
        "decision_epoch": 7,
        "decided_at": "__transaction_state/0 offset 1",
    }


def test_an_aborted_transaction_may_hold_batches_of_any_epoch() -> None:
    """A producer that is fenced is aborted with a newer epoch than that of its batches."""
    lane = match(spans((ABORT, 8, 1), data_epoch=-1), decided((ABORT, 8)))
    assert found(lane) == []


def test_an_empty_span_has_no_epoch_of_batches() -> None:
    told = [each._replace(lowest=-1, highest=-1) for each in spans((COMMIT, 7, 0))]
    assert found(match(told, decided((COMMIT, 7)))) == []


def test_epochs_of_batches_without_a_decision_are_not_compared() -> None:
    """A span that may belong to several decisions has none."""
    lane = match(spans((COMMIT, 7, 1), data_epoch=2), decided((COMMIT, 7)))
    assert found(lane) == [("torn-transaction", 0)]
    lane.of = [None]
    assert found(lane) == []


def test_coordinator_epochs_that_grow_or_stay() -> None:
    told = [each._replace(coordinator_epoch=3 + index // 2) for index, each in enumerate(spans(*[(COMMIT, 7, 1)] * 4))]
    assert found(match(told, decided(*[(COMMIT, 7)] * 4))) == []
    assert found(match([*told, OPEN], decided(*[(COMMIT, 7)] * 4)), {(1, PLACE): "id"}) == []


def test_markers_without_a_decision_are_not_compared_with_other_producers() -> None:
    one, other = ended(1, (20, 6)), ended(2, (30, 5))
    other.of = [None]
    assert not list(rules.older_coordinators([one, other]))
    [waiting] = lanes({(PLACE, 3): [OPEN._replace(producer_id=3)]}, {})
    assert not list(rules.older_coordinators([one, waiting]))


def test_another_producers_marker_is_said_with_the_highest_epoch() -> None:
    [(place, offset, details)] = rules.older_coordinators([ended(1, (20, 6)), ended(2, (30, 5))])
    assert (place, offset, details["coordinator_epoch"], details["highest_coordinator_epoch"]) == (PLACE, 30, 5, 6)
