"""F13: a transaction's coordinator dies between prepare and complete; its successor must finish what it decided.

    [[faults]]
    name = "move-coordinator"
    when = { worker = 0, phase = "before-commit", count = 12 }
    end = "commit"                   # or "abort": another producer's InitProducerId then aborts the transaction

The links from the coordinator to every broker are cut, its own self link too, so that it can write its decision to its
log (PrepareCommit, PrepareAbort) but no marker to any partition. Then it is killed, and the links are healed. Its
successor reads the decision from the log and must write the markers (KIP-98). Whoever initialises the transactional id
meanwhile must wait for that: how long it took is written down.
"""

import threading
import time
from collections.abc import Sequence
from typing import ClassVar, Literal

from faults._told import told
from faults.hijack import initialise
from harness import topology
from harness.admin import Transaction
from harness.field import Field
from harness.plan import PlannedFault
from harness.protocols import Event, Undo
from harness.scenario import FaultSpec, When
from harness.wait import until

_DEADLINE_S = 30.0
_PREPARED = {"commit": "PrepareCommit", "abort": "PrepareAbort"}


class MoveCoordinatorSpec(FaultSpec):
    when: When
    end: Literal["commit", "abort"]


class MoveCoordinator:
    name: ClassVar = "move-coordinator"
    about: ClassVar = "a transaction's coordinator dies between prepare and complete"
    params: ClassVar = MoveCoordinatorSpec

    def inject(self, field: Field, fault: PlannedFault) -> Undo:
        spec = fault.spec
        assert isinstance(spec, MoveCoordinatorSpec)
        name = field.names.transactional_id(spec.when.worker)
        node = field.node(f"transaction-coordinator:worker-{spec.when.worker}")
        links = [topology.link(node, topology.node_of(number)) for number in topology.BROKERS]
        field.note("fault-target", fault=fault.id, role=f"worker-{spec.when.worker}", node=node, links=links,
                   transactional_id=name)  # fmt: skip
        field.cluster.proxies.break_links(links, "cut")
        if spec.end == "abort":
            self._initialise(field, fault, name)
            self._until_prepared(field, name, spec.end)  # the worker still waits: its commit must not come first

        def undo() -> None:
            field.cluster.heal_links(links, close=True)
            field.cluster.start(node)

        return undo

    def hold(self, field: Field, fault: PlannedFault) -> None:
        """Until the coordinator has decided, has been killed, and another one has completed the transaction."""
        spec, admin = fault.spec, field.cluster.admin
        assert isinstance(spec, MoveCoordinatorSpec)
        target = told("fault-target", fault, field.history.events())
        name, node = target["transactional_id"], target["node"]
        state = self._until_prepared(field, name, spec.end)
        field.note("prepared", fault=fault.id, state=state, coordinator=node)
        if spec.end == "commit":
            self._initialise(field, fault, name)
        field.cluster.kill(node)
        killed = time.monotonic()
        field.cluster.heal_links(target["links"], close=True)

        def moved() -> Transaction | None:
            found = admin.transaction(name)
            return found if topology.node_of(found.coordinator) != node and found.state != state else None

        done = until(f"another coordinator to complete {name}", moved, deadline_s=_DEADLINE_S)
        assert done is not None
        field.note("completed", fault=fault.id, state=done.state, coordinator=topology.node_of(done.coordinator),
                   after_s=round(time.monotonic() - killed, 1))  # fmt: skip
        field.wait("InitProducerId to be answered", lambda e: e["event"] == "initialised" and e["fault"] == fault.id,
                   deadline_s=_DEADLINE_S)  # fmt: skip

    def missing(self, fault: PlannedFault, events: Sequence[Event]) -> str | None:
        mine = {e["event"]: e for e in events if e.get("fault") == fault.id}
        if "prepared" not in mine or "completed" not in mine:
            return "no other coordinator was seen to complete the transaction"
        if mine["completed"]["coordinator"] == mine["prepared"]["coordinator"]:
            return "the coordinator did not move"
        if "initialised" not in mine or mine["initialised"]["at"] < mine["completed"]["at"] - 1:
            return "InitProducerId did not wait for the transaction to be completed"
        return None

    @staticmethod
    def _until_prepared(field: Field, name: str, end: str) -> str:
        state, admin = _PREPARED[end], field.cluster.admin
        until(f"{name} to be in {state}", lambda: admin.transaction(name).state == state, deadline_s=_DEADLINE_S)
        return state

    @staticmethod
    def _initialise(field: Field, fault: PlannedFault, name: str) -> None:
        """In a thread: it waits until the transaction is complete."""

        def run() -> None:
            started = time.monotonic()
            try:
                initialise(field, name)
            except Exception as error:  # the wait for `initialised` then says that it never came
                field.note("not-initialised", fault=fault.id, reason=str(error))
                return
            field.note("initialised", fault=fault.id, waited_s=round(time.monotonic() - started, 1))

        threading.Thread(target=run, name="initialises", daemon=True).start()


FAULT = MoveCoordinator()
