"""Where things are: the project's own data files, the cache of downloads, the state of clusters.

`ONCEPROOF_HOME` moves cache and state elsewhere (default: `~/.cache/onceproof`, one folder for both, so that a
machine is cleaned by removing one folder).
"""

import os
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def _data(name: str) -> Path:
    installed = _HERE / "_data" / name
    return installed if installed.exists() else _HERE.parent / name


def compose_dir() -> Path:
    return _data("compose")


def scenarios_dir() -> Path:
    return _data("scenarios")


def home() -> Path:
    return Path(os.environ.get("ONCEPROOF_HOME") or Path.home() / ".cache" / "onceproof")


def jars_dir() -> Path:
    return home() / "jars"


def clusters_dir() -> Path:
    return home() / "clusters"
