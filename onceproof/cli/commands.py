"""Implement the commands of the command line. Each function takes the parsed options and returns the exit status.

Modules that need a Docker engine, Spark or a JVM are imported when a command needs them, so that `--help` and errors
in the input are answered immediately.
"""

from __future__ import annotations

import argparse
import secrets
import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from onceproof.cli import terminal
from onceproof.harness.artifacts import clients, jars
from onceproof.harness.base import paths
from onceproof.harness.base.errors import BadInput, suggestion
from onceproof.harness.base.progress import Progress
from onceproof.harness.base.text import shown
from onceproof.harness.model import registry
from onceproof.harness.model.scenario import Expect, Scenario
from onceproof.harness.model.spec import RandomSpec, WorkloadSpec
from onceproof.harness.record.results import Results

if TYPE_CHECKING:
    from onceproof.run.run import Run
    from onceproof.suite.batch import Line
    from onceproof.suite.matrix import Cell

AS_EXPECTED, NOT_AS_EXPECTED, BAD_INPUT, FAILED = 0, 1, 2, 3


def run(options: argparse.Namespace) -> int:
    """Run a scenario, or all scenarios in a folder, and print each verdict with the path of its report."""
    from onceproof.harness.model import plan, scenario
    from onceproof.suite import batch, preflight

    files = find(options.scenario)
    loaded = {path: _with_options(scenario.load(path), options) for path in files}
    preflight.writable(options.runs)
    preflight.machine(options.spark_master)
    for path, each in loaded.items():
        preflight.check(each, str(path))
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    runs = [(each, seed + number) for number in range(options.count) for each in loaded.values()]
    named = {each.name: str(path) for path, each in loaded.items()} if len(files) > 1 else {}
    if options.dry_run:
        for each, seed in runs:
            _say(plan.make(each, seed).to_json().rstrip())
        return AS_EXPECTED
    _prepare((each.cluster.version, each.workload.client) for each in loaded.values())

    def command(each: Scenario, seed: int) -> str:
        said = _repeat_command(each, seed, named.get(each.name, str(options.scenario)))
        said += (" --faults random" if options.faults else "") + (" --no-faults" if options.no_faults else "")
        return said + (" --mode ledger" if options.mode == "ledger" else "") + (" --twin" if options.twin else "")

    statuses = [AS_EXPECTED]

    def done(one: Run, results: Results, line: Line) -> None:
        _print_results(results)
        _say(f"report: {one.folder / 'report.html'}")
        _say(
            f"seconds of each phase: {', '.join(f'{name} {spent:g}' for name, spent in line.phases.items())}; "
            f"total: {line.seconds:.1f}"
        )
        statuses.append(_status(results))

    folder = options.runs if len(runs) == 1 else options.runs / datetime.now(UTC).strftime("all-%Y%m%dT%H%M%S")
    with Progress(quiet=options.quiet) as progress:
        how = batch.Options(
            folder=folder,
            progress=progress,
            command=command,
            master=options.spark_master,
            mode=options.mode,
            keep=options.keep,
            faults=not options.no_faults,
        )
        lines = batch.run(runs, how, done)
    if len(runs) > 1:
        met = sum(line.as_expected for line in lines)
        _say(f"{met} of {len(lines)} runs as expected: {batch.write_page(lines, folder)}")
    return max(statuses)


def _prepare(wanted: Iterable[tuple[str, str]]) -> None:
    """Build or fetch what pairs of a Kafka version and a client need, before anything starts.

    Raises BadInput when a version does not exist.
    """
    from onceproof.harness.artifacts import images

    pairs = set(wanted)
    for version in sorted({version for version, _ in pairs}):
        images.kafka(version)
    for client in sorted({client for _, client in pairs}):
        clients.prepare(client)


def _repeat_command(each: Scenario, seed: int, path: str = "") -> str:
    """Return the command line that repeats a run."""
    said = f"onceproof run {shlex.quote(path or each.name)} --seed {seed} --kafka {each.cluster.version}"
    defaults, work = WorkloadSpec(name=each.workload.name), each.workload
    said += f" --client {work.client}" if work.client != defaults.client else ""
    said += f" --group-protocol {work.group_protocol}" if work.group_protocol != defaults.group_protocol else ""
    return said + "".join(f" --feature {name}={level}" for name, level in each.cluster.features.items())


def _with_options(loaded: Scenario, options: argparse.Namespace) -> Scenario:
    """Return the scenario with the options of the command line applied."""
    if options.faults == "random":
        loaded = _with_random(loaded)
    if options.twin:
        loaded = _twin(loaded)
    cluster = {
        "version": jars.release(options.kafka or loaded.cluster.version),
        "features": {**loaded.cluster.features, **options.feature},
    }
    work = {
        "client": options.client or loaded.workload.client,
        "group_protocol": options.group_protocol or loaded.workload.group_protocol,
    }
    return loaded.model_copy(
        update={
            "cluster": loaded.cluster.model_copy(update=cluster),
            "workload": loaded.workload.model_copy(update=work),
        }
    )


def _twin(loaded: Scenario) -> Scenario:
    """Return the twin of a scenario: without its faults on single requests, and expected to be valid.

    Raises BadInput when the scenario has no such fault.
    """
    from onceproof.harness.context.fault import Wired

    faults = tuple(each for each in loaded.faults if not isinstance(registry.fault(each.name), Wired))
    if len(faults) == len(loaded.faults):
        raise BadInput(f"--twin: the scenario {loaded.name} has no fault on single requests to leave out")
    return loaded.model_copy(update={"faults": faults, "expect": Expect(verdict="valid"), "bug": None})


def matrix(options: argparse.Namespace) -> int:
    """Run a matrix of scenarios, versions, clients and features, and print and write the table of its results.

    With `--against`, the exit status says whether the result of a cell has changed since an earlier matrix.
    """
    from onceproof.harness.model import scenario
    from onceproof.suite import batch, matrix, preflight

    scenarios = [scenario.load(file) for path in options.scenarios for file in find(path)]
    axes = matrix.Axes(
        kafka=[jars.release(each) for each in options.kafka],
        clients=options.client,
        features=options.feature,
        protocols=options.group_protocol,
        times=options.count,
    )
    wanted = list(matrix.cells(scenarios, axes))
    if options.resume:
        wanted = matrix.resumed(wanted, matrix.read_json(options.resume / "matrix.json"))
    before = matrix.read_json(options.against) if options.against else None
    if options.dry_run:
        _table(matrix.COLUMNS, (matrix.columns(cell) for cell, _ in wanted))
        return AS_EXPECTED
    preflight.writable(options.runs)
    told = preflight.writable_file(options.json) if options.json else None
    preflight.machine(options.spark_master)
    for cell, each in wanted:
        if not cell.result:
            preflight.check(each, each.name)
    _prepare((cell.kafka, cell.client) for cell, _ in wanted if not cell.result)
    new = options.runs / datetime.now(UTC).strftime("matrix-%Y%m%dT%H%M%S")
    folder = preflight.writable(options.resume or new)
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    statuses = [AS_EXPECTED]

    def done(cell: Cell, results: Results) -> None:
        _say("  ".join(matrix.columns(cell)))
        statuses.append(_status(results))

    with Progress(quiet=options.quiet) as progress:
        how = batch.Options(folder=folder, progress=progress, command=_repeat_command, master=options.spark_master)
        found = matrix.run(wanted, seed, how, done)
    _table(matrix.COLUMNS, (matrix.columns(cell) for cell in found))
    matrix.write(found, folder)
    if told:
        matrix.write_json(found, told)
    _say(f"matrix: {folder / 'matrix.html'}")
    if before is not None:
        changed = matrix.changes(before, found)
        _say("\n".join(changed) if changed else f"no result has changed since {options.against}")
        statuses = [FAILED] if FAILED in statuses else [NOT_AS_EXPECTED if changed else AS_EXPECTED]
    return max(statuses)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table with the heads of its columns."""
    table = Table(*heads, box=None)
    for row in rows:
        table.add_row(*(escape(shown(each)) for each in row))
    terminal.console().print(table)


def soak(options: argparse.Namespace) -> int:
    """Execute a soak, and print and write its summary."""
    from onceproof.harness.model import scenario
    from onceproof.suite import batch, preflight, soak

    wanted = options.scenarios or [paths.scenarios_dir() / "soak"]
    loaded = [_with_random(scenario.load(file)) for path in wanted for file in find(path)]
    before = soak.read(options.resume / "soak.json") if options.resume else None
    folder = preflight.writable(options.resume or options.runs)
    preflight.machine(options.spark_master)
    for each in loaded:
        preflight.check(each, each.name)
    _prepare((each.cluster.version, each.workload.client) for each in loaded)
    with Progress(quiet=options.quiet) as progress:
        how = batch.Options(folder=folder, progress=progress, master=options.spark_master, command=_repeat_command)
        done = soak.soak(loaded, runs=options.count, seed=options.seed, options=how, say=_say, done=before)
    (folder / "soak.md").write_text(done.summary())
    _say(done.summary())
    return AS_EXPECTED if done.held else NOT_AS_EXPECTED


def bench(options: argparse.Namespace) -> int:
    """Execute a benchmark of the verdict or of the request proxy, and print its tables."""
    from onceproof.bench import verify, wire
    from onceproof.suite import preflight

    preflight.writable(options.runs)
    preflight.machine(options.spark_master)
    if options.what == "wire":
        with Progress(quiet=options.quiet) as progress:
            rates = wire.wire(
                records=options.records,
                sizes=options.sizes,
                rounds=options.rounds,
                folder=options.runs,
                progress=progress,
            )
        _say(wire.table(rates))
        held = all(wire.ratio(turns) >= wire.AT_LEAST for turns in rates.values())
        return AS_EXPECTED if held else NOT_AS_EXPECTED
    with Progress(quiet=options.quiet) as progress:
        found = verify.verify(
            records=options.records,
            sizes=options.sizes,
            rounds=options.rounds,
            folder=options.runs,
            progress=progress,
            master=options.spark_master,
        )
    _say(verify.table(found))
    return AS_EXPECTED if all(each.held for each in verify.targets(found)) else NOT_AS_EXPECTED


def _with_random(scenario: Scenario) -> Scenario:
    """Return the scenario with faults drawn from the seed, unless it already has some."""
    return scenario if scenario.random else scenario.model_copy(update={"random": RandomSpec()})


def verify(options: argparse.Namespace) -> int:
    """Judge a run's folder again, print the verdict, and write its report."""
    _run_folder(options.run)
    from onceproof.report import report
    from onceproof.suite import preflight
    from onceproof.verifiers.verify import verify

    preflight.machine(options.spark_master)
    try:
        results = verify(options.run, master=options.spark_master, checks=options.check)
    except OSError as error:  # such as a full disk: what was found is not recorded, so it is no verdict
        _say(_line(f"{options.run.absolute().name}: unknown: harness-error: {error}"))
        return FAILED
    _print_results(results)
    try:
        _say(f"report: {report.write(options.run)}")
    except Exception as error:  # the verdict does not depend on the report
        _say(_line(f"the report was not written: {type(error).__name__}: {error}"))
    return _status(results)


def report(options: argparse.Namespace) -> int:
    """Write the report of a run's folder again, and print its path."""
    _run_folder(options.run)
    from onceproof.report import report

    _say(str(report.write(options.run)))
    return AS_EXPECTED


def images(options: argparse.Namespace) -> int:
    """Build the images for a Kafka version, and print their names."""
    from onceproof.harness.artifacts import images

    paths.made(paths.home())
    _say(f"{images.tag_for_hand(options.version)}\n{images.TOXIPROXY_IMAGE}\n{images.wire()}")
    return AS_EXPECTED


def doctor(_options: argparse.Namespace) -> int:
    """Print what this machine needs, what is missing, and how to get it."""
    from onceproof.cli import doctor

    missing = 0
    for check in doctor.checks():
        _say(f"{'ok     ' if check.ok else 'MISSING'}  {check.what}" + ("" if check.ok else f": {check.how}"))
        missing += not check.ok
    return NOT_AS_EXPECTED if missing else AS_EXPECTED


def setup(options: argparse.Namespace) -> int:
    """Install what is missing on this machine, or print what would be installed or what is missing."""
    from onceproof.cli import setup

    status = setup.setup(dry_run=options.dry_run, no_install=options.no_install)
    if status == AS_EXPECTED and not options.dry_run:
        _say("setup: everything that a run needs is there")
    return status


def clean(options: argparse.Namespace) -> int:
    """Remove what killed or kept runs left on this machine, with `--all` everything that onceproof put there; print it.

    With `--dry-run`, only print what would be removed.
    """
    from onceproof.cli import uninstall
    from onceproof.harness.cluster import pool

    if options.all and options.dry_run:
        uninstall.remove(_say, dry_run=True)
        return AS_EXPECTED
    if not options.dry_run:
        paths.made(paths.clusters_dir())
    removed = pool.clean(_say, dry_run=options.dry_run)
    if options.all:
        if used := pool.in_use():
            raise BadInput(f"clean --all: {', '.join(used)}: in use by a running process, so nothing else is removed")
        uninstall.remove(_say, dry_run=False)
        return AS_EXPECTED
    if not removed:
        _say("there is nothing to remove" if options.dry_run else "there was nothing to remove")
    elif not options.dry_run:
        _say(f"{removed} files, folders, processes, containers and networks removed")
    return AS_EXPECTED


def find(path: Path) -> list[Path]:
    """Return a scenario file, all files in a folder, or the file of a scenario that comes with onceproof.

    Such a scenario is given by its name, with or without `.toml`. Raises BadInput when there is no such file.
    """
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:  # too long, in a loop of links, not permitted
        says = getattr(error, "strerror", None) or error
        raise BadInput(f"{str(path)[:80]}: no such scenario: {says}") from None
    if path.is_dir():
        files = sorted(path.rglob("*.toml"))
        if not files:
            raise BadInput(f"{path}: there is no scenario in this folder; scenarios are TOML files")
        return files
    if path.exists():
        return [path]
    names = sorted(paths.scenarios_dir().rglob("*.toml"))
    for candidate in names:
        if path.name in (candidate.name, candidate.stem) and len(path.parts) == 1:
            return [candidate]
    stems = [name.stem for name in names]
    says = (
        f"{path}: no such scenario{suggestion(path.stem, stems)}; a TOML file, or one of {', '.join(stems)} is expected"
    )
    raise BadInput(says)


def _run_folder(folder: Path) -> None:
    """Raise BadInput when there is no such folder."""
    try:
        there = folder.is_dir()
    except (OSError, ValueError) as error:  # too long, or with a null character
        says = getattr(error, "strerror", None) or error
        raise BadInput(f"{str(folder)[:80]}: no such folder: {says}") from None
    if not there:
        raise BadInput(f"{folder}: no such folder; a run's folder looks like runs/<name>-<seed>-<time>")


def _print_results(results: Results) -> None:
    """Print a verdict with its findings, its reasons and the counts."""
    colours = {"valid": "green", "unknown": "yellow", "invalid": "red"}
    console = terminal.console()
    headline, expectation = (
        escape(shown(each)) for each in (f"{results.name}: {results.headline}", results.expectation)
    )
    said = f"[bold {colours[results.verdict]}]{headline}[/]  ({expectation})"
    console.print(said, soft_wrap=True)
    for finding in results.findings:
        console.print(shown(f"  {finding.cls} × {finding.count}: {finding.says}"), markup=False, soft_wrap=True)
        for sample in list(finding.samples)[:3]:
            where = f"{sample['topic']}/{sample['partition']} offset {sample['offset']}"
            number = f", input number {sample['number']}" if "number" in sample else ""
            console.print(f"    {where}{number}", markup=False, soft_wrap=True)
    for reason in results.reasons:
        console.print(shown(f"  {reason.kind}: {reason.says}"), markup=False, soft_wrap=True)
    for lint in results.lints or ():
        console.print(shown(f"  lint {lint.name} × {lint.count}: {lint.says}"), markup=False, soft_wrap=True)
    counts = ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in results.counts.items())
    console.print(counts, markup=False, soft_wrap=True)


def _status(results: Results) -> int:
    """Return the exit status for the results of a run."""
    if any(reason.kind == "harness-error" for reason in results.reasons):
        return FAILED
    return AS_EXPECTED if results.as_expected else NOT_AS_EXPECTED


def _line(text: str) -> str:
    """Return a text of others in one line."""
    return " ".join(shown(text).split())


def _say(text: str) -> None:
    terminal.console().print(shown(text), markup=False, soft_wrap=True)
