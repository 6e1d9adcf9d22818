"""Where things are: the project's own data files, the cache of downloads, the state of clusters.

`ONCEPROOF_HOME` moves cache and state elsewhere (default: `~/.cache/onceproof`, one folder for both, so that a
machine is cleaned by removing one folder).
"""

import os
from pathlib import Path

# Not resolved: in a checkout `onceproof/compose` and its like are symbolic links to the folders at the top.
_PACKAGE = Path(__file__).parents[2]


def compose_dir() -> Path:
    return _PACKAGE / "compose"


def scenarios_dir() -> Path:
    return _PACKAGE / "scenarios"


def home() -> Path:
    return Path(os.environ.get("ONCEPROOF_HOME") or Path.home() / ".cache" / "onceproof")


def jars_dir() -> Path:
    return home() / "jars"


def clusters_dir() -> Path:
    return home() / "clusters"
