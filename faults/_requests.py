"""What faults on single requests share: which request is meant, and the wire proxy's rule for it."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field as Key

from faults._links import LinksSpec, meant
from harness import topology
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event
from harness.wire import Action, Api, Wire

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


def make_rule(field: Field, fault: PlannedFault, action: Action) -> None:
    spec = fault.spec
    assert isinstance(spec, RequestSpec)
    node, names = meant(field, spec)
    field.note("fault-target", fault=fault.id, role=spec.target, node=node, links=names, api=spec.api)
    wire(field).rule(fault.id, links=names, action=action, api=spec.api, client=spec.client, requests=spec.requests)


def wire(field: Field) -> Wire:
    assert field.cluster.wire is not None  # `links` asked for it
    return field.cluster.wire


def await_one(field: Field, fault: PlannedFault, event: str) -> None:
    """Wait until the wire proxy says so of a request that is meant. Raises DeadlineError."""
    assert isinstance(fault.spec, RequestSpec)
    field.wait(f"{event} of {fault.spec.api} of {fault.spec.target}",
               lambda e: e["event"] == event and e["fault"] == fault.id, deadline_s=_MATCH_DEADLINE_S)  # fmt: skip


def of(fault: PlannedFault, event: str, events: Sequence[Event]) -> list[Event]:
    """What the wire proxy said of this fault's requests."""
    return [each for each in events if each["event"] == event and each["fault"] == fault.id]
