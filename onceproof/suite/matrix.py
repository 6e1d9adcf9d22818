r"""Run scenarios × Kafka versions × clients × features, one run for each cell, and write one table of the results.

    onceproof matrix scenarios/bugs/late-end-txn.toml --kafka 3.9.2,4.3.1 --client librdkafka,java==4.3.1 \
        --feature transaction.version=1,2 --json cells.json

A cell that is not possible (such as a feature that its brokers do not have) gives the reason and is not run. Clusters
are reused, so the cells run in the order of their clusters.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from itertools import product
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter

from onceproof.harness.artifacts import clients
from onceproof.harness.base import files
from onceproof.harness.base.errors import BadInput
from onceproof.harness.model.scenario import Scenario
from onceproof.harness.record import documents
from onceproof.harness.record.results import Results
from onceproof.report.junit import Case, junit
from onceproof.run.run import Run
from onceproof.suite import batch, rates
from onceproof.suite.batch import Line

# Feature → the first release whose brokers have it, and its highest level.
_FEATURES = {"transaction.version": ("4.0.0", 2), "group.version": ("4.0.0", 1)}
# Client → the first release in which the consumer protocol (KIP-848) is not a preview.
_CONSUMER_PROTOCOL = {"java": "4.0.0", "librdkafka": "2.12.0"}


@dataclass(frozen=True, kw_only=True)
class Axes:
    """The axes of a matrix. An empty axis means the value that the scenario has.

    `features` maps the name of a feature to the levels that are tried; `times` is the number of runs of each cell.
    """

    kafka: Sequence[str] = ()
    clients: Sequence[str] = ()
    features: Mapping[str, Sequence[int]]
    protocols: Sequence[str] = ()
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of a matrix and its result.

    - `scenario`: the name of the scenario.
    - `kafka`: the Kafka release.
    - `client`: the client of the workers.
    - `features`: the levels of the brokers' features, by name.
    - `group_protocol`: the protocol of the consumer group.
    - `effective`: the transaction.version in force; null if the cell was not run.
    - `result`: "proved", "refuted" or the verdict; or, if the cell was not run, the reason.
    - `as_expected`: whether the result is the expected one; null if the cell was not run.
    - `seed`: the seed of the run; null if the cell was not run.
    - `expectation`: the comparison with the scenario's expectation, in words.
    - `report`: the path of the report relative to the page; empty if the cell was not run.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")
    scenario: str
    kafka: str
    client: str
    features: Mapping[str, int]
    group_protocol: str
    effective: int | None = None
    result: str = ""
    as_expected: bool | None = None
    seed: int | None = None
    expectation: str = ""
    report: str = ""


_CELLS = TypeAdapter(list[Cell])


def cells(scenarios: Sequence[Scenario], axes: Axes) -> Iterator[tuple[Cell, Scenario]]:
    """Yield every cell with the scenario that it runs, cluster by cluster.

    A cell that is not possible has the reason as its result.
    """
    levels = list(product(*([(name, level) for level in each] for name, each in axes.features.items())))
    for kafka, chosen, scenario, client, protocol, _ in product(
        axes.kafka or [""], levels, scenarios, axes.clients or [""], axes.protocols or [""], range(axes.times)
    ):
        cluster, work = scenario.cluster, scenario.workload
        made = scenario.model_copy(
            update={
                "cluster": cluster.model_copy(
                    update={
                        "version": kafka or cluster.version,
                        "features": {**cluster.features, **dict(chosen)},
                    }
                ),
                "workload": work.model_copy(
                    update={
                        "client": client or work.client,
                        "group_protocol": protocol or work.group_protocol,
                    }
                ),
            }
        )
        cell = Cell(
            scenario=made.name,
            kafka=made.cluster.version,
            client=made.workload.client,
            features=made.cluster.features,
            group_protocol=made.workload.group_protocol,
        )
        yield replace(cell, result=why_impossible(cell) or _why_bug_out_of_reach(cell, made)), made


def run(
    wanted: Sequence[tuple[Cell, Scenario]], seed: int, options: batch.Options, done: Callable[[Cell, Results], None]
) -> list[Cell]:
    """Run every cell that is possible, with the seeds from `seed` on, and return all cells with their results.

    matrix.json, matrix.html and junit.xml are written after each run, and `done` is called. Raises HarnessError when a
    cluster does not come up.
    """
    found: dict[int, Cell] = {}
    todo = [index for index, (cell, _) in enumerate(wanted) if not cell.result]

    def table() -> list[Cell]:
        return [found.get(index, cell) for index, (cell, _) in enumerate(wanted)]

    def after(one: Run, results: Results, line: Line) -> None:
        index = todo[len(found)]
        cell = wanted[index][0]
        effective = results.versions.get("transaction.version")
        found[index] = replace(
            cell,
            effective=int(effective) if effective else None,
            result=results.result or results.headline,
            as_expected=line.as_expected,
            seed=line.seed,
            expectation=line.expectation,
            report=f"{one.folder.name}/report.html",
        )
        write(table(), options.folder)
        done(found[index], results)

    batch.run([(wanted[index][1], seed + number) for number, index in enumerate(todo)], options, after)
    return table()


def write(table: Sequence[Cell], folder: Path) -> None:
    """Write the cells as matrix.json, matrix.html and junit.xml."""
    files.write(folder / "matrix.json", _json(table))
    write_junit(table, folder)
    write_page(table, folder)


def resumed(wanted: Sequence[tuple[Cell, Scenario]], before: Sequence[Cell]) -> list[tuple[Cell, Scenario]]:
    """Return the cells of a matrix with the results that an earlier, incomplete one has already.

    Raises BadInput when the earlier one is of other cells.
    """
    if [columns(each)[:5] for each, _ in wanted] != [columns(each)[:5] for each in before]:
        raise BadInput("--resume: the matrix in this folder has other cells than the command")
    return [(old if old.result else cell, scenario) for (cell, scenario), old in zip(wanted, before, strict=True)]


def write_page(table: Sequence[Cell], folder: Path) -> Path:
    """Write the table as matrix.html, with each cell linked to its report; return the page's path."""
    rows = "\n".join(
        f"<tr class={'met' if cell.as_expected else 'skipped' if cell.as_expected is None else 'missed'}>"
        + "".join(f"<td>{escape(text)}</td>" for text in columns(cell)[:-1])
        + f"<td>{_linked(cell)}</td><td>{escape(cell.expectation)}</td></tr>"
        for cell in table
    )
    page = folder / "matrix.html"
    heads = "".join(f"<th>{head}" for head in (*COLUMNS, "expectation"))
    bounded = "".join(f"<li>{escape(line)}" for line in bounds(table))
    page.write_text(_PAGE.format(heads=heads, rows=rows, bounds=f"<ul>{bounded}</ul>" if bounded else ""))
    return page


def _linked(cell: Cell) -> str:
    """Return the result of a cell in HTML, linked to its report if the cell was run."""
    result = escape(cell.result)
    return f'<a href="{escape(cell.report)}">{result}</a>' if cell.report else result


def _json(table: Sequence[Cell]) -> str:
    return json.dumps([asdict(cell) for cell in table], indent=1) + "\n"


def read_json(path: Path) -> list[Cell]:
    """Return the cells that a matrix wrote as JSON. Raises BadInput when the file has other content."""
    return documents.read_list(path, _CELLS, what="the cells of a matrix")


def changes(before: Sequence[Cell], now: Sequence[Cell]) -> list[str]:
    """Return a line for each kind of cell whose result has changed, or that is new or no longer there.

    If there are several runs of one kind, each different result counts once. A release is compared with the previous
    one of its minor line: 4.3.2 with 4.3.1.
    """
    was, then = _results(before), _results(now)
    return [
        f"changed: {'  '.join(filter(None, kind))}: {_in_words(was.get(kind))} → {_in_words(then.get(kind))}"
        for kind in {**was, **then}
        if set(was.get(kind, {})) != set(then.get(kind, {}))
    ]


def unexpected(now: Sequence[Cell]) -> str:
    """Return a line that counts the cells that are not as expected, changed or not; empty if there are none."""
    wrong = sum(cell.as_expected is False for cell in now)
    return f"{wrong} of {len(now)} results are not as expected" if wrong else ""


def _results(table: Sequence[Cell]) -> dict[tuple[str, ...], dict[str, str]]:
    """Return kind of cell, with the minor line of its release → {result: a release that had this result}."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for cell in table:
        line = f"{cell.kafka.rpartition('.')[0]}.x"
        found.setdefault(columns(replace(cell, kafka=line))[:5], {})[cell.result] = cell.kafka
    return found


def _in_words(results: Mapping[str, str] | None) -> str:
    if results is None:
        return "not there"
    return ", ".join(f"{result} ({kafka})" for result, kafka in sorted(results.items()))


def bounds(table: Sequence[Cell]) -> list[str]:
    """Return a line for each kind of cell of a bug that was run several times: in how many of its runs it was proved.

    A bug that was proved in no run has a rate below a bound, with 95% confidence.
    """
    kinds: dict[tuple[str, ...], list[str]] = {}
    for cell in table:
        if cell.as_expected is not None:
            kinds.setdefault(columns(cell)[:5], []).append(cell.result)
    lines = []
    for kind, results in kinds.items():
        proved, judged = results.count("proved"), sum(each in ("proved", "refuted") for each in results)
        if judged < 2:
            continue
        rate = f"proved in {rates.said(proved, judged)}"
        says = rate if proved else f"refuted in {judged} runs: rate below {rates.upper_bound(judged):.0%} at 95%"
        lines.append(f"{'  '.join(filter(None, kind))}: {says}")
    return lines


def write_junit(table: Sequence[Cell], folder: Path) -> None:
    """Write junit.xml with a test case for each cell; a cell that was not run is a skipped test case."""
    cases = []
    for cell in table:
        name = " ".join(filter(None, columns(cell)[:5]))
        if cell.as_expected is None:
            cases.append(Case(name=name, skipped=cell.result))
        else:
            cases.append(Case(name=name, failure="" if cell.as_expected else cell.expectation))
    (folder / "junit.xml").write_text(junit("onceproof matrix", cases), encoding="utf-8")


COLUMNS = ("scenario", "kafka", "client", "features", "group protocol", "transaction.version in force", "result")


def columns(cell: Cell) -> tuple[str, ...]:
    """Return a cell as texts, one for each of COLUMNS."""
    features = ", ".join(f"{name}={level}" for name, level in cell.features.items())
    in_force = "" if cell.effective is None else str(cell.effective)
    return cell.scenario, cell.kafka, cell.client, features, cell.group_protocol, in_force, cell.result


def why_impossible(cell: Cell) -> str:
    """Return why the brokers or the client do not support this cell; empty if they do."""
    for name, level in cell.features.items():
        since, highest = _FEATURES.get(name, ("0.0.0", level))
        if level and _numbers(cell.kafka) < _numbers(since):
            return f"no {name} before Kafka {since}"
        if level > highest:
            return f"the highest level of {name} is {highest}"
    if cell.group_protocol != "consumer":
        return ""
    if _numbers(cell.kafka) < (4, 0, 0):
        return "group.protocol=consumer is a preview before Kafka 4.0.0"
    since = _CONSUMER_PROTOCOL[clients.family(cell.client)]
    if _numbers(clients.in_use(cell.client)) < _numbers(since):
        return f"group.protocol=consumer is a preview in {clients.family(cell.client)} before {since}"
    return ""


def _why_bug_out_of_reach(cell: Cell, scenario: Scenario) -> str:
    """Return why the faults of a bug's scenario cannot act in this cell; empty if they can.

    A bug may need a transaction.version that is not in force with these brokers and this client.
    """
    if scenario.bug is None or not scenario.bug.transaction_version:
        return ""
    since, highest = _FEATURES["transaction.version"]
    brokers = {"transaction.version": 0 if _numbers(cell.kafka) < _numbers(since) else highest, **cell.features}
    in_force = clients.transaction_version(cell.client, brokers)
    if in_force in scenario.bug.transaction_version:
        return ""
    return f"nothing to hold with transaction.version {in_force}"


def _numbers(version: str) -> tuple[int, ...]:
    """Return a release as numbers: (4, 3, 1) for 4.3.1."""
    return tuple(int(part) for part in version.split("."))


_PAGE = """<!doctype html><html lang=en><meta charset=utf-8><title>onceproof: matrix</title>
<style>body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem }}
table {{ border-collapse: collapse; width: 100% }}
td, th {{ text-align: left; padding: .3rem .6rem; border-top: 1px solid #ddd }}
.missed {{ background: #fbe9e7 }} .skipped {{ color: #777 }}</style>
<h1>Matrix</h1><table><tr>{heads}</tr>
{rows}
</table>{bounds}</html>
"""
