"""A container that runs an instance of an application, from an image that the scenario names.

It shares the network of this machine, since the addresses that a lane's brokers advertise are on 127.0.0.1. It carries
the labels of its cluster, so that `onceproof clean` removes it when nobody else did.
"""

import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import docker

from onceproof.harness.base import host, paths
from onceproof.harness.base.errors import BadInput, HarnessError
from onceproof.harness.cluster.containers import HOME_LABEL, LABEL, already, engine, remove_container

_POLL_S = 0.2
_RUN_LABEL = "io.onceproof.run"


def ready(image: str) -> None:
    """Pull an image unless it is here.

    Raises BadInput when the engine cannot pull it, and HarnessError when the engine does not answer.
    """
    try:
        images = engine().images
        try:
            images.get(image)
        except docker.errors.ImageNotFound:
            images.pull(image)
    except docker.errors.APIError as error:
        says = " ".join(str(error.explanation or error).split())[:200]
        raise BadInput(f"app.image: {image}: not on this machine, and it cannot be pulled: {says}") from None
    except docker.errors.DockerException as error:
        raise HarnessError(f"the Docker engine does not answer: {error}") from None


def labels(cluster: str, run: str) -> dict[str, str]:
    """Return the labels of the containers of a run, whose names begin with `run`."""
    return {LABEL: cluster, HOME_LABEL: str(paths.home()), _RUN_LABEL: run}


def remove_all(run: str) -> None:
    """Remove the containers of a run in any state."""
    for each in engine().containers.list(all=True, filters={"label": f"{_RUN_LABEL}={run}"}):
        remove_container(each)


def send(name: str, number: signal.Signals) -> None:
    """Send a signal to a container; nothing happens if it has ended.

    SIGSTOP and SIGCONT freeze and resume all of its processes (cgroup freezer).
    """
    try:
        container = engine().containers.get(name)
        if number == signal.SIGSTOP:
            with already("already paused"):
                container.pause()
            return
        with already("is not paused"):
            container.unpause()
        if number != signal.SIGCONT:
            container.kill(number.name)
    except docker.errors.NotFound:
        pass
    except docker.errors.APIError as error:
        if "is not running" not in str(error):
            raise


class AppContainer:
    """A container that was started. `name` is its name."""

    def __init__(
        self,
        image: str,
        command: Sequence[str],
        *,
        name: str,
        env: Mapping[str, str],
        labelled: Mapping[str, str],
        state: Path,
        reads: Sequence[Path] = (),
    ) -> None:
        """Start it as this user. It may write to `state`, and read `reads`; each has the same path in the container.

        Raises docker.errors.DockerException when it cannot be started.
        """
        self.name = name
        mounts = {str(each): {"bind": str(each), "mode": "ro"} for each in reads}
        self._container: Any = engine().containers.run(
            image,
            list(command) or None,
            name=name,
            environment=dict(env),
            labels=dict(labelled),
            volumes={**mounts, str(state): {"bind": str(state), "mode": "rw"}},
            network_mode="host",
            user=host.container_user(engine().info()),
            init=True,
            detach=True,
        )

    def copy_log(self, to: BinaryIO) -> None:
        """Copy what its processes print until it ends."""
        for chunk in self._container.logs(stream=True, follow=True):
            to.write(chunk)
            to.flush()

    def wait(self, timeout_s: float = float("inf")) -> int | None:
        """Return its exit status, 137 if it was killed; None if it has not ended within `timeout_s` seconds."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            try:
                self._container.reload()
            except docker.errors.NotFound:  # removed by somebody else
                return 128 + signal.SIGKILL
            if self._container.status in ("exited", "dead"):
                return int(self._container.attrs["State"]["ExitCode"])
            time.sleep(_POLL_S)
        return None

    def remove(self) -> None:
        """Remove it in any state. This call is idempotent."""
        remove_container(self._container)
