"""Write the report of a run, report.html and junit.xml, from the files in the run's folder.

report.html is a single file that needs no network. A run that ended early has a report as well, with its verdict and
the history up to that point.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from onceproof.harness.base import files
from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import plan
from onceproof.harness.record import history, manifest, own_errors, results
from onceproof.harness.record.events import (
    Began,
    ClientFailed,
    FaultBegins,
    FaultTarget,
    Outcome,
    RequestEvent,
    Started,
)
from onceproof.harness.record.history import Events
from onceproof.harness.record.results import Results
from onceproof.report import embedded, explained, pages, timeline
from onceproof.report.junit import Case, junit
from onceproof.report.timeline import FaultSpan

_PHASES = TypeAdapter(dict[str, float])
_PHASES_BYTES_MAX = 1_000_000
_SCRIPTS = ("base.js", "lanes.js", "curves.js", "follow.js", "main.js")
_SAID_BYTES, _SAID_LINES = 4_000, 8  # of each process of an application


def write(folder: Path) -> Path:
    """Write both files and return the path of report.html.

    Raises BadInput when the folder is not a run's folder, and when its results are not those of its last verdict.
    """
    target, cases = folder / "report.html", folder / "junit.xml"
    files.replaceable(target, cases)
    judged = results.read(folder / "results.json")
    manifest.check_results(folder)
    scenario = plan.read(folder / "plan.json").scenario
    events = history.read(folder / "history.jsonl")
    told, spans = timeline.transactions(events), timeline.faults(events)
    page = (
        pages.environment()
        .get_template("report.html.j2")
        .render(
            results=judged,
            about=scenario.about.strip(),
            start=events[0].at,
            data=embedded.of(events, told, spans, folder) if events.first(Began) else "",
            style=pages.text("uplot/uPlot.min.css", "style.css"),
            script=pages.text("uplot/uPlot.iife.min.js", *_SCRIPTS),
            tables=(folder / "tables" / "collect.json").exists(),
            explained=explained.of(judged, told, spans, events[0].at),
            longest=timeline.longest_without(events),
            faults=_faults(events, spans),
            requests=_requests(events),
            workers=_workers(events),
            own_errors=_own_errors(events),
            phases=_phases(folder / "phases.json"),
            classes=_classes(judged),
            said=_said(folder / "processes") if scenario.app is not None else {},
        )
    )
    files.write(target, page)
    files.write(cases, junit("onceproof", [_case(judged)]))
    return target


def _classes(results: Results) -> dict[str, list[str]]:
    """Return the classes of anomalies by how far they were judged."""
    found: dict[str, list[str]] = {}
    for cls, how in results.classes.items():
        found.setdefault(how, []).append(cls)
    return dict(sorted(found.items(), key=lambda each: -len(each[1])))


def _said(folder: Path) -> dict[str, str]:
    """Return the last lines that each process of an application has printed, by its name."""
    found = {}
    for path in sorted(folder.glob("worker-*.log")):
        try:
            with path.open("rb") as log:
                log.seek(max(0, path.stat().st_size - _SAID_BYTES))
                lines = log.read().decode(errors="replace").splitlines()[-_SAID_LINES:]
        except OSError:  # it is no part of the verdict, so the report does without it
            continue
        found[path.stem] = "\n".join(lines)
    return {name: said for name, said in found.items() if said}


def _phases(path: Path) -> dict[str, float]:
    """Return the seconds that each phase of the run took; none if the file is missing or damaged.

    They are no part of the verdict, so the report does without them.
    """
    try:
        return _PHASES.validate_json(files.text_of(path, bytes_max=_PHASES_BYTES_MAX))
    except (OSError, ValueError, BadInput):
        return {}


def _faults(events: Events, spans: Sequence[FaultSpan]) -> list[dict[str, Any]]:
    """Return the rows of the table of faults: their spans, the open transactions, and what followed."""
    return [
        {
            "span": span,
            "open": _open_count(events.first(FaultBegins, fault=span.id)),
            "met": _errors_met(events.first(FaultTarget, fault=span.id), events),
            "first_commit": _seconds(span.first_commit_s),
            "after_healing": _seconds(span.after_healing_s),
        }
        for span in spans
    ]


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"


def _errors_met(target: FaultTarget | None, events: Events) -> str:
    """Return the client errors of a worker that a fault hit, in its transaction at that time or in its next one."""
    if target is None or target.incarnation is None:
        return ""
    return ", ".join(map(str, events.errors_met(target, target.at)))


def _requests(events: Events) -> list[dict[str, Any]]:
    """Return a row for each request that matched a rule of the request proxy: its first event, and the later ones."""
    rows: dict[tuple[str, str, int, int], list[RequestEvent]] = {}
    for event in events.of(RequestEvent):
        rows.setdefault((event.fault, event.link, event.connection, event.correlation), []).append(event)
    return [{"came": came, "then": then} for came, *then in rows.values()]


def _open_count(begins: FaultBegins | None) -> str:
    if begins is None or begins.open_transactions is None:
        return "not known"
    return str(len(begins.open_transactions))


def _workers(events: Events) -> list[dict[str, Any]]:
    """Return the rows of the table of workers: incarnations, outcomes of transactions, and client errors."""
    rows = []
    for name in sorted({event.source for event in events if event.source.startswith("worker-")}):
        outcomes = Counter(event.type for event in events.of(Outcome, source=name))
        errors = Counter(f"{event.call}: {event.code}" for event in events.of(ClientFailed, source=name))
        rows.append(
            {
                "name": name,
                "incarnations": len(events.of(Started, source=name)),
                "ok": outcomes["ok"],
                "fail": outcomes["fail"],
                "info": outcomes["info"],
                "errors": ", ".join(f"{error} × {count}" if count > 1 else error for error, count in errors.items()),
            }
        )
    return rows


def _own_errors(events: Events) -> dict[str, str]:
    """Return the errors of the run that a worker reported in the place of its client, with what they mean."""
    met = {event.code for event in events.of(ClientFailed)}
    return {code: says for code, says in own_errors.MEANING.items() if code in met}


def _case(results: Results) -> Case:
    """Return the test case of a run, which fails if the result is not as expected."""
    if results.as_expected:
        return Case(name=results.name)
    lines = [finding.line for finding in results.findings]
    lines += [f"{reason.kind}: {reason.says}" for reason in results.reasons]
    return Case(name=results.name, failure=results.expectation, text="\n".join(lines))
