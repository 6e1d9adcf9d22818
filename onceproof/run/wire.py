"""Put the request proxy into the links that need it, and give what it reports to those whom it concerns."""

from typing import Any

from onceproof.harness.cluster import topology
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Wired
from onceproof.harness.context.fault import fault as fault_named
from onceproof.harness.context.instances import Instances
from onceproof.harness.context.journal import OF_CLIENTS
from onceproof.harness.record.events import parse


def start(context: FaultContext) -> None:
    """Put the request proxy into links, before work begins, since it closes their connections.

    It reports requests and responses, which are for the journal and for an application's instances; requests that wait
    at a phase, and connections that are closed, which are for the instances; and what its rules do, which is for the
    history.
    """
    workers = context.workers

    def note(event: dict[str, Any]) -> None:
        if context.requests.takes(event) or event["event"] in OF_CLIENTS:
            if isinstance(workers, Instances):
                workers.hears(event)
            return
        kind, rule = event.pop("event"), event.pop("rule")
        try:
            parsed = parse({**event, "event": f"request-{kind}", "fault": rule})
        except ValueError as error:
            workers.failures.crashes.append(f"the request proxy reported an invalid event: {error}")
            return
        context.history.append("request-proxy", parsed)

    reported = _reported_links(context)
    if links := _links_of_faults(context) | reported:
        context.cluster.put_wire(links, note, report=reported)


def _reported_links(context: FaultContext) -> set[str]:
    """Return the links of the workers' lanes if the scenario wants their requests recorded, otherwise none."""
    scenario = context.plan.scenario
    workers = scenario.workload.workers if scenario.collect.requests or scenario.app else 0
    return {link for worker in range(workers) for link in topology.lane_links(topology.lane_of_worker(worker))}


def _links_of_faults(context: FaultContext) -> set[str]:
    """Return the links on which the plan's faults act on single requests."""
    faults = [(fault_named(planned.name), planned.spec) for planned in context.plan.faults]
    return {link for fault, spec in faults if isinstance(fault, Wired) for link in fault.wired(spec)}
