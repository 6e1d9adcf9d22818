"""Paths of the package's own data files, the cache of downloads, and the state of clusters.

`ONCEPROOF_HOME` sets the folder of both the cache and the state (default: `~/.cache/onceproof`). Removing this folder
removes everything that onceproof stored on a machine outside of run folders and Docker.
"""

import os
from pathlib import Path

from onceproof.harness.base.errors import BadInput

# Not resolved: in a checkout, `onceproof/compose` and the others are symbolic links to the folders at the top.
_PACKAGE = Path(__file__).parents[2]


def compose_dir() -> Path:
    """Return the folder with the Compose file and the files that it mounts."""
    return _PACKAGE / "compose"


def scenarios_dir() -> Path:
    """Return the folder of the scenarios that come with onceproof."""
    return _PACKAGE / "scenarios"


def applications_dir() -> Path:
    """Return the folder of the example applications that come with onceproof."""
    return _PACKAGE / "applications"


def ci_dir() -> Path:
    """Return the folder of the setup scripts."""
    return _PACKAGE / "ci"


def home() -> Path:
    """Return the folder of the cache and the state (`ONCEPROOF_HOME`), which may not exist yet.

    The path is absolute, because Compose takes a relative one as relative to its own file.
    """
    return Path(os.environ.get("ONCEPROOF_HOME") or Path.home() / ".cache" / "onceproof").absolute()


def made(folder: Path) -> Path:
    """Return `home`, or a folder below it, which is made if it is not there.

    Raises BadInput when it cannot be made, or no file can be written into it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        why = "" if os.access(folder, os.W_OK | os.X_OK) else "Permission denied"
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
    if why:
        raise BadInput(f"ONCEPROOF_HOME: {str(folder)[:200]}: cannot be written: {why}; allowed: a folder of your own")
    return folder


def jars_dir() -> Path:
    """Return the folder of downloaded and compiled jars."""
    return home() / "jars"


def builds_dir() -> Path:
    """Return the folder with one folder for each application that was built."""
    return home() / "builds"


def clusters_dir() -> Path:
    """Return the folder with one folder and one lock file per cluster."""
    return home() / "clusters"


def spark_dir() -> Path:
    """Return the folder with one folder for the Spark session of each process, whose name is the process id."""
    return home() / "spark"


def verdicts_dir() -> Path:
    """Return the folder with one folder for each verdict that is not reached yet."""
    return home() / "verdicts"
