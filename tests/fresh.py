"""Run a program in a Python process of its own, for what can be seen once in a process only.

assert fresh.printed("print(1)") == "1\n"
"""

import os
import subprocess
import sys
from collections.abc import Mapping

_DEADLINE_S = 300


def printed(program: str, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Return what a program prints; `environment` is added to that of this process.

    Raises AssertionError with its stderr when it does not end with status 0, and TimeoutExpired after five minutes.
    """
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
