"""The example package of docs/extending.md, installed as a stranger would install it."""

import subprocess
import sys
from pathlib import Path

EXTRAS = Path(__file__).parents[1] / "docs" / "examples" / "onceproof-extras"
_INSTALL_DEADLINE_S = 120


def installed(folder: Path) -> Path:
    """A folder for PYTHONPATH that holds the package with its entry points. Its build needs no network."""
    target = folder / "site"
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--python", sys.executable, "--target", str(target)]
    command = [sys.executable, "-m", "uv", "pip", "install", *options, str(EXTRAS)]
    subprocess.run(command, check=True, capture_output=True, timeout=_INSTALL_DEADLINE_S)
    return target
