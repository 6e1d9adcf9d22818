"""Serve the runs of a folder to a browser on this machine: a list, the history of verdicts, reports, and comparisons.

    with server.Server(Path("runs"), host="127.0.0.1", port=8765) as served:
        served.serve_forever()

    /                         the runs, by scenario, version, client, verdict, or a word
    /report?run=ID            the report of a run
    /trace?run=ID&what=41     the story of a record, read from the run's tables
    /diff?run=ID&with=ID      two runs side by side

A run is found by its id in the list, so no path of a request reaches the file system, and a run with a link that leads
out of the folder is refused. A request with another `Host` than the server's own is refused as well, since a page of
somebody else may resolve its own name to this machine (DNS rebinding).
Reports may come from anybody: a browser is told to run them in a sandbox, without access to the other pages.
"""

import re
import socket
from collections import defaultdict
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from onceproof.harness.base.errors import BadInput
from onceproof.report import archive, compare, pages, report, trace
from onceproof.report.archive import Archived
from onceproof.report.folder import Folder

_HISTORY_MAX = 60  # verdicts of a scenario that are shown
_LISTED_MAX = 500
_SANDBOX = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
_OURS = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"
_PLACE = re.compile(r"([a-z][a-z-]{0,79})/([0-9]{1,6})[: ]([0-9]{1,18})")
Query = Mapping[str, str]


class NotFound(Exception):
    """There is no such page or run."""


class Server(ThreadingHTTPServer):
    """The server of a folder. Its `hosts` are the values of `Host` that it accepts; None accepts every one."""

    daemon_threads = True

    def __init__(self, folder: Path, *, host: str, port: int, hosts: set[str] | None) -> None:
        self.folder, self.hosts = folder, hosts
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "onceproof", ""
    timeout = 30

    def do_GET(self) -> None:
        """Answer a request."""
        host = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host") or ""
        if self.server.hosts is not None and host not in self.server.hosts:
            self._send(HTTPStatus.FORBIDDEN, "this server answers for this machine only", "text/plain", _OURS)
            return
        split = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(split.query, max_num_fields=20).items()}
        try:
            page = _PAGES_OF[split.path]
        except KeyError:
            self._send(HTTPStatus.NOT_FOUND, "there is no such page", "text/plain", _OURS)
            return
        try:
            body = page(self.server.folder, query)
        except NotFound as error:
            self._send(HTTPStatus.NOT_FOUND, str(error), "text/plain", _OURS)
        except BadInput as error:
            self._send(HTTPStatus.BAD_REQUEST, str(error), "text/plain", _OURS)
        else:
            self._send(HTTPStatus.OK, body, "text/html", _SANDBOX if split.path == "/report" else _OURS)

    do_HEAD = do_GET

    def _send(self, status: HTTPStatus, body: str, kind: str, policy: str) -> None:
        raw = body.encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(raw)),
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing for each request."""


def listing(folder: Path, query: Query) -> str:
    """Return the page with the runs that a query selects, the newest first, and the verdicts of each scenario."""
    found = sorted(archive.runs(folder), key=lambda each: each.began, reverse=True)
    chosen = [each for each in found if _selected(each, query)]
    history: dict[str, list[Archived]] = defaultdict(list)
    for each in reversed(chosen):
        history[each.name].append(each)
    return _rendered(
        "runs.html.j2",
        runs=chosen[:_LISTED_MAX],
        more=max(0, len(chosen) - _LISTED_MAX),
        history={name: each[-_HISTORY_MAX:] for name, each in sorted(history.items())},
        query=defaultdict(str, query),
        choices={
            "scenario": sorted({each.name for each in found}),
            "kafka": sorted({each.kafka for each in found} - {""}),
            "client": sorted({each.client for each in found} - {""}),
            "verdict": sorted({each.verdict for each in found}),
        },
        folder=folder,
    )


def _selected(run: Archived, query: Query) -> bool:
    exact = {"scenario": run.name, "kafka": run.kafka, "client": run.client, "verdict": run.verdict}
    if any(query.get(key) not in (None, "", value) for key, value in exact.items()):
        return False
    everything = " ".join([run.id, run.headline, *run.versions.values()]).lower()
    return all(word in everything for word in query.get("word", "").lower().split())


def of_report(folder: Path, query: Query) -> str:
    """Return the report of a run, which is written if there is none."""
    run = _run(folder, query, "run")
    page = run.folder / "report.html"
    if not page.is_file() or page.is_symlink():
        page = report.write(run.folder)
    return page.read_text(encoding="utf-8")


def of_trace(folder: Path, query: Query) -> str:
    """Return the page with the stories of what a query asks for in a run."""
    run = _run(folder, query, "run")
    asked = query.get("what", "").strip()
    stories: list[trace.Story] = []
    problem = ""
    if asked:
        try:
            stories = _stories(Folder(run.folder), asked)
        except BadInput as error:
            problem = str(error)
    return _rendered("trace.html.j2", run=run, asked=asked, stories=stories, problem=problem)


def _stories(folder: Folder, asked: str) -> list[trace.Story]:
    """Return the stories of a number, a place such as output/3:19, a transactional id, or a key."""
    if asked.isdigit() and len(asked) <= 12:
        return [trace.of_input(folder, int(asked))]
    if place := _PLACE.fullmatch(asked):
        return [trace.of_output(folder, place[1], int(place[2]), int(place[3]))]
    try:
        return [trace.of_transactional_id(folder, asked)]
    except BadInput:
        return trace.of_key(folder, asked.encode())


def of_diff(folder: Path, query: Query) -> str:
    """Return the page that compares two runs."""
    before, after = _run(folder, query, "run"), _run(folder, query, "with")
    rows = compare.rows(before.folder, after.folder, everything=query.get("all") == "yes")
    return _rendered("diff.html.j2", before=before, after=after, rows=rows, everything=query.get("all") == "yes")


def _run(folder: Path, query: Query, key: str) -> Archived:
    """Return the run whose id a query has. Raises NotFound when the list has no such run."""
    found = archive.find(folder, query.get(key, ""))
    if found is None:
        raise NotFound(f"{key}: there is no such run")
    inside = folder.resolve()
    if any(each.is_symlink() and inside not in each.resolve().parents for each in found.folder.rglob("*")):
        raise NotFound(f"{key}: a link in this run leads out of the folder")
    return found


def _rendered(template: str, **values: Any) -> str:
    return pages.environment().get_template(template).render(style=pages.text("style.css"), **values)


_PAGES_OF: Mapping[str, Callable[[Path, Query], str]] = {
    "/": listing,
    "/report": of_report,
    "/trace": of_trace,
    "/diff": of_diff,
}
