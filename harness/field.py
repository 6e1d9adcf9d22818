"""What a fault has before it: the cluster, the run's processes and names, and the history. And who has which role.

A target in a scenario is a role; it is resolved when the fault fires, and recorded:

    broker-2  controller-1  broker-random      by number (random: chosen by the plan)
    leader:input/0  leader:output/3            the leader of that partition
    transaction-coordinator:worker-0           of that worker's transactional id
    group-coordinator                          of the workers' group
    controller-leader                          the quorum's leader
    worker-1                                   a worker
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from harness import topology
from harness.cluster import Cluster
from harness.crew import Crew
from harness.errors import HarnessError
from harness.history import Event, History
from harness.names import Names
from harness.plan import Plan
from harness.wait import until

NODE_ROLE = (
    r"broker-([1-3]|random)|controller-([1-3]|random)|leader:[a-z-]+/\d+|transaction-coordinator:worker-[0-3]"
    r"|group-coordinator|controller-leader"
)
_RESOLVE_DEADLINE_S = 20


@dataclass(frozen=True, kw_only=True)
class Field:
    plan: Plan
    cluster: Cluster
    crew: Crew
    names: Names
    history: History
    aborted: threading.Event = field(default_factory=threading.Event)

    def note(self, event: str, **fields: object) -> Event:
        """Write down what the nemesis did or saw."""
        return self.history.append("nemesis", event, **fields)

    def wait(self, what: str, match: Callable[[Event], bool], *, deadline_s: float, since: int = 0) -> Event:
        """Wait for an event of the history; ends early when the run is given up."""
        return self.history.wait(what, match, deadline_s=deadline_s, since=since, abort=self.aborted.is_set)

    def node(self, role: str) -> str:
        """The node that has a role now. Raises DeadlineError when nobody has it for twenty seconds."""
        return until(f"a node that is {role}", lambda: self._node(role) or "", deadline_s=_RESOLVE_DEADLINE_S)

    def _node(self, role: str) -> str | None:
        admin = self.cluster.admin
        kind, _, of = role.partition(":")
        numbered = re.fullmatch(r"(broker|controller)-(\d)", role)
        if numbered:
            return "".join(numbered.groups())
        if kind == "leader":
            topic, _, partition = of.partition("/")
            leader = admin.partitions(self.names.topic(topic))[int(partition)].leader
            return None if leader is None else topology.node_of(leader)
        if kind == "transaction-coordinator":
            worker = int(of.removeprefix("worker-"))
            return topology.node_of(admin.transaction(self.names.transactional_id(worker)).coordinator)
        if kind == "group-coordinator":
            return topology.node_of(admin.group_coordinator(self.names.group))
        if kind == "controller-leader":
            return topology.node_of(admin.controller_leader())
        raise HarnessError(f"no such role: {role}")
