"""The command line. Exit status: 0 as expected, 1 not, 2 bad input, 3 the harness failed.

    onceproof run SCENARIO [--seed N] [--kafka V] [--keep]      a run, its verdict, the path of its report
    onceproof soak [--runs N] [--seed S]    many runs with random faults, and what they add up to
    onceproof verify RUN        the verdict again, from the run's folder alone
    onceproof report RUN        the report again
    onceproof list              scenarios, workloads, faults
    onceproof images [V]        build what `docker compose up` needs
    onceproof doctor            what is missing and how to get it
    onceproof clean             remove whatever killed or kept runs left
"""

import argparse
import importlib
import secrets
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.table import Table

from harness import places
from harness.errors import BadInput, HarnessError
from harness.scenario import DEFAULT_KAFKA, Scenario
from harness.verdict import Results

AS_EXPECTED, NOT_AS_EXPECTED, BAD_INPUT, FAILED = 0, 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status. (The console script passes it on to the system.)"""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return int(options.command(options))
    except BadInput as error:
        print(f"onceproof: {error}", file=sys.stderr)  # noqa: T201
        return BAD_INPUT
    except HarnessError as error:
        print(f"onceproof: {error}", file=sys.stderr)  # noqa: T201
        return FAILED
    except KeyboardInterrupt:
        print("onceproof: interrupted; what it started is ended", file=sys.stderr)  # noqa: T201
        return FAILED


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="onceproof", description="Proofs of exactly-once on real Kafka clusters.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run a scenario")
    run.add_argument("scenario", type=Path, help="a scenario file (TOML), or the name of one that comes with onceproof")
    run.add_argument("--seed", type=int, help="repeats the plan of an earlier run (default: a new one)")
    run.add_argument("--kafka", metavar="VERSION", help=f"Kafka version (default: the scenario's, or {DEFAULT_KAFKA})")
    run.add_argument("--faults", choices=["random"], help="besides the scenario's: drawn from the seed")
    run.add_argument("--mode", choices=["full", "ledger"], default="full",
                     help="full: read the input topic; ledger: trust what was acknowledged")  # fmt: skip
    run.add_argument("--keep", action="store_true", help="leave the cluster up for the next run")
    run.add_argument("--runs", type=Path, default=Path("runs"), help="where the run's folder goes (default: runs)")
    run.add_argument("--quiet", action="store_true", help="print the verdict only")
    run.add_argument("--spark-master", default="local[2]", help="where collect and verify run (default: local[2])")
    run.set_defaults(command=_run)

    soak = commands.add_parser("soak", help="many runs with faults drawn from seeds, and what they add up to")
    soak.add_argument("scenarios", type=Path, nargs="*", help="scenario files (default: those of scenarios/soak)")
    soak.add_argument("--runs", type=_positive, default=50, dest="count", metavar="N", help="how many (default: 50)")
    soak.add_argument("--seed", type=int, default=1, help="of the first run; each next one has the next (default: 1)")
    soak.add_argument("--folder", type=Path, default=Path("runs/soak"), help="where it goes (default: runs/soak)")
    soak.add_argument("--quiet", action="store_true", help="print a line a run, and the sum")
    soak.add_argument("--spark-master", default="local[2]", help=argparse.SUPPRESS)
    soak.set_defaults(command=_soak)

    for name, says, command in (
        ("verify", "judge a run's folder again; no cluster needed", _verify),
        ("report", "write a run's report again", _report),
    ):
        again = commands.add_parser(name, help=says)
        again.add_argument("run", type=Path, help="a run's folder")
        again.add_argument("--spark-master", default="local[2]", help=argparse.SUPPRESS)
        again.set_defaults(command=command)

    images = commands.add_parser("images", help="build the images that a version needs")
    images.add_argument("version", nargs="?", default=DEFAULT_KAFKA)
    images.set_defaults(command=_images)
    for name, says, simple in (
        ("list", "scenarios, workloads and faults", _list),
        ("doctor", "what is missing and how to get it", _doctor),
        ("clean", "remove whatever killed or kept runs left", _clean),
    ):
        commands.add_parser(name, help=says).set_defaults(command=simple)
    return parser


def _run(options: argparse.Namespace) -> int:
    from harness import images, pool, scenario
    from harness.progress import Progress
    from harness.run import Run

    loaded = scenario.load(_find(options.scenario))
    if options.faults == "random":
        loaded = _with_random(loaded)
    if options.kafka:
        loaded = loaded.model_copy(update={"cluster": loaded.cluster.model_copy(update={"version": options.kafka})})
    images.kafka(loaded.cluster.version)  # an unknown version is refused before anything starts
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    command = f"onceproof run {shlex.quote(str(options.scenario))} --seed {seed} --kafka {loaded.cluster.version}"
    command += (" --faults random" if options.faults else "") + (" --mode ledger" if options.mode == "ledger" else "")
    with Progress(quiet=options.quiet) as progress:
        progress.say(f"{loaded.name}, seed {seed}")
        progress.phase("up")
        with pool.lease(loaded.cluster, keep=options.keep, say=progress.say) as cluster:
            run = Run(
                loaded, seed=seed, cluster=cluster, runs=options.runs, progress=progress, command=command,
                master=options.spark_master, mode=options.mode,
            )  # fmt: skip
            results = run.all()
            progress.phase("down")
            seconds = ", ".join(f"{name} {spent:g}" for name, spent in progress.seconds.items())
            _tell(results, run.folder)
            _say(f"seconds: {seconds}; from the command to the verdict {sum(progress.seconds.values()):.1f}")
    return _status(results)


def _soak(options: argparse.Namespace) -> int:
    from harness import scenario
    from harness.progress import Progress
    from harness.soak import soak

    paths = options.scenarios or sorted((places.scenarios_dir() / "soak").glob("*.toml"))
    loaded = [_with_random(scenario.load(_find(path))) for path in paths]
    options.folder.mkdir(parents=True, exist_ok=True)
    with Progress(quiet=options.quiet) as progress:
        done = soak(loaded, runs=options.count, seed=options.seed, folder=options.folder, progress=progress,
                    master=options.spark_master, say=_say)  # fmt: skip
    (options.folder / "soak.md").write_text(done.summary())
    _say(done.summary())
    return NOT_AS_EXPECTED if done.count("invalid") else AS_EXPECTED


def _with_random(scenario: Scenario) -> Scenario:
    """The scenario with faults drawn from the seed, if it has none of that kind yet."""
    from harness.scenario import RandomSpec

    return scenario if scenario.random else scenario.model_copy(update={"random": RandomSpec()})


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: allowed: a whole number from 1 on")
    return int(text)


def _verify(options: argparse.Namespace) -> int:
    _run_folder(options.run)
    results: Results = importlib.import_module("verifiers.verify").verify(options.run, master=options.spark_master)
    importlib.import_module("harness.report").write(options.run)
    _tell(results, options.run)
    return _status(results)


def _report(options: argparse.Namespace) -> int:
    _run_folder(options.run)
    _say(str(importlib.import_module("harness.report").write(options.run)))
    return AS_EXPECTED


def _images(options: argparse.Namespace) -> int:
    from harness import images

    _say(f"{images.tag_for_hand(options.version)}\n{images.TOXIPROXY_IMAGE}")
    return AS_EXPECTED


def _list(_options: argparse.Namespace) -> int:
    from harness import registry, scenario

    table = Table("scenario", "workload", "faults", "expected", "what it shows", box=None)
    for path in sorted(places.scenarios_dir().rglob("*.toml")):
        each = scenario.load(path)
        wanted = ", ".join(each.expect.findings) or each.expect.expected_verdict
        faults = ", ".join(fault.name for fault in each.faults) or "none"
        table.add_row(str(path.relative_to(places.scenarios_dir())), each.workload.name, faults, wanted,
                      " ".join(each.about.split()))  # fmt: skip
    console = Console()
    console.print(table)
    abouts = {
        "workload": {name: workload.about for name, workload in registry.workloads().items()},
        "fault": {name: fault.about for name, fault in registry.faults().items()},
    }
    for title, entries in abouts.items():
        listed = Table(title, "what it is", box=None)
        for name, about in sorted(entries.items()):
            listed.add_row(name, about)
        console.print(listed)
    return AS_EXPECTED


def _doctor(_options: argparse.Namespace) -> int:
    from harness import doctor

    missing = 0
    for check in doctor.checks():
        _say(f"{'ok     ' if check.ok else 'MISSING'}  {check.what}" + ("" if check.ok else f": {check.how}"))
        missing += not check.ok
    return FAILED if missing else AS_EXPECTED


def _clean(_options: argparse.Namespace) -> int:
    from harness import pool

    removed = pool.clean(_say)
    _say("nothing to clean" if not removed else f"{removed} things removed")
    return AS_EXPECTED


def _find(path: Path) -> Path:
    """A scenario file, or the name of one that comes with onceproof, with or without `.toml`."""
    if path.exists():
        return path
    names = sorted(places.scenarios_dir().rglob("*.toml"))
    for candidate in names:
        if path.name in (candidate.name, candidate.stem) and len(path.parts) == 1:
            return candidate
    raise BadInput(f"{path}: no such scenario; a TOML file, or one of {', '.join(name.stem for name in names)}")


def _run_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; a run's folder looks like runs/<name>-<seed>-<time>")


def _tell(results: Results, folder: Path) -> None:
    colours = {"valid": "green", "unknown": "yellow", "invalid": "red"}
    console = Console(highlight=False)
    console.print(f"[bold {colours[results.verdict]}]{results.headline}[/]  ({results.expectation})")
    for finding in results.findings:
        console.print(f"  {finding.cls} × {finding.count}: {finding.says}", markup=False)
        for sample in list(finding.samples)[:3]:
            where = f"{sample['topic']}/{sample['partition']} offset {sample['offset']}"
            number = f", input number {sample['number']}" if "number" in sample else ""
            console.print(f"    {where}{number}", markup=False, soft_wrap=True)
    for reason in results.reasons:
        console.print(f"  {reason.kind}: {reason.says}", markup=False, soft_wrap=True)
    counts = ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in results.counts.items())
    console.print(counts, markup=False, soft_wrap=True)
    console.print(f"report: {folder / 'report.html'}", markup=False, soft_wrap=True)


def _status(results: Results) -> int:
    if any(reason.kind == "harness-error" for reason in results.reasons):
        return FAILED
    return AS_EXPECTED if results.as_expected else NOT_AS_EXPECTED


def _say(text: str) -> None:
    Console(highlight=False).print(text, markup=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
