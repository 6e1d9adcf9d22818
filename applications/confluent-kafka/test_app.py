"""Every input takes effect exactly once, whatever happens to the application: `pytest -m chaos`."""

from typing import Any

import pytest


@pytest.mark.chaos(app="app.toml", faults=["no-faults", "kill-worker@before-commit", "rebalances"])
def test_every_input_takes_effect_once(chaos: Any) -> None:
    chaos.check()
