"""The report in a browser: it opens, draws, zooms, tells of transactions, and follows records as `trace` does."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from onceproof.harness.record import manifest
from onceproof.harness.record.results import Finding
from onceproof.report import embedded, report, trace
from onceproof.report.explained import ANOMALIES
from onceproof.report.folder import Folder
from onceproof.verifiers.verify import verify
from tests.mutants import of_records
from tests.mutants.catalogue import MUTANTS, RUNS
from tests.unit.good_run import PREFIX, GoodRun

assert of_records  # fills MUTANTS
PAGE = Path(report.__file__).parent / "page"
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
in_a_browser = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="there is no Chromium with its driver")


def test_the_library_of_the_curves_is_the_one_that_was_published() -> None:
    """The files of uPlot 1.6.32 are those of its package, with its licence."""
    hashes = {path.name: sha256(path.read_bytes()).hexdigest() for path in (PAGE / "uplot").iterdir()}
    assert hashes == {
        "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
        "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
        "LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
    }


def test_the_code_of_a_page_is_small() -> None:
    code = [path for path in PAGE.rglob("*") if path.suffix in (".js", ".css")]
    assert sum(path.stat().st_size for path in code) < 150_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    options = Options()
    options.binary_location = CHROMIUM or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = Chrome(options=options, service=Service(DRIVER))
    yield chrome
    chrome.quit()


def opened(browser: Chrome, folder: Path) -> Folder:
    browser.get(f"file://{report.write(folder)}")
    ready = WebDriverWait(browser, 20, 0.05)
    ready.until(
        lambda each: each.execute_script("return document.documentElement.dataset.ready"), "the page to be drawn"
    )
    assert browser.execute_script("return document.documentElement.dataset.ready") == "yes"
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]
    return Folder(folder)


def run_of(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    shutil.copytree(RUNS / name, folder)
    verify(folder)
    return folder


def text(browser: Chrome, element: str) -> str:
    return browser.find_element(By.ID, element).text


def follow(browser: Chrome, asked: str) -> list[tuple[str, str]]:
    field = browser.find_element(By.NAME, "what")
    field.clear()
    field.send_keys(asked, Keys.ENTER)
    rows = browser.find_elements(By.CSS_SELECTOR, "#stories tr")
    cells = [[cell.text for cell in row.find_elements(By.CSS_SELECTOR, "th, td")] for row in rows]
    return [(witness, says) for witness, _, says in cells]


def steps(*stories: trace.Story) -> list[tuple[str, str]]:
    return [(step.witness, step.says) for story in stories for step in story.steps]


@in_a_browser
def test_a_transaction_is_chosen_by_a_click_and_by_keys(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, run_of(tmp_path, "aborts"))
    script = """const {lanes, data} = report, at = data.transactions, last = lanes.ofLane[0].at(-1);
      const middle = (at.begin[last] + at.end[last]) / 2;
      return [lanes.x(middle) - lanes.canvas.clientWidth / 2, lanes.top + 11 - lanes.height / 2, at.number[last]]"""
    x, y, number = browser.execute_script(script)
    canvas = browser.find_element(By.ID, "lanes")
    ActionChains(browser).move_to_element_with_offset(canvas, round(x), round(y)).click().perform()
    said = text(browser, "detail")
    assert said.startswith(f"worker-0.1 transaction {number}: committed") and "inputs partition " in said
    assert "outputs payment/" in said and ": producer " in said and "transactional, visible" in said
    canvas.send_keys("p")
    assert text(browser, "detail").startswith(f"worker-0.1 transaction {number - 1}: ")
    canvas.send_keys(Keys.ESCAPE)
    assert text(browser, "detail") == ""


@in_a_browser
def test_the_chart_zooms_and_moves(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, run_of(tmp_path, "aborts"))

    def seen() -> tuple[float, float]:
        begin, _, end, _ = text(browser, "span").split()
        return float(begin), float(end)

    whole = seen()
    canvas = browser.find_element(By.ID, "lanes")
    canvas.send_keys("+")
    begin, end = seen()
    assert end - begin == pytest.approx((whole[1] - whole[0]) / 2, abs=0.02)
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert seen()[0] > begin
    canvas.send_keys("0")
    assert seen() == whole
    drag = ActionChains(browser).move_to_element_with_offset(canvas, 0, 0).click_and_hold()
    drag.move_by_offset(100, 0).release().perform()
    assert seen()[0] > whole[0] and seen()[1] < whole[1]
    scales = "return [...document.querySelectorAll('.uplot')].length"
    assert browser.execute_script(scales) >= 3


@in_a_browser
@pytest.mark.parametrize(
    "run",
    [
        pytest.param(name, marks=() if name in ("chain", "totals", "zombie") else pytest.mark.long)
        for name in sorted(path.name for path in RUNS.iterdir())
    ],
)
def test_the_page_tells_the_stories_that_the_tables_tell(browser: Chrome, tmp_path: Path, run: str) -> None:
    folder = opened(browser, run_of(tmp_path, run))
    numbers = sorted(row["number"] for row in folder.rows("ledger/sent-*.parquet", columns=["number"]))
    for number in numbers[:: max(1, len(numbers) // 5)]:
        assert follow(browser, str(number)) == steps(trace.of_input(folder, number))
    output = folder.rows("tables/outputs.parquet")[0]
    if output["topic"] not in folder.workload.tables:
        place = output["topic"], output["partition"], output["offset"]
        assert follow(browser, f"{place[0]}/{place[1]}:{place[2]}") == steps(trace.of_output(folder, *place))
    for row in folder.rows("tables/states.parquet")[:1]:
        name = row["transactional_id"]
        assert follow(browser, name) == steps(trace.of_transactional_id(folder, name))
    assert follow(browser, "no such thing") == []
    assert text(browser, "stories") == "Nothing is known of no such thing."


@in_a_browser
@pytest.mark.parametrize(("mutant", "cls"), [("lost-in-the-middle", "lost"), ("doubled", "duplicate")])
def test_a_finding_leads_to_the_story_of_its_input(browser: Chrome, tmp_path: Path, mutant: str, cls: str) -> None:
    made, _ = MUTANTS[mutant].make()
    folder = made.write(tmp_path / mutant)
    results = verify(folder)
    number = next(each for each in results.findings if each.cls == cls).samples[0]["number"]
    opened(browser, folder)
    button = browser.find_element(By.CSS_SELECTOR, f"[data-follow='{number}']")
    browser.execute_script("arguments[0].click()", button)
    assert f"verdict {cls}: " in text(browser, "stories").replace("\n", " ")


@in_a_browser
@pytest.mark.parametrize(
    "about", ["vacuous", "no tables", "no transactions", "<script>document.title='taken'</script>"]
)
def test_a_run_that_proves_nothing_has_a_page_too(browser: Chrome, tmp_path: Path, about: str) -> None:
    run = GoodRun()
    run.raw["about"] = about
    if about == "vacuous":
        run.raw["faults"] = [{"name": "kill", "target": "broker-1", "at_s": 1.0}]
    folder = run.write(tmp_path / "run")
    if about == "no transactions":
        lines = (folder / "history.jsonl").read_text().splitlines(keepends=True)
        left = [line for line in lines if not any(f'"{kind}"' in line for kind in ("begin", "invoke", "outcome"))]
        (folder / "history.jsonl").write_text("".join(left))
    verify(folder)
    if about == "no tables":
        shutil.rmtree(folder / "tables")
    browser.get(f"file://{report.write(folder)}")
    ready = WebDriverWait(browser, 20, 0.05)
    if about != "no transactions":
        ready.until(lambda each: each.execute_script("return document.documentElement.dataset.ready") == "yes", "it")
    page = browser.find_element(By.TAG_NAME, "body").text
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]
    assert about in page and browser.title.startswith("good: ")
    assert ("vacuous: fault 0-kill" in page) == (about == "vacuous")
    assert ("so there is no chart" in page) == (about == "no transactions")
    assert bool(browser.find_elements(By.NAME, "what")) == (about != "no transactions")


@in_a_browser
@pytest.mark.parametrize(("limit", "value"), [("ROWS_MAX", 10), ("BYTES_MAX", 15_000)])
def test_a_run_that_is_too_large_says_what_is_left_out(
    browser: Chrome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(embedded, limit, value)
    opened(browser, run_of(tmp_path, "zombie"))
    assert "This page does not contain" in text(browser, "stories") and "single records" in text(browser, "stories")
    assert follow(browser, "9") == []
    browser.find_element(By.ID, "lanes").send_keys("n")
    assert text(browser, "detail").startswith("worker-0.1 transaction 1: ")


@in_a_browser
def test_each_class_is_explained_on_the_page(browser: Chrome, tmp_path: Path) -> None:
    folder = GoodRun().write(tmp_path / "run")
    judged = verify(folder)
    sample = {"topic": f"{PREFIX}-output", "partition": 1, "offset": 4, "number": 9}
    findings = [Finding(cls=cls, count=1, says="a finding", samples=[sample]) for cls in ANOMALIES]
    replace(judged, findings=findings, verdict="invalid").write(folder / "results.json")
    manifest.seal_results(folder)
    opened(browser, folder)
    page = browser.find_element(By.TAG_NAME, "body").text
    for cls, anomaly in ANOMALIES.items():
        assert f"{cls} × 1" in page
        for text in (anomaly.right, anomaly.try_next):
            assert " ".join(text.split()) in page


@in_a_browser
def test_the_dark_mode_and_a_phone(browser: Chrome, tmp_path: Path) -> None:
    run = run_of(tmp_path, "aborts")
    dark: dict[str, Any] = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    small: dict[str, Any] = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", small)
    try:
        opened(browser, run)
        paper = "return getComputedStyle(document.body).backgroundColor"
        assert browser.execute_script(paper) == "rgb(20, 24, 29)"
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
