"""The parser of the command line: its commands, their options, and the values that these take."""

import argparse
import importlib.metadata
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from onceproof.cli import audit, check, commands, completion, lint, listing
from onceproof.cli.commands import BAD_INPUT
from onceproof.harness.artifacts.clients import CLIENT, DEFAULT_KAFKA
from onceproof.harness.base.errors import BadInput, suggestion
from onceproof.harness.model.spec import FEATURE

_DIGITS_MAX = 30
_STATUSES = (
    "Exit status: 0 as expected, 1 not as expected, 2 bad input, 3 the harness failed, 130 interrupted by Ctrl-C "
    "(143 by SIGTERM, 129 by SIGHUP)."
)


class _Parser(argparse.ArgumentParser):
    """Refuses bad options in one line, as all bad input is refused."""

    def error(self, message: str) -> NoReturn:
        """Print the line and exit with status 2."""
        self.exit(BAD_INPUT, f"onceproof: {BadInput(message)}; see `{self.prog} --help`\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is none of the choices, such as an unknown command, and suggest one that is like it."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            alike = suggestion(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{error.message}{alike}") from None


def parser() -> argparse.ArgumentParser:
    """The parser of the command line, with one subparser for each command."""
    parser = _Parser(prog="onceproof", description="Prove exactly-once on real Kafka clusters.", epilog=_STATUSES)
    parser.add_argument(
        "-v", "--version", action="version", version=f"onceproof {importlib.metadata.version('onceproof')}"
    )
    subcommands = parser.add_subparsers(required=True, metavar="COMMAND")

    _add_run(subcommands)
    check.add(subcommands)
    _add_matrix(subcommands)
    _add_soak_and_bench(subcommands)
    for name, says, command in (
        ("verify", "judge a run's folder again, without a cluster", commands.verify),
        ("report", "write a run's report again", commands.report),
    ):
        again = subcommands.add_parser(name, help=says)
        again.add_argument("run", type=Path, help="a run's folder")
        again.add_argument("--spark-master", default="local[2]", help=argparse.SUPPRESS)
        again.set_defaults(command=command)
        if command is commands.verify:
            again.add_argument(
                "--check",
                action="append",
                default=[],
                metavar="FILE.py:NAME",
                help="load this check and run it, too; no file that the run's folder names is loaded",
            )

    lint.add(subcommands)
    audit.add(subcommands)
    images = subcommands.add_parser("images", help="build the images of a Kafka release")
    images.add_argument("version", nargs="?", default=DEFAULT_KAFKA)
    images.set_defaults(command=commands.images)
    listing.add(subcommands)
    setup = subcommands.add_parser("setup", help="install what a run needs")
    setup.add_argument(
        "--dry-run", action="store_true", help="say what is there and what would be done; change nothing"
    )
    setup.add_argument(
        "--no-install", action="store_true", help="say what is missing, with exit status 2; change nothing"
    )
    setup.set_defaults(command=commands.setup)
    doctor = subcommands.add_parser("doctor", help="say what is missing and how to get it")
    doctor.set_defaults(command=commands.doctor)
    clean = subcommands.add_parser("clean", help="remove what interrupted or kept runs left behind")
    clean.add_argument(
        "--all", action="store_true", help="also remove images, the cache, and what `onceproof setup` installed"
    )
    clean.add_argument("--dry-run", action="store_true", help="say what would be removed; change nothing")
    clean.set_defaults(command=commands.clean)
    completion.add(subcommands, parser)
    for each in subcommands.choices.values():
        each.set_defaults(parser=each)  # which knows the options of the command
    return parser


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command. Raises SystemExit after `--help` and for options that are refused."""
    options, unknown = parser().parse_known_args(arguments)
    if unknown:
        known = [name for action in options.parser._actions for name in _names(action)]
        wrong = next((each.partition("=")[0] for each in unknown if each.startswith("-")), "")
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}{suggestion(wrong, known)}")
    return options


def _names(action: argparse.Action) -> Sequence[str]:
    """Return the names of an option that `--help` shows; none for an argument that is no option."""
    return () if action.help == argparse.SUPPRESS else action.option_strings


def _add_run(subcommands: Any) -> None:
    run = subcommands.add_parser("run", help="run a scenario")
    run.add_argument("scenario", type=Path, help="a TOML file, a folder of them, or a name that `onceproof list` shows")
    run.add_argument(
        "--seed", type=_seed, help="seed of the first run, incremented for each later run (default: random)"
    )
    run.add_argument(
        "--kafka",
        metavar="VERSION",
        help=f"a release such as 4.1.2, 4.1.x, latest or latest-1 (default: the scenario's, or {DEFAULT_KAFKA})",
    )
    run.add_argument("--client", type=_client, help="librdkafka, java, or one version of these: java==3.9.2")
    run.add_argument(
        "--feature",
        type=_level,
        action=_Features,
        default={},
        metavar="NAME=LEVEL",
        help="level of a broker feature: transaction.version=1",
    )
    run.add_argument("--group-protocol", choices=["classic", "consumer"], help="protocol of the consumer group")
    run.add_argument(
        "--twin", action="store_true", help="leave out the faults on single requests; the run must then be valid"
    )
    run.add_argument("--faults", choices=["random"], help="add faults that are drawn from the seed")
    run.add_argument("--no-faults", action="store_true", help="leave out all faults; the run is then vacuous")
    run.add_argument("--count", type=_positive, default=1, metavar="N", help="run each scenario N times")
    run.add_argument(
        "--mode",
        choices=["full", "ledger"],
        default="full",
        help="full: read the input topic; ledger: trust the acknowledgements (default: full)",
    )
    run.add_argument("--dry-run", action="store_true", help="check the scenario, print the plan, and run nothing")
    run.add_argument("--keep", action="store_true", help="leave the cluster up for the next run")
    run.add_argument("--runs", type=Path, default=Path("runs"), help="parent of the run's folder (default: runs)")
    run.add_argument("--quiet", action="store_true", help="print the verdict only")
    run.add_argument(
        "--spark-master", default="local[2]", help="Spark master for collecting and judging (default: local[2])"
    )
    run.set_defaults(command=commands.run)


def _add_matrix(subcommands: Any) -> None:
    matrix = subcommands.add_parser("matrix", help="run scenarios × Kafka versions × clients × features")
    matrix.add_argument(
        "scenarios", type=Path, nargs="+", help="TOML files, folders of them, or names that `onceproof list` shows"
    )
    matrix.add_argument(
        "--kafka",
        type=_listed(str),
        default=[],
        metavar="V,V",
        help="releases such as 4.1.2, 4.1.x, latest or latest-1",
    )
    matrix.add_argument("--client", type=_listed(_client), default=[], metavar="C,C", help="librdkafka, java==3.9.2, …")
    matrix.add_argument(
        "--feature",
        type=_levels,
        action=_Features,
        default={},
        metavar="NAME=L,L",
        help="levels of a broker feature: transaction.version=1,2",
    )
    matrix.add_argument(
        "--group-protocol", type=_listed(_protocol), default=[], metavar="P,P", help="classic, consumer"
    )
    matrix.add_argument("--count", type=_positive, default=1, metavar="N", help="run each cell N times")
    matrix.add_argument(
        "--seed", type=_seed, help="seed of the first run, incremented for each later run (default: random)"
    )
    matrix.add_argument(
        "--json", type=Path, metavar="FILE", help="write the cells to this file (default: next to the page)"
    )
    matrix.add_argument(
        "--against", type=Path, metavar="FILE", help="compare with an earlier --json; exit status 1 if a cell differs"
    )
    matrix.add_argument(
        "--resume",
        type=Path,
        metavar="FOLDER",
        help="run only the cells without a result in an earlier matrix's folder",
    )
    matrix.add_argument("--dry-run", action="store_true", help="print the cells and run none")
    matrix.add_argument("--runs", type=Path, default=Path("runs"), help="parent of the matrix's folder (default: runs)")
    matrix.add_argument("--quiet", action="store_true", help="print the table only")
    matrix.add_argument("--spark-master", default="local[2]", help=argparse.SUPPRESS)
    matrix.set_defaults(command=commands.matrix)


def _add_soak_and_bench(subcommands: Any) -> None:
    soak = subcommands.add_parser("soak", help="run many plans with random faults and summarise them")
    soak.add_argument("scenarios", type=Path, nargs="*", help="TOML files or folders (default: scenarios/soak)")
    soak.add_argument("--count", type=_positive, default=50, metavar="N", help="number of runs (default: 50)")
    soak.add_argument(
        "--seed", type=_seed, default=1, help="seed of the first run, incremented for each later run (default: 1)"
    )
    soak.add_argument(
        "--runs", type=Path, default=Path("runs/soak"), help="parent of the runs' folders (default: runs/soak)"
    )
    soak.add_argument(
        "--resume", type=Path, metavar="FOLDER", help="continue the soak in this folder, after the runs that it has"
    )
    soak.add_argument("--quiet", action="store_true", help="print one line for each run, and the summary")
    soak.add_argument("--spark-master", default="local[2]", help=argparse.SUPPRESS)
    soak.set_defaults(command=commands.soak)

    bench = subcommands.add_parser("bench", help="measure verdicts, or the request proxy")
    bench.add_argument("what", choices=["verify", "wire"])
    bench.add_argument(
        "--records", type=_records, default=1_000_000, metavar="N", help="number of inputs (default: 1_000_000)"
    )
    bench.add_argument(
        "--sizes", type=_sizes, default=[100, 1000], metavar="B,B", help="record sizes in bytes (default: 100,1000)"
    )
    bench.add_argument(
        "--rounds", type=_positive, default=3, metavar="N", help="measurements of each reader (default: 3)"
    )
    bench.add_argument(
        "--runs", type=Path, default=Path("runs/bench"), help="parent of the runs' folders (default: runs/bench)"
    )
    bench.add_argument("--quiet", action="store_true", help="print the table only")
    bench.add_argument("--spark-master", default="local[2]", help=argparse.SUPPRESS)
    bench.set_defaults(command=commands.bench)


def _between(low: int, high: int) -> Callable[[str], int]:
    """A parser of whole numbers from `low` to `high`, which may have underscores."""

    def parse(text: str) -> int:
        written = re.fullmatch(r"[0-9]+(_[0-9]+)*", text) and len(text) <= _DIGITS_MAX
        if not written or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r:.60}: allowed: a whole number from {low} to {high:_}")
        return int(text)

    return parse


_positive, _records, _seed = _between(1, 100_000), _between(1, 1_000_000_000), _between(0, 2**63 - 1)


def _client(text: str) -> str:
    if not re.fullmatch(CLIENT, text):
        raise argparse.ArgumentTypeError(f"{text!r}: allowed: librdkafka, java, or one version of these: java==3.9.2")
    return text


def _protocol(text: str) -> str:
    if text not in ("classic", "consumer"):
        raise argparse.ArgumentTypeError(f"{text!r}: allowed: classic, consumer")
    return text


def _levels(text: str) -> tuple[str, list[int]]:
    name, _, levels = text.partition("=")
    if not re.fullmatch(FEATURE, name) or not re.fullmatch(r"[0-9]{1,5}(,[0-9]{1,5})*", levels):
        raise argparse.ArgumentTypeError(f"{text!r:.60}: expected NAME=LEVEL, such as transaction.version=2")
    return name, [int(level) for level in levels.split(",")]


def _level(text: str) -> tuple[str, int]:
    name, levels = _levels(text)
    if len(levels) > 1:
        raise argparse.ArgumentTypeError(f"{text!r}: only one level is allowed here")
    return name, levels[0]


def _listed(one: Callable[[str], str]) -> Callable[[str], list[str]]:
    """A parser of values that are separated by commas."""
    return lambda text: [one(part) for part in text.split(",")]


class _Features(argparse.Action):
    """Collect NAME=LEVEL options into a mapping."""

    def __call__(self, _parser: object, options: argparse.Namespace, value: Any, _option: str | None = None) -> None:
        setattr(options, self.dest, {**getattr(options, self.dest), value[0]: value[1]})


def _sizes(text: str) -> list[int]:
    sizes = [_positive(part) for part in text.split(",")]
    if not all(64 <= size <= 1_000_000 for size in sizes):
        raise argparse.ArgumentTypeError(f"{text!r}: allowed: sizes from 64 to 1000000 bytes, separated by commas")
    return sizes
