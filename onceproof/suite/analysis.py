"""A written analysis of many runs: what was tested, how, what was found, figures, and how to repeat it.

    onceproof analysis runs/matrix-20261126T101112 --title "KAFKA-17754 across clients and brokers"

The folder is that of a battery, a matrix, a soak or any other batch of runs. The analysis has the order of Jepsen's:
summary, tests, results, findings with a record's story, limits, and the commands that repeat it. It is written as
Markdown, as HTML made from that, and with one figure: in how many runs of each kind something was found, with the
95% interval of Clopper and Pearson.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
from markdown_it import MarkdownIt

from onceproof.harness.base import files
from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import plan, registry
from onceproof.harness.record import history, results
from onceproof.harness.record.results import Results
from onceproof.report import explained, pages, timeline, trace
from onceproof.report.archive import runs as archived
from onceproof.report.explained import Explained
from onceproof.report.folder import Folder
from onceproof.suite import rates, soak

_STEPS_MAX = 40  # of a story


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A run with its verdict and its plan."""

    id: str
    folder: Path
    results: Results
    plan: plan.Plan

    @property
    def kind(self) -> tuple[str, ...]:
        """What makes runs alike: scenario, Kafka release, client, transaction.version in force."""
        versions, work = self.results.versions, self.plan.scenario.workload
        in_force = versions.get("transaction.version", "")
        return self.results.name, versions.get("kafka", ""), work.client, in_force


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Runs of one kind, and in how many of those with a verdict something was found."""

    kind: tuple[str, ...]
    runs: Sequence[Judged]

    @cached_property
    def verdicts(self) -> Mapping[str, int]:
        """How often each headline occurred, the most frequent first."""
        return dict(Counter(each.results.headline for each in self.runs).most_common())

    @property
    def found(self) -> int:
        """The runs in which something was found."""
        return sum(each.results.verdict == "invalid" for each in self.runs)

    @property
    def judged(self) -> int:
        """The runs that came to a verdict other than unknown."""
        return sum(each.results.verdict != "unknown" for each in self.runs)

    @property
    def issue(self) -> str:
        """The bug that the scenario is about; empty if it is about none."""
        return self.runs[0].results.issue

    @property
    def proofs(self) -> str:
        """How often the bug was proved and refuted."""
        told = Counter(each.results.result or each.results.headline for each in self.runs)
        return ", ".join(f"{result} {count} of {len(self.runs)}" for result, count in told.most_common())

    @property
    def says(self) -> str:
        """In how many runs something was found, in words."""
        if not self.judged:
            return "no run came to a verdict"
        if not self.found:
            bound = rates.upper_bound(self.judged)
            runs = "1 run" if self.judged == 1 else f"{self.judged} runs"
            return f"nothing in {runs}: rate below {bound:.0%} at 95%"
        return rates.said(self.found, self.judged)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A class of anomaly that runs of a scenario found, with an example: a run, and the story of one of its records."""

    scenario: str
    explained: Explained
    runs: int
    example: Judged
    fault: str
    story: trace.Story | None


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """The content of an analysis."""

    title: str
    runs: Sequence[Judged]
    kinds: Sequence[Kind]
    findings: Sequence[Found]
    soak: str = ""
    made: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d"))

    @property
    def counts(self) -> Mapping[str, int]:
        """How many runs have each verdict."""
        found = Counter(each.results.verdict for each in self.runs)
        return {word: found[word] for word in ("valid", "unknown", "invalid")}

    @property
    def releases(self) -> Sequence[str]:
        """The Kafka releases of runs about a bug, in the order of their numbers."""
        told = {kind.kind[1] for kind in self.kinds if kind.issue}
        return sorted(told, key=lambda release: [int(part) for part in re.findall("[0-9]+", release)])

    @property
    def bugs(self) -> Mapping[tuple[str, str, str], Mapping[str, str]]:
        """Bug, scenario and client → Kafka release → how often the bug was proved or refuted in runs of this kind."""
        told: dict[tuple[str, str, str], dict[str, str]] = {}
        for kind in self.kinds:
            if kind.issue:
                scenario, kafka, client, in_force = kind.kind
                says = kind.proofs + (f" ({in_force})" if in_force else "")
                cells = told.setdefault((kind.issue, scenario, client), {})
                cells[kafka] = f"{cells[kafka]}; {says}" if kafka in cells else says  # one for each feature level
        return told

    @property
    def totals(self) -> Mapping[str, int]:
        """The sums of what the runs counted."""
        found: Counter[str] = Counter()
        for each in self.runs:
            found.update(each.results.counts)
        return {name: found[name] for name in ("inputs", "outputs", "transactions", "faults") if found[name]}

    @property
    def abouts(self) -> Mapping[str, str]:
        """What each scenario is about, by its name."""
        return {each.results.name: " ".join(each.plan.scenario.about.split()) for each in self.runs}

    @property
    def faults(self) -> Mapping[str, str]:
        """What each fault of the plans does, by its name."""
        names = sorted({fault.name for each in self.runs for fault in each.plan.faults})
        return {name: registry.fault(name).about for name in names if ":" not in name}

    @property
    def claims(self) -> Mapping[str, str]:
        """What each check claims that was run at least once, by its name."""
        return {check.name: check.claim for each in self.runs for check in each.results.checks if not check.not_judged}

    @property
    def versions(self) -> Mapping[str, Sequence[str]]:
        """The versions of each part, by its name."""
        found: dict[str, set[str]] = {}
        for each in self.runs:
            for name, value in each.results.versions.items():
                found.setdefault(name, set()).add(value)
        return {name: sorted(values) for name, values in sorted(found.items())}


def of(folder: Path, title: str = "") -> Analysis:
    """Return the analysis of the runs in a folder. Raises BadInput when there is no run with a verdict in it."""
    judged = sorted(_judged(folder), key=lambda each: each.id)
    told = soak.read(folder / "soak.json").summary() if (folder / "soak.json").exists() else ""
    if not judged and not told:
        raise BadInput(f"{folder}: there is no run with a verdict in this folder")
    alike: dict[tuple[str, ...], list[Judged]] = {}
    for each in judged:
        alike.setdefault(each.kind, []).append(each)
    return Analysis(
        title=title or f"Analysis of {folder.resolve().name}",
        runs=judged,
        kinds=[Kind(kind=kind, runs=each) for kind, each in sorted(alike.items())],
        findings=list(_findings(judged)),
        soak=told,
    )


def _judged(folder: Path) -> Iterator[Judged]:
    for run in archived(folder):
        if run.verdict != "none":
            judged = results.read(run.folder / "results.json")
            yield Judged(id=run.id, folder=run.folder, results=judged, plan=plan.read(run.folder / "plan.json"))


def _findings(judged: Sequence[Judged]) -> Iterator[Found]:
    """Yield each class that was found with a scenario, with the example of its first run."""
    found: dict[tuple[str, str], list[Judged]] = {}
    for run in judged:
        for cls in dict.fromkeys(finding.cls for finding in run.results.findings):
            found.setdefault((run.results.name, cls), []).append(run)
    for (scenario, cls), runs in found.items():
        example = runs[0]
        events = history.read(example.folder / "history.jsonl")
        told, faults = timeline.transactions(events), timeline.faults(events)
        all_of = explained.of(example.results, told, faults, events[0].at)
        one = next(each for each in all_of if each.finding.cls == cls)
        yield Found(
            scenario=scenario,
            explained=one,
            runs=len(runs),
            example=example,
            fault=one.faults[0] if one.faults else "",
            story=_story(example.folder, one),
        )


def _story(folder: Path, one: Explained) -> trace.Story | None:
    """Return the story of the first sample's input; None if the sample names none, or the tables are gone."""
    numbers = [sample["number"] for sample in one.finding.samples if sample.get("number") is not None]
    if not numbers:
        return None
    try:
        story = trace.of_input(Folder(folder), numbers[0])
    except BadInput:
        return None
    return trace.Story(title=story.title, steps=story.steps[:_STEPS_MAX])


def write(analysis: Analysis, folder: Path) -> Path:
    """Write analysis.md, analysis.html and rates.svg into a folder, and return the path of the page in HTML."""
    figure = any(kind.judged for kind in analysis.kinds)
    if figure:
        _draw(analysis.kinds, folder / "rates.svg")
    text = markdown(analysis, figure=figure)
    files.write(folder / "analysis.md", text)
    environment = _environment(autoescape=True)
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    page = environment.get_template("analysis.html.j2").render(
        title=analysis.title, style=pages.text("style.css"), body=body
    )
    files.write(folder / "analysis.html", page)
    return folder / "analysis.html"


def markdown(analysis: Analysis, *, figure: bool) -> str:
    """Return the analysis in Markdown; with `figure`, it shows rates.svg."""
    template = _environment(autoescape=False).get_template("analysis.md.j2")
    return template.render(a=analysis, figure=figure, named=_named, onceproof=version("onceproof"))


def _environment(*, autoescape: bool) -> jinja2.Environment:
    made = pages.environment(autoescape=autoescape, trim_blocks=True, lstrip_blocks=True)
    made.filters["cell"] = _cell
    return made


def _cell(value: Any) -> str:
    """Return a value as the text of a cell in Markdown, which neither ends the cell nor is markup."""
    text = " ".join(str(value).split())
    for mark in ("\\", "|", "*", "_", "`", "<", "[", "#"):
        text = text.replace(mark, f"\\{mark}")
    return text


def _named(kind: Sequence[str]) -> str:
    scenario, kafka, client, in_force = kind
    return f"{scenario}, Kafka {kafka}, {client}" + (f", transaction.version {in_force}" if in_force else "")


def _draw(kinds: Sequence[Kind], file: Path) -> None:
    """Draw, for each kind, the rate at which something was found and its interval."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    shown = [kind for kind in kinds if kind.judged]
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "onceproof", "font.size": 9}):
        figure, axis = plt.subplots(figsize=(9, 0.8 + 0.28 * len(shown)), layout="constrained")
        for row, kind in enumerate(shown):
            low, high = rates.interval(kind.found, kind.judged)
            axis.plot([low, high], [row, row], color="#0072b2", linewidth=2)
            axis.plot(kind.found / kind.judged, row, "o", color="#d55e00" if kind.found else "#0072b2")
        axis.set_yticks(range(len(shown)), [_named(kind.kind) for kind in shown])
        axis.set_xlim(-0.02, 1.02)
        axis.invert_yaxis()
        axis.set_xlabel("runs in which something was found, with the 95% interval")
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        plt.close(figure)
