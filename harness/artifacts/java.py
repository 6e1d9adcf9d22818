"""Find the Java runtimes that a run uses, and refuse those that Spark or Kafka cannot use.

There are three, which need not be the same: `java` on PATH downloads and compiles jars, Spark takes `java` from
JAVA_HOME if that is set, and JPype loads the library of a runtime that it finds by itself.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from onceproof.harness.base.errors import BadInput

# Spark 4.0 is compiled for Java 17. Hadoop, a part of it, calls Subject.getSubject, which fails from Java 23 on.
OLDEST, NEWEST = 17, 22
_ALLOWED = f"allowed: Java {OLDEST} to {NEWEST}, which Spark and Kafka can use; `onceproof setup` installs Java 17"
_ANSWER_DEADLINE_S = 30


def check() -> None:
    """Raise BadInput when a Java runtime that a run uses is missing, does not start, or has another version."""
    if said := problem():
        raise BadInput(f"java: {said}; {_ALLOWED}")


def problem() -> str:
    """Return what is wrong with the first Java runtime that a run cannot use; empty if it can use all of them."""
    try:
        for user, program in _programs():
            if wrong := problem_with(program):
                return f"{wrong} ({user})"
    except _NoJava as error:
        return str(error)
    return ""


def version_on_path() -> str:
    """Return the major version of `java` on PATH; empty if there is none that tells it."""
    on_path = shutil.which("java")
    return str(_version(on_path)[0] or "") if on_path else ""


def problem_with(program: str) -> str:
    """Return why a `java` program cannot be used; empty if it can."""
    version, problem = _version(program)
    if problem:
        return problem
    return "" if OLDEST <= version <= NEWEST else f"{program} is Java {version}"


class _NoJava(Exception):
    """There is no Java runtime where one is looked for."""


def _programs() -> Iterator[tuple[str, str]]:
    """Yield each user of Java with the program that it runs. Raises _NoJava when there is none."""
    on_path = shutil.which("java")
    if on_path is None:
        raise _NoJava("there is no program `java` on PATH")
    yield "on PATH", on_path
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME, for Spark", str(Path(home) / "bin" / "java")
    import jpype  # here, since it takes a while

    try:
        library = jpype.getDefaultJVMPath()
    except (jpype.JVMNotFoundException, jpype.JVMNotSupportedException, OSError, ValueError) as error:
        raise _NoJava(f"JPype finds no Java runtime: {error}") from None
    yield "found by JPype, for Kafka's client", str(Path(library).parents[2] / "bin" / "java")


@cache
def _version(program: str) -> tuple[int, str]:
    """Return the major version that a `java` program reports, and what is wrong if it reports none."""
    try:
        done = subprocess.run(
            [program, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_DEADLINE_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return 0, f"{program} -version did not end within {_ANSWER_DEADLINE_S} s"
    except OSError as error:
        return 0, f"{program} cannot be started: {error.strerror}"
    found = re.search(r'version "(?:1\.)?([0-9]{1,4})', done.stdout + done.stderr)
    if done.returncode != 0 or found is None:
        said = (done.stdout + done.stderr).strip().splitlines()[:1]
        return 0, f"{program} -version ended with status {done.returncode}: {' '.join(said)[:100]}"
    return int(found[1]), ""
