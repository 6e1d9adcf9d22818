"""Checks that the workers, topics and partitions that a fault names exist in the scenario's workload.

    target = "worker-3"            refused with two workers: it would cut a lane that no worker uses
    peer = "leader:output/9"       refused with six partitions
    topic = "stock"                refused if the workload has no such topic

A fault without an existing target is refused before the run starts, because the run could not show that the fault had
no effect.
"""

import re

from onceproof.harness.model.databases import POSTGRESQL
from onceproof.harness.model.spec import FaultSpec, WorkloadSpec
from onceproof.harness.model.workload import Workload

BROKER_ROLE = (
    r"broker-([1-3]|random)|(leader|follower-[12]):[a-z-]+/[0-9]{1,3}"
    r"|transaction-coordinator:worker-[0-3]|group-coordinator"
)
NODE_ROLE = rf"{BROKER_ROLE}|controller-([1-3]|random)|controller-leader|database"
_WORKER = re.compile(r"(?:.*:)?worker-(\d+)")
_OF_PARTITION = re.compile(r"(?:leader|follower-[12]):(.+)/(\d+)")


def wrong(fault: FaultSpec, work: WorkloadSpec, workload: Workload) -> str | None:
    """Return the first reference of a fault that does not exist, as `key: value; allowed: …`, or None."""
    for key in ("target", "peer"):
        if problem := _no_such(getattr(fault, key, None) or "", work, workload):
            return f"{key}: {problem}"
    for key, when in fault.stops.items():
        if when.worker >= work.workers:
            return f"{key.removeprefix('/') or 'when'}.worker: {when.worker}; allowed: 0 to {work.workers - 1}"
    successor = getattr(fault, "by", 0)
    if successor >= work.workers:
        return f"by: {successor}; allowed: 0 to {work.workers - 1}"
    topic = getattr(fault, "topic", None)
    if topic is not None and topic not in (allowed := fault.topics(workload)):
        return f"topic: {topic}; allowed: {', '.join(allowed) or 'no topic of this workload'}"
    return None


def _no_such(role: str, work: WorkloadSpec, workload: Workload) -> str | None:
    if role == "database" and work.database != POSTGRESQL:
        return f'{role}; allowed with workload.database = "{POSTGRESQL}"'
    worker, place = _WORKER.fullmatch(role), _OF_PARTITION.fullmatch(role)
    if worker and int(worker[1]) >= work.workers:
        return f"{role}; allowed: worker-0 to worker-{work.workers - 1}"
    if place and place[1] not in (topics := ("input", *workload.topics)):
        return f"{role}; allowed topics: {', '.join(topics)}"
    if place and int(place[2]) >= work.partitions:
        return f"{role}; allowed partitions: 0 to {work.partitions - 1}"
    return None
