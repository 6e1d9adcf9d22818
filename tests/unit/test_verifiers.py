"""A good run is valid; each way to break it is found with its class and its coordinates, and nothing else is."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from harness.verdict import Results
from tests.unit.good_run import PREFIX, GoodRun
from verifiers.verify import verify

OUT, IN = f"{PREFIX}-output", f"{PREFIX}-input"


def found(results: Results) -> dict[str, tuple[int, list[tuple[str, int, int]]]]:
    return {
        finding.cls: (finding.count, [(s["topic"], s["partition"], s["offset"]) for s in finding.samples])
        for finding in results.findings
    }


def test_a_good_run_is_valid(spark: SparkSession, good_run: GoodRun) -> None:
    results = verify(good_run.write())
    assert (results.verdict, results.findings, results.reasons) == ("valid", [], [])
    assert results.counts["inputs"] == results.counts["outputs"] == 80


def lose(run: GoodRun) -> None:
    run.outputs.remove(run.output(7))
    run.visible(OUT, 1, -1)


def lose_first(run: GoodRun) -> None:
    run.outputs.remove(run.output(0))
    run.visible(OUT, 0, -1)


def lose_last(run: GoodRun) -> None:
    run.outputs.remove(run.output(79))
    run.visible(OUT, 1, -1)


def double(run: GoodRun) -> None:
    run.outputs.append({**run.output(7), "offset": 41})
    run.visible(OUT, 1, 1)


def flip(run: GoodRun) -> None:
    run.output(7)["digest"] ^= 1


def garble_number(run: GoodRun) -> None:
    run.output(7)["number"] = None


def swap_number(run: GoodRun) -> None:
    row = run.output(7)
    row["number"], row["digest"] = 8, row["digest"] ^ 1


def forge_header(run: GoodRun) -> None:
    run.output(7)["source_offset"] = 4


def drop_header(run: GoodRun) -> None:
    run.output(7).update(source_partition=None, source_offset=None)


def stranger(run: GoodRun) -> None:
    run.outputs.append({**run.output(7), "offset": 41, "number": None, "digest": 1, "source_partition": None,
                        "source_offset": None})  # fmt: skip
    run.visible(OUT, 1, 1)


def wrong_partition(run: GoodRun) -> None:
    run.outputs.append({**run.output(7), "partition": 0, "offset": 41})
    run.outputs.remove(run.output(7))
    run.visible(OUT, 0, 1)
    run.visible(OUT, 1, -1)


def position_back(run: GoodRun) -> None:
    run.positions[1] -= 1


def position_beyond(run: GoodRun) -> None:
    run.positions[1] += 1


def input_changed(run: GoodRun) -> None:
    run.inputs[7]["digest"] ^= 1


def replica_differs(run: GoodRun) -> None:
    row = next(row for row in run.batches if (row["topic"], row["partition"], row["broker"]) == (OUT, 1, "broker2"))
    row["crc"] += 1


def hung(run: GoodRun) -> None:
    run.open_transactions.append({"topic": OUT, "partition": 1, "producer_id": 9, "producer_epoch": 0,
                                  "start_offset": 30, "known_as": None})  # fmt: skip


def deleted_past(run: GoodRun) -> None:
    """The position was 5 when everything below 9 was deleted: 5 to 8 were skipped."""
    run.note("records-deleted", fault="0", partitions=[{"partition": 1, "position": 5, "low_watermark": 9, "end": 40}])
    run.inputs = [row for row in run.inputs if row["partition"] != 1 or row["offset"] >= 9]
    skipped = [row for row in run.outputs if row["partition"] == 1 and 5 <= row["source_offset"] < 9]
    run.outputs = [row for row in run.outputs if row not in skipped]
    run.visible(OUT, 1, -4)
    next(each for each in run.partitions if (each["topic"], each["partition"]) == (IN, 1))["start"] = 9


@pytest.mark.parametrize(
    ("mutate", "expected"),
    [
        (lose, {"lost": (1, [(IN, 1, 3)])}),
        (lose_first, {"lost": (1, [(IN, 0, 0)])}),
        (lose_last, {"lost": (1, [(IN, 1, 39)])}),
        (double, {"duplicate": (2, [(OUT, 1, 3), (OUT, 1, 41)])}),
        (flip, {"corrupted": (1, [(OUT, 1, 3)])}),
        (garble_number, {"corrupted": (1, [(OUT, 1, 3)])}),
        (swap_number, {"corrupted": (1, [(OUT, 1, 3)])}),
        (forge_header, {"corrupted": (1, [(OUT, 1, 3)])}),
        (drop_header, {"corrupted": (1, [(OUT, 1, 3)])}),
        (stranger, {"phantom": (1, [(OUT, 1, 41)])}),
        (wrong_partition, {"corrupted": (1, [(OUT, 0, 41)])}),
        (position_back, {"offset-divergence": (1, [(OUT, 1, 40)])}),
        (position_beyond, {"offset-divergence": (1, [(IN, 1, 40)])}),
        (input_changed, {"input-lost": (1, [(IN, 1, 3)])}),
        (replica_differs, {"replica-divergence": (2, [(OUT, 1, 0), (OUT, 1, 0)])}),
        (hung, {"hung-transaction": (1, [(OUT, 1, 30)])}),
        (deleted_past, {"reset-skip": (4, [(IN, 1, 5), (IN, 1, 6), (IN, 1, 7), (IN, 1, 8)])}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_is_broken_is_found(
    spark: SparkSession, good_run: GoodRun, mutate: Callable[[GoodRun], None], expected: dict[str, Any]
) -> None:
    mutate(good_run)
    results = verify(good_run.write())
    assert found(results) == expected
    assert results.verdict == "invalid"
    assert not results.as_expected


def unread(run: GoodRun) -> None:
    """The reader missed a record that the log shows as visible: nothing may be called lost."""
    run.outputs.remove(run.output(7))


def short_log(run: GoodRun) -> None:
    gone = [row for row in run.batches if (row["topic"], row["partition"], row["first"]) == (OUT, 1, 0)]
    run.batches = [row for row in run.batches if row not in gone]


def still_written(run: GoodRun) -> None:
    run.moved.append("op-test-1-output/1: 42 → 43")


def never_quiet(run: GoodRun) -> None:
    run.events.pop()


def stalled(run: GoodRun) -> None:
    run.note("stalled", reason="waited 120 s for lag 0")


def start_moved(run: GoodRun) -> None:
    run.inputs = [row for row in run.inputs if row["partition"] != 1 or row["offset"] >= 9]
    next(each for each in run.partitions if (each["topic"], each["partition"]) == (IN, 1))["start"] = 9


def fault_missed(run: GoodRun) -> None:
    run.raw["faults"] = [{"name": "kill", "target": "broker-1", "at_s": 1}]
    run.note("fault-missed", fault="0-kill", reason="it did not come")


def zombie_kept_its_partitions(run: GoodRun) -> None:
    run.raw["faults"] = [
        {"name": "zombie", "when": {"worker": 0, "phase": "begun", "count": 1}, "fenced": "generation"}
    ]
    for event in ("fault-begins", "fault-injected", "fault-healed"):
        run.note(event, fault="0-zombie", open_transactions=[])
    run.events.insert(-1, {**run.events[3], "at": 55.0, "event": "outcome", "type": "ok"})


@pytest.mark.parametrize(
    ("mutate", "kind", "says"),
    [
        (unread, "indeterminate", "incomplete: op-test-1-output/1: 40 visible in the log, the reader saw 39"),
        (short_log, "indeterminate", "incomplete: op-test-1-output/1: 42 offsets, the log's batches account for 22"),
        (still_written, "indeterminate", "somebody wrote while it was read"),
        (never_quiet, "harness-error", "the run ended before it came to rest"),
        (stalled, "stalled", "waited 120 s for lag 0"),
        (start_moved, "indeterminate", "op-test-1-input/1 starts at 9: no fault deleted its records"),
        (fault_missed, "vacuous", "fault 0-kill never happened: it did not come"),
        (zombie_kept_its_partitions, "vacuous", "never lost its partitions"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_is_not_known_is_not_valid(
    spark: SparkSession, good_run: GoodRun, mutate: Callable[[GoodRun], None], kind: str, says: str
) -> None:
    mutate(good_run)
    results = verify(good_run.write())
    assert any(reason.kind == kind and says in reason.says for reason in results.reasons), results.reasons
    assert results.verdict == "unknown"
    assert "lost" not in found(results)


def test_info_in_the_log_is_an_input(spark: SparkSession, good_run: GoodRun) -> None:
    """Number 7 was never acknowledged but is in the log: its output is due, and is missed when it is not there."""
    good_run.ledger[7]["offset"] = None
    lose(good_run)
    assert found(verify(good_run.write())) == {"lost": (1, [(IN, 1, 3)])}


@pytest.mark.parametrize("outputs", [0, 1, 2])
def test_info_not_in_the_log_explains_at_most_one_output(
    spark: SparkSession, good_run: GoodRun, outputs: int
) -> None:
    good_run.ledger.append({"number": 4_000, "partition": 1, "offset": None, "digest": 5})
    row = {**good_run.output(79), "number": 4_000, "digest": 5}
    good_run.outputs += [{**row, "offset": 41 + extra} for extra in range(outputs)]
    good_run.visible(OUT, 1, outputs)
    classes = set(found(verify(good_run.write())))
    assert classes == ({"duplicate"} if outputs == 2 else set())


def test_a_strangers_input_is_an_input_but_the_run_is_not_valid(spark: SparkSession, good_run: GoodRun) -> None:
    good_run.inputs.append({"partition": 1, "offset": 40, "number": 4_000, "digest": 5})
    good_run.outputs.append({**good_run.output(79), "offset": 41, "number": 4_000, "digest": 5, "source_offset": 40})
    good_run.visible(OUT, 1, 1)
    for row in good_run.batches:
        row["last"] = 40 if (row["topic"], row["partition"]) == (IN, 1) else row["last"]
    next(each for each in good_run.partitions if (each["topic"], each["partition"]) == (IN, 1)).update(
        end=41, high_watermark=41
    )
    good_run.positions[1] = 41
    results = verify(good_run.write())
    assert (results.verdict, results.findings) == ("unknown", [])
    assert "are not in the ledger, the first at partition 1 offset 40" in results.reasons[0].says


def test_a_check_that_raises_is_never_valid(
    spark: SparkSession, good_run: GoodRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("oops")

    broken.__module__ = "verifiers.broken"
    monkeypatch.setattr("harness.registry.checks", lambda: (broken,))
    results = verify(good_run.write())
    assert (results.verdict, results.reasons[0].kind) == ("unknown", "harness-error")
    assert "oops" in results.reasons[0].says


def test_a_missing_table_is_never_valid(spark: SparkSession, good_run: GoodRun) -> None:
    folder = good_run.write()
    (folder / "tables" / "batches.parquet").unlink()
    results = verify(folder)
    assert results.verdict == "unknown"
    assert any(reason.kind == "harness-error" for reason in results.reasons)
