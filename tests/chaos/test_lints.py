"""What the lints say of real clients: nothing of right pipelines, and what is unsafe in broken ones."""

from pathlib import Path

import pytest

from onceproof.cli import once, scenarios
from onceproof.harness.model import scenario
from onceproof.pytest_plugin import Chaos

pytestmark = pytest.mark.chaos


@pytest.mark.parametrize(
    ("name", "client", "expected"),
    [
        pytest.param("copy-broker-killed", "librdkafka", [], marks=pytest.mark.long),
        pytest.param("copy-broker-killed", "java", [], marks=pytest.mark.long),
        ("control-read-uncommitted", "librdkafka", ["unstable-offsets", "read-uncommitted"]),
        pytest.param(
            "control-at-least-once", "librdkafka", ["offsets-apart", "outside-transaction"], marks=pytest.mark.long
        ),
    ],
)
def test_lints_of_a_run_without_faults(chaos: Chaos, name: str, client: str, expected: list[str]) -> None:
    [path] = scenarios.find(Path(name))
    loaded = once.without_faults(scenario.load(path), kafka=None)
    work = loaded.workload.model_copy(update={"client": client, "records": 5_000})
    results = chaos.run(loaded.model_copy(update={"workload": work}))
    assert results.lints is not None
    assert [each.name for each in results.lints] == expected
