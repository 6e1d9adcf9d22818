"""Executors in containers of their own judge and collect as the driver alone does, also when they are killed."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import docker
import pytest

import tests.mutants.run  # noqa: F401  fills the catalogue
from onceproof.harness.base.deadlines import until
from onceproof.harness.base.paths import scenarios_dir
from onceproof.harness.cluster import containers, pool, spark_master, standalone
from onceproof.harness.record import results
from onceproof.verifiers.verify import verify
from tests.kafka_writer import batch
from tests.mutants.catalogue import MUTANTS, Mutant
from tests.unit.test_audit import committed, decided, directory, records

pytestmark = pytest.mark.chaos
_DEADLINE_S = 900
_JUDGE = """
import sys
from pathlib import Path
from onceproof.verifiers.verify import verify

for folder in sys.argv[2:]:
    verify(Path(folder), master=sys.argv[1])
"""


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the driver and the executors share."""
    return tmp_path_factory.mktemp("share")


@pytest.fixture(scope="module")
def master(share: Path) -> Iterator[str]:
    with standalone.started(2, share=share) as url:
        yield url


def families() -> dict[str, Mutant]:
    """The first mutant that is found of each family, by the family's name, and a harmless one."""
    found: dict[str, Mutant] = {}
    for mutant in MUTANTS.values():
        family = mutant.change.__module__.rpartition(".")[2]
        found.setdefault("harmless" if mutant.harmless else family, mutant)
    return found


def kill_executors(master: str) -> int:
    """Kill the executors that run, and return how many there were."""
    client = docker.from_env()
    try:
        workers = client.containers.list(filters={"label": f"{spark_master.LABEL}={master}"})
        killed: Sequence[Any] = [each.exec_run(["pkill", "-KILL", "-f", "CoarseGrainedExecutor"]) for each in workers]
        return sum(each.exit_code == 0 for each in killed)
    finally:
        client.close()


def judge(master: str, *folders: Path, kill: bool = False) -> int:
    """Judge folders in a process of its own, and return how many executors were killed meanwhile, at most two."""
    command = [sys.executable, "-c", _JUDGE, master, *map(str, folders)]
    killed = 0
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while kill and killed < 2 and process.poll() is None:
            time.sleep(1)
            killed += kill_executors(master)
            time.sleep(4)
        _, said = process.communicate(timeout=_DEADLINE_S)
    assert process.returncode == 0, said[-2000:]
    return killed


def same_as_here(there: Path, here: Path) -> None:
    verify(here)
    assert (there / "results.json").read_bytes() == (here / "results.json").read_bytes()


def written(mutant: Mutant, share: Path, here: Path) -> tuple[Path, Path]:
    """Write a mutant's run into both folders, and return the two run folders."""
    run, _ = mutant.make()
    return run.write(share / mutant.name), run.write(here / mutant.name)


@pytest.mark.long
def test_every_family_of_mutants_has_the_same_results(master: str, share: Path, tmp_path: Path) -> None:
    both = [written(mutant, share, tmp_path) for mutant in families().values()]
    judge(master, *(there for there, _ in both))
    for there, here in both:
        same_as_here(there, here)


@pytest.mark.long
def test_killed_executors_do_not_change_a_verdict(master: str, share: Path, tmp_path: Path) -> None:
    there, here = written(MUTANTS["doubled-before-what-a-reset-read-again"], share / "killed", tmp_path)
    assert judge(master, there, kill=True) > 0
    same_as_here(there, here)


@pytest.mark.long
def test_a_run_is_collected_and_judged_elsewhere(master: str, share: Path) -> None:
    """Executors are killed once while topics are read, and once while the run is judged."""
    scenario = scenarios_dir() / "faults" / "copy-broker-killed.toml"
    command = [sys.executable, "-m", "onceproof.cli.main", "run", str(scenario), "--runs", str(share / "runs")]
    command += ["--spark-master", master, "--quiet"]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as process:
        for waited_for in ("*/tables", "*/tables/collect.json"):
            deadline = time.monotonic() + _DEADLINE_S
            while not list((share / "runs").glob(waited_for)) and process.poll() is None:
                assert time.monotonic() < deadline, waited_for
                time.sleep(0.05)
            assert kill_executors(master) > 0
        said, _ = process.communicate(timeout=_DEADLINE_S)
    assert process.returncode == 0, said
    [folder] = [each for each in (share / "runs").iterdir() if not each.is_symlink()]
    judged = results.read(folder / "results.json")
    assert (judged.headline, judged.mode) == ("valid", "full")
    assert list((folder / "tables" / "batches.parquet").glob("*.parquet")), "executors have read the brokers' logs"
    told = (folder / "results.json").read_bytes()
    verify(folder)
    assert (folder / "results.json").read_bytes() == told


def audited(tmp_path: Path, *arguments: str) -> bytes:
    """What an audit writes as JSON; it finds something."""
    command = [sys.executable, "-m", "onceproof.cli.main", "audit", *arguments, "--json", str(tmp_path / "found.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)
    assert done.returncode == 1, done.stderr[-2000:]
    return (tmp_path / "found.json").read_bytes()


@pytest.mark.long
def test_log_directories_are_audited_elsewhere(master: str, share: Path, tmp_path: Path) -> None:
    late = committed() + batch(11, records(2), "none", sequence=10)
    for node in (1, 2):
        directory(share / "logs" / f"b{node}", node=node, out=late, states=decided())
    there = audited(tmp_path, str(share / "logs"), "--stopped", "--spark-master", master)
    assert b"hung-transaction" in there and there == audited(tmp_path, str(share / "logs"), "--stopped")
    said = refused("executors.check_reads(spark.session(sys.argv[1]), Path(sys.argv[2]))", master, str(tmp_path))
    assert said.startswith(f"{tmp_path}: executors cannot read it; allowed: a folder")


def refused(code: str, *arguments: str, **environment: str) -> str:
    """What a process of its own prints of the HarnessError that some code raises."""
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from onceproof.harness.base.errors import HarnessError\n"
        "from onceproof.verifiers.evidence import executors, spark\n"
        f"try:\n    {code}\nexcept HarnessError as error:\n    print(error)\n"
    )
    command = [sys.executable, "-c", program, *arguments]
    env = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_S, check=False, env=env)
    assert done.stdout.count("\n") == 1, done.stderr[-2000:]
    return done.stdout


@pytest.mark.long
def test_a_folder_that_is_not_shared_is_refused(master: str, tmp_path: Path) -> None:
    check = "executors.check_folder(spark.session(sys.argv[1]), Path(sys.argv[2]))"
    said = refused(check, master, str(tmp_path))
    assert said.startswith(f"{tmp_path}: executors wrote ") and "and 0 are here; allowed: a folder on storage" in said
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_that_a_process_uses_is_not_removed(master: str) -> None:
    hold = (
        "import sys; from onceproof.verifiers.evidence import spark; spark.session(sys.argv[1]); input(); spark.stop()"
    )
    name = standalone.containers_of(master)[0].labels[containers.LABEL]
    said: list[str] = []
    with subprocess.Popen([sys.executable, "-c", hold, master], stdin=subprocess.PIPE, text=True) as process:
        until("an executor", lambda: name in pool.in_use() or process.poll() is not None, deadline_s=_DEADLINE_S)
        pool.clean(said.append, dry_run=True)
        process.communicate("\n", timeout=_DEADLINE_S)
    assert f"{name}: in use by a running process, not removed" in said
    until("no executor", lambda: name not in pool.in_use(), deadline_s=_DEADLINE_S)


@pytest.mark.long
def test_executors_that_do_not_start_are_refused(master: str, tmp_path: Path) -> None:
    """As those of an older Java do not, which end at once. The master gives up after ten, if these take no minute."""
    (tmp_path / "spark-defaults.conf").write_text("spark.executor.extraJavaOptions -agentlib:no-such-agent\n")
    said = refused("spark.session(sys.argv[1])", master, SPARK_CONF_DIR=str(tmp_path))
    assert "as soon as they start" in said and "they need Java 17 or later" in said


@pytest.mark.long
def test_a_command_says_so_in_one_line(master: str, share: Path, tmp_path: Path) -> None:
    """The settings ask for more memory than a worker has."""
    (tmp_path / "spark-defaults.conf").write_text("spark.executor.memory 64g\n")
    there, _ = written(MUTANTS["lost-in-the-middle"], share / "memory", tmp_path)
    command = [sys.executable, "-m", "onceproof.cli.main", "verify", str(there), "--spark-master", master]
    env = {**os.environ, "SPARK_CONF_DIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_S, check=False, env=env)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1), done.stderr[-2000:]
    assert "waited 60 s for an executor" in done.stderr
    assert not (there / "results.json").exists()
