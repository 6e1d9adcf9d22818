"""The names of a run's topics, groups and transactional ids on its cluster.

They derive from the plan's digest and the number of the run on the cluster, so that they differ from those of every
other run.

    op-1a2b3c4d-7-input   op-1a2b3c4d-7-output   op-1a2b3c4d-7-group   op-1a2b3c4d-7-worker-0
"""

from collections.abc import Mapping
from dataclasses import dataclass

from onceproof.harness.model.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Names:
    """The names of one run.

    `outputs` and `intermediate_topic` are the workload's own names of topics, and `tables` those of tables.
    `intermediate_topic` is empty for a workload without one.
    """

    prefix: str
    outputs: tuple[str, ...]
    intermediate_topic: str = ""
    tables: tuple[str, ...] = ()

    @property
    def input(self) -> str:
        """The name of the input topic on the cluster."""
        return f"{self.prefix}-input"

    @property
    def group(self) -> str:
        """The consumer group of the workers that read the input."""
        return f"{self.prefix}-group"

    @property
    def read(self) -> tuple[tuple[str, str], ...]:
        """Each group of workers with the topic that it reads, by their names on the cluster.

        The first entry is for the input topic. A chain has a second one, for the intermediate topic.
        """
        first, second = (self.group, self.input), self.intermediate_topic
        return (first, (f"{self.group}-{second}", self.topic(second))) if second else (first,)

    def read_by(self, worker: int) -> tuple[str, str]:
        """Return the group of a worker and the topic that it reads; in a chain, every second worker has the second."""
        return self.read[worker % len(self.read)]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of workers, in the order of `read`."""
        return tuple(group for group, _ in self.read)

    def topic(self, role: str) -> str:
        """Return the name on the cluster of a topic that the workload calls `role`."""
        return f"{self.prefix}-{role}"

    @property
    def topics(self) -> Mapping[str, str]:
        """The name on the cluster for the workload's own name of each topic, the input first."""
        return {role: self.topic(role) for role in ("input", *self.outputs)}

    def table(self, role: str) -> str:
        """Return the name in its database of a table that the workload calls `role`."""
        return self.topic(role).replace("-", "_")

    def transactional_id(self, worker: int) -> str:
        """Return the transactional id of a worker."""
        return f"{self.prefix}-worker-{worker}"


def names(plan_digest: str, run_number: int, workload: Workload) -> Names:
    """Return the names of run `run_number` of a plan on a cluster; `plan_digest` is `Plan.digest`."""
    return Names(
        prefix=f"op-{plan_digest}-{run_number}",
        outputs=workload.topics,
        intermediate_topic=workload.intermediate_topic,
        tables=workload.tables,
    )
