"""A pytest plugin that removes one condition from a module before any test imports it, and what the tests then say.

    ONCEPROOF_REMOVED=collect.commits:3 pytest -p tests.mutants.removed tests/unit/test_kafka_readers.py

Some modules run before there is a run's folder that a mutant could change: those that read the logs, and those that
wait until a run is at rest. Their conditions are judged by their own tests, and so are the matching of spans with
decisions, the rules for what is matched, and what is known of the records between the services of a chain.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping

from tests.mutants.variants import load, module_of, variants

_REMOVED = "ONCEPROOF_REMOVED"
_LIMIT_S = 120
# Module → its tests, in tests/unit.
TESTED: Mapping[str, tuple[str, ...]] = {
    "evidence.alignment": ("test_decisions",),
    "evidence.decisions": ("test_decisions", "test_rules"),
    "evidence.intermediate": ("test_intermediate",),
    "evidence.matching": ("test_decisions",),
    "evidence.rules": ("test_rules",),
    "collect.commits": ("test_kafka_readers",),
    "collect.states": ("test_kafka_readers", "test_collect"),
    "collect.collect": ("test_collect", "test_hidden"),
    "collect.logs": ("test_collect",),
    "collect.standing": ("test_collect",),
    "collect.written": ("test_collect",),
    "lints": ("test_lints",),
    "witnesses": ("test_witnesses",),
    "written": ("test_written",),
    "onceproof.harness.record.narrator": ("test_narrator", "test_witnesses"),
    "onceproof.harness.record.assignments": ("test_narrator",),
    "onceproof.harness.record.refusals": ("test_narrator",),
    "onceproof.harness.context.settled": ("test_settled",),
    "onceproof.run.quiesce": ("test_settled",),
    "onceproof.run.done": ("test_settled",),
}


def pytest_configure() -> None:
    """Remove the condition that the environment names."""
    module, _, number = os.environ[_REMOVED].partition(":")
    load(module_of(module), list(variants(module))[int(number)].tree)


def failing(module: str, number: int) -> str:
    """Return the first test of a module that fails without its condition of this number; empty if none does."""
    files = [f"tests/unit/{name}.py" for name in TESTED[module]]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "tests.mutants.removed", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, *files],
            env={**os.environ, _REMOVED: f"{module}:{number}"},
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"(no end within {_LIMIT_S} s)"
    if done.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) \S+?::(\w+)", done.stdout, re.MULTILINE)
    return failed.group(1) if failed else f"(fails: exit status {done.returncode})"
