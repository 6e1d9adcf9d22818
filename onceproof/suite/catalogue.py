"""List every scenario with its pipeline, its faults, what it shows, the expected verdict, and its duration.

onceproof list                                      prints it on the terminal
onceproof list --page FILE --runs runs/all-…       writes it as a page, with the results of that folder's runs
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

These are the scenarios that come with onceproof (`onceproof list --page FILE --runs FOLDER` writes this page). Column
s has the seconds of one run on a cluster that was already up, from the end of the run before it: the median, if the
scenario ran more than once.
"""
_ERRORS_HEAD = """
## Errors of fenced workers

In these scenarios a worker is stopped at a phase of its transaction. It is resumed after its group has assigned its
partitions to another worker (past: session), after its coordinator has aborted its transaction (past: transaction), or
after both; or another producer takes its transactional id. The table shows the first error of that transaction, by the
client's own name for it, and the number of runs in which it occurred.

| scenario | phase | past | first error | runs |
|---|---|---|---|---|"""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One scenario, as texts. `folder` is relative to the scenarios' folder."""

    folder: str
    name: str
    pipeline: str
    faults: str
    expected: str
    about: str


def entries() -> list[Entry]:
    """Return an entry for every scenario that comes with onceproof, folder by folder."""
    found = []
    root = paths.scenarios_dir()
    for path in sorted(root.rglob("*.toml"), key=lambda path: (path.parent != root, path)):
        each = scenario.load(path)
        faults = [fault.name for fault in each.faults] + (["drawn from the seed"] if each.random else [])
        found.append(
            Entry(
                folder=str(path.parent.relative_to(root)),
                name=each.name,
                pipeline=each.workload.name or "its own",
                faults=", ".join(faults) or "none",
                expected=", ".join(each.expect.findings) or each.expect.expected_verdict,
                about=" ".join(each.about.split()),
            )
        )
    return found


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The durations of a folder's runs, and the errors of their fenced workers.

    `seconds` maps a scenario to a median; `met` maps (scenario, phase, time-outs passed, first error) to a number of
    runs.
    """

    seconds: Mapping[str, float] = field(default_factory=dict)
    met: Mapping[tuple[str, ...], int] = field(default_factory=dict)


def measured(folder: Path) -> Measured:
    """Return the measurements in a folder that `onceproof run FOLDER` wrote: its index.json, and its runs.

    Raises BadInput when the folder has other content.
    """
    seconds: dict[str, list[float]] = defaultdict(list)
    met: Counter[tuple[str, ...]] = Counter()
    try:
        for line in json.loads((folder / "index.json").read_text()):
            seconds[line["scenario"]].append(sum(line["phases"].values()))
            met.update(_errors_met(line["scenario"], folder / Path(line["folder"]).name))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{folder}/index.json: this is not a file that `onceproof run FOLDER` writes: {error}") from None
    return Measured(seconds={name: statistics.median(each) for name, each in seconds.items()}, met=met)


def _errors_met(name: str, run: Path) -> Iterator[tuple[str, ...]]:
    """Yield (scenario, phase, time-outs passed, first error) for each fault of a run that fenced a worker."""
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
    """Return the catalogue in Markdown."""
    lines = [_HEAD]
    folder = None
    for each in entries():
        if each.folder != folder:
            folder = each.folder
            lines += [f"\n## {'Main scenario' if folder == '.' else folder}\n", _COLUMNS]
        took = f"{measured.seconds[each.name]:.0f}" if each.name in measured.seconds else ""
        lines.append(f"| {each.name} | {each.about} | {each.pipeline} | {each.faults} | {each.expected} | {took} |")
    lines += ["\n## Pipelines\n", "| pipeline | description |", "|---|---|"]
    lines += [f"| {name} | {registry.workload(name).about} |" for name in registry.names("workload")]
    lines += ["\n## Faults\n", "| fault | description |", "|---|---|"]
    lines += [f"| {name} | {fault.about} |" for name, fault in _faults()]
    if measured.met:
        lines += [_ERRORS_HEAD, *(f"| {' | '.join(row)} | {times} |" for row, times in sorted(measured.met.items()))]
    return "\n".join(lines) + "\n"
