"""The scenarios that come with onceproof, each with the verdict that it expects, all on one cluster."""

import pytest

from harness.places import scenarios_dir
from harness.pytest_plugin import Chaos

# The main job is `make chaos`.
NAMES = sorted(path.stem for path in scenarios_dir().glob("*.toml") if path.stem != "copy-under-fire")


@pytest.mark.chaos
@pytest.mark.parametrize("name", NAMES)
def test_scenario(chaos: Chaos, name: str) -> None:
    chaos.check(scenarios_dir() / f"{name}.toml")
