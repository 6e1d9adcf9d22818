"""The workers of a run: it starts, restarts, stops and kills them.

A worker that is killed, or that ends after a fatal error of its client, is restarted as its next incarnation, as an
orchestrator would do, unless a fault keeps it down.
"""

import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onceproof.harness.artifacts import clients
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster import topology
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.cluster.described import Member
from onceproof.harness.context import databases
from onceproof.harness.context.process import EXIT_FATAL, Child
from onceproof.harness.context.processes import Processes, Programs, tail
from onceproof.harness.model.names import Names
from onceproof.harness.model.plan import Plan
from onceproof.harness.record.events import (
    AtPhase,
    Began,
    Event,
    Exited,
    Outcome,
)
from onceproof.harness.record.history import History
from onceproof.harness.record.narrator import Narrator

_RESTARTS_MAX = 60
_RESTART_PAUSE_S = 0.3
_STOP_DEADLINE_S = 25.0


class Workers(Processes):
    """The workers of one run, and its other processes. The methods are safe to use from several threads."""

    def __init__(
        self,
        plan: Plan,
        cluster: Cluster,
        names: Names,
        history: History,
        folder: Path,
        *,
        programs: Programs,
        stops: bool = True,
    ) -> None:
        """Prepare the processes of a run without starting them.

        `folder` is the run folder. With `stops`, workers stop at the phases at which the plan has faults.
        """
        super().__init__(plan, cluster, names, history, folder, programs=programs)
        self._stops = stops
        self._incarnations: dict[int, int] = {}
        self._transactions: dict[int, int] = {}
        self._fired: set[str] = set()
        self._kept_down: set[int] = set()
        self._once: set[int] = set()
        self._taken_over: dict[int, set[int]] = {}
        self._prepare()

    @property
    def narrator(self) -> Narrator | None:
        """What the requests of an application tell; None for onceproof's own workers, who tell it themselves."""
        return None

    def _prepare(self) -> None:
        """Prepare what a class that derives from this one needs."""

    def start(self) -> None:
        """Start the workers, the observers and the generator, which sends no input before `send_load`."""
        for worker in range(self._plan.scenario.workload.workers):
            self._starter.submit(self._start_worker, worker).result()
        super().start()

    def start_other(self, worker: int, module: str, config: Mapping[str, Any]) -> None:
        """Run the module `module` once in place of a worker, as its first incarnation, on the observer's lane."""
        self._kept_down.add(worker)  # when it has ended, no worker is started in its place
        self._once.add(worker)
        whole = {**self._common(), "worker": worker, **config}
        self._starter.submit(self._start_process, f"worker-{worker}", module, whole, {"incarnation": 1}).result()

    def transactional_id(self, worker: int) -> str:
        """Return the transactional id of a worker's transactions."""
        return self._names.transactional_id(worker)

    def is_member(self, worker: int, member: Member) -> bool:
        """Return whether a member of a group is this worker."""
        return member.client_id.startswith(f"worker-{worker}-")

    def fixed(self, worker: int) -> list[int] | None:
        """Return the input partitions that a worker has by configuration, or None when its group assigns them."""
        if self._workload.wiring.assignment == "group":
            return None
        work = self._plan.scenario.workload
        with self._lock:
            owners = {worker, *self._taken_over.get(worker, ())}
        return [partition for partition in range(work.partitions) if partition % work.workers in owners]

    # Actions of faults

    def pid(self, worker: int) -> int:
        """Return the process id of a worker's current incarnation."""
        return self._worker(worker).pid

    def log(self, worker: int) -> Path:
        """Return the file with what a worker's current incarnation has printed."""
        return self._worker(worker).log

    def said(self, worker: int) -> str:
        """Return the last line that a worker's current incarnation has printed."""
        return tail(self._worker(worker).log)

    def incarnation(self, worker: int) -> int:
        """Return the number of a worker's current incarnation, from 1."""
        with self._lock:
            return self._incarnations[worker]

    def pause(self, worker: int) -> None:
        """Stop a worker's process with SIGSTOP."""
        self._worker(worker).signal(signal.SIGSTOP)

    def resume(self, worker: int) -> None:
        """Resume a worker's process with SIGCONT; this has no effect on a process that runs or has ended."""
        self._worker(worker).signal(signal.SIGCONT)

    def kill(self, worker: int) -> None:
        """Kill a worker with SIGKILL, and start no further incarnation until `release`."""
        with self._lock:
            self._kept_down.add(worker)
        self._worker(worker).kill()

    def leave(self, worker: int) -> None:
        """Ask a worker to end after its transaction and so to leave its group; its next incarnation rejoins it."""
        self._worker(worker).send("stop")

    def replace(self, worker: int, by: int) -> Child:
        """Give a worker's partitions to another process while the worker still lives, as if it were taken for dead.

        The partitions go to the worker's next incarnation if `by` is the worker itself, otherwise to worker `by`, which
        is restarted with its own partitions and these. Returns the replaced process, which is not restarted.
        """
        with self._lock:
            old = self._children[f"worker-{worker}"]
            self._replaced.append(old)
        if by == worker:
            self._starter.submit(self._start_worker, worker).result()
            return old
        with self._lock:
            self._taken_over.setdefault(by, set()).add(worker)
            self._kept_down.add(worker)
        self._worker(by).kill()  # its next incarnation has the partitions of both workers
        return old

    def release(self, worker: int) -> None:
        """Start the next incarnation of a worker that `kill` keeps down; otherwise do nothing."""
        with self._lock:
            if worker not in self._kept_down:
                return
            self._kept_down.discard(worker)
        if not self._worker(worker).running and not self._stopping:
            self._starter.submit(self._start_worker, worker).result()

    def go(self, worker: int, stop: str, *, abort: bool = False) -> None:
        """Let a worker that waits at the stop `stop` continue, or abort its transaction with `abort`.

        A stop is identified by the id of its fault, followed by the key that `FaultSpec.stops` has for it.
        """
        self._worker(worker).send("go", fault=stop, abort=abort)

    # The end of a run

    def stop_workers(self) -> None:
        """Stop every worker after its transaction; kill those that have not ended after 25 seconds."""
        self._stopping = True
        self._stop([name for name in self._children if name.startswith("worker-")], _STOP_DEADLINE_S)

    # Starting workers

    def _start_worker(self, worker: int) -> None:
        work, pipeline = self._plan.scenario.workload, self._workload
        stage = worker % len(self._names.read)
        group, topic = self._names.read[stage]
        incarnation = self._next_incarnation(worker)
        if incarnation is None:
            return
        stops = [
            {"phase": when.phase, "count": when.count, "fault": fault.id + moment}
            for fault in self._plan.faults
            for moment, when in fault.spec.stops.items()
            if self._stops and fault.id + moment not in self._fired and when.worker == worker
        ]
        config = {
            **self._common(lane=topology.lane_of_worker(worker)),
            "name": f"worker-{worker}",
            "worker": worker,
            "incarnation": incarnation,
            "first_transaction": self._transactions.get(worker, 0) + 1,
            "stops": stops,
            "workload": work.name,
            "topics": dict(self._names.topics),
            "prefix": self._names.prefix,
            "input": topic,
            "group": group,
            "stage": stage,
            "fixed": self.fixed(worker),
            "transactional_id": self._names.transactional_id(worker),
            "isolation": pipeline.wiring.isolation if stage else "read_committed",
            "idempotent": pipeline.wiring.idempotent,
            "position": pipeline.wiring.position,
            "generation": pipeline.wiring.generation,
            "compression": work.compression,
            "database": databases.url(self._plan, self._cluster, self._folder, topology.lane_of_worker(worker)),
            "tables": {role: self._names.table(role) for role in (*pipeline.tables, "positions", "seen")},
            **work.model_dump(
                include={
                    "client",
                    "partitions",
                    "transaction_records",
                    "transaction_timeout_ms",
                    "message_timeout_ms",
                    "request_timeout_ms",
                    "session_timeout_ms",
                    "group_protocol",
                    "auto_offset_reset",
                    "assignor",
                    "static_member",
                }
            ),
        }
        extra = {"incarnation": incarnation}
        self._start_process(f"worker-{worker}", self._programs.worker, config, extra, clients.prepare(work.client))

    def _next_incarnation(self, worker: int) -> int | None:
        """Return the number of a worker's next incarnation; None if there were too many."""
        with self._lock:
            incarnation = self._incarnations.get(worker, 0) + 1
            self._incarnations[worker] = incarnation
        if incarnation <= _RESTARTS_MAX:
            return incarnation
        self.failures.crashes.append(f"worker-{worker} was started {_RESTARTS_MAX} times and ended each time")
        return None

    def _start_again(self, worker: int) -> None:
        """Start the next incarnation of a worker. An error ends the run, since nobody waits for the result."""
        try:
            self._start_worker(worker)
        except Exception as error:
            self.failures.end(HarnessError(f"worker-{worker} was not started again: {type(error).__name__}: {error}"))

    def _remember(self, name: str, event: Event) -> None:
        """Record what the next incarnation must know: the last transaction's number and the stops already reached."""
        with self._lock:
            if isinstance(event, Began):
                self._transactions[int(name.split("-")[1])] = event.transaction
            elif isinstance(event, Outcome) and event.type == "ok":
                self.failures.committed(int(name.split("-")[1]))
            elif isinstance(event, AtPhase):
                self._fired.add(event.fault)

    def _on_exit(self, name: str, extra: dict[str, Any]) -> Callable[[Child, int], None]:
        def ended(child: Child, code: int) -> None:
            self._history.append(name, Exited(code=code, **extra))
            crashed = code not in (0, EXIT_FATAL, -signal.SIGKILL)
            if not name.startswith("worker-"):
                if crashed:
                    self.failures.crashes.append(f"{name} ended with exit status {code}: {tail(child.log)}")
                return
            worker = int(name.split("-")[1])
            if crashed or (code == 0 and not child.told_to_stop and worker not in self._once):
                self.failures.ended(worker, code, tail(child.log))
            with self._lock:
                stay_down = (
                    self._stopping or worker in self._kept_down or child in self._replaced or self.failures.fatal
                )
            if not stay_down:
                time.sleep(_RESTART_PAUSE_S)
                if not self._stopping:
                    self._starter.submit(self._start_again, worker)

        return ended

    def _worker(self, worker: int) -> Child:
        with self._lock:
            return self._children[f"worker-{worker}"]
