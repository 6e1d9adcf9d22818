"""A run with passwords in its scenario leaves them in no file."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from onceproof.harness.base import paths
from onceproof.harness.cluster import pool
from onceproof.harness.cluster.containers import LABEL
from onceproof.harness.model.spec import ClusterSpec

SCENARIO = """
name = "with-secrets"
about = "settings of clients and brokers contain passwords, which the client and the brokers do not need"
[cluster.settings]
"ssl.truststore.password" = "planted-in-brokers"
[client.config]
"sasl.password" = "planted-in-clients"
[workload]
name = "copy"
records = 4_000
records_per_s = 2_000
"""
_DEADLINE_S = 300


def quoting(folder: Path) -> Iterator[Path]:
    """Yield each file of a folder that contains a planted password; jars that were downloaded are not read."""
    for parent, _, names in os.walk(folder):  # unlike rglob, it passes over a folder that a broker removes meanwhile
        for path in (Path(parent, name) for name in names if not name.endswith(".jar")):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() and b"planted-in" in path.read_bytes():
                    yield path


@pytest.mark.chaos
def test_no_file_of_a_run_or_of_the_cache_has_a_password(tmp_path: Path) -> None:
    scenario = tmp_path / "with-secrets.toml"
    scenario.write_text(SCENARIO)
    runs = tmp_path / "runs"
    command = ["run", str(scenario), "--keep", "--runs", str(runs)]
    done = subprocess.run(
        [sys.executable, "-m", "onceproof.cli.main", *command],
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        env={**os.environ, "COLUMNS": "200"},
        check=False,
    )
    folder = (runs / "latest").resolve()
    results = json.loads((folder / "results.json").read_text())
    assert (results["verdict"], results["reasons"]) == ("valid", [])
    assert "is not kept, because it has settings that may be secrets" in done.stderr
    assert "planted-in" not in done.stdout + done.stderr
    assert list(quoting(folder)) == []
    assert list(quoting(paths.home())) == []
    again = json.loads((folder / "plan.json").read_text())["scenario"]
    assert again["client"] == {"config": {"sasl.password": "***"}}
    assert again["cluster"]["settings"] == {"ssl.truststore.password": "***"}


@pytest.mark.chaos
def test_settings_reach_the_brokers_as_they_are_and_containers_are_confined() -> None:
    """None of these settings becomes a variable of Compose, a comment, or a second setting."""
    wanted: dict[str, str | int | float | bool] = {
        "sasl.kerberos.kinit.cmd": "a$b ${HOME} # y; c=d \\e 'f' \"g\" \u00fc\nONCEPROOF_DATA=/etc",
        "sasl.oauthbearer.scope.claim.name": "x # y",
        "auto.create.topics.enable": False,
    }
    secret = {"ssl.truststore.password": "planted-in-brokers"}
    with pool.lease(ClusterSpec(settings={**wanted, **secret}), keep=False) as cluster:
        client = AdminClient({"bootstrap.servers": cluster.bootstrap(0)})
        [(_, asked)] = client.describe_configs([ConfigResource(ConfigResource.Type.BROKER, "1")]).items()
        found = asked.result(20)
        assert {name: found[name].value for name in wanted} == {**wanted, "auto.create.topics.enable": "false"}
        assert str(cluster.folder / "data") in (cluster.folder / "cluster.env").read_text()
        for container in docker.from_env().containers.list(filters={"label": f"{LABEL}={cluster.address.name}"}):
            limits = container.attrs["HostConfig"]
            assert limits["ReadonlyRootfs"] and limits["CapDrop"] == ["ALL"] and not limits["Privileged"]
            assert 0 < limits["Memory"] <= 2 << 30 and 0 < limits["PidsLimit"] <= 1000
            assert "planted-in" not in json.dumps(container.attrs["Config"])
