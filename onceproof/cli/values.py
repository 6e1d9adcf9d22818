"""The values that options of the command line take. Each parser raises ArgumentTypeError with what is allowed."""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from onceproof.harness.artifacts.clients import CLIENT
from onceproof.harness.model.spec import FEATURE

_DIGITS_MAX = 30


def between(low: int, high: int) -> Callable[[str], int]:
    """A parser of whole numbers from `low` to `high`, which may have underscores."""

    def parse(text: str) -> int:
        written = re.fullmatch(r"[0-9]+(_[0-9]+)*", text) and len(text) <= _DIGITS_MAX
        if not written or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r:.60}: allowed: a whole number from {low} to {high:_}")
        return int(text)

    return parse


def add_spark_master(parser: argparse.ArgumentParser, what: str = "that collects and judges") -> None:
    """Add the option `--spark-master` to the parser of a command; `what` says what the command needs it for."""
    parser.add_argument(
        "--spark-master", default="local[2]", metavar="URL", help=f"Spark master {what} (default: local[2])"
    )


positive, records, seed = between(1, 100_000), between(1, 1_000_000_000), between(0, 2**63 - 1)
number = between(0, 10**12 - 1)


def place(text: str) -> Path | str:
    """A folder on this machine, or a URI of one that Hadoop's file systems read, which stays a text."""
    return uri(text) if "://" in text else Path(text)


def uri(text: str) -> str:
    """A URI of a folder, without the slash at its end."""
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^\s*?#\[\]{}\\]*[^\s*?#\[\]{}\\/]/*", text):
        raise argparse.ArgumentTypeError(f"{text!r:.80}: allowed: SCHEME://…/FOLDER, such as s3a://bucket/runs")
    return text.rstrip("/")


def hours(text: str) -> float:
    """A number of hours."""
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3})?", text) or not float(text):
        raise argparse.ArgumentTypeError(f"{text!r:.60}: allowed: hours, from 0.001 to 999")
    return float(text)


def memory(text: str) -> str:
    """An amount of memory, as Spark takes it."""
    if not re.fullmatch(r"[1-9][0-9]{0,5}[mg]", text):
        raise argparse.ArgumentTypeError(f"{text!r:.60}: allowed: a whole number and a unit, such as 512m or 2g")
    return text


def client(text: str) -> str:
    """A client library, or one version of it."""
    if not re.fullmatch(CLIENT, text):
        raise argparse.ArgumentTypeError(f"{text!r}: allowed: librdkafka, java, or one version of these: java==3.9.2")
    return text


def protocol(text: str) -> str:
    """A group protocol."""
    if text not in ("classic", "consumer"):
        raise argparse.ArgumentTypeError(f"{text!r}: allowed: classic, consumer")
    return text


def levels(text: str) -> tuple[str, list[int]]:
    """A feature with several levels."""
    name, _, given = text.partition("=")
    if not re.fullmatch(FEATURE, name) or not re.fullmatch(r"[0-9]{1,5}(,[0-9]{1,5})*", given):
        raise argparse.ArgumentTypeError(f"{text!r:.60}: expected NAME=LEVEL, such as transaction.version=2")
    return name, [int(each) for each in given.split(",")]


def level(text: str) -> tuple[str, int]:
    """A feature with one level."""
    name, given = levels(text)
    if len(given) > 1:
        raise argparse.ArgumentTypeError(f"{text!r}: only one level is allowed here")
    return name, given[0]


def one_of(names: Sequence[str]) -> Callable[[str], str]:
    """A parser of one of these names."""

    def parse(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"{text!r:.60}: allowed: {', '.join(names)}")
        return text

    return parse


def listed(one: Callable[[str], str]) -> Callable[[str], list[str]]:
    """A parser of values that are separated by commas."""
    return lambda text: [one(part) for part in text.split(",")]


class Features(argparse.Action):
    """Collect NAME=LEVEL options into a mapping."""

    def __call__(self, _parser: object, options: argparse.Namespace, value: Any, _option: str | None = None) -> None:
        """Add one."""
        setattr(options, self.dest, {**getattr(options, self.dest), value[0]: value[1]})


def sizes(text: str) -> list[int]:
    """Sizes of records, separated by commas."""
    given = [positive(part) for part in text.split(",")]
    if not all(64 <= size <= 1_000_000 for size in given):
        raise argparse.ArgumentTypeError(f"{text!r}: allowed: sizes from 64 to 1000000 bytes, separated by commas")
    return given
