"""The catalogue: every scenario with its pipeline, faults, claim, expected verdict, and the time it last took.

onceproof list                                       on the terminal
onceproof list --page FILE --times runs/all-…       as a page, with what that folder's runs took and met
"""

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onceproof.harness.base import paths
from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import plan, registry, scenario
from onceproof.harness.record import history
from onceproof.harness.record.events import FaultTarget

_COLUMNS = "| scenario | what it shows | pipeline | faults | expected | s |\n|---|---|---|---|---|---|"
_HEAD = """# Catalogue

Every scenario that comes with onceproof (`onceproof list --page FILE --times FOLDER` writes this page). Time: seconds
from the run before to the verdict, on a cluster that was up; the median where it ran more than once. W and N number the
pipelines, those that are right and those that are broken on purpose.
"""
_MET = """
## What a worker meets that was taken for dead

Stopped at a phase of its transaction, and resumed when its group had given its partitions to another (past its
session), when its coordinator had aborted its transaction (past that), or both; or its transactional id was taken. The
first error of that transaction as the client names it, and in how many runs.

| scenario | phase | past | met | runs |
|---|---|---|---|---|"""


@dataclass(frozen=True, kw_only=True)
class Entry:
    folder: str
    name: str
    pipeline: str
    faults: str
    expected: str
    about: str


def entries() -> list[Entry]:
    """All of them, folder by folder."""
    found = []
    root = paths.scenarios_dir()
    for path in sorted(root.rglob("*.toml"), key=lambda path: (path.parent != root, path)):
        each = scenario.load(path)
        rows = ", ".join(registry.workload(each.workload.name).rows)
        faults = [fault.name for fault in each.faults] + (["drawn from the seed"] if each.random else [])
        found.append(
            Entry(
                folder=str(path.parent.relative_to(root)),
                name=each.name,
                pipeline=f"{each.workload.name} ({rows})" if rows else each.workload.name,
                faults=", ".join(faults) or "none",
                expected=", ".join(each.expect.findings) or each.expect.expected_verdict,
                about=" ".join(each.about.split()),
            )
        )
    return found


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What the runs of a folder took, scenario by scenario in seconds; and of each fault whose target was taken for
    dead: scenario, phase, time-outs passed, what it met, and how often."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    met: Mapping[tuple[str, ...], int] = field(default_factory=dict)


def measured(folder: Path) -> Measured:
    """From the folder of `onceproof run FOLDER`: its index.json, and the runs beside it. Raises BadInput."""
    seconds: dict[str, list[float]] = defaultdict(list)
    met: Counter[tuple[str, ...]] = Counter()
    try:
        for line in json.loads((folder / "index.json").read_text()):
            seconds[line["scenario"]].append(sum(line["phases"].values()))
            met.update(_met(line["scenario"], folder / Path(line["folder"]).name))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{folder}/index.json: not what `onceproof run FOLDER` writes: {error}") from None
    return Measured(seconds={name: statistics.median(each) for name, each in seconds.items()}, met=met)


def _met(name: str, run: Path) -> Iterator[tuple[str, ...]]:
    events = history.read(run / "history.jsonl")
    for planned in plan.read(run / "plan.json").faults:
        spec, target = planned.spec.model_dump(), events.first(FaultTarget, fault=planned.id)
        if spec.get("fenced") and target is not None:
            errors = events.errors_met(target, target.at)
            phase = spec["when"]["phase"] if spec["when"] else "any"
            yield name, phase, " and ".join(spec.get("past", ())), f"`{errors[0]}`" if errors else "no error"


def _faults() -> Iterator[tuple[str, registry.FaultKind]]:
    for name in registry.names("fault"):
        yield name, registry.fault(name)


def page(measured: Measured) -> str:
    """The catalogue in Markdown."""
    lines = [_HEAD]
    folder = None
    for each in entries():
        if each.folder != folder:
            folder = each.folder
            lines += [f"\n## {'The main job' if folder == '.' else folder}\n", _COLUMNS]
        took = f"{measured.seconds[each.name]:.0f}" if each.name in measured.seconds else ""
        lines.append(f"| {each.name} | {each.about} | {each.pipeline} | {each.faults} | {each.expected} | {took} |")
    lines += ["\n## Pipelines\n", "| pipeline | rows | what it is |", "|---|---|---|"]
    pipelines = [(name, registry.workload(name)) for name in registry.names("workload")]
    lines += [f"| {name} | {', '.join(work.rows)} | {work.about} |" for name, work in pipelines]
    lines += ["\n## Faults\n", "| fault | what it is |", "|---|---|"]
    lines += [f"| {name} | {fault.about} |" for name, fault in _faults()]
    if measured.met:
        lines += [_MET, *(f"| {' | '.join(row)} | {times} |" for row, times in sorted(measured.met.items()))]
    return "\n".join(lines) + "\n"
