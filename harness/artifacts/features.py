"""Ask a Kafka release whether it knows broker features and their levels, by formatting an empty folder with them.

The command is the one with which the nodes of a cluster format theirs (compose/kafka/start.sh). So the answer is the
release's own, and includes the features on which others depend:

    Unsupported feature: transaction.versoin. Supported features are: group.version, kraft.version, …
"""

import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from onceproof.harness.artifacts import jars
from onceproof.harness.base import work
from onceproof.harness.base.errors import HarnessError

_FORMAT_DEADLINE_S = 120
_PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={folder}/log
"""
_CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def problem(version: str, features: Mapping[str, int]) -> str:
    """Return why a Kafka release cannot format a node with these features, in its own words; empty if it can.

    Missing jars of the release are downloaded. Raises BadInput for a release that does not exist, and HarnessError
    when the jars cannot be downloaded or Java does not answer.
    """
    return _problem(version, tuple(sorted(features.items()))) if features else ""


@cache
def _problem(version: str, features: tuple[tuple[str, int], ...]) -> str:
    done = _storage_tool(version, features)
    if done.returncode == 0:
        return ""
    known = _storage_tool(version, (), mapping=True)
    levels = f"; highest levels: {', '.join(line.split()[0] for line in known.stdout.splitlines() if '=' in line)}"
    return _said(done.stdout + done.stderr) + (levels if known.returncode == 0 else "")


def _storage_tool(
    version: str, features: tuple[tuple[str, int], ...], *, mapping: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Format an empty folder with these features or, for `mapping`, list the features of the release."""
    with work.folder() as folder:
        properties = Path(folder) / "server.properties"
        properties.write_text(_PROPERTIES.format(folder=folder))
        asked = ["format", "--cluster-id", _CLUSTER_ID, "--config", str(properties)]
        asked += [part for name, level in features for part in ("--feature", f"{name}={level}")]
        command = [
            "java",
            "-Xmx128m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            str(jars.kafka(version) / "*"),
            "kafka.tools.StorageTool",
            *(["version-mapping"] if mapping else asked),
        ]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=_FORMAT_DEADLINE_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HarnessError(f"Kafka {version} could not be asked for its features: {error}") from error


def _said(text: str) -> str:
    """Return the message of the storage tool, or of the exception that it ended with."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    thrown = [line for line in lines if re.match(r"Exception in thread|[\w.]+(Exception|Error)\b", line)]
    says = (thrown or lines or ["(nothing on stderr)"])[-1 if not thrown else 0]
    return re.sub(r"^(Exception in thread \S+ )?([\w.$]+(Exception|Error): )?", "", says)[:300]
