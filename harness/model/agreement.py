"""Checks that the tables of a scenario agree with each other, and that what they name exists."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import outputs as described
from onceproof.harness.model import registry, targets
from onceproof.harness.model.app import AppSpec
from onceproof.harness.model.databases import OF_THE_RUN, POSTGRESQL, SQLITE
from onceproof.harness.model.outputs import LoadSpec, ModelSpec, OutputSpec
from onceproof.harness.model.progress import DoneSpec
from onceproof.harness.model.spec import SEEN_PHASES, ClusterSpec, FaultSpec, WorkloadSpec
from onceproof.harness.model.workload import Workload

_OF_WORKERS = {
    "abort": "since nobody but the application can abort its transaction",
    "replace": "since the requests of two processes of one instance cannot be told apart",
}
# With another value of these, a client would not take part in the run, or would do so under another name.
_OURS = ("bootstrap.servers", "metadata.broker.list", "client.id", "group.id", "group.instance.id", "transactional.id")


class _Scenario(Protocol):
    """What of a scenario is checked here (`harness/model/scenario.py`)."""

    @property
    def cluster(self) -> ClusterSpec: ...
    @property
    def workload(self) -> WorkloadSpec: ...
    @property
    def app(self) -> AppSpec | None: ...
    @property
    def done(self) -> DoneSpec: ...
    @property
    def load(self) -> LoadSpec: ...
    @property
    def outputs(self) -> Mapping[str, OutputSpec]: ...
    @property
    def model(self) -> ModelSpec | None: ...
    @property
    def faults(self) -> Sequence[Any]: ...
    @property
    def client_config(self) -> Mapping[str, Any]: ...
    @property
    def pipeline(self) -> Workload: ...


def check(scenario: _Scenario, where: str, *, open_transactions: int) -> None:
    """Raise BadInput, whose message begins with `where`, when the tables of a scenario do not agree.

    `open_transactions` is how many transactions it expects to be open at each fault.
    """
    _check_system(scenario, where)
    _check_described(scenario, where)
    work = scenario.workload
    try:
        workload = scenario.pipeline
    except BadInput as error:
        raise BadInput(f"{where}: workload.name: {error}") from None
    if workload.intermediate_topic and work.workers < 2:
        raise BadInput(f"{where}: workload.workers: {work.workers}; allowed: 2 to 4, because a chain has two services")
    _check_app(scenario, workload, where)
    if problem := _of_database(scenario, workload):
        raise BadInput(f"{where}: {problem}")
    if work.message_timeout_ms > work.transaction_timeout_ms:
        says = f"{work.message_timeout_ms}; allowed: at most transaction_timeout_ms, {work.transaction_timeout_ms}"
        raise BadInput(f"{where}: workload.message_timeout_ms: {says}")
    open_max = work.partitions if workload.wiring.transactional_id_scope == "partition" else work.workers
    for name in scenario.client_config:
        if name in _OURS:
            says = f"allowed: settings of the Kafka clients, except {', '.join(_OURS)}"
            raise BadInput(f"{where}: client.config.{name}: {says}, which the harness sets")
    if open_transactions > open_max:
        says = f"{open_transactions}; allowed: 0 to {open_max}, the number of producers"
        raise BadInput(f"{where}: expect.open_transactions_at_fault: {says}")
    for index, fault in enumerate(scenario.faults):
        if fault.after is not None and fault.after >= index:
            raise BadInput(f"{where}: faults[{index}].after: {fault.after}; allowed: the number of an earlier fault")
        if wrong := wrong_fault(scenario, fault):
            raise BadInput(f"{where}: faults[{index}].{wrong}")


def _check_system(scenario: _Scenario, where: str) -> None:
    """Check that the system exists and has this version."""
    try:
        system = registry.system(scenario.cluster.system)
    except BadInput as error:
        raise BadInput(f"{where}: cluster.system: {error}") from None
    if not re.fullmatch(system.versions, scenario.cluster.version, re.ASCII):
        problem = f"{scenario.cluster.version:.60}; allowed: versions that match {system.versions}"
        raise BadInput(f"{where}: cluster.version: {problem}")


def _check_described(scenario: _Scenario, where: str) -> None:
    """Check that either a workload is named or the outputs of an application are described, and that this fits."""
    named = scenario.workload.name
    if not scenario.outputs:
        app = scenario.app
        only = [
            *(["load"] if scenario.load != LoadSpec() else []),
            *(["done"] if scenario.done != DoneSpec() else []),
            *(["model"] if scenario.model is not None else []),
            *(["app.transactional"] if app is not None and not app.transactional else []),
            *(["app.assignment"] if app is not None and app.assignment != "group" else []),
            *(["app.position"] if app is not None and app.position != "in-transaction" else []),
        ]
        if only:
            raise BadInput(f"{where}: {only[0]}: allowed only with tables [outputs.TOPIC]")
        if not named:
            allowed = f"{', '.join(registry.names('workload'))}; with [app] also tables [outputs.TOPIC]"
            raise BadInput(f"{where}: workload.name: missing; allowed: {allowed}")
        return
    if scenario.app is None:
        raise BadInput(f"{where}: outputs: allowed only with [app]; a workload says what onceproof's own workers write")
    if named:
        raise BadInput(f"{where}: workload.name: {named}; allowed: either a workload's name or tables [outputs.TOPIC]")
    if problem := described.problem(scenario.load, scenario.outputs, scenario.model):
        raise BadInput(f"{where}: {problem}")
    if problem := _progress(scenario.app, scenario.done, scenario.outputs, scenario.model):
        raise BadInput(f"{where}: {problem}")


def _progress(app: AppSpec, done: DoneSpec, outputs: Mapping[str, OutputSpec], model: ModelSpec | None) -> str:
    """Return why it cannot be known that an application has processed its inputs; empty if it can."""
    if app.assignment == "fixed" and app.ready == "group":
        return "app.ready: group; allowed with app.assignment fixed: log: REGEX, tcp: PORT"
    if app.position == "none" and model is not None and not all(each.input for each in outputs.values()):
        return (
            "app.position: none; allowed with a model: if each table of outputs has `input`, which shows the position"
        )
    if app.position == "none" and done.by == "group":
        return "done.by: group; allowed with app.position none: sentinel, quiet: 10s"
    if app.position == "none" and not app.transactional:
        return "app.position: none; allowed without transactions: group, whose offsets show what was processed"
    if app.transactional and any(each.jdbc for each in outputs.values()):
        return "app.transactional: true; allowed with outputs in a database: false"
    if done.by == "sentinel" and any(not each.input or each.least == 0 for each in outputs.values()):
        return "done.by: sentinel; allowed: if each table of outputs has `input`, and each input at least one output"
    return ""


def _of_database(scenario: _Scenario, workload: Workload) -> str:
    """Return why nobody can use the database of the run as the scenario says; empty if it is used or not asked for."""
    app, database = scenario.app, scenario.workload.database
    if database == SQLITE:
        in_container = app is not None and app.image is not None and app.names(OF_THE_RUN)
        return f"app: {OF_THE_RUN}: {SQLITE}; allowed with image: {POSTGRESQL}, or an address" if in_container else ""
    if workload.own_tables or (app is not None and app.names(OF_THE_RUN)):
        return ""
    says = f"allowed with workloads that keep outputs in a database, and applications that name {OF_THE_RUN}"
    return f"workload.database: {database}; {says}; with others {SQLITE}"


def _check_app(scenario: _Scenario, workload: Workload, where: str) -> None:
    """Check that an application can do what the workload says: it has no part of onceproof's own in it."""
    if scenario.app is None:
        return
    if name := scenario.app.unknown(workload.topics, workload.tables):
        known = [f"topic:{each}" for each in ("input", *workload.topics)] + [
            f"table:{each}" for each in workload.tables
        ]
        raise BadInput(f"{where}: app: {{{name}}}: allowed: {', '.join(f'{{{each}}}' for each in known)}")
    if workload.intermediate_topic or workload.aggregate:
        says = f"{scenario.workload.name}; allowed with [app]: a workload without totals and without a second service"
        raise BadInput(f"{where}: workload.name: {says}")
    if not workload.contract and not (workload.wiring.assignment == "group" and workload.claim.transactional):
        says = f"{scenario.workload.name}; allowed with [app]: a workload with a group and transactions"
        raise BadInput(f"{where}: workload.name: {says}")


def wrong_fault(scenario: _Scenario, spec: FaultSpec) -> str:
    """Return the key of a fault that a scenario cannot have, what it is and what is allowed; empty if it can.

    The fault may be one of its own or a drawn one.
    """
    system, kind = registry.system(scenario.cluster.system), registry.fault(spec.name)
    needed: frozenset[str] = getattr(kind, "needs", frozenset())
    if missing := sorted(needed - system.capabilities):
        return f"name: {spec.name} needs {', '.join(missing)}, which the system {system.name} does not have"
    if scenario.cluster.disk_mb is None and getattr(kind, "small_disk", False):
        return f"name: {spec.name}: allowed only with cluster.disk_mb"
    if scenario.app is not None and (problem := _of_app(scenario.pipeline, spec)):
        return problem
    return targets.wrong(spec, scenario.workload, scenario.pipeline) or ""


def _of_app(workload: Workload, spec: FaultSpec) -> str:
    if spec.name in _OF_WORKERS:
        return f"name: {spec.name}: not with [app], {_OF_WORKERS[spec.name]}"
    if spec.stops and not workload.claim.transactional:
        return "when: not with an application without transactions; allowed: at_s"
    if spec.name == "delete-records" and workload.claim.position == "none":
        return "name: delete-records: needs the offsets that a group commits"
    if any(when.phase == "polled" for when in spec.stops.values()):
        says = "polled: not with [app], since no request tells what it has polled"
        return f"when.phase: {says}; allowed: {', '.join(SEEN_PHASES)}"
    return ""
