"""Damage mutants: a folder that is not whole gives `unknown` with the reason, never a verdict on the system.

The first ones leave the manifest as it was; the others are what a careless hand would leave, sealed again.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from onceproof.verifiers.verify import verify
from tests.mutants.catalogue import RUNS
from tests.rundata import RunData

Damage = Callable[[Path], str]
DAMAGES: dict[str, Damage] = {}


def damage(change: Damage) -> Damage:
    """Put a function into the list: it damages a folder, and returns what the verdict's reason must say."""
    DAMAGES[change.__name__.replace("_", "-")] = change
    return change


def survivors(work: Path) -> Iterator[tuple[str, str, str]]:
    """Each damage with what was said of it, and what is wrong with that (empty: nothing)."""
    for name, change in DAMAGES.items():
        folder = work / name
        shutil.copytree(RUNS / "zombie", folder)
        wanted = change(folder)
        results = verify(folder)
        says = [reason.says for reason in results.reasons]
        right = results.verdict == "unknown" and any(wanted in said for said in says)
        yield name, wanted, "" if right else f"{results.headline}: {says}"


@damage
def outputs_missing(folder: Path) -> str:
    shutil.rmtree(folder / "tables" / "outputs.parquet")
    return "tables/outputs.parquet/topic=output"


@damage
def batches_missing(folder: Path) -> str:
    (folder / "tables" / "batches.parquet").unlink()
    return "tables/batches.parquet is missing"


@damage
def ledger_cut(folder: Path) -> str:
    [ledger, *_] = sorted(folder.glob("ledger/sent-*.parquet"))
    ledger.write_bytes(ledger.read_bytes()[:-100])
    return f"ledger/{ledger.name} is not what it was"


@damage
def history_cut(folder: Path) -> str:
    lines = (folder / "history.jsonl").read_text().splitlines(keepends=True)
    (folder / "history.jsonl").write_text("".join(lines[:-20]))
    return "history.jsonl is not what it was"


@damage
def history_in_another_order(folder: Path) -> str:
    first, *lines = (folder / "history.jsonl").read_text().splitlines(keepends=True)
    (folder / "history.jsonl").write_text("".join([first, *reversed(lines)]))
    return "history.jsonl is not what it was"


@damage
def partition_lost_from_collect(folder: Path) -> str:
    run = RunData.read(folder)
    run.outputs = [row for row in run.outputs if row["partition"] != 1]
    return _seal(run, folder, "visible in the log, the reader saw 0")


@damage
def ledger_short(folder: Path) -> str:
    run = RunData.read(folder)
    del run.ledger[-50:]
    return _seal(run, folder, "50 records of")


@damage
def log_start_moved(folder: Path) -> str:
    run = RunData.read(folder)
    run.pinned("input", 0)["start"] = 30
    run.inputs = [row for row in run.inputs if row["partition"] != 0 or row["offset"] >= 30]
    return _seal(run, folder, "starts at 30: no fault deleted its records")


def _seal(run: RunData, folder: Path, says: str) -> str:
    shutil.rmtree(folder)
    run.write(folder)
    return says
