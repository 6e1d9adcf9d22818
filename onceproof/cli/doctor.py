"""Check that everything a run needs is on this machine, and say how to get what is missing."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from onceproof.harness.artifacts import images, jars
from onceproof.harness.artifacts.clients import DEFAULT_KAFKA
from onceproof.harness.base.errors import HarnessError

_SETUP = "`onceproof setup` installs it (as root on Debian or Ubuntu)"
_ASK_DEADLINE_S = 20


@dataclass(frozen=True, kw_only=True)
class Need:
    """Something that onceproof needs on a machine: what it is, whether it is there, and how to get it."""

    what: str
    ok: bool
    how: str


def checks() -> Iterator[Need]:
    """Each need, in the order in which they depend on each other."""
    engine = _answers("docker", "info", "--format", "{{.ServerVersion}}")
    yield Need(what=f"Docker engine {engine or ''}", ok=bool(engine), how=f"start it, or: {_SETUP}")
    compose = _answers("docker", "compose", "version", "--short")
    yield Need(what=f"Compose {compose or ''}", ok=bool(re.match(r"v?([2-9]|\d\d)", compose)), how=f"v2: {_SETUP}")
    java = re.search(r'version "(\d+)', _answers("java", "-version"))
    enough = bool(java and int(java[1]) >= 17)
    yield Need(what=f"Java {java[1] if java else ''}", ok=enough, how=f"17 or later: {_SETUP}")
    for tag in (images.BASE_IMAGE, images.PYTHON_IMAGE, images.TOXIPROXY_IMAGE):
        yield Need(what=f"image {tag}", ok=bool(engine) and _present(tag), how=_SETUP)
    for name in (f"kafka-{DEFAULT_KAFKA}", jars.COMPILER):
        yield Need(what=f"jars {name}", ok=jars.fetched(name), how=_SETUP)


def _present(tag: str) -> bool:
    try:
        return images.present(tag)
    except HarnessError:
        return False


def _answers(*command: str) -> str:
    """What a command prints (on either stream), or an empty string if it is not installed or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_DEADLINE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout or done.stderr).strip() if done.returncode == 0 else ""
