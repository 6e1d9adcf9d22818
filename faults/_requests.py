"""Keys and behaviour that the faults on single requests share: the requests, and the rule of the request proxy.

The request proxy stands behind the links that lead to brokers. It recognises a request by its API key and its client
id, and does to it what the fault's rule says.
"""

from typing import Annotated

from pydantic import Field as Key
from pydantic import model_validator

from onceproof.faults._links import LinksSpec, meant
from onceproof.harness.cluster import topology
from onceproof.harness.cluster.request_proxy import Action, Wire
from onceproof.harness.context.context import FaultContext
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.record.apis import Api
from onceproof.harness.record.events import FaultTarget, RequestEvent

_MATCH_DEADLINE_S = 60.0
_NO_BROKER = ("controller", "database", "ring", "minority")


class RequestSpec(LinksSpec):
    """The keys of every fault on single requests, in addition to those of `LinksSpec`.

    `target` and `peer` select the requests by their links: of a worker, those that it sends to brokers, with `peer`
    only those to that broker; of a broker, those that it exchanges with brokers, with `peer` only those that it sends
    to that broker. A broker's requests to itself are included.

    - `target`: `worker-0` to `worker-3` or `worker-random`; or a broker by its number or role (`broker-1`,
      `leader:output/0`, `transaction-coordinator:worker-0`, `group-coordinator`).
    - `peer`: a second broker by its number or role (default: every broker).
    - `api`: the request's API: `Produce`, `Fetch`, `OffsetCommit`, `FindCoordinator`, `InitProducerId`,
      `AddPartitionsToTxn`, `AddOffsetsToTxn`, `EndTxn`, `WriteTxnMarkers`, or `TxnOffsetCommit`.
    - `client`: affect only requests whose client id begins with this text (default: any). A worker's client id is
      `worker-0-1`, with its incarnation at the end.
    - `requests`: how many requests are affected, 1 by default, 1000 at most; 0 means every one until the fault is
      healed.
    """

    api: Api
    client: str = ""
    requests: Annotated[int, Key(ge=0, le=1000)] = 1

    @model_validator(mode="after")
    def _of_brokers(self) -> "RequestSpec":
        for key, role in (("target", self.target), ("peer", self.peer)):
            if role is not None and role.startswith(_NO_BROKER):
                raise ValueError(f"{key}: {role}: its requests cannot be told apart; allowed: a worker or a broker")
        return self


def links(spec: RequestSpec) -> list[str]:
    """Return the links that must lead through the request proxy before work begins.

    For a target that is a node these are all links from brokers to brokers, since its role is resolved later.
    """
    if spec.target.startswith("worker-"):
        return topology.lane_links(topology.lane_of_worker(int(spec.target.removeprefix("worker-"))))
    return [name for name in topology.to_brokers() if name.startswith("broker")]


def make_rule(context: FaultContext, fault: PlannedFault[RequestSpec], action: Action) -> None:
    """Resolve the links that are meant, record them, and give the request proxy the rule to apply `action` on them.

    Raises DeadlineError when no node has the target's role for twenty seconds.
    """
    spec = fault.spec
    node, names = meant(context, spec)
    context.note(FaultTarget(fault=fault.id, role=spec.target, node=node, links=names, api=spec.api))
    wire(context).rule(fault.id, links=names, action=action, api=spec.api, client=spec.client, requests=spec.requests)


def wire(context: FaultContext) -> Wire:
    """Return the cluster's request proxy, which is there for every fault that has `wired`."""
    assert context.cluster.wire is not None  # started because the fault has `wired`
    return context.cluster.wire


def await_one(context: FaultContext, fault: PlannedFault[RequestSpec], kind: type[RequestEvent]) -> None:
    """Wait for the first event of this kind about a request that the fault is aimed at.

    Raises DeadlineError after 60 s.
    """
    context.wait(
        f"{kind.kind} for a {fault.spec.api} request of {fault.spec.target}",
        kind,
        lambda event: event.fault == fault.id,
        deadline_s=_MATCH_DEADLINE_S,
    )
