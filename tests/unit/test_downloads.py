"""A download that fails says whether there is no such thing (bad input), or nobody answered (the harness failed).

The outputs of Ivy and uv were recorded: without a network, with a server that refuses, and for versions that are none.
"""

import subprocess
from pathlib import Path

import pytest

from onceproof.cli import commands, main
from onceproof.harness.artifacts import clients, jars
from onceproof.harness.base.errors import BadInput, HarnessError

_UNRESOLVED = """
:: problems summary ::
:::: WARNINGS{host}
\t\tmodule not found: org.apache.kafka#kafka-tools;{version}

\t==== central: tried

\t  https://repo1.maven.org/maven2/org/apache/kafka/kafka-tools/[revision]/kafka-tools-[revision].pom

\t\t::::::::::::::::::::::::::::::::::::::::::::::

\t\t::          UNRESOLVED DEPENDENCIES         ::

\t\t::::::::::::::::::::::::::::::::::::::::::::::

\t\t:: org.apache.kafka#kafka-tools;{version}: not found

\t\t::::::::::::::::::::::::::::::::::::::::::::::

{errors}
:: USE VERBOSE OR DEBUG MESSAGE LEVEL FOR MORE DETAILS
"""
_METADATA = "https://repo1.maven.org/maven2/org/apache/kafka/kafka-tools/maven-metadata.xml"
NO_HOST = _UNRESOLVED.format(
    host=f"\n\tHost repo1.maven.org not found. url={_METADATA}\n", version="latest.release", errors=""
)
REFUSED = _UNRESOLVED.format(
    host="",
    version="3.8.1",
    errors=f":::: ERRORS\n\tServer access error at url {_METADATA} (java.net.ConnectException: Connection refused)\n",
)
BROKEN = _UNRESOLVED.format(
    host="", version="3.8.1", errors=f":::: ERRORS\n\tSERVER ERROR: Service Unavailable url={_METADATA}\n"
)
ABSENT = _UNRESOLVED.format(host="", version="4.1.99", errors="")
_UV_NO_HOST = """error: Request failed after 3 retries in 5.0s
  cause: Failed to fetch: https://pypi.org/simple/confluent-kafka/
  cause: error sending request for url (https://pypi.org/simple/confluent-kafka/)
  cause: client error (Connect)
  cause: dns error
  cause: error resolving DNS
  cause: failed to lookup address information: Temporary failure in name resolution

"""
_UV_ABSENT = """error: No solution found when resolving dependencies
  cause: Because there is no version of confluent-kafka==2.99.0 and you require confluent-kafka==2.99.0, we can
conclude that your requirements are unsatisfiable.

"""
_UV_OFFLINE = """error: No solution found when resolving dependencies
  cause: Because confluent-kafka was not found in the cache and you require confluent-kafka==2.6.1, we can conclude
that your requirements are unsatisfiable.

hint: Packages were unavailable because the network was disabled.
"""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (NO_HOST, "Host repo1.maven.org not found."),
        (REFUSED, f"Server access error at url {_METADATA} (java.net.ConnectException: Connection refused)"),
        (BROKEN, f"SERVER ERROR: Service Unavailable url={_METADATA}"),
    ],
    ids=["no host", "refused", "broken"],
)
def test_a_server_that_does_not_answer_is_no_bad_input(said: str, reason: str) -> None:
    error = jars._failure("kafka-3.8.1", said)
    assert isinstance(error, HarnessError)
    assert str(error) == f"kafka-3.8.1: Maven Central did not answer: {reason}"


def test_a_release_that_maven_central_does_not_have_is_bad_input() -> None:
    error = jars._failure("kafka-4.1.99", ABSENT)
    assert isinstance(error, BadInput)
    assert str(error) == "kafka-4.1.99: Maven Central does not have org.apache.kafka#kafka-tools;4.1.99"


def test_what_ivy_says_otherwise_is_one_line() -> None:
    error = jars._failure("kafka-4.1.2", "::\n\t[FAILED     ] a.jar\n\n\tdownload failed\n")
    assert isinstance(error, HarnessError)
    assert str(error) == "kafka-4.1.2: Ivy could not download the jars: :: [FAILED ] a.jar download failed"


@pytest.mark.parametrize("release", ["latest", "4.1.x"])
def test_a_command_without_a_network_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path))
    monkeypatch.setattr(jars, "_java", lambda *_: subprocess.CompletedProcess([], 1, NO_HOST, ""))
    assert main.main(["run", "copy-broker-killed", "--kafka", release, "--dry-run"]) == commands.FAILED
    told = capsys.readouterr().err
    assert "Maven Central did not answer: Host repo1.maven.org not found." in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("said", [_UV_NO_HOST, _UV_OFFLINE, ""], ids=["no host", "offline", "silent"])
def test_a_package_index_that_does_not_answer_is_no_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **_options: subprocess.CompletedProcess([], 2, "", said))
    with pytest.raises(HarnessError) as failed:
        clients._install("2.6.1", tmp_path)
    assert str(failed.value).startswith("client librdkafka==2.6.1: uv could not download its wheel: ")
    assert "\n" not in str(failed.value)
    lines = said.strip().splitlines()
    assert str(failed.value).endswith(lines[-1].strip() if lines else "(nothing on stderr)")


def test_a_wheel_that_the_index_does_not_have_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **_options: subprocess.CompletedProcess([], 1, "", _UV_ABSENT))
    says = "the package index has no wheel of confluent-kafka 2.99.0 for this machine"
    with pytest.raises(BadInput, match=f"^client librdkafka==2.99.0: {says}$"):
        clients._install("2.99.0", tmp_path)
