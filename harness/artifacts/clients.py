"""Clients as a scenario names them: `librdkafka`, `librdkafka==2.6.1`, `java`, `java==3.9.2`.

Another version of librdkafka comes as the wheel of confluent-kafka that carries it, from the package index, into a
folder of its own that stands before ours on the worker's path. The number is confluent-kafka's, whose last part may be
ahead of librdkafka's (2.16.1 carries 2.16.0). Another version of the Java client comes with that
release's jars.

    ~/.cache/onceproof/clients/confluent-kafka-2.6.1/
"""

import importlib.metadata
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from filelock import FileLock

from onceproof.harness.artifacts import jars
from onceproof.harness.base import paths
from onceproof.harness.base.errors import BadInput

Family = Literal["librdkafka", "java"]
DEFAULT_JAVA = "4.3.1"
DEFAULT_KAFKA = DEFAULT_JAVA  # client and brokers of one release
CLIENT = r"(librdkafka|java)(==\d+\.\d+\.\d+)?"
_INSTALL_DEADLINE_S = 300
# What a client can do at most; what is in force is the lower of this and the brokers' feature (KIP-890).
_TRANSACTION_VERSION_1, _TRANSACTION_VERSION_2 = 1, 2


def family(client: str) -> Family:
    return "java" if client.startswith("java") else "librdkafka"


def ours(client: str) -> str:
    """The version that a worker has when none is asked for."""
    return DEFAULT_JAVA if family(client) == "java" else importlib.metadata.version("confluent-kafka")


def version(client: str) -> str:
    """The version that is asked for; empty when it is ours."""
    return client.partition("==")[2]


def in_use(client: str) -> str:
    """The version that a worker has."""
    return version(client) or ours(client)


def transaction_version(client: str, features: Mapping[str, int]) -> int:
    """The transaction.version in force between this client and brokers with these features; 0 before they had it.
    librdkafka up to 2.16 and the Java client before 4.0 do not bump the epoch with each transaction (KIP-890)."""
    bumps = family(client) == "java" and not version(client).startswith("3.")
    return min(_TRANSACTION_VERSION_2 if bumps else _TRANSACTION_VERSION_1, features.get("transaction.version", 0))


def prepare(client: str) -> Mapping[str, str]:
    """Fetch what a worker with this client needs; the environment variables that its process gets for it.

    Raises BadInput for a version that is not to be had.
    """
    wanted = version(client)
    if not wanted:
        return {}
    if family(client) == "java":
        jars.kafka(wanted)
        return {}
    return {"PYTHONPATH": str(_confluent_kafka(wanted))}


def _confluent_kafka(wanted: str) -> Path:
    folder = paths.home() / "clients"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"confluent-kafka-{wanted}"
    with FileLock(folder / f".{target.name}.lock", timeout=_INSTALL_DEADLINE_S):
        if not target.is_dir():
            work = target.with_name(f".{target.name}")
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "uv",
                    "pip",
                    "install",
                    "--quiet",
                    "--python",
                    sys.executable,
                    "--no-deps",
                    "--only-binary",
                    ":all:",
                    "--target",
                    str(work),
                    f"confluent-kafka=={wanted}",
                ],
                capture_output=True,
                text=True,
                timeout=_INSTALL_DEADLINE_S,
                check=False,
            )
            if done.returncode != 0:
                raise BadInput(f"client librdkafka=={wanted}: {done.stderr.strip()[-300:]}")
            work.rename(target)
    return target
