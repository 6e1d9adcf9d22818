"""The Kafka clients that a scenario can name: `librdkafka`, `librdkafka==2.6.1`, `java`, `java==3.9.2`.

A version of librdkafka is installed as the wheel of confluent-kafka that contains it, in a separate folder that comes
first on the worker's `PYTHONPATH`. The version is that of confluent-kafka, whose last part may be higher than
librdkafka's (2.16.1 contains librdkafka 2.16.0). A version of the Java client comes with the jars of that release.

    ~/.cache/onceproof/clients/confluent-kafka-2.6.1/
"""

import importlib.metadata
import logging
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from filelock import FileLock

from onceproof.harness.artifacts import jars, pins
from onceproof.harness.base import paths
from onceproof.harness.base.errors import BadInput, HarnessError

Family = Literal["librdkafka", "java"]
DEFAULT_JAVA = "4.3.1"
DEFAULT_KAFKA = DEFAULT_JAVA  # the client and the brokers are of the same release
CLIENT = r"(librdkafka|java)(==[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})?"
_INSTALL_DEADLINE_S = 300
_LINE_MAX = 200
# The highest transaction.version of a client. The lower of this and the brokers' level is in force (KIP-890).
_TRANSACTION_VERSION_1, _TRANSACTION_VERSION_2 = 1, 2


def family(client: str) -> Family:
    """Return the library of a client that is named with or without a version."""
    return "java" if client.startswith("java") else "librdkafka"


def ours(client: str) -> str:
    """Return the version of a client that a worker uses if the scenario names none."""
    return DEFAULT_JAVA if family(client) == "java" else importlib.metadata.version("confluent-kafka")


def version(client: str) -> str:
    """Return the version that a client names, or an empty string."""
    return client.partition("==")[2]


def in_use(client: str) -> str:
    """Return the version of a client that a worker uses."""
    return version(client) or ours(client)


def transaction_version(client: str, features: Mapping[str, int]) -> int:
    """Return the transaction.version in force between a client and brokers with these features; 0 if they have none.

    librdkafka up to 2.16 and the Java client before 4.0 do not support version 2, which bumps the epoch with each
    transaction (KIP-890).
    """
    bumps = family(client) == "java" and not version(client).startswith("3.")
    return min(_TRANSACTION_VERSION_2 if bumps else _TRANSACTION_VERSION_1, features.get("transaction.version", 0))


def prepare(client: str) -> Mapping[str, str]:
    """Download a client, and return the environment variables with which a worker's process uses it.

    Raises BadInput for a version that does not exist, or whose wheel has a wrong hash. Raises HarnessError when the
    download fails.
    """
    wanted = version(client)
    if not wanted:
        return {}
    if family(client) == "java":
        jars.kafka(wanted)
        return {}
    return {"PYTHONPATH": str(_confluent_kafka(wanted))}


def _confluent_kafka(wanted: str) -> Path:
    folder = paths.made(paths.home() / "clients")
    target = folder / f"confluent-kafka-{wanted}"
    with FileLock(folder / f".{target.name}.lock", timeout=_INSTALL_DEADLINE_S):
        if not target.is_dir():
            work = target.with_name(f".{target.name}")
            try:
                logging.getLogger(__name__).info("downloading %s", target.name)
                _install(wanted, work)
                work.rename(target)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    return target


def _install(wanted: str, folder: Path) -> None:
    """Install a version of confluent-kafka into a folder.

    Raises BadInput when there is no such wheel, or it has a wrong hash, and HarnessError when it cannot be downloaded.
    """
    hashes = pins.wheel_hashes(wanted)
    line = " ".join([f"confluent-kafka=={wanted}", *(f"--hash={each}" for each in hashes)])
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable, "--no-deps"]
    command += ["--only-binary", ":all:", "--target", str(folder), "--requirements", "-"]
    command += ["--require-hashes"] if hashes else []
    done = subprocess.run(command, input=line, capture_output=True, text=True, timeout=_INSTALL_DEADLINE_S, check=False)
    if done.returncode != 0:
        raise _failure(wanted, done.stderr)


def _failure(wanted: str, said: str) -> BadInput | HarnessError:
    """Return the error for what uv said when it failed. Only its resolver can say that there is no such wheel."""
    client = f"client librdkafka=={wanted}"
    if "Hash mismatch" in said:
        return BadInput(f"{client}: its wheel has the wrong SHA-256, so it is not kept")
    if "No solution found" in said and "network was disabled" not in said:
        return BadInput(f"{client}: the package index has no wheel of confluent-kafka {wanted} for this machine")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return HarnessError(f"{client}: uv could not download its wheel: {_first_and_last(lines)}")


def _first_and_last(lines: Sequence[str]) -> str:
    """Return what a program says first, the error, and last, its innermost cause, in one line."""
    return "; ".join(line[:_LINE_MAX] for line in dict.fromkeys((*lines[:1], *lines[-1:]))) or "(nothing on stderr)"
