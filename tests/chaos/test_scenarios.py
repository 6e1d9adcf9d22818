"""The scenarios that come with onceproof, each with the verdict that it expects; those of one release share a cluster.

`-m "chaos and quick"` takes a few of each kind; `-m "not long"` leaves out the rest of them.
"""

import pytest

from onceproof.harness.base.paths import scenarios_dir
from onceproof.harness.model import scenario
from onceproof.pytest_plugin import Chaos

# A choice over the kinds of fault, of control and of pipeline: the ones that break first when something is wrong.
QUICK = {
    "bank-worker-killed",
    "chain-records-deleted",
    "control-at-least-once",
    "control-not-idempotent",
    "control-read-uncommitted",
    "copy-broker-killed",
    "copy-hijacked",
    "copy-zombie-generation",
    "late-end-txn",
}
# The main job is `make chaos`, the soak's are for the soak.
FOLDERS = ("pipelines", "controls", "faults", "bugs", "upgrades")
ALL = {path.stem: path for folder in FOLDERS for path in sorted((scenarios_dir() / folder).glob("*.toml"))}


@pytest.mark.chaos
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.quick if name in QUICK else pytest.mark.long) for name in sorted(ALL)]
)
def test_scenario(chaos: Chaos, name: str) -> None:
    chaos.check(ALL[name])


@pytest.mark.chaos
@pytest.mark.quick
@pytest.mark.parametrize("name", ["copy-hijacked", "control-at-least-once"])
def test_without_its_faults_nothing_is_shown(chaos: Chaos, name: str) -> None:
    """Neither what must hold nor what must be found out: the verdict rests on the fault."""
    results = chaos.start(ALL[name], faults=False).all()
    assert results.headline == "unknown: vacuous"
    assert "left out" in " ".join(reason.says for reason in results.reasons)


def test_every_quick_one_is_there() -> None:
    assert set(ALL) >= QUICK
    assert {scenario.load(path).name for path in ALL.values()} == set(ALL)
