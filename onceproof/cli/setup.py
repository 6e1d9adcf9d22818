"""Install what a run needs: Java, the Docker engine, the images and jars.

The work is done by the scripts in `ci/`, which `make setup` runs as well. They say in one line each what they will
install and change, and then do it. With `dry_run`, they say what is there and what they would do, and change nothing.
With `no_install`, they say only what is missing.
"""

import os
import subprocess
import sys

from onceproof.harness.base import paths

_READY, _MISSING, _FAILED = 0, 2, 3


def setup(*, dry_run: bool, no_install: bool) -> int:
    """Run the scripts. Returns the exit status: 0 everything is there, 2 something is missing, 3 a script failed.

    Raises BadInput when the home cannot be written.
    """
    home = paths.home() if dry_run or no_install else paths.made(paths.home())
    environment = {
        **os.environ,
        "ONCEPROOF_HOME": str(home),  # absolute, because the scripts change their folder
        "ONCEPROOF_PYTHON": sys.executable,
        "ONCEPROOF_DRY_RUN": "1" if dry_run else "",
        "ONCEPROOF_NO_INSTALL": "1" if no_install else "",
    }
    done = subprocess.run(["bash", str(paths.ci_dir() / "setup.sh")], env=environment, check=False)
    return done.returncode if done.returncode in (_READY, _MISSING) else _FAILED
