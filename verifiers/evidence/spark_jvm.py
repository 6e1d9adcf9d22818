"""The process of Spark's JVM: its options, its environment, and its folder below `ONCEPROOF_HOME`.

    ~/.cache/onceproof/spark/<pid>/    temporary files of the Spark session of one process, removed when that ends

What a killed process leaves there is removed by `onceproof clean`. In /tmp nobody would know whose it is.
"""

import locale
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from onceproof.harness.base import paths

FEW = 1_000_000  # records, up to which a verdict takes less time if HotSpot does not optimize the code
# A small verdict executes most code a few times only. With two cores, optimizing it takes longer than all of the rest:
# 400,000 records were first judged in 31 s without, in 44 s with it, and in 6 to 8 s with either from the third verdict
# on. 4,000,000 records took 47 and 46 s, and then 23 and 16 s.
# (Without the optimizing compiler, HotSpot reserves 48 MB for compiled code, which is too little.)
_OF_FEW = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
# In a large one the hot code is called for each row, so it still reaches these thresholds. (HotSpot's defaults: 5000,
# 600, 15000, and 40000 for loops.)
_OF_MANY = (
    "-XX:Tier4InvocationThreshold=200000 -XX:Tier4MinInvocationThreshold=50000 "
    "-XX:Tier4CompileThreshold=200000 -XX:Tier4BackEdgeThreshold=160000"
)


def folder() -> Path:
    """Return the folder for the temporary files of this process's session. It is made if it is not there."""
    own = paths.made(paths.spark_dir()) / str(os.getpid())
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    return own


def remove_folder() -> None:
    """Remove the folder for temporary files, if there is one. The JVM has ended."""
    shutil.rmtree(paths.spark_dir() / str(os.getpid()), ignore_errors=True)


def process() -> dict[str, Any]:
    """Return options for the JVM's process. Its working directory is our folder, since Spark leaves files in it."""
    return {"stderr": subprocess.DEVNULL, "cwd": str(folder())}


def options(*, few: bool) -> str:
    """Return the options of the JVM, as Spark parses them: a quoted value may have spaces.

    `few` is whether at most `FEW` records are judged.
    """
    temporary = str(folder()).replace("\\", "\\\\").replace('"', '\\"')
    return f'-XX:+UseParallelGC {_OF_FEW if few else _OF_MANY}{_huge_pages()} -Djava.io.tmpdir="{temporary}"'


def _huge_pages() -> str:
    """Return the JVM option for huge pages if the kernel offers them; otherwise the JVM would print a warning."""
    offered = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    asked = offered.exists() and "[never]" not in offered.read_text()
    return " -XX:+UseTransparentHugePages" if asked else ""


def encode_as_python_does() -> None:
    """Let the processes that this one starts encode the names of files as Python does.

    With `LC_ALL=C`, Python uses UTF-8 and Java uses ASCII, so Java would not find a file with another letter in its
    path. Java takes the encoding from its environment; its options come too late for its own arguments.
    """
    if sys.getfilesystemencoding() == "utf-8" and locale.getencoding().lower().replace("-", "") != "utf8":
        os.environ["LC_ALL"] = "C.UTF-8"
