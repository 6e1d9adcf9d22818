"""Judges every mutant and prints the table. Exit status 1 when one survives.

python -m tests.mutants.run [FILE]        the table, also into a Markdown file
"""

import re
import sys
import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from pyspark.sql import SparkSession

from onceproof.verifiers.evidence import spark as sessions
from tests.mutants import (
    damage,
    of_chain,
    of_claims,
    of_coordinators,
    of_histories,
    of_infos,
    of_ledger,
    of_logs,
    of_markers,
    of_memberships,
    of_order,
    of_positions,
    of_records,
    of_resets,
    of_second_services,
    of_sequences,
    of_totals,
    of_transactions,
    of_twice,
    of_witnesses,
    of_zombies,
)
from tests.mutants.catalogue import MUTANTS, Expected, Mutant
from tests.packing import Found, judge, moved_text, pack

# Importing them fills the catalogue.
MODULES = (
    of_records,
    of_markers,
    of_memberships,
    of_second_services,
    of_witnesses,
    of_order,
    of_transactions,
    of_zombies,
    of_positions,
    of_logs,
    of_claims,
    of_coordinators,
    of_sequences,
    of_histories,
    of_infos,
    of_ledger,
    of_resets,
    of_totals,
    of_chain,
    of_twice,
)
_NUMBER = re.compile(r"\d+")
_HEAD = """# Mutants

Each mutant changes a recorded run of a real cluster (tests/mutants/runs) in one way. The verifiers must then find
exactly the classes and coordinates that the mutant names, and nothing else. `make mutants` judges them and writes this
table. A mutant with "nothing" is a change that must not be taken for an anomaly. The counts are findings: one for a
lost input, two for the copies of a duplicate.

"""


class Packs:
    """All mutants in a few folders of at most so many, made once and judged as often as wanted."""

    def __init__(self, work: Path, *, most: int = sys.maxsize) -> None:
        self.made: list[tuple[Path, list[tuple[Mutant, Expected]]]] = []
        for _, group in groupby(sorted(MUTANTS.values(), key=lambda each: (*_pack(each), each.name)), key=_pack):
            for alike in _told_apart(list(group)):
                parts = -(-len(alike) // most)
                for part in range(parts):
                    self._make(alike[part::parts], work / str(len(self.made)))  # of each kind some: names say the kind

    def _make(self, mutants: Sequence[Mutant], folder: Path) -> None:
        made = [(each, *each.make()) for each in mutants]
        pack([run for _, run, _ in made]).write(folder)
        self.made.append((folder, [(each, wanted) for each, _, wanted in made]))

    def each(self) -> range:
        return range(len(self.made))

    def judge(self, spark: SparkSession, pack: int) -> list[tuple[Mutant, Expected, Found]]:
        folder, expected = self.made[pack]
        found = judge(folder, spark, len(expected))
        return [(*mutant, each) for mutant, each in zip(expected, found, strict=True)]


def _pack(mutant: Mutant) -> tuple[str, str, bool, bool]:
    """Runs of one pipeline can be judged together, but for those that must be alone; harmless ones, and those with a
    reason, only among themselves: nobody says of which run in a folder a reason is."""
    return (mutant.name if mutant.alone else mutant.workload), mutant.mode, mutant.harmless, bool(mutant.unknown)


def _told_apart(mutants: list[Mutant]) -> list[list[Mutant]]:
    """Mutants of a pack, divided so that a reason is of one of them: numbers aside, no two have the same text."""
    parts: list[dict[str, Mutant]] = []
    for each in mutants:
        text = _NUMBER.sub("#", each.unknown)
        free = (part for part in parts if not any(text in other or other in text for other in part))
        part = next(free, None) if text else next(iter(parts), None)
        if part is None:
            parts.append(part := {})
        part[text or each.name] = each
    return [list(part.values()) for part in parts]


def survivors(judged: Sequence[tuple[Mutant, Expected, Found]]) -> list[tuple[Mutant, Expected, Found]]:
    """The mutants that are not found as they should be: another class, another place, something where nothing is, no
    reason where something is not known, or a reason where all is well."""
    reasons = [each for found in judged for each in found[2].reasons if " × " not in each]
    return [
        each
        for case, each in enumerate(judged)
        if each[2].findings != each[1] or not _rightly_known(each[0], case, reasons)
    ]


def _rightly_known(mutant: Mutant, case: int, reasons: Sequence[str]) -> bool:
    if mutant.unknown:
        wanted = moved_text(mutant.unknown, case)
        return any(wanted in each for each in reasons)
    return not (mutant.harmless and reasons)


def main(arguments: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as work:
        packs = Packs(Path(work))
        judged_by_pack = [packs.judge(sessions.session(), pack) for pack in packs.each()]
        damaged = list(damage.survivors(Path(work) / "damage"))
    sessions.stop()
    wrong = [each for one in judged_by_pack for each in survivors(one)]
    judged = [each for one in judged_by_pack for each in one]
    table = _table(judged, damaged, {each.name for each, _, _ in wrong})
    for name in arguments:
        Path(name).write_text(_HEAD + table)
    print(table)  # noqa: T201
    for each, wanted, found in wrong:
        print(f"{each.name}: wanted {wanted} {each.unknown}, found {found}"[:3000])  # noqa: T201
    bad = [f"{name}: {says}" for name, _, says in damaged if says]
    print("\n".join(bad), f"\n{len(judged) + len(damaged)} mutants, {len(wrong) + len(bad)} survived")  # noqa: T201
    return 1 if wrong or bad else 0


def _table(
    judged: Sequence[tuple[Mutant, Expected, Found]], damaged: Sequence[tuple[str, str, str]], survived: set[str]
) -> str:
    """All mutants in Markdown."""
    lines = ["| mutant | run | what was changed | expected and found |", "|---|---|---|---|"]
    for each, wanted, _ in judged:
        says = ", ".join(f"{cls} × {len(places)}" for cls, places in sorted(wanted.items())) or "nothing"
        says = f"unknown: … {each.unknown} …" if each.unknown else says
        mark = "**SURVIVED** " if each.name in survived else ""
        lines.append(f"| {each.name} | {each.run} | {each.about} | {mark}{says} |")
    for name, reason, wrong in damaged:
        mark = "**SURVIVED** " if wrong else ""
        lines.append(f"| {name} | zombie | the folder is damaged | {mark}unknown: … {reason} … |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
