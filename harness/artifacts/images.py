"""Builds the container images of Kafka releases and of the request proxy, unless Docker has them.

`ci/images.sh` builds the base image (`onceproof/jre:17`) and the images of Toxiproxy and of PostgreSQL. The image
of a Kafka release is its base image plus the jars of the release. The tags contain a hash of the other files in the
image, so that a change of start.sh, for example, leads to a new image.
"""

import hashlib
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import docker
import docker.errors

from onceproof.harness.artifacts import jars
from onceproof.harness.artifacts.clients import DEFAULT_KAFKA
from onceproof.harness.base import work
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.base.paths import ci_dir, compose_dir, home, jars_dir, made

BASE_IMAGE = "onceproof/jre:17"
TOXIPROXY_IMAGE = "onceproof/toxiproxy:2.12.0"
DATABASE_IMAGE = "onceproof/postgresql"
_BUILD_DEADLINE_S, _IMAGE_DEADLINE_S = 300, 900
_WIRE, _WIRE_PARTS = compose_dir() / "wire", ("Dockerfile", "start.sh")


def kafka(version: str) -> str:
    """Return the tag of the image of a Kafka release; build the image if it is missing.

    `version` is a version or a release as `jars.release` accepts it. Raises BadInput for an unknown release, and
    HarnessError when the image cannot be built.
    """
    version = jars.release(version)  # first, so that bad input is reported even without Docker
    folder = compose_dir() / "kafka"
    parts = ("Dockerfile", "start.sh", "java.sh", "archive.sh", "log4j2.yaml", "log4j.properties")
    tag = f"onceproof/kafka:{version}-{_digest(folder, parts)}"
    if present(tag):
        return tag
    libs = jars.kafka(version)
    with work.folder(jars_dir()) as built:
        context = Path(built)
        for part in parts:
            shutil.copy(folder / part, context / part)
        shutil.copytree(libs, context / "libs", copy_function=_link)
        _build(tag, BASE_IMAGE, context)
    return tag


def wire_tag() -> str:
    """Return the tag of the request proxy's image, which may not exist yet."""
    return f"onceproof/wire:{DEFAULT_KAFKA}-{_digest(_WIRE, (*_WIRE_PARTS, *_wire_sources()))}"


def wire() -> str:
    """Return the tag of the request proxy's image; build the image if it is missing.

    It is based on the image of the default Kafka release, with whose classes the proxy reads requests of all releases.
    Raises HarnessError when the proxy does not compile, or the image cannot be built.
    """
    tag = wire_tag()
    if not present(tag):
        base = kafka(DEFAULT_KAFKA)
        libs = sorted(jars.kafka(DEFAULT_KAFKA).glob("*.jar"))
        sources = [_WIRE / name for name in _wire_sources()]
        with work.folder(jars_dir()) as built:
            context = Path(built)
            shutil.copy(jars.compiled("wire", sources, libs), context / "wire.jar")
            for part in _WIRE_PARTS:
                shutil.copy(_WIRE / part, context / part)
            _build(tag, base, context)
    return tag


def postgresql() -> str:
    """Return the tag of PostgreSQL's image, which most runs do not need; `ci/images.sh` makes it if it is missing.

    What the script says goes to stderr. Raises HarnessError when this machine cannot make the image.
    """
    if not present(DATABASE_IMAGE):
        environment = {**os.environ, "ONCEPROOF_HOME": str(made(home())), "ONCEPROOF_PYTHON": sys.executable}
        script = ["bash", str(ci_dir() / "images.sh"), "postgresql"]
        done = subprocess.run(script, stdout=sys.stderr, env=environment, timeout=_IMAGE_DEADLINE_S, check=False)
        if done.returncode != 0:
            raise HarnessError(f"image {DATABASE_IMAGE} was not made: see above")
    return DATABASE_IMAGE


def _wire_sources() -> list[str]:
    return sorted(str(path.relative_to(_WIRE)) for path in _WIRE.rglob("*.java"))


def _digest(folder: Path, parts: Iterable[str]) -> str:
    return hashlib.sha256(b"".join((folder / part).read_bytes() for part in parts)).hexdigest()[:8]


def _build(tag: str, base: str, context: Path) -> None:
    if not present(base):
        raise HarnessError(f"image {base} is missing; `onceproof setup` makes it")
    logging.getLogger(__name__).info("building the image %s", tag)
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
    """Tag the image of a release as `onceproof/kafka:<version>`, as compose/cluster.yaml names it; return the tag."""
    plain = f"onceproof/kafka:{version}"
    client = docker.from_env(timeout=20)
    try:
        client.images.get(kafka(version)).tag(plain)
    finally:
        client.close()
    return plain


def present(tag: str) -> bool:
    """Return whether Docker has an image with this tag."""
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
