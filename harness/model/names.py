"""The names of one run on a cluster: topics, group, transactional ids. They derive from the plan's hash and the run's
number, so that no run ever meets what another one left.

    op-1a2b3c4d-7-input   op-1a2b3c4d-7-output   op-1a2b3c4d-7-group   op-1a2b3c4d-7-worker-0
"""

from collections.abc import Mapping
from dataclasses import dataclass

from onceproof.harness.model.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Names:
    prefix: str
    outputs: tuple[str, ...]
    intermediate_topic: str = ""

    @property
    def input(self) -> str:
        return f"{self.prefix}-input"

    @property
    def group(self) -> str:
        return f"{self.prefix}-group"

    @property
    def read(self) -> tuple[tuple[str, str], ...]:
        """Each group of workers with the topic that it reads, as they are called on the cluster: the input, and the
        topic between."""
        first, between = (self.group, self.input), self.intermediate_topic
        return (first, (f"{self.group}-{between}", self.topic(between))) if between else (first,)

    @property
    def groups(self) -> tuple[str, ...]:
        """The workers' groups, in the order of `read`."""
        return tuple(group for group, _ in self.read)

    def topic(self, role: str) -> str:
        """The topic's name on the cluster for the workload's own name of it."""
        return f"{self.prefix}-{role}"

    @property
    def topics(self) -> Mapping[str, str]:
        """The workload's own name → the name on the cluster, for all judged topics, the input first."""
        return {role: self.topic(role) for role in ("input", *self.outputs)}

    def transactional_id(self, worker: int) -> str:
        return f"{self.prefix}-worker-{worker}"


def names(plan_digest: str, run_number: int, workload: Workload) -> Names:
    return Names(
        prefix=f"op-{plan_digest}-{run_number}", outputs=workload.topics, intermediate_topic=workload.intermediate_topic
    )
