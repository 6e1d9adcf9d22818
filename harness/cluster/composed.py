"""Docker Compose, as a cluster calls it: its environment, and the start of services within a deadline."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from testcontainers.compose import DockerCompose

from onceproof.harness.artifacts import images
from onceproof.harness.base import paths
from onceproof.harness.base.errors import DeadlineError, HarnessError
from onceproof.harness.cluster.addresses import Address
from onceproof.harness.model.spec import ClusterSpec
from onceproof.harness.model.system import System

ENVIRONMENT = "cluster.env"  # in the cluster's folder
_DEADLINE_S = 180


def environment(spec: ClusterSpec, system: System, address: Address, data: Path, user: str) -> Mapping[str, str]:
    """Return the variables of cluster.yaml. `user` is the user of the containers, and `data` the nodes' folder."""
    return {
        "ONCEPROOF_NAME": address.name,
        "ONCEPROOF_HOME_LABEL": str(paths.home()),
        "ONCEPROOF_KAFKA_IMAGE": system.image(spec.version),
        "ONCEPROOF_TOXIPROXY_IMAGE": images.TOXIPROXY_IMAGE,
        "ONCEPROOF_WIRE_IMAGE": images.wire_tag(),
        "ONCEPROOF_DATABASE_IMAGE": images.DATABASE_IMAGE,
        "ONCEPROOF_USER": user,
        "ONCEPROOF_DATA": str(data),
        "ONCEPROOF_PORTS": str(address.ports),
        "ONCEPROOF_SUBNET": address.subnet,
        "ONCEPROOF_FEATURES": " ".join(f"{key}={value}" for key, value in sorted(spec.features.items())),
    }


def start(system: System, folder: Path, *services: str, profile: str | None = None, healthy: bool = False) -> None:
    """Start these services of the cluster whose folder this is, or all; recreate one whose image has changed.

    With `healthy`, return when they are healthy. Raises as `up` does.
    """
    options = ["--wait"] if healthy else []
    up(system.compose() / "cluster.yaml", folder / ENVIRONMENT, *options, *services, profile=profile)


def up(file: Path, environment_file: Path, *arguments: str, profile: str | None = None) -> None:
    """Call `docker compose up` with a Compose file and the file of its variables; `arguments` follow.

    Raises HarnessError when Compose fails, or a service ends or does not become healthy, and DeadlineError after 180 s.
    """
    compose = DockerCompose(
        context=file.parent,
        compose_file_name=file.name,
        env_file=str(environment_file),
        profiles=[profile] if profile else None,
    )
    command = [*compose.docker_compose_command(), "up", "--detach", *arguments]
    try:  # compose.start() has no deadline
        subprocess.run(command, cwd=file.parent, capture_output=True, check=True, timeout=_DEADLINE_S)
    except subprocess.TimeoutExpired:
        raise DeadlineError(f"waited {_DEADLINE_S} s for docker compose up to end") from None
    except subprocess.CalledProcessError as error:
        raise HarnessError(f"docker compose up: {error.stderr.decode(errors='replace')[-400:]}") from None


def write_environment(folder: Path, variables: Mapping[str, str]) -> Path:
    """Write the variables of a Compose file into the cluster's folder, and return the path."""
    path = folder / ENVIRONMENT
    path.write_text("".join(f"{key}={value}\n" for key, value in variables.items()))
    return path
