"""The report of a run: report.html (one file, no network) and junit.xml, from what lies in the run's folder.

Works for whatever a run left: a run that broke off has a verdict and the history up to there.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import jinja2

from harness import charts, history, plan, verdict
from harness.history import Event
from harness.verdict import Results


def write(folder: Path) -> Path:
    """Write both files; return the path of report.html. Raises BadInput when the folder is no run's folder."""
    results = verdict.read(folder / "results.json")
    scenario = plan.read(folder / "plan.json").scenario
    events = history.read(folder / "history.jsonl")
    phases = folder / "phases.json"
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=jinja2.StrictUndefined
    )
    page = environment.get_template("report.html.j2").render(
        results=results,
        about=scenario.about.strip(),
        start=events[0]["at"],
        timeline=charts.timeline(events) if any(e["event"] == "outcome" for e in events) else "",
        faults=_faults(events),
        requests=_requests(events),
        workers=_workers(events),
        phases=json.loads(phases.read_text()) if phases.exists() else {},
    )
    target = folder / "report.html"
    target.write_text(page, encoding="utf-8")
    (folder / "junit.xml").write_text(_junit(results), encoding="utf-8")
    return target


def _faults(events: Sequence[Event]) -> list[dict[str, Any]]:
    begins = {event["fault"]: event for event in events if event["event"] == "fault-begins"}
    targets = {event["fault"]: event for event in events if event["event"] == "fault-target"}
    return [
        {"span": span, "open": _open(begins[span.id]["open_transactions"]), "met": _met(targets.get(span.id), events)}
        for span in charts.fault_spans(events)
    ]


def _met(target: Event | None, events: Sequence[Event]) -> str:
    """What a worker that was hit met in the transaction in which it was, or in its next."""
    if target is None or "incarnation" not in target:
        return ""
    return ", ".join(map(history.says, history.met(target, target["at"], events)))


def _requests(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The wire proxy's journal, a row for each request that matched: when it came, and what became of it when."""
    rows: dict[tuple[str, str, int, int], dict[str, Any]] = {}
    for event in events:
        if event["source"] == "wire":
            key = event["fault"], event["link"], event["connection"], event["correlation"]
            rows.setdefault(key, {"came": event, "then": []})["then"].append(event)
    return [{"came": row["came"], "then": row["then"][1:]} for row in rows.values()]


def _open(transactions: list[str] | None) -> str:
    return "the cluster did not say" if transactions is None else str(len(transactions))


def _workers(events: Sequence[Event]) -> list[dict[str, Any]]:
    names = sorted({event["source"] for event in events if event["source"].startswith("worker-")})
    rows = []
    for name in names:
        mine = [event for event in events if event["source"] == name]
        outcomes = Counter(event["type"] for event in mine if event["event"] == "outcome")
        errors = Counter(f"{event['call']}: {event['code']}" for event in mine if event["event"] == "error")
        rows.append({
            "name": name, "incarnations": sum(event["event"] == "started" for event in mine),
            "ok": outcomes["ok"], "fail": outcomes["fail"], "info": outcomes["info"],
            "errors": ", ".join(f"{error} × {count}" if count > 1 else error for error, count in errors.items()),
        })  # fmt: skip
    return rows


def _junit(results: Results) -> str:
    failure = ""
    if not results.as_expected:
        lines = [f"{finding.cls} × {finding.count}: {finding.says}" for finding in results.findings]
        lines += [f"{reason.kind}: {reason.says}" for reason in results.reasons]
        failure = f"<failure message={quoteattr(results.expectation)}>{_escaped(chr(10).join(lines))}</failure>"
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<testsuite name="onceproof" tests="1" '
        f'failures="{int(not results.as_expected)}"><testcase classname="onceproof" name={quoteattr(results.name)}>'
        f"{failure}</testcase></testsuite>\n"
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
