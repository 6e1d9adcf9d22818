"""The catalogue: every scenario with its pipeline, faults, claim, expected verdict, and the time it last took.

    onceproof list                                       on the terminal
    onceproof list --page FILE --times runs/all-…       as a page, with the times of that folder's runs
"""

import json
import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import places, registry, scenario
from harness.errors import BadInput

_COLUMNS = "| scenario | what it shows | pipeline | faults | expected | s |\n|---|---|---|---|---|---|"
_HEAD = """# Catalogue

Every scenario that comes with onceproof (`onceproof list --page` writes this page). Time: seconds from the run before
to the verdict, on a cluster that was up; the median where it ran more than once.
"""


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
    root = places.scenarios_dir()
    for path in sorted(root.rglob("*.toml"), key=lambda path: (path.parent != root, path)):
        each = scenario.load(path)
        rows = ", ".join(registry.workload(each.workload.name).rows)
        faults = [fault.name for fault in each.faults] + (["drawn from the seed"] if each.random else [])
        found.append(Entry(
            folder=str(path.parent.relative_to(root)), name=each.name,
            pipeline=f"{each.workload.name} ({rows})" if rows else each.workload.name,
            faults=", ".join(faults) or "none",
            expected=", ".join(each.expect.findings) or each.expect.expected_verdict,
            about=" ".join(each.about.split()),
        ))  # fmt: skip
    return found


def times(folder: Path) -> Mapping[str, float]:
    """Seconds of each scenario, from the index.json that `onceproof run FOLDER` wrote. Raises BadInput."""
    try:
        lines = json.loads((folder / "index.json").read_text())
        seconds: dict[str, list[float]] = defaultdict(list)
        for line in lines:
            seconds[line["scenario"]].append(sum(line["phases"].values()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{folder}/index.json: not what `onceproof run FOLDER` writes: {error}") from None
    return {name: statistics.median(each) for name, each in seconds.items()}


def page(measured: Mapping[str, float]) -> str:
    """The catalogue in Markdown."""
    lines = [_HEAD]
    folder = None
    for each in entries():
        if each.folder != folder:
            folder = each.folder
            lines += [f"\n## {'The main job' if folder == '.' else folder}\n", _COLUMNS]
        took = f"{measured[each.name]:.0f}" if each.name in measured else ""
        lines.append(
            f"| {each.name} | {each.about} | {each.pipeline} | {each.faults} | {each.expected} | {took} |"
        )
    lines += ["\n## Pipelines\n", "| pipeline | rows | what it is |", "|---|---|---|"]
    pipelines = sorted(registry.workloads().items())
    lines += [f"| {name} | {', '.join(work.rows)} | {work.about} |" for name, work in pipelines]
    lines += ["\n## Faults\n", "| fault | what it is |", "|---|---|"]
    lines += [f"| {name} | {fault.about} |" for name, fault in sorted(registry.faults().items())]
    return "\n".join(lines) + "\n"
