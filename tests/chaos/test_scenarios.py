"""Each scenario that comes with onceproof has the verdict that it expects. Runs of one release share a cluster.

`-m quick` selects a few scenarios of each kind, and `-m "not long"` leaves out all others.
"""

import pytest

from onceproof.harness.base.paths import scenarios_dir
from onceproof.harness.model import scenario
from onceproof.pytest_plugin import Chaos

# A few of each kind of fault, control and pipeline: the ones that fail first if something is wrong.
QUICK = {
    "chain-records-deleted",
    "control-at-least-once",
    "control-not-idempotent",
    "control-read-uncommitted",
    "copy-broker-killed",
    "copy-hijacked",
    "copy-zombie-generation",
    "database-killed",
    "late-end-txn",
}
# `make chaos` runs the main scenario, and `onceproof soak` runs those of scenarios/soak.
FOLDERS = ("pipelines", "controls", "faults", "bugs", "upgrades")
ALL = {path.stem: path for folder in FOLDERS for path in sorted((scenarios_dir() / folder).glob("*.toml"))}


@pytest.mark.chaos
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.quick if name in QUICK else pytest.mark.long) for name in sorted(ALL)]
)
def test_scenario(chaos: Chaos, name: str) -> None:
    chaos.check(ALL[name])


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("name", "headline"),
    [
        pytest.param("copy-hijacked", "unknown: vacuous", marks=pytest.mark.long),
        pytest.param("control-at-least-once", "invalid: unprotected", marks=pytest.mark.quick),
    ],
)
def test_without_its_faults_nothing_is_shown(chaos: Chaos, name: str, headline: str) -> None:
    """Without its faults, a run shows only what its wiring leaves unprotected: that needs no failure."""
    results = chaos.start(ALL[name], faults=False).all()
    assert results.headline == headline
    assert "left out" in " ".join(reason.says for reason in results.reasons)


def test_every_quick_one_is_there() -> None:
    assert set(ALL) >= QUICK
    assert {scenario.load(path).name for path in ALL.values()} == set(ALL)
