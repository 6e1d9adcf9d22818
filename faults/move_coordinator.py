"""Kill a transaction's coordinator after it has decided the transaction and before it has written any marker.

    [[faults]]
    name = "move-coordinator"
    when = { worker = 0, phase = "before-commit", count = 12 }      # the worker whose transaction it is
    end = "commit"                   # or "abort": another producer's InitProducerId makes the coordinator abort

The links from the coordinator to every broker, itself included, are cut. So it can write its decision (PrepareCommit or
PrepareAbort) to its log, but no marker to any partition. Then it is killed, and the links are healed. Its successor
reads the decision from the log and must write the markers (KIP-98). An InitProducerId for the same transactional id
must wait until that is done; the history records for how long it waited.
"""

import threading
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from onceproof.faults.hijack import initialise
from onceproof.harness.base.deadlines import until
from onceproof.harness.cluster import topology
from onceproof.harness.cluster.described import Transaction
from onceproof.harness.context.context import FaultContext
from onceproof.harness.context.fault import Undo
from onceproof.harness.model.plan import PlannedFault
from onceproof.harness.model.random_faults import Chance
from onceproof.harness.model.spec import FaultSpec, When
from onceproof.harness.record.events import Completed, FaultTarget, Initialised, NotInitialised, Prepared
from onceproof.harness.record.history import Events

_DEADLINE_S = 30.0
_PREPARED = {"commit": "PrepareCommit", "abort": "PrepareAbort"}


class MoveCoordinatorSpec(FaultSpec):
    """The keys of `move-coordinator`.

    - `when`: the worker whose transaction it is, the phase and the transaction; required.
    - `end`: what the coordinator has decided when it is killed, `commit` or `abort`.
    """

    when: When
    end: Literal["commit", "abort"]


class MoveCoordinator:
    """A transaction is completed by another coordinator than the one that decided it."""

    name: ClassVar = "move-coordinator"
    about: ClassVar = "Kills a transaction's coordinator between its decision and the first marker."
    params: ClassVar = MoveCoordinatorSpec
    needs: ClassVar = frozenset({"links", "nodes", "transaction-state"})

    def inject(self, context: FaultContext, fault: PlannedFault[MoveCoordinatorSpec]) -> Undo:
        """Cut the coordinator's links to the brokers; for `abort`, also wait until it has decided to abort.

        Raises DeadlineError when there is no coordinator for twenty seconds, or no decision for thirty.
        """
        spec = fault.spec
        name = context.workers.transactional_id(spec.when.worker)
        node = context.node(f"transaction-coordinator:worker-{spec.when.worker}")
        links = [topology.link(node, topology.node_of(number)) for number in topology.BROKERS]
        context.note(
            FaultTarget(
                fault=fault.id,
                role=f"worker-{spec.when.worker}",
                node=node,
                links=links,
                transactional_id=name,
            )
        )
        context.cluster.proxies.break_links(links, "cut", fault=fault.id)
        if spec.end == "abort":
            self._initialise(context, fault, name)
            self._until_prepared(context, name, spec.end)  # while the worker waits, so that it cannot commit first

        def undo() -> None:
            context.cluster.heal_links(links, fault=fault.id, close=True)
            context.cluster.start(node)

        return undo

    def hold(self, context: FaultContext, fault: PlannedFault[MoveCoordinatorSpec], _undo: Undo) -> None:
        """Kill the coordinator after its decision, and wait until another one has completed the transaction.

        Raises DeadlineError when one of these steps takes longer than 30 s.
        """
        spec, admin = fault.spec, context.cluster.admin
        target = context.history.events().the(FaultTarget, fault=fault.id)
        name, node, links = str(target.transactional_id), str(target.node), target.links or []
        state = self._until_prepared(context, name, spec.end)
        context.note(Prepared(fault=fault.id, state=state, coordinator=node))
        if spec.end == "commit":
            self._initialise(context, fault, name)
        context.cluster.kill(node)
        killed = time.monotonic()
        context.cluster.heal_links(links, fault=fault.id, close=True)

        def moved() -> Transaction | None:
            found = admin.transaction(name)
            return found if topology.node_of(found.coordinator) != node and found.state != state else None

        done = until(f"another coordinator to complete {name}", moved, deadline_s=_DEADLINE_S)
        assert done is not None
        context.note(
            Completed(
                fault=fault.id,
                state=done.state,
                coordinator=topology.node_of(done.coordinator),
                after_s=round(time.monotonic() - killed, 1),
            )
        )
        context.wait(
            "InitProducerId to be answered",
            Initialised,
            lambda event: event.fault == fault.id,
            deadline_s=_DEADLINE_S,
        )

    def draw(self, chance: Chance) -> Mapping[str, Any] | None:
        """Return keys that move a coordinator while a transaction is committed or aborted.

        None if the period already affects a node, or the worker of that transaction; and in later periods, where it
        could start before its period, while another node is away.
        """
        roles = {f"transaction-coordinator:worker-{worker}": worker for worker in chance.workers}
        role = chance.node(roles.__contains__) if chance.early else None
        if role is None:
            return None
        chance.hit_workers = True
        chance.workers.remove(worker := roles[role])
        when = chance.at(worker, "before-commit")
        return {"when": when, "end": chance.dice.choice(("commit", "abort"))}

    def missing(self, fault: PlannedFault[MoveCoordinatorSpec], events: Events) -> str | None:
        """Return a message unless another coordinator completed the transaction and InitProducerId waited for that."""
        prepared, completed = events.first(Prepared, fault=fault.id), events.first(Completed, fault=fault.id)
        initialised = events.first(Initialised, fault=fault.id)
        if prepared is None or completed is None:
            return "no other coordinator was seen to complete the transaction"
        if completed.coordinator == prepared.coordinator:
            return "the coordinator did not move"
        if initialised is None or initialised.at < completed.at - 1:
            return "InitProducerId did not wait until the transaction was completed"
        return None

    @staticmethod
    def _until_prepared(context: FaultContext, name: str, end: str) -> str:
        state, admin = _PREPARED[end], context.cluster.admin
        until(f"{name} to be in {state}", lambda: admin.transaction(name).state == state, deadline_s=_DEADLINE_S)
        return state

    @staticmethod
    def _initialise(context: FaultContext, fault: PlannedFault[MoveCoordinatorSpec], name: str) -> None:
        """Send InitProducerId from a thread, since it waits until the transaction is complete."""

        def run() -> None:
            started = time.monotonic()
            try:
                initialise(context, name)
            except Exception as error:  # `hold` then raises DeadlineError, since `initialised` never comes
                context.note(NotInitialised(fault=fault.id, reason=str(error)))
                return
            context.note(Initialised(fault=fault.id, waited_s=round(time.monotonic() - started, 1)))

        threading.Thread(target=run, name="initialises", daemon=True).start()


FAULT = MoveCoordinator()
