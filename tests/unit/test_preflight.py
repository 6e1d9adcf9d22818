"""What only Java, a client or Spark can tell is refused before a cluster is started, by `run` and by `check`."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from onceproof.cli import commands, main
from onceproof.harness.artifacts import java
from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import registry, scenario
from onceproof.run import spark_warmup
from onceproof.suite import preflight
from onceproof.verifiers.evidence import model
from tests.unit.test_hostile import GOOD, fault, refuse, table, work

_DEADLINE_S = 120
JAVA, CONSUMER = work('client = "java"'), work('group_protocol = "consumer"')

BAD = {
    "an unknown feature": (
        table("cluster.features", '"transaction.versoin" = 2'),
        "cluster.features: Kafka 4.3.1: Unsupported feature: transaction.versoin. Supported features are: eligible.",
    ),
    "a level that the release does not have": (
        table("cluster.features", '"transaction.version" = 9'),
        "with feature level 9; highest levels: metadata.version=30, ",
    ),
    "a metadata version before the first": (
        table("cluster.features", '"metadata.version" = 3'),
        "Valid feature levels are from 7 to 31",
    ),
    "raising an unknown feature": (
        fault('name = "raise-feature"\nfeature = "transaction.versoin"\nat_s = 1'),
        "faults[0].feature: Kafka 4.3.1: Unsupported feature: transaction.versoin",
    ),
    "raising a feature too far": (
        fault('name = "raise-feature"\nfeature = "group.version"\nlevel = 7\nat_s = 1'),
        "faults[0].feature: Kafka 4.3.1: No feature:group.version with feature level 7",
    ),
    "the consumer protocol before 4.0": (
        f'{CONSUMER}[cluster]\nversion = "3.9.2"\n',
        "workload.group_protocol: group.protocol=consumer is a preview before Kafka 4.0.0; allowed: classic",
    ),
    "a setting that librdkafka does not have": (
        table("client.config", '"linger.mss" = 5'),
        'client.config: librdkafka: the client of the worker refuses it: No such configuration property: "linger.mss"',
    ),
    "a value out of librdkafka's range": (
        table("client.config", '"linger.ms" = -5'),
        "is outside allowed range 0..900000",
    ),
    "a setting that contradicts the harness's": (
        table("client.config", '"acks" = "1"'),
        "`acks` must be set to `all` when `enable.idempotence` is true",
    ),
    "a setting that the Java client does not have": (
        f'{JAVA}[client.config]\n"linger.mss" = 5\n',
        "client.config: java: the client of the worker refuses it: neither the producer nor the consumer has a setting",
    ),
    "a value that the Java client does not take": (
        f'{JAVA}[client.config]\n"isolation.level" = "any"\n',
        "Invalid value any for configuration isolation.level: String must be one of: read_committed, read_uncommitted",
    ),
    "a setting of the Java client that the generator does not have": (
        f'{JAVA}[client.config]\n"max.block.ms" = 5000\n',
        'the client of the generator refuses it: No such configuration property: "max.block.ms"',
    ),
    "a check of no file": (f'checks = ["none.py:X"]\n{GOOD}', "checks[0]: check 'none.py:X': no Python file"),
    "an unknown check": (
        f'checks = ["odrer"]\n{GOOD}',
        "checks[0]: unknown check 'odrer'; did you mean order?; allowed: ",
    ),
    "more records than the disk holds": (
        work("records = 100_000_000\nrecord_bytes = 1_000_000"),
        "workload.records: 100000000 records of 1000000 bytes, in 2 topics with 3 replicas: 600,000 GB; allowed: ",
    ),
}


@pytest.mark.parametrize(("text", "says"), BAD.values(), ids=BAD)
def test_it_is_refused_by_run_and_by_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)
    told = refuse(capsys, ["run", str(path), "--runs", str(tmp_path / "runs")])
    assert f"{path}: " in told
    assert says in told
    assert not list((tmp_path / "runs").iterdir())
    assert refuse(capsys, ["check", str(path)]) == told


def test_check_says_it_of_each_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad, worse = (tmp_path / name for name in ("good.toml", "bad.toml", "worse.toml"))
    good.write_text(table("cluster.features", '"transaction.version" = 1'))
    bad.write_text(work("keys = 0"))
    worse.write_text(table("client.config", '"linger.mss" = 5'))
    assert main.main(["check", *map(str, (good, bad, worse))]) == commands.BAD_INPUT
    told = capsys.readouterr()
    assert told.out == f"{good}: ok\n"
    assert [line.split(":")[1].strip() for line in told.err.splitlines()] == [str(bad), str(worse)]
    assert main.main(["check", str(good)]) == commands.AS_EXPECTED


_WORKLOAD = """
from onceproof.harness.model.workload import Aggregate, Wiring, Workload, one_on_each

def copy(source):
    return ()

GOOD = dict(name="mine", about="It copies.", transform=copy, expected=one_on_each("output"))
MINE = Workload(**{{**GOOD, {change}}})
"""

ATTRIBUTES = {
    '"topics": ("out put",)': "topics: 'out put'; allowed: different names of a-z and -, other than input",
    '"topics": ("input",)': "topics: 'input'; allowed: ",
    '"topics": ("a", "a")': "topics: 'a'; allowed: different names",
    '"topics": "output"': "topics: Input should be a valid tuple (got 'output')",
    '"topics": ()': "topics: (); allowed: at least one name",
    '"topics": (1,)': "topics.0: Input should be a valid string (got 1)",
    '"transform": 5': "transform: Input should be callable (got 5)",
    '"transform": None': "transform: give exactly one of transform and state",
    '"expected": None': "expected: Input should be a valid string (got None)",
    '"about": 3': "about: Input should be a valid string (got 3)",
    '"wiring": Wiring(position="sometimes")': "wiring.position: Input should be 'in-transaction', 'after', 'before' ",
    '"wiring": {"transactional": "perhaps"}': "wiring.transactional: Input should be a valid boolean",
    '"changelog": "log"': "changelog: 'log'; allowed: output",
    '"changelog": "output"': "changelog: needed with state, and only with state",
    '"intermediate_topic": "hop"': "intermediate_topic: 'hop'; allowed: output",
    '"aggregate": Aggregate(total=1, amount="1")': "aggregate.total: Input should be a valid string (got 1)",
    '"colour": "red"': "cannot be loaded: TypeError: ",
}


@pytest.mark.parametrize(("change", "says"), ATTRIBUTES.items(), ids=ATTRIBUTES)
def test_a_workload_with_a_bad_attribute_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, says: str
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(_WORKLOAD.format(change=change))
    path = tmp_path / "x.toml"
    path.write_text(GOOD.replace("copy", f"{mine}:MINE"))
    told = refuse(capsys, ["run", str(path)])
    assert f"{path}: workload.name: workload '{mine}:MINE': " in told
    assert says in told


def test_what_is_no_workload_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, path = tmp_path / "mine.py", tmp_path / "x.toml"
    mine.write_text(_WORKLOAD.format(change=""))
    for name, says in (
        ("GOOD", "expected a Workload; got {"),
        ("copy", "expected a Workload; got <function"),
        ("X", "no"),
    ):
        path.write_text(GOOD.replace("copy", f"{mine}:{name}"))
        assert says in refuse(capsys, ["run", str(path)])


SQL = {
    "expected": {
        "SELEC 1": "[PARSE_SYNTAX_ERROR] ",
        "": "[PARSE_SYNTAX_ERROR] ",
        "DROP VIEW inputs": "[PARSE_SYNTAX_ERROR] ",
        "SELECT 'output' AS topic, partition, numbr, digest, input FROM inputs": "with name `numbr` cannot be resolved",
        "SELECT 'output' AS topic, partition, number, digest, input FROM input": "`input` cannot be found",
        "SELECT 1 AS x": "expected: columns x; allowed: topic, partition, number, digest, input",
        "SELECT 'output' AS topic, partition, number, 'a' AS digest, input FROM inputs": "digest: type string; allow",
        "SELECT 'output' AS topic, partition, number, digest, 3 AS input FROM inputs": "input: type int; allowed",
    },
    "identity": {
        "xxhash64(kye)": "name `kye` cannot be resolved",
        "value": "type binary; allo",
        "sum(1)": "[MISSING_",
    },
}


def with_workload(name: str) -> scenario.Scenario:
    return scenario.parse({"name": "x", "about": "A run.", "workload": {"name": name}}, where="x.toml")


@pytest.mark.parametrize(("part", "sql"), [(part, sql) for part, each in SQL.items() for sql in each])
def test_wrong_sql_is_refused(spark: SparkSession, tmp_path: Path, part: str, sql: str) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(_WORKLOAD.format(change=f"{part!r}: {sql!r}"))
    analysed = spark_warmup.start_spark(scenario=with_workload(f"{mine}:MINE"))
    with pytest.raises(BadInput) as refused:
        analysed()
    assert str(refused.value).startswith(f"workload '{mine}:MINE': {part}: ")
    assert SQL[part][sql] in str(refused.value)


def test_the_sql_of_every_registered_workload_is_accepted(spark: SparkSession) -> None:
    for name in registry.names("workload"):
        model.analyse(spark, with_workload(name))


def test_check_analyses_the_sql(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, path = tmp_path / "mine.py", tmp_path / "x.toml"
    mine.write_text(_WORKLOAD.format(change='"identity": "xxhash64(kye)"'))
    path.write_text(GOOD.replace("copy", f"{mine}:MINE"))
    assert f"{path}: workload '{mine}:MINE': identity: " in refuse(capsys, ["check", str(path)])


def program(folder: Path, script: str) -> Path:
    """A program `java` in a folder of its own, as on a machine with another Java."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "java"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'openjdk version \"1.8.0_292\"' >&2", "is Java 8 (on PATH); allowed: Java 17 to 22"),
        ("echo 'openjdk version \"25\" 2025-09-16' >&2", "is Java 25 (on PATH); allowed: Java 17 to 22"),
        ("echo 'Error: no JVM' >&2; exit 1", "-version ended with status 1: Error: no JVM"),
        ("exit 0", "-version ended with status 0: "),
    ],
)
def test_a_java_that_cannot_be_used_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    says: str,
) -> None:
    program(tmp_path / "bin", script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert says in refuse(capsys, ["run", "copy-broker-killed", "--runs", str(tmp_path)])


def test_no_java_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    says = "java: there is no program `java` on PATH; allowed: Java 17 to 22"
    assert says in refuse(capsys, ["check", "copy-broker-killed"])
    assert says in refuse(capsys, ["run", "copy-broker-killed", "--runs", str(tmp_path)])


def test_a_java_home_without_java_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "cannot be started: No such file" in refuse(capsys, ["check", "copy-broker-killed"])


def test_a_java_that_does_not_answer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_ANSWER_DEADLINE_S", 0.5)
    path = program(tmp_path, "exec sleep 60")
    assert java.problem_with(str(path)) == f"{path} -version did not end within 0.5 s"


def test_a_spark_master_that_does_not_answer_is_given_up() -> None:
    """Something listens at its address and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        code = (
            "import sys\n"
            "from onceproof.verifiers.evidence import spark\n"
            "spark._START_DEADLINE_S = 15.0\n"
            "try:\n"
            "    spark.session(sys.argv[1])\n"
            "except spark.HarnessError as error:\n"
            "    print(error)\n"
        )
        master = f"spark://127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-c", code, master]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)
    assert done.stdout == f"Spark did not start with the master {master}: it did not answer within 15 s\n", done.stderr


def test_what_can_be_run_is_not_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(f'{JAVA}[client.config]\n"linger.ms" = 7\n"acks" = "all"\n')
    preflight.machine("local[2]")
    preflight.check(scenario.load(path), str(path))


@pytest.mark.parametrize("program", ["no-such-program", "/tmp", "./none.sh"])
def test_a_program_of_an_application_that_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str
) -> None:
    path = tmp_path / "app.toml"
    path.write_text(f'name = "x"\nabout = "x"\n[app]\ncommand = ["{program}"]\n[workload]\nname = "copy"\n')
    assert main.main(["check", str(path)]) == commands.BAD_INPUT
    assert f"{path}: app.command: '{program}': no such program; allowed: " in capsys.readouterr().err
