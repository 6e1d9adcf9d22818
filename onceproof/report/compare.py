"""Compare two runs: their verdicts, plans, counts, versions, and how long the pipeline took to commit after a fault.

    compare.rows(Path("runs/a"), Path("runs/b"))     [Row(what="verdict", before="valid", after="invalid: lost"), …]

Only what differs is returned, unless everything is asked for.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onceproof.harness.model import plan
from onceproof.harness.record import history, results
from onceproof.report import timeline

_ABSENT = "—"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One property of two runs, as texts."""

    what: str
    before: str
    after: str

    @property
    def differs(self) -> bool:
        """Whether the runs differ in it."""
        return self.before != self.after


def rows(before: Path, after: Path, *, everything: bool = False) -> list[Row]:
    """Return the properties in which two runs differ, or all.

    Raises BadInput when a folder is no run's folder, or has no results.
    """
    left, right = dict(_properties(before)), dict(_properties(after))
    found = [
        Row(what=what, before=left.get(what, _ABSENT), after=right.get(what, _ABSENT)) for what in {**left, **right}
    ]
    return [row for row in found if everything or row.differs]


def _properties(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the properties of a run, each with its value in words."""
    judged = results.read(folder / "results.json")
    planned = plan.read(folder / "plan.json")
    yield "scenario", judged.name
    yield "seed", str(judged.seed)
    yield "verdict", judged.headline
    for finding in judged.findings:
        yield f"finding {finding.cls}: {finding.says}", f"× {finding.count:,}"
    for reason in judged.reasons:
        yield f"reason {reason.kind}", reason.says
    for check in judged.checks:
        yield f"check {check.name}", check.says
    for name, count in judged.counts.items():
        yield f"count of {name.replace('_', ' ')}", f"{count:,}"
    for name, version in judged.versions.items():
        yield f"version of {name}", version
    yield from _of_plan(planned)
    for span in timeline.faults(history.read(folder / "history.jsonl")):
        yield f"fault {span.id}", f"on {span.note or 'no node'}, for {span.end - span.begin:.1f} s"
        yield f"first commit after {span.id}", _seconds(span.first_commit_s)


def _of_plan(planned: plan.Plan) -> Iterator[tuple[str, str]]:
    raw = json.loads(planned.to_json())
    for table in ("cluster", "workload"):
        yield from _flat(f"{table}.", raw["scenario"].get(table) or {})
    for fault in raw["faults"]:
        yield (
            f"plan of fault {fault['id']}",
            ", ".join(
                f"{key} = {json.dumps(value)}" for key, value in fault.items() if value is not None and key != "id"
            ),
        )


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", str(value)


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f} s"
