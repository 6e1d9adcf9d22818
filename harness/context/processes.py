"""The processes of a run: how each is started and ended, and those around its workers: generator and observers.

One thread starts all processes and lives as long as they do, because the kernel kills a child when the thread that
started it ends.
"""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onceproof.harness.artifacts import clients
from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster import pool, topology
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.context.failures import Failures
from onceproof.harness.context.process import Child
from onceproof.harness.model.names import Names
from onceproof.harness.model.plan import TAIL_S, Plan
from onceproof.harness.record.events import Event, Finished, KilledAtStop, Started, parse
from onceproof.harness.record.history import History

_OBSERVERS_DEADLINE_S = 75.0  # on a slow machine an observer may still wait for its first record


@dataclass(frozen=True, kw_only=True)
class Programs:
    """The names of the modules that run as processes, which are not part of the harness.

    `supervisor` runs an instance of an application in place of a worker.
    """

    worker: str
    supervisor: str
    generator: str
    observer: str


class Processes:
    """The processes of one run; the workers are those of a class that derives from this one.

    The methods are safe to use from several threads. `failures` has what went wrong with the processes.
    """

    def __init__(
        self, plan: Plan, cluster: Cluster, names: Names, history: History, folder: Path, *, programs: Programs
    ) -> None:
        """Prepare the processes of a run without starting them. `folder` is the run folder."""
        self._programs = programs
        self._plan, self._cluster, self._names, self._history, self._folder = plan, cluster, names, history, folder
        self._workload = plan.scenario.pipeline
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="process starter")
        self._lock = threading.RLock()
        self._children: dict[str, Child] = {}
        self._replaced: list[Child] = []
        self._stopping = False
        self.failures = Failures()
        history.when_lost(self.failures.end)

    def start(self) -> None:
        """Start the observers and the generator, which sends no input before `send_load`."""
        if self._plan.scenario.workload.observer:
            self._starter.submit(self._start_observers).result()
        self._starter.submit(self._start_generator).result()

    def send_load(self) -> None:
        """Let the generator send inputs."""
        self._children["generator"].send("begin")

    def finish_generator(self, deadline_s: float) -> None:
        """Ask the generator to send its last inputs, and wait for it to end.

        Raises DeadlineError after `deadline_s` seconds, and HarnessError when it ended without completing the ledger.
        """
        generator = self._children["generator"]
        generator.send("stop")
        until(
            "the generator to finish", lambda: not generator.running, deadline_s=deadline_s, abort=self.failures.check
        )
        generator.wait(5)
        if self._history.events().first(Finished, source="generator") is None:
            raise HarnessError(f"the generator ended early: {tail(generator.log)}")

    def stop_observers(self) -> None:
        """Stop every observer; kill those that have not ended after 75 seconds."""
        self._stop([name for name in self._children if name.startswith("observer-")], _OBSERVERS_DEADLINE_S)

    def close(self) -> None:
        """Kill every process that still runs. This call is idempotent."""
        self._stopping = True
        for child in [*self._children.values(), *self._replaced]:
            child.kill()
        self._starter.shutdown()

    def _stop(self, names: list[str], deadline_s: float) -> None:
        for name in names:
            self._children[name].send("stop")
        deadline = time.monotonic() + deadline_s
        for name in names:
            if not self._children[name].wait(max(0.1, deadline - time.monotonic())):
                self._history.append("harness", KilledAtStop(process=name, after_s=deadline_s))
                self._children[name].kill()

    def _start_generator(self) -> None:
        work = self._plan.scenario.workload
        config = {
            **self._common(),
            "seed": self._plan.seed,
            "records_max": self._plan.records_max,
            "tail_s": TAIL_S,
            "input": self._names.input,
            "ledger": str(self._folder / "ledger"),
            "aborted": self._plan.scenario.load.aborted,
            "prefix": self._names.prefix,
            "load": self._workload.contract.load if self._workload.contract else "",
            **work.model_dump(
                include={"records", "records_per_s", "record_bytes", "compression", "keys", "key_skew", "partitions"}
            ),
        }
        self._start_process("generator", self._programs.generator, config, {})

    def _start_observers(self) -> None:
        other = "librdkafka" if clients.family(self._plan.scenario.workload.client) == "java" else "java"
        for role in self._workload.judged:
            topic = self._names.topic(role)
            config = {
                **self._common(),
                "topic": topic,
                "group": f"{topic}-observer",
                "family": other,
                "ledger": str(self._folder / "ledger" / role),
            }
            Path(config["ledger"]).mkdir(parents=True, exist_ok=True)
            self._start_process(f"observer-{role}", self._programs.observer, config, {})

    def _common(self, lane: int = topology.OBSERVER_LANE) -> dict[str, Any]:
        return {
            "bootstrap": self._cluster.bootstrap(lane),
            "client_config": dict(self._plan.scenario.client_config),
        }

    def _start_process(
        self,
        name: str,
        module: str,
        config: dict[str, Any],
        extra: dict[str, Any],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        def on_event(raw: dict[str, Any]) -> None:
            try:
                event = parse({**raw, **extra})
            except ValueError as error:
                self.failures.crashes.append(f"{name} reported an invalid event: {error}")
                return
            self._remember(name, event)
            self._history.append(name, event)

        def on_start(pid: int) -> None:
            pool.record_process(self._cluster.folder, pid, name)
            self._history.append(name, Started(pid=pid, **extra))

        child = Child(
            module,
            config,
            folder=self._folder / "processes",
            name=f"{name}.{extra.get('incarnation', 1)}",
            environment=environment,
            on_start=on_start,
            on_event=on_event,
            on_exit=self._on_exit(name, extra),
        )
        with self._lock:
            self._children[name] = child

    def _remember(self, name: str, event: Event) -> None:
        """Take note of an event before it is written to the history."""

    def _on_exit(self, name: str, _extra: dict[str, Any]) -> Callable[[Child, int], None]:
        """Return what is called when a process has ended, with its exit code."""
        raise NotImplementedError


def tail(path: Path) -> str:
    """Return the last line that a process printed, of 300 characters at most."""
    lines = path.read_text(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "(it printed nothing)"
