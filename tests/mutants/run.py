"""Judges every mutant and prints the table. Exit status 1 when one survives.

    python -m tests.mutants.run
"""

import sys
import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from pyspark.sql import SparkSession

from tests.mutants import of_logs, of_records, of_transactions
from tests.mutants.catalogue import MUTANTS, Expected, Mutant
from tests.packing import Found, judge, pack
from tests.rundata import RunData
from verifiers import spark as sessions

MODULES = (of_records, of_transactions, of_logs)  # importing them fills the catalogue
# Runs of one pipeline can be judged together.
PACKS = {"zombie": "copy", "deletes": "copy", "aborts": "fan-out"}


class Packs:
    """All mutants in a few folders, made once and judged as often as wanted."""

    def __init__(self, work: Path) -> None:
        self.mutants = sorted(MUTANTS.values(), key=lambda each: (*_pack(each), each.name))
        self._made: list[tuple[Path, list[tuple[Mutant, Expected]]]] = []
        for key, group in groupby(self.mutants, key=_pack):
            runs: list[RunData] = []
            expected = []
            for each in group:
                run, wanted = each.make()
                runs.append(run)
                expected.append((each, wanted))
            self._made.append((pack(runs).write(work / "-".join(key)), expected))

    def each(self) -> range:
        return range(len(self._made))

    def judge(self, spark: SparkSession, pack: int) -> list[tuple[Mutant, Expected, Found]]:
        folder, expected = self._made[pack]
        found = judge(folder, spark, len(expected))
        return [(*mutant, each) for mutant, each in zip(expected, found, strict=True)]


def _pack(mutant: Mutant) -> tuple[str, str]:
    return PACKS[mutant.run], mutant.mode


def survivors(judged: Sequence[tuple[Mutant, Expected, Found]]) -> list[tuple[Mutant, Expected, Found]]:
    """The mutants that are not found as they should be: another class, another place, or something where nothing is."""
    return [each for each in judged if each[2].findings != each[1]]


def main() -> int:
    with tempfile.TemporaryDirectory() as work:
        packs = Packs(Path(work))
        judged = [each for pack in packs.each() for each in packs.judge(sessions.session(), pack)]
    wrong = survivors(judged)
    for each, wanted, found in judged:
        mark = "WRONG" if (each, wanted, found) in wrong else "ok"
        says = ", ".join(f"{cls} × {len(places)}" for cls, places in wanted.items()) or "nothing"
        print(f"{mark:6}{each.name:40}{says:28}{each.about}")  # noqa: T201
    for each, wanted, found in wrong:
        print(f"\n{each.name}\n  wanted {wanted}\n  found  {found}"[:3000])  # noqa: T201
    print(f"\n{len(judged)} mutants, {len(wrong)} not found as they should be")  # noqa: T201
    sessions.stop()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
