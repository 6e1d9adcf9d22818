"""Breaks of records, readers, inputs and log ends. They need not make sense together."""

from hypothesis import strategies as st

from tests.histories.simulation import PREFIX, Draw, Small
from tests.rundata import TOLD, Row


def one_of(draw: Draw, rows: list[Row]) -> Row | None:
    return draw(st.sampled_from(rows)) if rows else None


def append_input(run: Small, partition: int) -> None:
    """A batch of one record at the end of a partition of the input."""
    end = run.pinned("input", partition)
    run._ends["input", partition] = end["end"]
    run.batch("input", partition, 1, -1)
    del run._ends["input", partition]
    end["end"] = end["high_watermark"] = end["end"] + 1


def drop_output(run: Small, draw: Draw) -> None:
    if row := one_of(draw, run.outputs):
        run.remove_output(row, claimed=draw(st.booleans()))


def unread_output(run: Small, draw: Draw) -> None:
    if row := one_of(draw, run.outputs):
        run.outputs.remove(row)


def double_output(run: Small, draw: Draw) -> None:
    row, after = one_of(draw, run.outputs), one_of(draw, run.outputs)
    if row and after and row["topic"] == after["topic"]:
        run.insert_output({**row, "partition": after["partition"]}, after["offset"], counted=draw(st.booleans()))


def change_output(run: Small, draw: Draw) -> None:
    if row := one_of(draw, run.outputs):
        name = draw(st.sampled_from(("number", "digest", "source_partition", "source_offset", "header", "transaction")))
        if name == "header":
            row.update(dict.fromkeys(TOLD))
        elif name == "number":
            row["number"] = draw(st.sampled_from([None, 5_000, *(each["number"] for each in run.inputs)]))
        elif row[name] is not None:
            row[name] = 1 - row[name] if name == "source_partition" else row[name] + 1


def swap_outputs(run: Small, draw: Draw) -> None:
    one, other = one_of(draw, run.outputs), one_of(draw, run.outputs)
    if one and other and one is not other and one["topic"] == other["topic"]:
        one["offset"], other["offset"] = other["offset"], one["offset"]
        one["partition"], other["partition"] = other["partition"], one["partition"]


def change_input(run: Small, draw: Draw) -> None:
    if row := one_of(draw, run.inputs):
        if draw(st.booleans()):
            row["digest"] += 1
        else:
            run.inputs.remove(row)


def forget_acknowledgement(run: Small, draw: Draw) -> None:
    if row := one_of(draw, run.ledger):
        row.update(offset=None, acknowledged=draw(st.booleans()))
        if draw(st.booleans()):
            run.inputs = [each for each in run.inputs if each["number"] != row["number"]]


def write_strange_input(run: Small, draw: Draw) -> None:
    partition = draw(st.integers(0, 1))
    end = run.pinned("input", partition)
    run.inputs.append(
        {"partition": partition, "offset": end["end"], "number": 7_000 + len(run.inputs), "digest": 3, "grouping": 5}
    )
    append_input(run, partition)


def store_input_again(run: Small, draw: Draw) -> None:
    if row := one_of(draw, run.inputs):
        end = run.pinned("input", row["partition"])
        run.inputs.append({**row, "offset": end["end"]})
        append_input(run, row["partition"])


def change_observed(run: Small, draw: Draw) -> None:
    if row := one_of(draw, run.observed):
        what = draw(st.sampled_from(("digest", "offset", "at")))
        row[what] = row[what] + draw(st.integers(1, 3)) if what != "at" else draw(st.integers(0, 30)) + 0.5


def hide_the_end(run: Small, draw: Draw) -> None:
    end = draw(st.sampled_from(run.partitions))
    end["end"] = max(end["start"], end["end"] - draw(st.integers(1, 3)))


def move_start(run: Small, draw: Draw) -> None:
    end = draw(st.sampled_from(run.partitions))
    start = min(end["end"], end["start"] + draw(st.integers(1, 3)))
    _start_at(run, end["topic"].removeprefix(PREFIX), end["partition"], start)


def delete_records(run: Small, draw: Draw) -> None:
    partition = draw(st.integers(0, 1))
    position, low = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    mark = {"partition": partition, "position": position, "low_watermark": low, "end": 6}
    run.note("nemesis", "records-deleted", fault="0-delete-records", to="behind", partitions=[mark])
    if draw(st.booleans()):
        run.note("worker-0", "position-reset", partition=partition, expected=position, found=low)
    end = run.pinned("input", partition)
    _start_at(run, "input", partition, min(low, end["end"]))


def move_position(run: Small, draw: Draw) -> None:
    partition = draw(st.integers(0, 1))
    run.positions[partition] = max(0, run.positions.get(partition, 0) + draw(st.integers(-2, 2)))


def _start_at(run: Small, topic: str, partition: int, start: int) -> None:
    """Nothing below the log start can be read."""
    run.pinned(topic, partition)["start"] = start
    rows = run.inputs if topic == "input" else run.outputs
    rows[:] = [
        row
        for row in rows
        if (row.get("topic", "input"), row["partition"]) != (topic, partition) or row["offset"] >= start
    ]
