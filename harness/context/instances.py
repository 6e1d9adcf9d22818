"""The instances of an application, which run in place of onceproof's own workers.

Each instance is a command of the scenario under a supervisor of its own. What it does is told by its requests: the
narrator reports its transactions as the events of a worker. An instance that ends by itself is started again, as an
orchestrator would do; one that ends several times in a row without a committed transaction ends the run.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import DeadlineError
from onceproof.harness.cluster import app_container, topology
from onceproof.harness.cluster.described import Member
from onceproof.harness.cluster.request_proxy import Wire
from onceproof.harness.context import databases
from onceproof.harness.context.journal import AT_PHASES, TopicNames
from onceproof.harness.context.process import Child
from onceproof.harness.context.workers import Workers
from onceproof.harness.model.app import AppSpec
from onceproof.harness.model.databases import address
from onceproof.harness.model.spec import When
from onceproof.harness.record.events import Event, Spawned, parse
from onceproof.harness.record.narrator import Narrator

_CLOSES_S = 10.0
_SPAWN_DEADLINE_S = 20.0


class Instances(Workers):
    """The instances of a run's application, and its other processes."""

    def _prepare(self) -> None:
        self._spawned: dict[int, Spawned] = {}
        self._paused: dict[int, list[str]] = {}  # an instance: the stops at which it may go on when it is resumed
        topics = TopicNames(self._cluster.admin.topic_names)
        self._narration = Narration(
            self._narrated,
            read=lambda _: self._names.input,
            named=topics.named,
            failed=self.failures.crashes.append,
            transactional=self._workload.claim.transactional,
        )

    @property
    def _app(self) -> AppSpec:
        app = self._plan.scenario.app
        assert app is not None  # of a scenario with [app] only
        return app

    @property
    def narrator(self) -> Narrator:
        """What the requests of the instances tell; complete after `stop_workers` only."""
        return self._narration.narrator

    def transactional_id(self, worker: int) -> str:
        """Return the transactional id that an instance uses; before its first transaction, the one it was given."""
        return self.narrator.transactional_ids.get(worker) or super().transactional_id(worker)

    def is_member(self, worker: int, member: Member) -> bool:
        """Return whether a member of a group is this instance, as its own requests say."""
        return member.member_id in self.narrator.members.get(worker, ())

    def hears(self, event: Mapping[str, Any]) -> None:
        """Take an event of the request proxy about an instance's request or response."""
        self._narration.hears(event)

    def start(self) -> None:
        """Prepare the stops at phases of transactions, and start the processes as those of workers."""
        for stop, when in self._stops_at():
            lane = f"lane{topology.lane_of_worker(when.worker)}"
            self._wire().stop(stop, lane=lane, phase=when.phase, transaction=when.count)
        super().start()

    def go(self, worker: int, stop: str, *, abort: bool = False) -> None:
        """Deliver the request that waits at a stop, or do so when the instance is resumed if it is paused.

        An instance cannot be asked to abort its transaction, so `abort` must be false.
        """
        assert not abort
        with self._lock:
            if worker in self._paused:
                self._paused[worker].append(stop)
                return
        self._wire().go(stop)

    def _stops_at(self) -> Iterator[tuple[str, When]]:
        for fault in self._plan.faults if self._stops else ():
            for moment, when in fault.spec.stops.items():
                yield fault.id + moment, when

    def _wire(self) -> Wire:
        wire = self._cluster.wire
        assert wire is not None  # an application's links always lead through the request proxy
        return wire

    def _start_worker(self, worker: int) -> None:
        app = self._app
        incarnation = self._next_incarnation(worker)
        if incarnation is None:
            return
        bootstrap = self._cluster.bootstrap(topology.lane_of_worker(worker))
        state = self._folder.resolve() / "state" / f"worker-{worker}"
        if app.state == "wiped":
            shutil.rmtree(state, ignore_errors=True)
        state.mkdir(parents=True, exist_ok=True)
        database = address(databases.url(self._plan, self._cluster, self._folder, topology.lane_of_worker(worker)))
        command, env = app.filled(self._names, worker, bootstrap=bootstrap, database=database, state=state)
        about = {"command": command, "env": dict(env), "folder": str(app.place), "stop_s": app.stop_s}
        config = {**about, "container": self._container(app, worker, incarnation, state), "client_config": {}}
        self._spawned.pop(worker, None)
        self._wire().settle()  # what an earlier process sent is no request of this one
        self._narration.started(worker, incarnation)
        # No number of its own: the numbers of a worker's events are those of what the requests tell.
        extra: dict[str, Any] = {"incarnation": incarnation, "n": None}
        self._start_process(f"worker-{worker}", self._programs.supervisor, config, extra)

    def _container(self, app: AppSpec, worker: int, incarnation: int, state: Path) -> dict[str, Any] | None:
        """Return what the supervisor needs to know of the container of an instance; None if there is none."""
        if app.image is None:
            return None
        run = self._names.prefix
        return {
            "image": app.image,
            "name": f"{run}-{worker}-{incarnation}",
            "labels": app_container.labels(self._cluster.address.name, run),
            "state": str(state),
            "reads": [str(each) for each in app.made],
        }

    def pause(self, worker: int) -> None:
        """Stop every process of an instance with SIGSTOP."""
        with self._lock:
            self._paused.setdefault(worker, [])
        self._signal(worker, signal.SIGSTOP)

    def resume(self, worker: int) -> None:
        """Resume every process of an instance with SIGCONT, and deliver what it has sent before it was paused."""
        with self._lock:
            waiting = self._paused.pop(worker, [])
        self._signal(worker, signal.SIGCONT)
        for stop in waiting:
            self._wire().go(stop)

    def kill(self, worker: int) -> None:
        """Kill every process of an instance with SIGKILL, and start no further incarnation until `release`."""
        with self._lock:
            self._kept_down.add(worker)
            self._paused.pop(worker, None)
        self._signal(worker, signal.SIGKILL)
        self._worker(worker).wait(_SPAWN_DEADLINE_S)

    def stop_workers(self) -> None:
        """Stop every instance, and tell what is left of its requests."""
        for stop, _ in self._stops_at():
            self._wire().go(stop)
        super().stop_workers()
        self._narration.finish(self._wire().settle)

    def _signal(self, worker: int, number: signal.Signals) -> None:
        spawned = until(
            f"worker-{worker} to report its process", lambda: self._spawned.get(worker), deadline_s=_SPAWN_DEADLINE_S
        )
        assert spawned is not None
        if spawned.container:
            app_container.send(spawned.container, number)
            return
        with suppress(ProcessLookupError):
            os.killpg(spawned.group, number)

    def _remember(self, name: str, event: Event) -> None:
        super()._remember(name, event)
        if isinstance(event, Spawned):
            self._spawned[int(name.removeprefix("worker-"))] = event

    def _narrated(self, worker: int, raw: dict[str, Any]) -> None:
        name = f"worker-{worker}"
        event = parse(raw)
        self._remember(name, event)
        self._history.append(name, event)

    def _on_exit(self, name: str, extra: dict[str, Any]) -> Callable[[Child, int], None]:
        ended = super()._on_exit(name, extra)

        def told(child: Child, code: int) -> None:
            if name.startswith("worker-"):
                self._narration.ended(int(name.removeprefix("worker-")), extra["incarnation"])
            ended(child, code)

        return told

    def close(self) -> None:
        """Kill every process that still runs, and end the narration. This call is idempotent."""
        super().close()
        if self._app.image is not None:
            app_container.remove_all(self._names.prefix)
        self._narration.close()


class Narration:
    """Gives the narrator what the request proxy reports, in a thread of its own.

    The proxy reports what happens in its order, on all connections.
    """

    def __init__(
        self,
        emit: Callable[[int, dict[str, Any]], None],
        *,
        read: Callable[[int], str],
        named: Callable[[Any], Any],
        failed: Callable[[str], None],
        transactional: bool,
    ) -> None:
        """`read` is as for the narrator; `named` adds the names of topics to a body (`TopicNames`).

        `failed` is called with what went wrong when a report cannot be followed.
        """
        self._named, self._failed = named, failed
        self.narrator = Narrator(read=read, emit=emit, transactional=transactional)
        self._asked: dict[tuple[str, int, int], tuple[Mapping[str, Any], Any]] = {}
        self._steps = ThreadPoolExecutor(max_workers=1, thread_name_prefix="narration")

    def hears(self, event: Mapping[str, Any]) -> None:
        """Take an event of the request proxy."""
        key = event["link"], event["connection"], event.get("correlation", -1)
        if event["event"] == "request":
            self._put(lambda: self._ask(key, {**event, "worker": topology.worker_of_link(event["link"])}))
        elif event["event"] == "response":
            self._put(lambda: self._tell(key, event))
        elif event["event"] == "closed":
            self._put(lambda: self.narrator.closed(event))
        elif event["event"] in AT_PHASES:
            worker = topology.worker_of_link(event["link"])
            self._put(lambda: self.narrator.stopped(worker, event))

    def started(self, worker: int, incarnation: int) -> None:
        """Note that a process of a worker is about to be started."""
        self._put(lambda: self.narrator.started(worker, incarnation))

    def ended(self, worker: int, incarnation: int) -> None:
        """Note that a process of a worker has ended."""
        self._put(lambda: self.narrator.ended(worker, incarnation, time.monotonic()))

    def finish(self, settle: Callable[[], None]) -> None:
        """Tell how everything ended, when all processes have ended.

        `settle` returns when the request proxy has reported what it has read so far. Transactions on connections of
        which it does not see the end within ten seconds are told as `info`.
        """

        def closed() -> bool:
            settle()
            return self._steps.submit(self.narrator.closed_all).result()

        with suppress(DeadlineError):
            until("the connections of the instances to be closed", closed, deadline_s=_CLOSES_S)
        self._put(lambda: self.narrator.finish(time.monotonic()))
        self._steps.submit(lambda: None).result()

    def close(self) -> None:
        """Tell what is left, and end. This call is idempotent."""
        self._steps.shutdown()

    def _ask(self, key: tuple[str, int, int], event: Mapping[str, Any]) -> None:
        known = {**event, "body": self._named(event["body"])}
        self._asked[key] = known, self.narrator.asked(known, known["body"])

    def _tell(self, key: tuple[str, int, int], event: Mapping[str, Any]) -> None:
        if known := self._asked.pop(key, None):
            asked, transaction = known
            body = self._named(event["body"])
            self.narrator.told({**asked, "answered": event["at"]}, asked["body"], body, transaction)

    def _put(self, step: Callable[[], None]) -> None:
        def told() -> None:
            try:
                step()
            except Exception as error:
                self._failed(f"the requests of the instances cannot be followed: {type(error).__name__}: {error}")

        with suppress(RuntimeError):  # it is closed: what happens now is not judged
            self._steps.submit(told)
