"""The command line. Exit status: 0 as expected, 1 not, 2 bad input, 3 the harness failed.

onceproof run SCENARIO [--seed N] [--kafka V] [--keep]      a run, its verdict, the path of its report
onceproof run FOLDER [--times N]        all of them on clusters that are used again, and a page that links to each
onceproof matrix SCENARIO… --kafka V,V --client C,C     each with each, as one table
onceproof soak [--runs N] [--seed S]    many runs with random faults, and what they add up to
onceproof bench verify [--records N]    how long a verdict takes, against other readers of the same topics
onceproof bench wire        what the wire proxy costs a pipeline
onceproof verify RUN        the verdict again, from the run's folder alone
onceproof report RUN        the report again
onceproof list              scenarios, workloads, faults
onceproof images [V]        build what `docker compose up` needs
onceproof doctor            what is missing and how to get it
onceproof clean             remove whatever killed or kept runs left
"""

import argparse
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from onceproof.cli import commands
from onceproof.cli.commands import BAD_INPUT, FAILED
from onceproof.harness.artifacts.clients import CLIENT, DEFAULT_KAFKA
from onceproof.harness.base.errors import BadInput, HarnessError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status. (The console script passes it on to the system.)"""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not so of a job in the background
        signal.signal(signal.SIGINT, _interrupt)
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
    except Exception as error:
        if not _of_the_machine(error):
            traceback.print_exc()
        print(f"onceproof: {type(error).__name__}: {error}; `onceproof doctor` says what is missing", file=sys.stderr)  # noqa: T201
        return FAILED


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Ends what runs. A second signal would end the ending, and leave containers behind: it is not heard."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    print("onceproof: interrupted; ending what it started", file=sys.stderr)  # noqa: T201
    raise KeyboardInterrupt


def _of_the_machine(error: Exception) -> bool:
    """Whether it says what the machine lacks, an engine, a disk, a program: where in our code is no matter then."""
    return isinstance(error, OSError | subprocess.SubprocessError) or type(error).__module__.startswith("docker.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="onceproof", description="Proofs of exactly-once on real Kafka clusters.")
    subcommands = parser.add_subparsers(required=True, metavar="COMMAND")

    _add_run(subcommands)
    _add_matrix(subcommands)
    _add_soak_and_bench(subcommands)
    for name, says, command in (
        ("verify", "judge a run's folder again; no cluster needed", commands.verify),
        ("report", "write a run's report again", commands.report),
    ):
        again = subcommands.add_parser(name, help=says)
        again.add_argument("run", type=Path, help="a run's folder")
        again.add_argument("--spark-master", default="local[2]", help=argparse.SUPPRESS)
        again.set_defaults(command=command)

    images = subcommands.add_parser("images", help="build the images that a version needs")
    images.add_argument("version", nargs="?", default=DEFAULT_KAFKA)
    images.set_defaults(command=commands.images)
    listing = subcommands.add_parser("list", help="scenarios, workloads and faults")
    listing.add_argument("--page", type=Path, metavar="FILE", help="write the catalogue's page instead")
    listing.add_argument("--times", type=Path, metavar="FOLDER", help="with the times of these runs")
    listing.set_defaults(command=commands.list_all)
    for name, says, simple in (
        ("doctor", "what is missing and how to get it", commands.doctor),
        ("clean", "remove whatever killed or kept runs left", commands.clean),
    ):
        subcommands.add_parser(name, help=says).set_defaults(command=simple)
    return parser


def _add_run(subcommands: Any) -> None:
    run = subcommands.add_parser("run", help="run a scenario")
    run.add_argument("scenario", type=Path, help="a scenario file (TOML), a folder of them, or the name of one of ours")
    run.add_argument("--seed", type=int, help="repeats the plan of an earlier run (default: a new one)")
    run.add_argument(
        "--kafka",
        metavar="VERSION",
        help=f"a release, latest, latest-1, 4.1.x (default: the scenario's, or {DEFAULT_KAFKA})",
    )
    run.add_argument("--client", type=_client, help="librdkafka or java, or a version of them: java==3.9.2")
    run.add_argument(
        "--feature",
        type=_level,
        action=_Features,
        default={},
        metavar="NAME=LEVEL",
        help="a feature of the brokers: transaction.version=1",
    )
    run.add_argument("--group-protocol", choices=["classic", "consumer"])
    run.add_argument("--twin", action="store_true", help="without its faults on single requests: must be valid")
    run.add_argument("--faults", choices=["random"], help="besides the scenario's: drawn from the seed")
    run.add_argument("--no-faults", action="store_true", help="leave the faults out: what then is valid shows nothing")
    run.add_argument("--times", type=_positive, default=1, metavar="N", help="each N times, with seeds that follow")
    run.add_argument(
        "--mode",
        choices=["full", "ledger"],
        default="full",
        help="full: read the input topic; ledger: trust what was acknowledged",
    )
    run.add_argument("--keep", action="store_true", help="leave the cluster up for the next run")
    run.add_argument("--runs", type=Path, default=Path("runs"), help="where the run's folder goes (default: runs)")
    run.add_argument("--quiet", action="store_true", help="print the verdict only")
    run.add_argument("--spark-master", default="local[2]", help="where collect and verify run (default: local[2])")
    run.set_defaults(command=commands.run)


def _add_matrix(subcommands: Any) -> None:
    matrix = subcommands.add_parser("matrix", help="scenarios × Kafka versions × clients × features, as one table")
    matrix.add_argument("scenarios", type=Path, nargs="+", help="scenario files, folders of them, or names of ours")
    matrix.add_argument(
        "--kafka", type=_listed(str), default=[], metavar="V,V", help="releases, latest, latest-1, 4.1.x"
    )
    matrix.add_argument("--client", type=_listed(_client), default=[], metavar="C,C", help="librdkafka, java==3.9.2, …")
    matrix.add_argument(
        "--feature",
        type=_levels,
        action=_Features,
        default={},
        metavar="NAME=L,L",
        help="levels of a feature of the brokers: transaction.version=1,2",
    )
    matrix.add_argument("--group-protocol", type=_listed(_protocol), default=[], metavar="P,P")
    matrix.add_argument("--times", type=_positive, default=1, metavar="N", help="each cell N times")
    matrix.add_argument("--seed", type=int, help="of the first run; each next one has the next (default: a new one)")
    matrix.add_argument("--json", type=Path, metavar="FILE", help="the cells as JSON (default: beside the page)")
    matrix.add_argument(
        "--against", type=Path, metavar="FILE", help="an earlier --json; exit status 1 when a cell came out otherwise"
    )
    matrix.add_argument("--dry-run", action="store_true", help="print the cells and run none")
    matrix.add_argument("--runs", type=Path, default=Path("runs"), help="where the runs go (default: runs)")
    matrix.add_argument("--quiet", action="store_true", help="print the table only")
    matrix.add_argument("--spark-master", default="local[2]", help=argparse.SUPPRESS)
    matrix.set_defaults(command=commands.matrix)


def _add_soak_and_bench(subcommands: Any) -> None:
    soak = subcommands.add_parser("soak", help="many runs with faults drawn from seeds, and what they add up to")
    soak.add_argument("scenarios", type=Path, nargs="*", help="scenario files (default: those of scenarios/soak)")
    soak.add_argument("--runs", type=_positive, default=50, dest="count", metavar="N", help="how many (default: 50)")
    soak.add_argument("--seed", type=int, default=1, help="of the first run; each next one has the next (default: 1)")
    soak.add_argument("--folder", type=Path, default=Path("runs/soak"), help="where it goes (default: runs/soak)")
    soak.add_argument("--quiet", action="store_true", help="print a line a run, and the sum")
    soak.add_argument("--spark-master", default="local[2]", help=argparse.SUPPRESS)
    soak.set_defaults(command=commands.soak)

    bench = subcommands.add_parser("bench", help="how long it takes, against others, in one run")
    bench.add_argument("what", choices=["verify", "wire"])
    bench.add_argument("--records", type=_positive, default=1_000_000, metavar="N", help="inputs (default: 1_000_000)")
    bench.add_argument(
        "--sizes", type=_sizes, default=[100, 1000], metavar="B,B", help="bytes of a record (default: 100,1000)"
    )
    bench.add_argument("--rounds", type=_positive, default=3, metavar="N", help="turns of each reader (default: 3)")
    bench.add_argument("--folder", type=Path, default=Path("runs/bench"), help="where it goes (default: runs/bench)")
    bench.add_argument("--quiet", action="store_true", help="print the table only")
    bench.add_argument("--spark-master", default="local[2]", help=argparse.SUPPRESS)
    bench.set_defaults(command=commands.bench)


def _positive(text: str) -> int:
    if not text.replace("_", "").isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: allowed: a whole number from 1 on")
    return int(text)


def _client(text: str) -> str:
    if not re.fullmatch(CLIENT, text):
        raise argparse.ArgumentTypeError(f"{text!r}: allowed: librdkafka, java, or with a version: java==3.9.2")
    return text


def _protocol(text: str) -> str:
    if text not in ("classic", "consumer"):
        raise argparse.ArgumentTypeError(f"{text!r}: allowed: classic, consumer")
    return text


def _levels(text: str) -> tuple[str, list[int]]:
    name, _, levels = text.partition("=")
    if not name or not re.fullmatch(r"\d+(,\d+)*", levels):
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=LEVEL, such as transaction.version=2")
    return name, [int(level) for level in levels.split(",")]


def _level(text: str) -> tuple[str, int]:
    name, levels = _levels(text)
    if len(levels) > 1:
        raise argparse.ArgumentTypeError(f"{text!r}: one level")
    return name, levels[0]


def _listed(one: Callable[[str], str]) -> Callable[[str], list[str]]:
    """What is given with commas between."""
    return lambda text: [one(part) for part in text.split(",")]


class _Features(argparse.Action):
    """Collects NAME=… into a mapping."""

    def __call__(self, _parser: object, options: argparse.Namespace, value: Any, _option: str | None = None) -> None:
        setattr(options, self.dest, {**getattr(options, self.dest), value[0]: value[1]})


def _sizes(text: str) -> list[int]:
    sizes = [_positive(part) for part in text.split(",")]
    if not all(64 <= size <= 1_000_000 for size in sizes):
        raise argparse.ArgumentTypeError(f"{text!r}: allowed: sizes from 64 to 1000000 bytes, with commas between")
    return sizes


if __name__ == "__main__":
    sys.exit(main())
