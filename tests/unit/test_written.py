"""What was acknowledged is in the log as it was sent, or it is lost."""

import json
from typing import Any

import pytest

from onceproof.verifiers.written import Sent, acknowledged, wrong

PLACE = ("op-1-output", 3)


def produced(
    crc: int = 17, sequence: int = 40, *, error: int = 0, acks: int = -1, producer: int = 4000
) -> dict[str, Any]:
    """A Produce and its response, as the table `requests` has it."""
    batch = {"topic": PLACE[0], "partition": PLACE[1], "producerId": producer, "producerEpoch": 2, "records": 5}
    asked = {"acks": acks, "batches": [{**batch, "baseSequence": sequence, "crc": crc}]}
    place = {"index": PLACE[1], "errorCode": error, "baseOffset": 812}
    told = {"responses": [{"name": PLACE[0], "partitionResponses": [place]}]}
    return {"api": 0, "worker": 1, "request": json.dumps(asked), "response": json.dumps(told)}


def sent(*rows: dict[str, Any]) -> list[Sent]:
    return list(acknowledged(rows))


def test_what_was_acknowledged() -> None:
    assert sent(produced()) == [Sent(place=PLACE, key=(4000, 2, 40), crc=17, records=5, offset=812, worker=1)]


@pytest.mark.parametrize(
    "row",
    [
        produced(error=45),
        produced(acks=1),
        produced(producer=-1),
        produced() | {"response": None},
        produced() | {"api": 26},
    ],
)
def test_what_was_not_acknowledged_is_not_asked_for(row: dict[str, Any]) -> None:
    assert sent(row) == []


def in_log(*batches: tuple[int, int]) -> dict[tuple[str, int], dict[tuple[int, int, int], int]]:
    """A partition with these batches: sequence number and CRC."""
    return {PLACE: {(4000, 2, sequence): crc for sequence, crc in batches}}


def test_a_repetition_is_in_the_log_once() -> None:
    assert list(wrong(sent(produced(), produced()), in_log((40, 17)))) == []


def test_another_batch_has_its_sequence_number() -> None:
    found = list(wrong(sent(produced(1, 35), produced(17), produced(99)), in_log((35, 1), (40, 17))))
    assert [(each.crc, there) for each, there in found] == [(99, 17)]


def test_a_batch_that_is_nowhere() -> None:
    found = list(wrong(sent(produced(1, 35), produced(17)), in_log((35, 1))))
    assert [(each.crc, there) for each, there in found] == [(17, None)]


def test_a_partition_that_the_broker_writes_anew_is_not_judged() -> None:
    assert list(wrong(sent(produced(1, 35), produced(17)), in_log((35, 8), (40, 9)))) == []


def test_a_partition_that_is_not_whole_is_not_judged() -> None:
    assert list(wrong(sent(produced(1, 35), produced(17)), {})) == []
