"""Mutants of the witnesses: a history that does not tell all, a log that moved, replicas that cannot be compared."""

from tests.mutants.catalogue import ABORTS, ZOMBIE, Expected, mutant, pick
from tests.rundata import RunData

_NUMBERED = "n"


def numbered(run: RunData) -> None:
    """Fix the numbers of the events, so that one that is taken out leaves a gap."""
    run.events = run._told()
    run.numbered = True


@mutant(ABORTS, alone=True, unknown="worker-1 reported nothing")
def worker_without_a_history(run: RunData) -> Expected:
    """Nothing is asserted: the history has no event that a worker reported; its outputs are in the log."""
    run.events = [each for each in run.events if each["source"] != "worker-1" or each["event"] in ("started", "exited")]
    return {}


@mutant(ABORTS, alone=True, unknown="worker-1 never started")
def worker_of_which_no_line_tells(run: RunData) -> Expected:
    """Nothing is asserted: the history has no line of a worker; its outputs are in the log."""
    run.events = [each for each in run.events if each["source"] != "worker-1"]
    return {}


@mutant(ABORTS, alone=True, unknown="is in the log, but was never begun")
def transaction_of_which_no_line_tells(run: RunData) -> Expected:
    """Nothing is asserted: the history does not have a transaction whose outputs and offsets are in the log."""
    row = pick(run, "stock")
    mine = (f"worker-{row['worker']}", row["incarnation"], row["transaction"])
    run.events = [
        each
        for each in run.events
        if each["event"] not in ("begin", "invoke", "outcome")
        or (each["source"], each["incarnation"], each["transaction"]) != mine
    ]
    return {}


@mutant(ABORTS, alone=True, unknown="1 events of worker-0.1 are missing")
def event_lost_on_its_way(run: RunData) -> Expected:
    """Nothing is asserted: an event of a worker is missing, by its numbers."""
    numbered(run)
    run.events.remove(next(each for each in run.events[40:] if each["source"] == "worker-0" and _NUMBERED in each))
    return {}


@mutant(ABORTS, alone=True, unknown="1 events of generator are missing")
def event_of_the_generator_lost(run: RunData) -> Expected:
    """Nothing is asserted: an event of the load generator is missing, by its numbers."""
    numbered(run)
    run.events.remove(next(each for each in run.events if each["source"] == "generator" and _NUMBERED in each))
    return {}


@mutant(ABORTS, alone=True, unknown="1 events of worker-0.1 are there twice")
def event_told_twice(run: RunData) -> Expected:
    """Nothing is asserted: an event of a worker is there twice, by its numbers."""
    numbered(run)
    place = next(
        place
        for place, each in enumerate(run.events[40:], 40)
        if each["source"] == "worker-0" and each["event"] == "invoke"
    )
    run.events.insert(place, dict(run.events[place]))
    return {}


@mutant(ZOMBIE, alone=True, unknown="output/0")
def high_watermark_moved(run: RunData) -> Expected:
    """Nothing is asserted: a partition's end and high watermark moved while it was read."""
    end = run.pinned("output", 0)
    run.moved.append(f"{end['topic']}/0")
    return {}


@mutant(ZOMBIE)
def replica_with_other_bytes_under_equal_headers(run: RunData) -> Expected:
    """On one replica the bytes of a batch do not fit its checksum, which is that of the other replicas."""
    row = pick(run)
    batch = next(
        each
        for each in run.log("output", 0)
        if each["first"] <= row["offset"] <= each["last"] and each["broker"] != run.pinned("output", 0)["leader"]
    )
    batch["intact"] = False
    return {"replica-divergence": {("output", 0, batch["first"])}}


@mutant(ZOMBIE, unknown="the replica of op-pack-output/0 on broker2 is not in the ISR")
def replica_outside_the_isr_lags(run: RunData) -> Expected:
    """Nothing is asserted: a replica lags behind; it is not in sync, so it does not have to be whole."""
    end = run.pinned("output", 0)
    late = next(each for each in end["replicas"] if each != end["leader"])
    end["isr"] = [each for each in end["isr"] if each != late]
    mine = [each for each in run.log("output", 0) if each["broker"] == late]
    gone = sorted(mine, key=lambda each: int(each["first"]))[-4:]
    run.batches = [each for each in run.batches if each not in gone]
    return {}
