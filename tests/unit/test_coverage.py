"""docs/coverage.md names every scenario that comes with onceproof, and no other."""

import re
from pathlib import Path

from onceproof.harness.base.paths import scenarios_dir

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"


def test_every_scenario_has_a_place() -> None:
    there = {path.stem for path in scenarios_dir().rglob("*.toml")}
    named = set(re.findall(r"`([a-z][a-z-]+)`", PAGE.read_text()))
    assert named == there
