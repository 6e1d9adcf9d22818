"""The container images: Kafka by version, on a base with a Java runtime; the wire proxy; Toxiproxy. Built once.

`ci/images.sh` makes the bases (`onceproof/jre:17`, `onceproof/python:3`) and Toxiproxy's image; a Kafka image is its
base plus that release's jars, so that a second version costs seconds. Tags carry a hash of what goes into the image
beside the jars: when start.sh changes, the image is made anew.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import docker
import docker.errors

from onceproof.harness.artifacts import jars
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.base.paths import compose_dir, jars_dir

BASE_IMAGE = "onceproof/jre:17"
TOXIPROXY_IMAGE = "onceproof/toxiproxy:2.12.0"
PYTHON_IMAGE = "onceproof/python:3"
_BUILD_DEADLINE_S = 300


def kafka(version: str) -> str:
    """The tag of that release's image, which is built when it is not there. Raises BadInput for an unknown release."""
    version = jars.release(version)  # before the engine is asked: bad input needs none
    folder = compose_dir() / "kafka"
    parts = ("Dockerfile", "start.sh", "java.sh", "archive.sh", "log4j2.yaml", "log4j.properties")
    tag = f"onceproof/kafka:{version}-{_digest(folder, parts)}"
    if present(tag):
        return tag
    libs = jars.kafka(version)
    with tempfile.TemporaryDirectory(dir=jars_dir()) as work:
        context = Path(work)
        for part in parts:
            shutil.copy(folder / part, context / part)
        shutil.copytree(libs, context / "libs", copy_function=_link)
        _build(tag, BASE_IMAGE, context)
    return tag


def wire_tag() -> str:
    """The tag of the wire proxy's image, which may not be there yet."""
    return f"onceproof/wire:{_digest(compose_dir() / 'wire', ('Dockerfile', 'wire.py'))}"


def wire() -> str:
    """That image, which is built when it is not there; its tag."""
    if not present(wire_tag()):
        _build(wire_tag(), PYTHON_IMAGE, compose_dir() / "wire")
    return wire_tag()


def _digest(folder: Path, parts: Iterable[str]) -> str:
    return hashlib.sha256(b"".join((folder / part).read_bytes() for part in parts)).hexdigest()[:8]


def _build(tag: str, base: str, context: Path) -> None:
    if not present(base):
        raise HarnessError(f"image {base} is missing; `make setup` makes it")
    done = subprocess.run(
        ["docker", "build", "--quiet", "--build-arg", f"BASE={base}", "--tag", tag, str(context)],
        capture_output=True,
        text=True,
        timeout=_BUILD_DEADLINE_S,
        check=False,
    )
    if done.returncode != 0:
        raise HarnessError(f"docker build of {tag} failed: {done.stderr[-500:]}")


def tag_for_hand(version: str) -> str:
    """Give that release's image the plain tag which compose/cluster.yaml asks for when used by hand; return it."""
    plain = f"onceproof/kafka:{version}"
    client = docker.from_env(timeout=20)
    try:
        client.images.get(kafka(version)).tag(plain)
    finally:
        client.close()
    return plain


def present(tag: str) -> bool:
    client = docker.from_env(timeout=20)
    try:
        client.images.get(tag)
    except docker.errors.ImageNotFound:
        return False
    finally:
        client.close()
    return True


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)
