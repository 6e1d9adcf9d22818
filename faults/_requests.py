"""What faults on single requests share: which request is meant, and the wire proxy's rule for it."""

from typing import Annotated

from pydantic import Field as Key

from onceproof.faults._links import LinksSpec, meant
from onceproof.harness.cluster import topology
from onceproof.harness.cluster.request_proxy import Action, Api, Wire
from onceproof.harness.context.context import FaultContext
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.record.events import FaultTarget, RequestEvent

_MATCH_DEADLINE_S = 60.0


class RequestSpec(LinksSpec):
    """`requests`: how many of them, 0 for every one until the fault ends. `client`: how their client id begins."""

    api: Api
    client: str = ""
    requests: Annotated[int, Key(ge=0, le=1000)] = 1


def links(spec: RequestSpec) -> list[str]:
    """The links that the wire proxy must stand behind: who has which role is not known before the fault strikes."""
    if spec.target.startswith("worker-"):
        return topology.lane_links(topology.lane_of_worker(int(spec.target.removeprefix("worker-"))))
    return [name for name in topology.to_brokers() if name.startswith("broker")]


def make_rule(context: FaultContext, fault: PlannedFault[RequestSpec], action: Action) -> None:
    spec = fault.spec
    node, names = meant(context, spec)
    context.note(FaultTarget(fault=fault.id, role=spec.target, node=node, links=names, api=spec.api))
    wire(context).rule(fault.id, links=names, action=action, api=spec.api, client=spec.client, requests=spec.requests)


def wire(context: FaultContext) -> Wire:
    assert context.cluster.wire is not None  # `links` asked for it
    return context.cluster.wire


def await_one(context: FaultContext, fault: PlannedFault[RequestSpec], kind: type[RequestEvent]) -> None:
    """Wait until the request proxy reports this of a request that is meant. Raises DeadlineError."""
    context.wait(
        f"{kind.kind} of {fault.spec.api} of {fault.spec.target}",
        kind,
        lambda event: event.fault == fault.id,
        deadline_s=_MATCH_DEADLINE_S,
    )
