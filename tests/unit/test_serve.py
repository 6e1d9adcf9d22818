"""`onceproof serve` shows the runs of a folder to this machine only, escapes everything, and reads nothing outside."""

import html
import http.client
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from onceproof.cli.main import main
from onceproof.report import trace
from onceproof.report.folder import Folder
from onceproof.report.server import Server
from onceproof.verifiers.verify import verify
from tests.mutants import of_records
from tests.mutants.catalogue import MUTANTS, RUNS

assert of_records  # fills MUTANTS
GOOD, DOUBLED, UNJUDGED = "copy-7-20261101T101010", "soak/copy-8-20261102T101010", "copy-9-20261103T101010"
EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: a good one, one with a finding in a folder of its own, and one that was never judged."""
    parent = tmp_path_factory.mktemp("serve") / "runs"
    shutil.copytree(RUNS / "zombie", parent / GOOD)
    MUTANTS["doubled"].make()[0].write(parent / DOUBLED)
    for name in (GOOD, DOUBLED):
        verify(parent / name)
    shutil.copytree(RUNS / "zombie", parent / UNJUDGED)
    (parent / UNJUDGED / "results.json").unlink(missing_ok=True)
    (parent / "latest").symlink_to(GOOD)
    return parent


@pytest.fixture(scope="module")
def port(runs: Path) -> Iterator[int]:
    with Server(runs, host="127.0.0.1", port=0, hosts={"127.0.0.1", "localhost"}) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join(10)


def get(port: int, path: str, host: str = "127.0.0.1:8765") -> tuple[int, str, dict[str, str]]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    client.putrequest("GET", path, skip_host=True)
    client.putheader("Host", host)
    client.endheaders()
    answer = client.getresponse()
    body = answer.read().decode()
    client.close()
    return answer.status, body, dict(answer.getheaders())


def test_the_list_has_every_run_with_its_verdict(port: int) -> None:
    status, page, headers = get(port, "/")
    assert status == 200 and "default-src 'none'" in headers["Content-Security-Policy"]
    assert page.count('<input type="radio" name="run"') == 3
    assert "invalid: duplicate" in page and "valid" in page and "(no results)" in page
    assert page.index(UNJUDGED) < page.index(quote(DOUBLED, safe="/"))  # the newest first
    assert get(port, "/?verdict=invalid")[1].count('name="run"') == 1
    assert get(port, "/?word=duplicate+2026")[1].count('name="run"') == 1
    assert get(port, "/?word=nothing-has-this")[1].count('name="run"') == 0


def test_a_report_is_served_in_a_sandbox(port: int) -> None:
    status, page, headers = get(port, f"/report?run={GOOD}")
    assert status == 200 and "<h2>What happened</h2>" in page
    assert headers["Content-Security-Policy"].startswith("sandbox allow-scripts; default-src 'none'")
    assert get(port, f"/report?run={DOUBLED}")[0] == 200
    assert get(port, f"/report?run={UNJUDGED}")[0] == 400


def test_the_story_of_a_record(port: int, runs: Path) -> None:
    _, page, _ = get(port, f"/trace?run={GOOD}&what=41")
    for step in trace.of_input(Folder(runs / GOOD), 41).steps:
        assert f'<th scope="row">{step.witness}' in page and step.says in html.unescape(page)
    assert "no input has the key" in get(port, f"/trace?run={GOOD}&what=nothing")[1]


def test_two_runs_side_by_side(port: int, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, page, _ = get(port, f"/diff?run={GOOD}&with={quote(DOUBLED)}")
    assert "<b>invalid: duplicate</b>" in page and "count of inputs" not in page
    assert "count of inputs" in get(port, f"/diff?run={GOOD}&with={quote(DOUBLED)}&all=yes")[1]
    assert main(["diff", str(runs / GOOD), str(runs / DOUBLED), "--json"]) == 1
    told = {row["what"]: (row["before"], row["after"]) for row in json.loads(capsys.readouterr().out)}
    assert told["verdict"][1] == "invalid: duplicate"
    assert main(["diff", str(runs / GOOD), str(runs / GOOD)]) == 0
    assert "the runs do not differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/report?run=../../../../etc",
        "/report?run=..%2f..%2f..%2fetc",
        "/report?run=latest",
        "/report?run=",
        "/report",
        "/trace?run=/etc",
        f"/diff?run={GOOD}&with=../{GOOD}",
        "/style.css",
    ],
)
def test_nothing_outside_is_read(port: int, path: str) -> None:
    assert get(port, path)[0] == 404


def test_a_link_that_leads_out_of_the_folder_is_not_followed(port: int, runs: Path) -> None:
    copy = runs / "copy-10-20261104T101010"
    shutil.copytree(runs / GOOD, copy)
    (copy / "history.jsonl").unlink()
    (copy / "history.jsonl").symlink_to("/etc/passwd")
    try:
        status, page, _ = get(port, f"/report?run={copy.name}")
        assert status == 404 and "root:" not in page
    finally:
        shutil.rmtree(copy)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "", "127.0.0.1.evil.example"])
def test_another_host_is_refused(port: int, host: str) -> None:
    assert get(port, "/", host)[0] == 403


def test_everything_is_escaped(port: int, runs: Path) -> None:
    evil = runs / f"{EVIL.replace('/', '_')}-1-20261105T101010"
    shutil.copytree(runs / UNJUDGED, evil)
    try:
        for path in (f"/?word={quote(EVIL)}", "/", f"/trace?run={GOOD}&what={quote(EVIL)}"):
            status, page, _ = get(port, path)
            assert status == 200 and "<script>" not in page
        assert "&lt;script&gt;" in get(port, "/")[1]
    finally:
        shutil.rmtree(evil)


def test_only_the_loopback_unless_told(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(runs), "--host", "0.0.0.0"]) == 2
    assert "--host 0.0.0.0: other machines reach this address; allowed with --to-others" in capsys.readouterr().err
    assert main(["serve", str(runs), "--host", "no such host"]) == 2
    assert main(["serve", str(tmp_path / "none")]) == 2
    assert "no such folder" in capsys.readouterr().err
