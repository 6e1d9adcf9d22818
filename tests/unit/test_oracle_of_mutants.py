"""The second oracle judges every mutant as it must be judged: findings with their places, reasons, and the verdict.

No Spark: the verifiers' half is `tests/mutants`. A mutant of which nothing can be known must have a reason that says
the same of the same place, a harmless one none.
"""

import gc
from collections.abc import Iterator
from itertools import groupby

import pytest

import tests.mutants.run  # noqa: F401  fills the catalogue
from onceproof.harness.base.memory import collector_paused
from tests.agreement import NoSuchLog, agree
from tests.mutants.catalogue import MUTANTS, UNREAL, Mutant
from tests.oracle import Reason, Verdict, judge
from tests.oracle.logs import logs
from tests.rundata import RunData

# What the text for which a mutant looks says of the oracle's rule, and where it has the place.
_SAYS = {
    "open-offsets": "committed offsets are in transactions that are open",
    "start": "{about}{:} starts at",
    "silent": "{about} reported nothing",
    "never-started": "{about} never started",
    "never-begun": "is in the log, but was never begun",
    "no-end": "the history is incomplete",
    "events-missing": "events of {about} are missing",
    "events-twice": "events of {about} are there twice",
    "moved": "{about}",
    "not-in-sync": "the replica of op-pack-{about} is not in the ISR",
    "missing": "inputs have no output, but a partition is incomplete",
    "in-part": "inputs were never acknowledged and are not known to be in the log",
    "visible": "{about}: {:} visible in the log, the reader saw",
    "offsets": "{about}: {:} offsets, the log's batches account for",
    "last-stable-offset": "{about}: the LSO {:} is below the high watermark",
    "damaged": "{topic}",
    "open": "is still open in op-pack-{about}",
    "nobody-watched": "vacuous: the live observer saw nothing of op-pack-{about}",
    "not-consumed": "inputs {:} have no output",
    "strangers": "records of op-pack-{about} are not in the ledger",
    "foreign": "{about} outputs name offsets of the input topic that the ledger does not have",
    "nobody-assigned": "no worker reported that the group assigned it partition {partition}",
    "not-assigned": "committed offsets without having reported an assignment",
    "undecided": "transactions cannot be judged: compaction removed",
    "compacted": "the group's log was compacted",
    "position": "the last one in its log is",
    "group-not-stable": "below the high watermark",
}
# The text of this mutant is of the output that is missing; the place is that of the partition that the reader missed.
_OF_THE_PARTITION = "the table of a partition is incomplete: op-pack-"


@pytest.fixture(autouse=True)
def _many_rows() -> Iterator[None]:
    """Runs are many small dictionaries without cycles: looking for garbage among them takes half of the time."""
    with collector_paused():
        yield


def test_the_second_oracle_judges_every_mutant_as_expected() -> None:
    by_run = sorted(MUTANTS.values(), key=lambda each: each.run)
    wrong = []
    for _, alike in groupby(by_run, key=lambda each: each.run):
        for mutant in alike:
            if mutant.name not in UNREAL:
                wrong += list(_differences(mutant))
        gc.collect()
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", UNREAL)
def test_what_is_left_out_is_what_no_log_can_show(name: str) -> None:
    run = RunData()
    run.__dict__.update(MUTANTS[name].make()[0].__dict__)
    with pytest.raises(NoSuchLog):
        agree(run)


def _differences(mutant: Mutant) -> Iterator[str]:
    run, expected = mutant.make()
    verdict = judge(run)
    for cls in sorted({*expected, *verdict.findings}):
        should, found = expected.get(cls, set()), verdict.findings.get(cls, set())
        if should != found:
            yield f"{mutant.name}: {cls}: missed {sorted(should - found)[:5]}, too much {sorted(found - should)[:5]}"
    word = "invalid" if any(expected.values()) else "unknown" if mutant.unknown else "valid" if mutant.harmless else ""
    if word and verdict.word != word:
        yield f"{mutant.name}: {verdict.word} and not {word}: {sorted(map(str, verdict.reasons))}"
    if mutant.unknown and not _says(mutant.unknown, verdict):
        yield f"{mutant.name}: no reason like {mutant.unknown!r}: {sorted(map(str, verdict.reasons))}"
    if different := _fates(run):
        yield f"{mutant.name}: the batches' headers say something else than the column `fate`: {different[:3]}"


def _says(wanted: str, verdict: Verdict) -> bool:
    if wanted.startswith(_OF_THE_PARTITION):
        place = wanted.removeprefix(_OF_THE_PARTITION)
        return {("missing", True), ("visible", True)} <= {
            (each.rule, each.rule == "missing" or each.about == place) for each in verdict.reasons
        }
    return any(_fits(each, wanted) for each in verdict.reasons)


def _fits(reason: Reason, wanted: str) -> bool:
    """Whether a part of a verifier's reason is about what this one of the oracle is about."""
    topic, _, partition = reason.about.rpartition("/")
    text = _SAYS[reason.rule].replace("{:}", "\0")
    parts = text.format(about=reason.about, topic=topic, partition=partition).split("\0")
    return all(part.strip() in wanted or wanted in part for part in parts)


def _fates(run: RunData) -> list[tuple[str, int, int]]:
    """Batches of which the column `fate` says something else than the oracle derives from their headers."""
    held = logs(run)
    leaders = {(each["topic"], each["partition"]): each["leader"] for each in run.partitions}
    return [
        place
        for row in run.batches
        if leaders.get((row["topic"], row["partition"])) == row["broker"]
        and (log := held[row["topic"].removeprefix(run.prefix), row["partition"]])
        and (batch := log.at(row["first"])) is not None
        and batch.fate != row["fate"]
        and (place := (log.topic, log.partition, batch.first))
    ]
