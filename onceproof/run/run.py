"""Execute one run, step by step: plan, work with faults, heal, quiesce, collect, verify, report.

    with pool.lease(scenario.cluster, keep=False) as cluster:
        results = Run(scenario, seed=7, cluster=cluster, runs=Path("runs")).all()

A run that fails at any step keeps what it has in its folder, writes results.json with the verdict `unknown` and the
error, and ends the processes that it started.
"""

import json
import shutil
import time
import traceback
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import BadInput, HarnessError
from onceproof.harness.base.progress import Progress
from onceproof.harness.cluster import pool
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.cluster.exits import Exit, Exits
from onceproof.harness.context import databases
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.instances import Instances
from onceproof.harness.context.processes import Programs
from onceproof.harness.context.workers import Workers
from onceproof.harness.judge import vacuity
from onceproof.harness.model import declaration
from onceproof.harness.model import plan as plans
from onceproof.harness.model.names import names
from onceproof.harness.model.scenario import Scenario
from onceproof.harness.record import manifest
from onceproof.harness.record.events import HarnessFailed, NodeExited, NotTidied, Sent
from onceproof.harness.record.history import History
from onceproof.harness.record.results import Mode, Results
from onceproof.run import failed, quiesce, ready, wire
from onceproof.run.monitor import Monitor
from onceproof.run.nemesis import Nemesis
from onceproof.run.room import Room, keep, new_folder
from onceproof.workloads import processes

PROGRAMS = Programs(
    worker=processes.WORKER,
    supervisor=processes.SUPERVISOR,
    generator=processes.GENERATOR,
    observer=processes.OBSERVER,
)
_WORK_MARGIN_S = 900.0
T = TypeVar("T")


class Run:
    """A run on a cluster that is up. `all` executes every step; the steps can also be called one by one, in order."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        seed: int,
        cluster: Cluster,
        runs: Path,
        progress: Progress | None = None,
        command: str = "",
        master: str = "local[2]",
        mode: Mode = "full",
        faults: bool = True,
    ) -> None:
        self.plan = plans.make(scenario, seed)
        self.cluster = cluster
        self.progress = progress or Progress(quiet=True)
        self._command, self._master, self._mode, self._faults = command, master, mode, faults
        self.folder = new_folder(runs, f"{scenario.name}-{seed}")
        self._room = Room(self.folder)
        self._redact = scenario.redaction.text
        (self.folder / "plan.json").write_text(self.plan.to_json())
        workload = scenario.pipeline
        declaration.write(workload, self.folder)
        self.names = names(self.plan.digest, pool.next_run_number(cluster), workload)
        self.history = History(self.folder / "history.jsonl", self._redact)
        kind = Workers if scenario.app is None else Instances
        self.workers = kind(self.plan, cluster, self.names, self.history, self.folder, programs=PROGRAMS, stops=faults)
        self.context = FaultContext(
            plan=self.plan, cluster=cluster, workers=self.workers, names=self.names, history=self.history
        )
        self._nemesis = Nemesis(self.context)
        self._monitor = Monitor(self.context, self.progress)
        self._exits: Exits | None = None
        self._started_wall = time.time()

    def all(self, at_rest: Callable[["Run"], Any] | None = None) -> Results:
        """Execute every step and return the results; `at_rest` is called between quiesce and collect.

        An error makes the verdict `unknown: harness-error`. A KeyboardInterrupt is raised again after the results are
        written.
        """

        def steps() -> Results:
            self._record(at_rest)
            return self.verify()

        return self._guarded(steps)

    def record(self) -> Results | None:
        """Execute every step before the verdict, which needs the folder only. Return the results of a run that failed.

        A KeyboardInterrupt is raised again after the results are written.
        """
        return self._guarded(partial(self._record, None))

    def _record(self, at_rest: Callable[["Run"], Any] | None) -> None:
        for step in (self.work, self.heal, self.quiesce):
            step()
        if at_rest is not None:
            at_rest(self)
        self.collect()

    def _guarded(self, steps: Callable[[], T]) -> T | Results:
        try:
            return steps()
        except HarnessError as error:
            return self.broken(error)
        except KeyboardInterrupt as stopped:
            self.broken(stopped)
            raise
        except Exception as error:  # a failure of the harness, which the results report
            self._room.release()
            keep(self.folder / "traceback.txt", self._redact(traceback.format_exc()), self.progress.say)
            return self.broken(error)
        finally:
            self.close()

    def work(self) -> None:
        """Create topics, start processes, send load and run the faults, until the load after the last heal is done.

        Raises DeadlineError when a process, the group or a fault misses its deadline, and immediately when a process
        crashes.
        """
        self.progress.phase("work")
        ready.describe(self.context, self.folder, command=self._command, versions=self._versions())
        self._exits = self.cluster.watch_exits(self._on_exit, self._on_blind)
        ready.prepare_faults(self.context)
        if databases.of_cluster(self.plan):
            self.cluster.put_database()
        wire.start(self.context)
        ready.make_topics(self.context)
        self.workers.start()
        self._monitor.start()
        ready.await_workers(self.context)
        self.workers.send_load()
        self.history.wait(
            "the generator's first records",
            Sent,
            deadline_s=ready.DEADLINE_S,
            abort=self.workers.failures.check_started,
        )
        if self._faults:
            self._nemesis.start()
            self._nemesis.wait(self.plan.lasts_s + _WORK_MARGIN_S)
        else:
            self._nemesis.leave_out()
        self.workers.finish_generator(self.plan.lasts_s + _WORK_MARGIN_S)

    def _on_exit(self, exit: Exit) -> None:
        """Record an exit that nothing planned. Without Toxiproxy or the request proxy, the run cannot go on."""
        self.history.append("harness", NodeExited(node=exit.node, code=exit.code))
        if exit.node not in self.cluster.nodes:
            says = f"{exit.node} exited with status {exit.code}, so that no client reaches the cluster any more"
            self.workers.failures.end(HarnessError(says))

    def _on_blind(self, says: str) -> None:
        self.history.append("harness", HarnessFailed(reason=says))

    def heal(self) -> None:
        """Undo whatever may still be broken. Raises DeadlineError when the brokers do not all come back."""
        self.progress.phase("heal")
        self._nemesis.give_up()
        self.cluster.heal()
        until("three registered brokers after the heal", lambda: len(self.cluster.admin.brokers()) == 3, deadline_s=60)

    def quiesce(self) -> None:
        """Bring the run to rest (`run.quiesce`). Raises the failure of the workers if there is one."""
        self.progress.phase("quiesce")
        self.workers.failures.check()
        quiesce.quiesce(self.context, self.folder, self._master)
        self._monitor.stop()

    def collect(self) -> None:
        """Save the nodes' logs and fill the run's tables. Raises as `verifiers.collect.collect` does."""
        self.progress.phase("collect")
        for crash in self.workers.failures.crashes:
            self.history.append("harness", HarnessFailed(reason=crash))
        for witnessed in vacuity.witnessed(self.plan, self.history.events()):
            self.history.append("harness", witnessed)
        self.history.forget()  # it may take as much memory as all else of the harness
        self.cluster.collect_logs(self.folder / "cluster", since_s=self._started_wall)
        from onceproof.verifiers.collect import collect

        collect.collect(self.context, self.folder, mode=self._mode, master=self._master, say=self.progress.far)
        if self.plan.scenario.collect.read_uncommitted:
            collect.collect_hidden(self.context, self.folder, master=self._master)
        if self.history.lost is not None:
            raise self.history.lost

    def verify(self) -> Results:
        """Judge the run's folder, write its report, and return the results."""
        self.progress.phase("verify")
        from onceproof.verifiers.verify import verify

        checks = self.plan.scenario.checks
        results = verify(
            self.folder, master=self._master, look=self._collect_hidden, checks=checks, say=self.progress.far
        )
        self._report()
        return results

    def _collect_hidden(self) -> None:
        """Read the hidden records for a finding that asks for them; the finding is valid without them."""
        try:
            from onceproof.verifiers.collect.collect import collect_hidden

            collect_hidden(self.context, self.folder, master=self._master)
        except Exception as error:
            self.progress.say(self._redact(f"the hidden records were not read: {type(error).__name__}: {error}")[:300])

    def broken(self, error: BaseException) -> Results:
        """Write and return the results of a run that failed with `error`.

        The verdict is `unknown`, with the reason `interrupted`, `workload-error` or `harness-error`.
        """
        self._room.release()
        if self.history.lost is not None:
            self.workers.close()  # what still runs would fill the disk again
        self.history.resume()
        why = failed.reason(error, self.workers.failures.crashes, self._redact)
        self.history.append("harness", failed.event(why))
        self.progress.say(why.says)
        results = failed.results(self.plan, why, command=self._command, versions=self._versions(), mode=self._mode)
        try:
            results.write(self.folder / "results.json")
            manifest.seal_results(self.folder)
        except (OSError, BadInput) as problem:
            self.progress.say(f"the results were not written: {problem}")
        self._report()
        return results

    def close(self) -> None:
        """End every process, heal the cluster and delete the run's topics. It may be called more than once."""
        self._nemesis.give_up()
        self._monitor.stop()
        if self._exits is not None:
            self._exits.close()
        self.workers.close()
        shutil.rmtree(self.folder / "state", ignore_errors=True)  # of an application's instances
        for tidy in (
            self.cluster.take_wire_out,
            self.cluster.take_database_out,
            self.cluster.heal,
            self._delete_topics,
        ):
            try:
                tidy()
            except Exception as error:  # the health check before the next run decides whether the cluster is usable
                self.history.append("harness", NotTidied(reason=str(error)))
        self._room.release()
        self._keep_phases()
        self.history.close()

    def _delete_topics(self) -> None:
        """Delete the run's topics, and those that an application has made itself."""
        admin = self.cluster.admin
        admin.delete_topics(each for each in admin.topics() if each.startswith(f"{self.names.prefix}-"))

    def _versions(self) -> dict[str, str]:
        packages = ("onceproof", "confluent-kafka", "pyspark")
        return {"kafka": self.cluster.spec.version, **{name: version(name) for name in packages}}

    def _report(self) -> None:
        """Write the report. An error is only shown, since the verdict does not depend on the report."""
        self.progress.phase("report")
        self._keep_phases()
        try:
            from onceproof.report import report

            report.write(self.folder)
        except Exception as error:
            self.progress.say(f"the report was not written: {type(error).__name__}: {error}")

    def _keep_phases(self) -> None:
        keep(self.folder / "phases.json", json.dumps(self.progress.seconds, indent=1) + "\n", self.progress.say)
