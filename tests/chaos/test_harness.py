"""The harness on real clusters: two clusters at once, and a harness that is killed in the middle of a run."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import docker
import psutil
import pytest

from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster import pool
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.cluster.containers import LABEL
from onceproof.harness.model.spec import ClusterSpec

SCENARIO = """
name = "killed-in-the-middle"
about = "a worker is stopped and a broker is paused when the harness is killed"
[workload]
name = "copy"
records = 100_000
records_per_s = 3_000
[[faults]]
name = "zombie"
when = { worker = 0, phase = "produced", count = 3 }
past = ["session", "transaction"]
fenced = "epoch"
[[faults]]
name = "pause"
target = "broker-3"
at_s = 1
lasts_s = 100
"""


@pytest.fixture
def bystander() -> Iterator[str]:
    """A container that does not belong to onceproof and must not be touched."""
    client = docker.from_env()
    image = next(tag for image in client.images.list() for tag in image.tags if tag.startswith("onceproof/jre"))
    container = client.containers.run(image, ["sleep", "300"], detach=True, labels={"somebody": "else"})
    yield str(container.id)
    container.remove(force=True)
    client.close()


def of_cluster(name: str) -> tuple[int, int]:
    """The number of containers and of networks that a cluster has."""
    client = docker.from_env()
    try:
        label: dict[str, Any] = {"label": f"{LABEL}={name}"}
        return len(client.containers.list(all=True, filters=label)), len(client.networks.list(filters=label))
    finally:
        client.close()


def partitions_of(cluster: Cluster, topic: str) -> int:
    """The number of partitions of a topic; 0 while the cluster does not list the topic."""
    return len(cluster.admin.partitions(topic)) if topic in cluster.admin.topics() else 0


def another_home(folder: Path) -> Path:
    """A home of its own, with the jars and the formatted storage of this one."""
    cache = Path(os.environ.get("ONCEPROOF_HOME") or Path.home() / ".cache" / "onceproof")
    folder.mkdir()
    for name in ("jars", "formatted"):
        (folder / name).symlink_to(cache / name)
    return folder


@pytest.mark.chaos
@pytest.mark.long
def test_two_clusters_of_two_homes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The specs differ from each other and from that of the session's cluster, so that two new clusters start."""
    first, second = (ClusterSpec(settings={"num.io.threads": count}) for count in (5, 6))
    with contextlib.ExitStack() as both:
        clusters: list[Cluster] = [both.enter_context(pool.lease(first, keep=False))]
        monkeypatch.setenv("ONCEPROOF_HOME", str(another_home(tmp_path / "home")))
        clusters.append(both.enter_context(pool.lease(second, keep=False)))
        assert clusters[1].folder.is_relative_to(tmp_path) and not clusters[0].folder.is_relative_to(tmp_path)
        names = [cluster.address.name for cluster in clusters]
        for cluster, partitions in zip(clusters, (1, 2), strict=True):
            cluster.admin.create_topics(["mine"], partitions=partitions, replicas=3, config={})
        for cluster, partitions in zip(clusters, (1, 2), strict=True):
            assert until("its topic", partial(partitions_of, cluster, "mine"), deadline_s=20) == partitions
        assert [of_cluster(name)[0] for name in names] == [7, 7]
    assert [of_cluster(name) for name in names] == [(0, 0), (0, 0)]


@contextlib.contextmanager
def ends(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """End a process whatever happens meanwhile: a failed test must not wait until its run has ended."""
    try:
        yield
    finally:
        process.kill()


@pytest.mark.chaos
def test_a_killed_harness_leaves_what_clean_removes(tmp_path: Path, bystander: str) -> None:
    """After kill -9 with a stopped worker and a paused broker, `clean` removes what onceproof left and nothing else."""
    (tmp_path / "s.toml").write_text(SCENARIO)
    environment = {**os.environ, "ONCEPROOF_HOME": str(tmp_path / "home")}
    another_home(tmp_path / "home")
    onceproof = [sys.executable, "-m", "onceproof.cli.main"]
    command = [*onceproof, "run", str(tmp_path / "s.toml"), "--runs", str(tmp_path / "runs"), "--quiet"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process, ends(process):

        def under_fire() -> bool:
            lines = (tmp_path / "runs" / "latest" / "history.jsonl").read_text().splitlines()[:-1]
            injected = {e["fault"] for e in map(json.loads, lines) if e["event"] == "fault-injected"}
            return injected == {"0-zombie", "1-pause"}

        until("both faults to be injected", under_fire, deadline_s=240)
        children = psutil.Process(process.pid).children(recursive=True)
        assert any(child.status() == psutil.STATUS_STOPPED for child in children)
        process.send_signal(signal.SIGKILL)
    [name] = (path.name for path in (tmp_path / "home" / "clusters").iterdir() if path.is_dir())
    assert of_cluster(name)[0] == 7
    done = subprocess.run([*onceproof, "clean"], env=environment, check=True, capture_output=True, text=True)
    assert name in done.stdout
    assert of_cluster(name) == (0, 0)
    gone, alive = psutil.wait_procs(children, timeout=10)
    assert not alive, f"{len(gone)} ended, still there: {alive}"
    client = docker.from_env()
    assert client.containers.get(bystander).status == "running"
    client.close()


@pytest.mark.chaos
def test_a_cluster_that_does_not_start_says_why() -> None:
    """The message has the last line of a node that refuses its settings; its log is kept, its container is not."""
    spec = ClusterSpec(settings={"log.segment.bytes": "many"})
    with pytest.raises(HarnessError) as failed, pool.lease(spec, keep=True):
        pass
    told = str(failed.value)
    assert " exited while the cluster started; " in told
    assert re.search(r"; (broker|controller)\d.*: exited: .*ConfigException.*log\.segment\.bytes", told)
    logs = Path(told.rpartition("the nodes' logs are in ")[2])
    assert any("log.segment.bytes" in path.read_text() for path in logs.glob("*.log"))
    assert of_cluster(logs.name) == (0, 0)
    shutil.rmtree(logs)
