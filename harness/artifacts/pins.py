"""Compares downloads with the hashes that onceproof keeps of known releases, in `hashes.json` beside this file.

    "releases": ["kafka-4.3.1", …]                    the sets of jars all of whose files are pinned
    "jars": {"kafka-clients-4.3.1.jar": "<sha256>"}   by file name, which contains the version
    "wheels": {"2.6.1": ["sha256:…", …]}              confluent-kafka, one hash for each platform
    "images", "modules"                               for ci/images.sh: digests of base images, sums of Go modules

A file with another hash is refused. A release that is not known is used, after a line that says that it is not pinned.
`make hashes` writes the file again.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from onceproof.harness.base.errors import HarnessError

FILE = Path(__file__).with_name("hashes.json")


@cache
def kept() -> dict[str, Any]:
    """Return the content of hashes.json."""
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_jars(name: str, jars: Sequence[Path]) -> None:
    """Compare a downloaded set of jars, such as `kafka-4.3.1`, with the hashes.

    Raises HarnessError for a jar with another hash, and for one that is not known in a release that is. If the release
    is not known, this is said on stderr; those of its jars that other releases have as well are compared nevertheless.
    """
    known: dict[str, str] = kept()["jars"]
    pinned = name in kept()["releases"]
    for jar in jars:
        expected = known.get(jar.name)
        if expected is None and pinned:
            raise HarnessError(f"{name}: the download has {jar.name}, which this release does not contain")
        if expected is not None and sha256(jar) != expected:
            raise HarnessError(f"{name}: {jar.name} has the wrong SHA-256, so nothing of this download is kept")
    if not pinned:
        not_pinned(name)


def wheel_hashes(version: str) -> list[str]:
    """Return the hashes of the wheels of a version of confluent-kafka, as pip writes them.

    If the version is not known, there are none, and this is said on stderr.
    """
    hashes: list[str] = kept()["wheels"].get(version, [])
    if not hashes:
        not_pinned(f"confluent-kafka {version}")
    return hashes


def not_pinned(what: str) -> None:
    """Say that a download is not compared with a hash."""
    print(f"onceproof: {what} is not pinned: onceproof has no hash of it to compare with", file=sys.stderr)  # noqa: T201
