"""A run with passwords in its scenario leaves them in no file."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onceproof.harness.base import paths

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
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # another run has removed it meanwhile
            if path.is_file() and path.suffix != ".jar" and b"planted-in" in path.read_bytes():
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
    [folder] = runs.iterdir()
    results = json.loads((folder / "results.json").read_text())
    assert (results["verdict"], results["reasons"]) == ("valid", [])
    assert "is not kept, because it has settings that may be secrets" in done.stderr
    assert "planted-in" not in done.stdout + done.stderr
    assert list(quoting(folder)) == []
    assert list(quoting(paths.home())) == []
    again = json.loads((folder / "plan.json").read_text())["scenario"]
    assert again["client"] == {"config": {"sasl.password": "***"}}
    assert again["cluster"]["settings"] == {"ssl.truststore.password": "***"}
