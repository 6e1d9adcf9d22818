"""The container images: Kafka by version, on a base with a Java runtime; Toxiproxy. Built once, tagged by version.

`ci/images.sh` makes the base (`onceproof/jre:17`) and Toxiproxy's image; a Kafka image is the base plus that
release's jars, so that a second version costs seconds. The tag carries a hash of what goes into the image beside the
jars: when start.sh changes, the image is made anew.
"""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import docker
import docker.errors

from harness import jars
from harness.errors import HarnessError
from harness.places import compose_dir, jars_dir

BASE_IMAGE = "onceproof/jre:17"
TOXIPROXY_IMAGE = "onceproof/toxiproxy:2.12.0"
_BUILD_DEADLINE_S = 300


def kafka(version: str) -> str:
    """The tag of that release's image, which is built when it is not there. Raises BadInput for an unknown release."""
    jars.check_release(version)  # before the engine is asked: bad input needs none
    folder = compose_dir() / "kafka"
    parts = ("Dockerfile", "start.sh", "log4j2.yaml", "log4j.properties")
    content = b"".join((folder / part).read_bytes() for part in parts)
    tag = f"onceproof/kafka:{version}-{hashlib.sha256(content).hexdigest()[:8]}"
    if present(tag):
        return tag
    libs = jars.kafka(version)
    if not present(BASE_IMAGE):
        raise HarnessError(f"image {BASE_IMAGE} is missing; `make setup` makes it")
    with tempfile.TemporaryDirectory(dir=jars_dir()) as work:
        context = Path(work)
        for part in parts:
            shutil.copy(folder / part, context / part)
        shutil.copytree(libs, context / "libs", copy_function=_link)
        done = subprocess.run(
            ["docker", "build", "--quiet", "--build-arg", f"BASE={BASE_IMAGE}", "--tag", tag, str(context)],
            capture_output=True, text=True, timeout=_BUILD_DEADLINE_S, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        raise HarnessError(f"docker build of {tag} failed: {done.stderr[-500:]}")
    return tag


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
