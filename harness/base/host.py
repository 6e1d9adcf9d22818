"""What differs between machines: operating systems, and engines that run containers.

Runs are tried on Linux with Docker's own engine. `unsupported` names in one line what is not supported yet; it is what
`onceproof doctor` says. What is known of other machines is nevertheless here, in one place.
"""

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import psutil

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_WATCH_S = 0.5
# Becomes another program, which the kernel kills when its parent ends. The setting is kept over exec (prctl(2)).
_BECOME = f"""
import ctypes, os, sys
parent = int(sys.argv[1])
ctypes.CDLL(None).prctl({_PR_SET_PDEATHSIG}, {int(signal.SIGKILL)})
if os.getppid() == parent:
    os.execvp(sys.argv[2], sys.argv[2:])
"""


def end_with_parent() -> None:
    """Arrange for this process to be killed when its parent ends; the caller then checks that it has not ended yet.

    On Linux the kernel does it, also to a process that is stopped. Elsewhere a thread watches the parent, which a
    stopped process does not do before it continues.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_watch, args=(os.getppid(),), name="watches the parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os.kill(os.getpid(), signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of processes whose own parent, a descendant of this process, ends (prctl(2))."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def kill_descendants(deadline_s: float) -> None:
    """Kill every descendant of this process, and wait until they have ended, for `deadline_s` seconds at most."""
    deadline = time.monotonic() + deadline_s
    while time.monotonic() < deadline:
        alive = psutil.Process().children(recursive=True)
        if not alive:
            return
        for each in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(alive, timeout=_WATCH_S)


def ending_with_parent(command: Sequence[str]) -> list[str]:
    """Return a command that runs this one and is killed when the calling process ends.

    Elsewhere than on Linux it is the command itself, which ends when it writes to a pipe that the caller has left.
    """
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", "-c", _BECOME, str(os.getpid()), *command]


def container_user(info: Mapping[str, Any]) -> str:
    """Return the user of the containers as `uid:gid`, so that this user may remove the files that they write.

    `info` is what the engine tells about itself (`docker info`). In a rootless engine, root in a container is the user
    who runs the engine, and any other user in it is nobody that this user could act for.
    """
    return "0:0" if _rootless(info) else f"{os.getuid()}:{os.getgid()}"


def unsupported(info: Mapping[str, Any], components: Sequence[str]) -> list[str]:
    """Return one line for each property of this machine with which runs have not been tried; none if all is known.

    `components` are the names of the engine's parts (`docker version`), such as `Podman Engine`.
    """
    found = []
    if sys.platform != "linux":
        name = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
        found.append(f"{name} is not supported yet: runs have been tried on Linux only")
    if any("podman" in each.lower() for each in components):
        found.append("Podman is not supported yet: runs have been tried with Docker's own engine only")
    elif _rootless(info):
        found.append("a rootless engine is not supported yet: runs have been tried with an engine of root only")
    if str(info.get("OSType", "linux")) != "linux":
        found.append(f"containers of {info['OSType']} are not supported yet: runs need Linux containers")
    return found


def _rootless(info: Mapping[str, Any]) -> bool:
    return any("rootless" in str(each) for each in info.get("SecurityOptions") or ())
