"""Execute many runs one after the other on reused clusters, and write a page that links to their reports.

runs = batch.by_cluster(runs)                in the order in which each cluster is started once
lines = batch.run(runs, options, done)       one line for each (scenario, seed)
batch.write_page(lines, folder)              writes <folder>/index.html
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from pydantic import ConfigDict

from onceproof.harness.base.progress import Progress
from onceproof.harness.cluster.pool import Clusters
from onceproof.harness.model.scenario import Scenario
from onceproof.harness.record.events import FaultInjected
from onceproof.harness.record.results import Mode, Results
from onceproof.run import spark_warmup
from onceproof.run.run import Run


@dataclass(frozen=True, kw_only=True)
class Line:
    """The result of one run: its verdict, its counts, the seconds of each phase, and its folder if it was kept.

    `audit` is the verdict of an audit of its logs alone; empty if there was none. In a soak of hours, `lag_s` is the
    time from the end of the run to its verdict, `memory_mb` the memory of all of onceproof's processes at its end, and
    `disk_mb` what was used on the file system of its folder.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")
    scenario: str
    seed: int
    headline: str
    verdict: str
    as_expected: bool
    expectation: str
    reasons: list[str]
    faults: list[str]
    inputs: int
    outputs: int
    transactions: int
    phases: dict[str, float]
    folder: str | None
    audit: str = ""
    lag_s: float = 0.0
    memory_mb: float = 0.0
    disk_mb: float = 0.0

    @property
    def seconds(self) -> float:
        """Return the seconds from the command, or from the end of the previous run, to the end of this run."""
        return round(sum(self.phases.values()), 1)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a batch. `command` returns the command line that repeats a run, for its report."""

    folder: Path
    progress: Progress
    command: Callable[[Scenario, int], str]
    master: str = "local[2]"
    mode: Mode = "full"
    keep: bool = False
    faults: bool = True


def by_cluster(runs: Iterable[tuple[Scenario, int]]) -> list[tuple[Scenario, int]]:
    """Return the runs with those of equal clusters one after the other, otherwise in the same order.

    A cluster is up from its first run to its last, and six processes in Java take time from the others' runs even if
    nothing uses them.
    """
    of_clusters: dict[str, list[tuple[Scenario, int]]] = {}
    for scenario, seed in runs:
        of_clusters.setdefault(scenario.cluster.model_dump_json(), []).append((scenario, seed))
    return [each for mine in of_clusters.values() for each in mine]


def run(
    runs: Sequence[tuple[Scenario, int]], options: Options, done: Callable[[Run, Results, Line], None]
) -> list[Line]:
    """Execute all runs and return their lines; `done` is called after each run.

    A file `stop` that is put into the folder of `options` ends the batch before its next run, and is removed. Raises
    HarnessError when a cluster does not come up, and BadInput when Spark does not accept a workload's SQL.
    """
    lines: list[Line] = []
    began = time.monotonic()
    told_to_stop(options.folder)  # removes a file that an earlier batch has left
    clusters = Clusters(keep=options.keep, say=options.progress.say)
    try:
        for number, (scenario, seed) in enumerate(runs):
            if told_to_stop(options.folder):
                options.progress.say(f"stopped after {number} of {len(runs)} runs, because there was a file stop")
                break
            clusters.keep_only(each.cluster for each, _ in runs[number:])
            options.progress.seconds.clear()
            if len(runs) > 1:
                options.progress.say(_where(number, len(runs), time.monotonic() - began))
            one = prepared(scenario, seed, options, clusters)
            try:
                results = one.all()
            except KeyboardInterrupt:
                options.progress.say(f"interrupted: {one.folder}")
                raise
            options.progress.phase("down")
            line = line_of(one, results, dict(options.progress.seconds))
            lines.append(line)
            done(one, results, line)
    finally:
        clusters.close()
    return lines


def prepared(scenario: Scenario, seed: int, options: Options, clusters: Clusters) -> Run:
    """Return a run whose cluster and Spark are up; raises as `run` does."""
    options.progress.phase("up")
    analysed = spark_warmup.start_spark(options.master, scenario)
    cluster = clusters.get(scenario.cluster)
    analysed()
    one = Run(
        scenario,
        seed=seed,
        cluster=cluster,
        runs=options.folder,
        progress=options.progress,
        command=options.command(scenario, seed),
        master=options.master,
        mode=options.mode,
        faults=options.faults,
    )
    _link(one.folder)
    return one


def told_to_stop(folder: Path) -> bool:
    """Return whether there is a file `stop` in the folder, and remove it."""
    there = (folder / "stop").exists()
    (folder / "stop").unlink(missing_ok=True)
    return there


def _where(number: int, total: int, spent_s: float) -> str:
    """Return how far a batch is: "3 of 67, about 30 min left"."""
    left = f", about {spent_s / number * (total - number) / 60:.0f} min left" if number else ""
    return f"{number + 1} of {total}{left}"


def _link(folder: Path) -> None:
    """Let the link `latest` next to a run's folder name it. A file system without links does without."""
    link, work = folder.parent / "latest", folder.parent / f".latest-{os.getpid()}"
    with suppress(OSError):
        work.unlink(missing_ok=True)
        work.symlink_to(folder.name)
        work.replace(link)


def write_page(lines: list[Line], folder: Path) -> Path:
    """Write index.html, a table of all runs with links to their reports, and index.json; return the page's path."""
    (folder / "index.json").write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")
    rows = "\n".join(
        f"<tr class={line.verdict}><td>{'as expected' if line.as_expected else '<b>NOT as expected</b>'}</td>"
        f"<td>{_linked(line, folder)}</td><td>{line.seed}</td><td>{escape(line.headline)}</td>"
        f"<td>{escape(', '.join(line.faults))}</td><td>{line.inputs:,}</td><td>{line.seconds:.0f}</td></tr>"
        for line in lines
    )
    met = sum(line.as_expected for line in lines)
    page = folder / "index.html"
    page.write_text(_PAGE.format(met=met, runs=len(lines), seconds=sum(line.seconds for line in lines), rows=rows))
    return page


_PAGE = """<!doctype html><html lang=en><meta charset=utf-8><title>onceproof</title>
<style>body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem }}
table {{ border-collapse: collapse; width: 100% }} td, th {{ text-align: left; padding: .3rem .6rem; border-top: 1px solid #ddd }}
td:nth-child(n+6), th:nth-child(n+6) {{ text-align: right }} .valid td:nth-child(4) {{ color: #176b2c }}
.invalid td:nth-child(4) {{ color: #a4161a }} .unknown td:nth-child(4) {{ color: #8a5a00 }} b {{ color: #a4161a }}</style>
<h1>{met} of {runs} runs as expected</h1><p>All runs together took {seconds:.0f} s.</p>
<table><tr><th>expectation<th>scenario<th>seed<th>verdict<th>injected faults<th>inputs<th>seconds</tr>
{rows}
</table></html>
"""  # noqa: E501


def _linked(line: Line, folder: Path) -> str:
    """Return the name of a line's scenario in HTML, linked to the report if the run's folder was kept."""
    if line.folder is None:
        return escape(line.scenario)
    there = Path(line.folder).resolve().relative_to(folder.resolve())
    return f'<a href="{escape(str(there))}/report.html">{escape(line.scenario)}</a>'


def line_of(one: Run, results: Results, phases: dict[str, float]) -> Line:
    """Return the line of a run that has ended."""
    fired = [event.name for event in one.history.events().of(FaultInjected)]
    counts = results.counts
    return Line(
        scenario=results.name,
        seed=results.seed,
        headline=results.headline,
        verdict=results.verdict,
        as_expected=results.as_expected,
        expectation=results.expectation,
        reasons=[reason.says for reason in results.reasons] + [finding.says for finding in results.findings],
        faults=fired,
        inputs=counts.get("inputs", 0),
        outputs=counts.get("outputs", 0),
        transactions=counts.get("transactions", 0),
        phases=phases,
        folder=str(one.folder),
    )
