"""Breaks of the logs' batches and markers, of the coordinators' decisions, of committed offsets and of the history."""

from hypothesis import strategies as st

from tests.histories.records import one_of
from tests.histories.simulation import OFFSETS, PREFIX, Draw, Small
from tests.rundata import Row


def drop_batch(run: Small, draw: Draw) -> None:
    if batch := one_of(draw, run.batches):
        everywhere = draw(st.booleans())
        run.batches = [
            each
            for each in run.batches
            if each is not batch
            and not (everywhere and all(each[key] == batch[key] for key in ("topic", "partition", "first")))
        ]


def change_batch(run: Small, draw: Draw) -> None:
    if batch := one_of(draw, run.batches):
        if draw(st.booleans()):
            batch["crc"] += 1
        else:
            for each in run.batches:
                if all(each[key] == batch[key] for key in ("topic", "partition", "first")) and each["producer_id"] >= 0:
                    each["producer_epoch"] += 1


def hang(run: Small, draw: Draw) -> None:
    run.open_transactions.append(
        {
            "topic": PREFIX + run.topics[0],
            "partition": draw(st.integers(0, 1)),
            "producer_id": 1,
            "producer_epoch": 0,
            "start_offset": draw(st.integers(0, 3)),
            "known_as": draw(st.sampled_from((None, "worker-0"))),
        }
    )


def change_history(run: Small, draw: Draw) -> None:
    if event := one_of(draw, [e for e in run.events if e["event"] in ("invoke", "outcome", "assigned")]):
        if event["event"] == "outcome" and draw(st.booleans()):
            event["type"] = draw(st.sampled_from(("ok", "fail", "info")))
        else:
            run.events.remove(event)


def stop_before_commit(run: Small, draw: Draw) -> None:
    """A worker stood before its commit for a fault; it may never have gone on."""
    if event := one_of(draw, [e for e in run.events if e["event"] == "invoke"]):
        mine = {key: event[key] for key in ("incarnation", "transaction")} | {"fault": f"{len(run.events)}-kill-worker"}
        for told in ("at-phase", "went-on")[: draw(st.integers(1, 2))]:
            run.note(event["source"], told, phase="before-commit", count=event["transaction"], **mine)


def _everywhere(run: Small, batch: Row) -> list[Row]:
    """A batch on each replica."""
    same = ("topic", "partition", "first", "control")
    return [each for each in run.batches if all(each[key] == batch[key] for key in same)]


def _markers(run: Small) -> list[Row]:
    return [each for each in run.batches if each["control"]]


def _data(run: Small) -> list[Row]:
    return [each for each in run.batches if each["control"] is None and each["transactional"]]


def _prepared(run: Small) -> list[Row]:
    return [each for each in run.states if each["state"].startswith("Prepare")]


def turn_marker(run: Small, draw: Draw) -> None:
    """A marker is of the other kind; the readers may or may not have seen what that gives."""
    if marker := one_of(draw, _markers(run)):
        for each in _everywhere(run, marker):
            each["control"] = "abort" if each["control"] == "commit" else "commit"
        topic = marker["topic"].removeprefix(PREFIX)
        if topic != OFFSETS and draw(st.booleans()):
            run.outputs = [
                row
                for row in run.outputs
                if (row["topic"], row["partition"], row["worker"])
                != (topic, marker["partition"], marker["producer_id"])
                or row["offset"] > marker["first"]
            ]


def lose_marker(run: Small, draw: Draw) -> None:
    """A marker was never written; not in a topic between, whose offsets the outputs and the second service know."""
    last = {OFFSETS, *(f"{PREFIX}{topic}" for topic in run.topics)}
    if marker := one_of(draw, [each for each in _markers(run) if each["topic"] in last]):
        gone = [id(each) for each in _everywhere(run, marker)]
        run.batches = [each for each in run.batches if id(each) not in gone]
        if marker["topic"] != OFFSETS:
            run._shift(marker["topic"].removeprefix(PREFIX), marker["partition"], marker["first"] + 1, -1)


def repeat_marker(run: Small, draw: Draw) -> None:
    """A marker was written once more, at the end of its partition: as it was, or of another kind or epoch."""
    if marker := one_of(draw, [each for each in _markers(run) if each["topic"] != OFFSETS]):
        end = run.pinned(marker["topic"].removeprefix(PREFIX), marker["partition"])
        other = draw(st.sampled_from(({}, {"control": "abort"}, {"producer_epoch": 3}, {"coordinator_epoch": -1})))
        for each in _everywhere(run, marker):
            run.batches.append({**each, "first": end["end"], "last": end["end"], **other})
        end["end"] = end["high_watermark"] = end["end"] + 1


def take_over(run: Small, draw: Draw) -> None:
    """From some marker on, those of its producer are of a newer coordinator."""
    if marker := one_of(draw, _markers(run)):
        for each in run.batches:
            if each["control"] and each["producer_id"] == marker["producer_id"] and each["topic"] == marker["topic"]:
                each["coordinator_epoch"] = int(each["first"] >= marker["first"])


def change_decision(run: Small, draw: Draw) -> None:
    if decision := one_of(draw, _prepared(run)):
        what = draw(st.sampled_from(("gone", "kind", "epoch", "partition", "twice")))
        if what == "gone":
            run.states.remove(decision)
        elif what == "kind":
            decision["state"] = "PrepareAbort" if decision["state"] == "PrepareCommit" else "PrepareCommit"
        elif what == "epoch":
            decision["producer_epoch"] += 1
        elif what == "partition":
            decision["partitions"] = decision["partitions"][1:]
        else:
            for each in run.states:
                each["offset"] *= 2
            run.states.append({**decision, "offset": decision["offset"] + 1})


def forget_the_end(run: Small, draw: Draw) -> None:
    """The last records of a coordinator are not there: its decision may still be carried out."""
    if row := one_of(draw, run.states):
        mine = [each for each in run.states if each["log"] == row["log"]]
        gone = {id(each) for each in mine[-draw(st.integers(1, 2)) :]}
        run.states = [each for each in run.states if id(each) not in gone]


def shift_sequence(run: Small, draw: Draw) -> None:
    """From a batch on, the sequence numbers of its producer leave two out, or begin with those of the batch before."""
    if batch := one_of(draw, [each for each in _data(run) if each["topic"] != OFFSETS]):
        same = ("topic", "partition", "broker", "producer_id", "producer_epoch")
        lane = [each for each in _data(run) if all(each[key] == batch[key] for key in same)]
        before = [each["sequence"] for each in lane if each["first"] < batch["first"]]
        by = max(before) - batch["sequence"] if before and draw(st.booleans()) else 2
        for each in _everywhere(run, batch):
            run._shift_sequences(each, by)
            each["sequence"] += by


def leave_transaction(run: Small, draw: Draw) -> None:
    """A batch is in no transaction, or in that of another producer."""
    if batch := one_of(draw, _data(run)):
        if draw(st.booleans()):
            bare = {"transactional": False} | ({"producer_id": -1, "producer_epoch": -1} if _bare(batch) else {})
            changed = bare
        else:
            changed = {"producer_id": draw(st.sampled_from(sorted({each["producer_id"] for each in _data(run)})))}
        for each in _everywhere(run, batch):
            each.update(changed)


def _bare(batch: Row) -> bool:
    return bool(batch["topic"] == OFFSETS)


def change_commit(run: Small, draw: Draw) -> None:
    if commit := one_of(draw, run.commits + run.other_commits):
        if draw(st.booleans()):
            commit["position"] = max(0, commit["position"] + draw(st.sampled_from((-1, 1))))
        else:
            own = run.commits if commit in run.commits else run.other_commits
            own.remove(commit)


def write_position_late(run: Small, draw: Draw) -> None:
    """A member commits a position after all others, in a transaction of its own."""
    if run.shape.workload == "chain":
        return  # the oracles differ where what a first service wrote is above the group's position at the same time
    if commit := one_of(draw, run.commits):
        end = run.internal[0]
        last = max(each["last"] for each in run.batches if each["topic"] == OFFSETS)
        worker = commit["worker"]
        mine = [each for each in run.states if each["producer_id"] == worker]
        like = next(each for each in run.batches if each["topic"] == OFFSETS and each["control"] is None)
        epoch = mine[-1]["producer_epoch"] if mine else 0
        version = mine[-1]["version"] if mine else 0
        own = {
            "producer_id": worker,
            "producer_epoch": epoch,
            "transactional": True,
            "first": last + 1,
            "last": last + 1,
        }
        ends = {"control": "commit", "coordinator_epoch": 9, "producer_epoch": epoch + (version == 2), "sequence": -1}
        for each in _everywhere(run, like):
            data = {**each, **own}
            run.batches += [data, {**data, "first": last + 2, "last": last + 2, **ends}]
        end["end"] = end["high_watermark"] = last + 3
        run.commits.append({**commit, "offset": last + 1})
        run.decide({"producer_id": worker, "producer_epoch": epoch + (version == 2)}, [f"{OFFSETS}/0"])
        if draw(st.booleans()):
            run.positions[commit["partition"]] = commit["position"]
