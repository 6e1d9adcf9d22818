"""The fault context: the cluster, processes, names and history of a run, and the resolution of roles to nodes.

A scenario names the target of a fault by its role, which is resolved when the fault is injected:

    broker-2  controller-1                     the node of that number (broker-random: the plan chooses the number)
    leader:input/0  leader:output/3            the leader of that partition
    follower-1:output/3  follower-2:output/3   its other replicas, by their numbers
    transaction-coordinator:worker-0           the coordinator of that worker's transactional id
    group-coordinator                          the coordinator of the workers' group
    controller-leader                          the leader of the KRaft quorum
    database                                   PostgreSQL in a container of the cluster
    worker-1                                   a worker
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from onceproof.harness.base.deadlines import until
from onceproof.harness.base.errors import DeadlineError, HarnessError
from onceproof.harness.cluster import topology
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.context.journal import Journal
from onceproof.harness.context.workers import Workers
from onceproof.harness.model.names import Names
from onceproof.harness.model.plan import Plan
from onceproof.harness.record.events import Event
from onceproof.harness.record.history import History

_RESOLVE_DEADLINE_S = 20
E = TypeVar("E", bound=Event)


@dataclass(frozen=True, kw_only=True)
class FaultContext:
    """Everything that a fault may use during a run.

    `requests` has what the workers' clients asked the brokers for, if the scenario wants it recorded. `aborted` is set
    when the run is given up; waits then end at once.
    """

    plan: Plan
    cluster: Cluster
    workers: Workers
    names: Names
    history: History
    requests: Journal = field(default_factory=Journal)
    aborted: threading.Event = field(default_factory=threading.Event)

    def note(self, event: E) -> E:
        """Append an event to the history with the source `nemesis`, and return it as written."""
        return self.history.append("nemesis", event)

    def wait(
        self,
        what: str,
        kind: type[E] | tuple[type[E], ...],
        match: Callable[[E], bool] = lambda _: True,
        *,
        deadline_s: float,
        since: int = 0,
    ) -> E:
        """Wait for the first event of a kind that matches, from index `since` of the history on.

        Raises DeadlineError after `deadline_s` seconds, or within half a second of the run being given up; `what`
        names the event in the message.
        """

        def given_up() -> None:
            if self.aborted.is_set():
                raise DeadlineError(f"waited for {what}, which did not occur before the run was given up")

        return self.history.wait(what, kind, match, deadline_s=deadline_s, since=since, abort=given_up)

    def node(self, role: str) -> str:
        """Return the node that has a role now. Raises DeadlineError when no node has it for twenty seconds."""
        return until(f"a node that is {role}", lambda: self._node(role) or "", deadline_s=_RESOLVE_DEADLINE_S)

    def _node(self, role: str) -> str | None:
        admin = self.cluster.admin
        kind, _, of = role.partition(":")
        numbered = re.fullmatch(r"(broker|controller)-(\d)", role)
        if numbered:
            return "".join(numbered.groups())
        if kind in ("leader", "follower-1", "follower-2"):
            topic, _, partition = of.partition("/")
            state = admin.partitions(self.names.topic(topic))[int(partition)]
            followers = sorted(set(state.replicas) - {state.leader})
            number = state.leader if kind == "leader" else followers[int(kind[-1]) - 1]
            return None if number is None or state.leader is None else topology.node_of(number)
        if kind == "transaction-coordinator":
            worker = int(of.removeprefix("worker-"))
            return topology.node_of(admin.transaction(self.workers.transactional_id(worker)).coordinator)
        if kind == "group-coordinator":
            return topology.node_of(admin.group_coordinator(self.names.group))
        if kind == topology.DATABASE:
            return kind
        if kind == "controller-leader":
            return topology.node_of(admin.controller_leader())
        raise HarnessError(f"no such role: {role}")
