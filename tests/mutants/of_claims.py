"""Mutants of the claim: outputs and committed offsets in other transactions than the pipeline says, or in none."""

from itertools import pairwise

from tests.mutants.catalogue import (
    ABORTS,
    CHAIN,
    OFFSETS,
    ZOMBIE,
    Expected,
    each_of,
    into_another_partition,
    lose,
    move_position,
    mutant,
    of_transaction,
    pick,
    place_of,
    positions_of,
    same_transaction,
    turns,
)
from tests.packing import Place
from tests.rundata import Row, RunData

_ANYWHERE = "tests/mutants/apart.py:ANYWHERE"
_UNNAMED = "tests/mutants/apart.py:UNNAMED"
_NOWHERE = "tests/mutants/apart.py:NOWHERE"


def _data(run: RunData, commit: Row) -> list[Row]:
    """The batch that holds a committed offset, on each replica."""
    return [
        each
        for each in run.batches
        if (each["topic"], each["partition"]) == (OFFSETS, commit["log"])
        and each["control"] is None
        and each["first"] <= commit["offset"] <= each["last"]
    ]


def _bare(run: RunData, commits: list[Row]) -> set[Place]:
    """Let a consumer have committed these offsets, without a transaction."""
    for commit in commits:
        for batch in _data(run, commit):
            batch |= {"producer_id": -1, "producer_epoch": -1, "transactional": False, "marker": None}
        commit |= {"producer_id": -1, "producer_epoch": -1, "transactional": False, "marker": None}
    return {("input", each["partition"], each["position"]) for each in commits}


def _without_transaction(run: RunData, batches: list[Row]) -> set[Place]:
    """Let these batches be of an idempotent producer, and return the places of their records."""
    for batch in batches:
        batch |= {"transactional": False, "marker": None, "fate": "visible"}
    return {
        place_of(row)
        for row in run.outputs
        for batch in batches
        if batch["topic"] == run.prefix + row["topic"]
        and batch["partition"] == row["partition"]
        and batch["first"] <= row["offset"] <= batch["last"]
    }


@mutant(ZOMBIE)
def offset_in_no_transaction(run: RunData) -> Expected:
    """One transaction's offsets were committed by the consumer; its outputs are in the transaction."""
    return {"unprotected": _bare(run, positions_of(run, pick(run)))}


@mutant(ABORTS)
def every_offset_in_no_transaction(run: RunData) -> Expected:
    """All offsets were committed by the consumer, none in a transaction. Nothing has broken yet."""
    visible = [each for each in run.commits if each["fate"] == "visible"]
    return {"unprotected": _bare(run, visible)}


@mutant(ZOMBIE)
def outputs_in_no_transaction(run: RunData) -> Expected:
    """One batch of outputs is not transactional; the offsets of its inputs are in the transaction."""
    row = pick(run)
    there = [each for each in run.log("output", 0) if each["control"] is None]
    return {"unprotected": _without_transaction(run, [b for b in there if b["first"] <= row["offset"] <= b["last"]])}


@mutant(ABORTS)
def every_output_of_a_topic_in_no_transaction(run: RunData) -> Expected:
    """All outputs on one topic are outside of any transaction, the other topic's and the offsets are in them."""
    batches = [
        batch
        for partition in range(3)
        for batch in run.log("stock", partition)
        if batch["control"] is None and batch["fate"] == "visible"
    ]
    return {"unprotected": _without_transaction(run, batches)}


@mutant(ZOMBIE, pipeline="produce")
def batches_of_an_idempotent_producer(run: RunData) -> Expected:
    """Harmless: a pipeline that claims no transactions wrote a partition without any."""
    _without_transaction(run, [each for each in run.log("output", 0) if each["fate"] == "visible"])
    return {}


@mutant(ZOMBIE)
def offset_in_the_transaction_of_another_producer(run: RunData) -> Expected:
    """The offset of a transaction was committed in the transaction of another worker's producer."""
    for commit in turns(run, 0)[5:]:
        later = [each for each in run.commits if each["offset"] > commit["offset"]]
        others = [each for each in later if each["producer_id"] != commit["producer_id"] and each["fate"] == "visible"]
        if others and commit["fate"] == "visible" and len(positions_of(run, commit)) == 1:
            break
    else:
        raise LookupError("no transaction committed a single offset before another producer's")
    whose = min(others, key=lambda each: int(each["offset"]))
    of = {key: whose[key] for key in ("producer_id", "producer_epoch", "marker")}
    for batch in _data(run, commit):
        batch |= of
    commit |= of
    return {"unprotected": {("input", 0, commit["position"])}}


@mutant(ZOMBIE, pipeline="tests/mutants/apart.py:STEPS")
def offset_in_the_transaction_of_another_step(run: RunData) -> Expected:
    """Harmless: a pipeline of several steps committed an offset in another transaction than that of its outputs."""
    offset_in_the_transaction_of_another_producer(run)
    return {}


@mutant(ZOMBIE, pipeline="tests/mutants/apart.py:APART")
def every_offset_apart_and_in_no_transaction(run: RunData) -> Expected:
    """Harmless: all offsets were committed by the consumer, by a pipeline that claims nothing else of them."""
    every_offset_in_no_transaction(run)
    return {}


@mutant(ZOMBIE, pipeline="tests/mutants/apart.py:KEPT")
def offsets_kept_in_a_database(run: RunData) -> Expected:
    """Harmless: a pipeline keeps its offsets in a database, and its group has committed none."""
    run.commits = []
    return {}


@mutant(
    ZOMBIE,
    pipeline=_NOWHERE,
    alone=True,
    unknown="inputs behind all of their partition that have an output have no output",
)
def last_input_of_a_pipeline_without_offsets(run: RunData) -> Expected:
    """Nothing is asserted: a pipeline commits no offsets, so nobody knows whether it read an input without an output
    that is the last one."""
    run.commits, run.positions = [], {}
    run.remove_output(max(each_of(run, "output", 0), key=lambda row: int(row["source_offset"])))
    return {}


@mutant(ZOMBIE, pipeline=_NOWHERE, alone=True)
def lost_from_a_pipeline_without_offsets(run: RunData) -> Expected:
    """A pipeline commits no offsets, and an input has no output where later ones of its partition have theirs."""
    run.commits, run.positions = [], {}
    row = pick(run)
    return lose(run, row)


@mutant(ZOMBIE, pipeline=_ANYWHERE, alone=True)
def output_in_any_partition(run: RunData) -> Expected:
    """Harmless: an output is in another partition than its input, and the pipeline does not say where it must be."""
    into_another_partition(run, pick(run))
    return {}


@mutant(ZOMBIE, pipeline=_ANYWHERE, alone=True, unknown="inputs have no output, but a partition is incomplete")
def lost_from_any_partition_beside_an_unread_one(run: RunData) -> Expected:
    """Nothing is asserted: an output is lost that may have been in any partition, and the reader missed one."""
    run.remove_output(pick(run))
    run.outputs.remove(pick(run, partition=1))
    return {}


@mutant(ZOMBIE, pipeline=_UNNAMED, alone=True)
def position_below_outputs_that_name_no_input(run: RunData) -> Expected:
    """Harmless: the group's position is one below the end of a partition, and outputs do not say of which inputs they
    are, so that none is known to be above it."""
    move_position(run, 1, -1)
    return {}


@mutant(ZOMBIE, pipeline=_UNNAMED, alone=True)
def output_missing_that_names_no_input(run: RunData) -> Expected:
    """Harmless: outputs do not say of which inputs they are, so the log alone is judged, and it lacks nothing."""
    run.remove_output(pick(run))
    return {}


@mutant(ZOMBIE)
def outputs_in_no_transaction_of_one_that_was_given_up(run: RunData) -> Expected:
    """A worker gave a transaction up, of which some outputs are in no transaction and the others were committed."""
    row = pick(run)
    run.outcome(row)["type"] = "fail"
    rows = {place_of(each) for each in of_transaction(run, row)}
    expected = outputs_in_no_transaction(run)
    return {**expected, "aborted-read": rows - expected["unprotected"]}


@mutant(ABORTS)
def offsets_committed_at_the_beginning(run: RunData) -> Expected:
    """Each partition's first commit has the offset at its end: a worker that dies would lose all inputs after it."""
    expected: set[Place] = set()
    for partition in sorted({each["partition"] for each in run.commits}):
        first, *others = [each for each in turns(run, partition) if each["fate"] == "visible"]
        for each in (first, *others):
            each["position"] = run.positions[partition]
        expected |= {
            place_of(row)
            for row in run.outputs
            if row["source_partition"] == partition and not same_transaction(row, first)
        }
    return {"offset-divergence": expected}


@mutant(ZOMBIE)
def offset_ahead_of_its_outputs(run: RunData) -> Expected:
    """A transaction committed the offset of the worker's next one as well: a failure between them loses inputs."""
    mine = [each for each in turns(run, 0) if each["fate"] == "visible"]
    early, late = next((one, other) for one, other in pairwise(mine[3:]) if one["worker"] == other["worker"])
    early["position"] = late["position"]
    return {"offset-divergence": {place_of(row) for row in each_of(run, "output", 0) if same_transaction(row, late)}}


@mutant(CHAIN)
def offset_in_no_transaction_of_the_first_service(run: RunData) -> Expected:
    """The first service of a chain committed one transaction's offsets with its consumer."""
    return {"unprotected": _bare(run, positions_of(run, turns(run, 2)[4]))}
