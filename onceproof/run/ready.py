"""Make everything ready before the first input is sent: what the faults need, the topics, and the workers."""

import json
import re
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from onceproof.harness.artifacts import clients
from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import DeadlineError, WorkloadError
from onceproof.harness.cluster.admin import Admin
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Prepared
from onceproof.harness.context.fault import fault as fault_named
from onceproof.harness.model import progress
from onceproof.harness.model.app import AppSpec
from onceproof.harness.record.events import Event, Ready, RunDescribed

_TOPIC_CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
}
DEADLINE_S = 60.0


def describe(context: FaultContext, folder: Path, *, command: str, versions: Mapping[str, str]) -> None:
    """Record the run's command, versions and names in the history, and its cluster in cluster.json."""
    cluster, client = context.cluster, context.plan.scenario.workload.client
    features = cluster.admin.features()
    of_client = {"client": client, "transaction.version": str(clients.transaction_version(client, features))}
    names = {**context.names.topics, "group": context.names.group}
    context.history.append("harness", RunDescribed(command=command, versions={**versions, **of_client}, names=names))
    described = {
        "schema_version": 1,
        "spec": cluster.spec.described(),
        "name": cluster.address.name,
        "ports": cluster.address.ports,
        "features": features,
    }
    (folder / "cluster.json").write_text(json.dumps(described, indent=1, sort_keys=True) + "\n")


def prepare_faults(context: FaultContext) -> None:
    """Make ready what the faults of the plan need, such as images. Raises HarnessError when something cannot be."""
    for planned in context.plan.faults:
        kind = fault_named(planned.name)
        if isinstance(kind, Prepared):
            kind.prepare(planned.spec)


def make_topics(context: FaultContext, *, replicas: int = 3) -> None:
    """Create the run's topics and wait until they have leaders and all replicas in sync.

    Raises DeadlineError when they do not, and AdminError when the cluster refuses to create them.
    """
    topics, admin = list(context.names.topics.values()), context.cluster.admin
    count = context.plan.scenario.workload.partitions
    config = _TOPIC_CONFIG | {"min.insync.replicas": str(min(2, replicas))}
    admin.create_topics(topics, partitions=count, replicas=replicas, config=config)
    await_leaders(admin, topics, partitions=count, replicas=replicas)


def await_leaders(admin: Admin, topics: Sequence[str], *, partitions: int, replicas: int) -> None:
    """Wait until new topics have leaders, and all replicas are in sync. Raises DeadlineError when they are not."""

    def led() -> bool:
        states = [state for topic in topics for state in admin.partitions(topic).values()]
        return len(states) == partitions * len(topics) and all(s.leader and len(s.isr) == replicas for s in states)

    until("leaders and in-sync replicas of the new topics", led, deadline_s=DEADLINE_S)


def await_workers(context: FaultContext) -> None:
    """Wait until every worker is ready and the group has assigned every partition. Raises DeadlineError."""
    failures = context.workers.failures
    for worker in range(context.plan.scenario.workload.workers):
        source = f"worker-{worker}"
        context.history.wait(
            f"{source} to be ready",
            Ready,
            partial(is_from, source),
            deadline_s=DEADLINE_S,
            abort=failures.check_started,
        )
    if context.plan.scenario.app is not None and not _shown_by_group(context, context.plan.scenario.app):
        return
    if context.workers.fixed(0) is not None:
        return
    work, read = context.plan.scenario.workload, dict(context.names.read)

    def shared() -> bool:
        members = [member for group in read for member in context.cluster.admin.members(group)]
        busy = [member for member in members if member.partitions]
        # An application may read further topics, which it writes itself.
        given = [topic for member in members for topic, _ in member.partitions if topic in read.values()]
        everything = work.partitions * len(read)
        return len(busy) == min(work.workers, everything) and len(given) == everything

    try:
        until("the group to assign every partition", shared, deadline_s=DEADLINE_S, abort=failures.check)
    except DeadlineError as error:
        if context.plan.scenario.app is None:
            raise
        raise _not_ready(context, error) from None


def _shown_by_group(context: FaultContext, app: AppSpec) -> bool:
    """Return whether the group shows that an application is ready; otherwise wait until its instances show it.

    Raises WorkloadError when they do not.
    """
    kind, what = progress.ready(app.ready)
    for worker in range(0 if kind == "group" else context.plan.scenario.workload.workers):
        if kind == "log":
            awaited, shown = f"to print a line that matches {what!r}", partial(_printed, context, worker, what)
        else:
            port = int(what) + worker
            awaited, shown = f"to accept connections on port {port}", partial(_accepts, port)
        try:
            awaited = f"worker-{worker} {awaited}"
            until(awaited, shown, deadline_s=DEADLINE_S, abort=context.workers.failures.check_started)
        except DeadlineError as error:
            raise _not_ready(context, error) from None
    return kind == "group"


def _printed(context: FaultContext, worker: int, pattern: str) -> bool:
    return re.search(pattern, context.workers.log(worker).read_text(errors="replace"), re.MULTILINE) is not None


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _not_ready(context: FaultContext, error: DeadlineError) -> WorkloadError:
    workers = range(context.plan.scenario.workload.workers)
    said = "; ".join(f"worker-{worker}: {context.workers.said(worker)}" for worker in workers)
    return WorkloadError(f"the application is not ready: {error}; the last lines of its instances: {said}")


def is_from(source: str, event: Event) -> bool:
    """Return whether an event was reported by this source."""
    return event.source == source
