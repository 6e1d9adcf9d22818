"""Refuse what would fail in a run, before a cluster is started: everything about a scenario that needs no brokers.

    preflight.machine("local[2]")             Java, Spark's master
    preflight.check(scenario, "x.toml")       releases, features, clients, checks, disk

Nothing is decided by a list of names that is kept here. The storage tool of the release says which features and levels
it has, and the clients are built with the configuration that the run would give them. `spark_warmup` analyses the SQL
of a workload while the cluster starts.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from onceproof.harness.artifacts import clients, features, images, jars, java
from onceproof.harness.base import paths
from onceproof.harness.base.errors import BadInput, HarnessError
from onceproof.harness.cluster import app_container, disks, standalone
from onceproof.harness.model import databases, registry
from onceproof.harness.model.scenario import Scenario
from onceproof.suite import matrix
from onceproof.verifiers.evidence import master as masters
from onceproof.verifiers.evidence.check import Check
from onceproof.verifiers.evidence.time_limit import limit_s
from onceproof.workloads import load, processes

_KAFKA = "kafka"
_REPLICAS = 3
_PROBE_DEADLINE_S = 90


def machine(master: str) -> None:
    """Raise BadInput when Java cannot be used, Spark's master does not answer, or the limit of a check is none.

    The same for a home that cannot be written.
    """
    paths.made(paths.home())
    java.check()
    masters.check(master)
    limit_s(0)


def check(scenario: Scenario, where: str, master: str = "local[2]") -> None:
    """Raise BadInput, whose message begins with `where`, when the scenario cannot be run and collected by `master`.

    Missing jars and clients are downloaded. Raises HarnessError when that fails.
    """
    steps: tuple[Callable[[Scenario], str], ...] = (
        _combination,
        _releases,
        _features,
        _checks,
        _disk,
        _small_disks,
        _program,
        _load,
        _databases,
        _clients,
        partial(_reached, master),
    )
    for step in steps:
        try:
            problem = step(scenario)
        except BadInput as error:
            problem = str(error)
        if problem:
            raise BadInput(f"{where}: {problem}")


def _reached(master: str, scenario: Scenario) -> str:
    """Return why the executors of a master do not reach what they have to read."""
    missed = "the brokers of a run, which are on 127.0.0.1" if masters.elsewhere(master) else ""
    if missed and standalone.containers_of(master):
        missed = "the database of a run" if scenario.workload.database == databases.POSTGRESQL else ""
    allowed = "allowed: local masters, and for runs without a database a cluster of `onceproof spark up`"
    return f"--spark-master: {master[:80]}: its executors do not reach {missed}; {allowed}" if missed else ""


def _combination(scenario: Scenario) -> str:
    """Return why the versions, features and protocols do not fit together."""
    cell = matrix.Cell(
        scenario=scenario.name,
        kafka=scenario.cluster.version,
        client=scenario.workload.client,
        features={},
        group_protocol=scenario.workload.group_protocol,
    )
    problem = matrix.why_impossible(cell) if scenario.cluster.system == _KAFKA else ""
    return f"workload.group_protocol: {problem}; allowed: classic" if problem else ""


def _small_disks(scenario: Scenario) -> str:
    """Return why brokers cannot have file systems of their own, if the scenario asks for them."""
    problem = "" if scenario.cluster.disk_mb is None else disks.why_impossible()
    return f"cluster.disk_mb: {problem}" if problem else ""


def _releases(scenario: Scenario) -> str:
    """Download the releases of the brokers, and the client. Raises BadInput for one that does not exist."""
    if scenario.cluster.system == _KAFKA:
        for key, version in [("cluster.version", scenario.cluster.version), *_upgrades(scenario).items()]:
            try:
                jars.kafka(version)
            except BadInput as error:
                return f"{key}: {version}: {error}; allowed: releases that Maven Central has"
    try:
        clients.prepare(scenario.workload.client)
    except BadInput as error:
        return f"workload.client: {error}"
    return ""


def _upgrades(scenario: Scenario) -> dict[str, str]:
    """Return the releases to which faults upgrade the brokers, by their keys."""
    return {f"faults[{index}].to": fault.to for index, fault in enumerate(scenario.faults) if fault.name == "upgrade"}


def _features(scenario: Scenario) -> str:
    """Return which features the cluster cannot be formatted with or raised to, in the words of the release."""
    version, wanted = scenario.cluster.version, dict(scenario.cluster.features)
    if scenario.cluster.system != _KAFKA:
        return ""
    if problem := features.problem(version, wanted):
        return f"cluster.features: Kafka {version}: {problem}"
    for index, fault in enumerate(scenario.faults):
        if fault.name == "upgrade":
            version = fault.to
        if fault.name != "raise-feature" or (fault.feature == "metadata.version" and fault.level is None):
            continue
        wanted[fault.feature] = fault.level or 0  # level 0 asks whether there is such a feature
        if problem := features.problem(version, wanted):
            return f"faults[{index}].feature: Kafka {version}: {problem}"
    return ""


def _checks(scenario: Scenario) -> str:
    """Return which of the scenario's own checks is none, or cannot be loaded."""
    for index, name in enumerate(scenario.checks):
        try:
            registry.of_class("check", name, Check)
        except BadInput as error:
            return f"checks[{index}]: {error}"
    return ""


def _disk(scenario: Scenario) -> str:
    """Return whether the records need more space than the disk has. Compressed records may need less."""
    if any(name in scenario.client_config for name in ("compression.type", "compression.codec")):
        return ""
    work, workload = scenario.workload, scenario.pipeline
    needed = work.records * work.record_bytes * _REPLICAS * (1 + len(workload.judged))
    place = paths.clusters_dir()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if needed <= free:
        return ""
    what = f"{work.records} records of {work.record_bytes} bytes, in {1 + len(workload.judged)} topics with 3 replicas"
    return f"workload.records: {what}: {needed / 1e9:,.0f} GB; allowed: {free / 1e9:,.0f} GB, which are free at {place}"


def _program(scenario: Scenario) -> str:
    """Prepare an application, and return whether its program is missing. Raises BadInput as `AppSpec.prepare` does."""
    if scenario.app is None:
        return ""
    scenario.app.prepare()
    if scenario.app.image is not None:
        app_container.ready(scenario.app.image)
        return ""
    if "{" in scenario.app.command[0]:
        return ""
    program = scenario.app.command[0]
    named = str(scenario.app.place / program) if "/" in program else program
    if shutil.which(named, path=scenario.app.env.get("PATH")):
        return ""
    return f"app.command: {program!r:.80}: no such program; allowed: a file that can be executed, or a name on PATH"


def _databases(scenario: Scenario) -> str:
    """Return which variable of the environment that the URL of a database names is not set, and make an image ready.

    Raises HarnessError when PostgreSQL's image is needed and cannot be made.
    """
    contract, own = scenario.pipeline.contract, scenario.workload.database
    urls = {} if contract is None else {f"outputs.{role}.jdbc": url for role, url in contract.databases.items()}
    for where, url in {**urls, "workload.database": own}.items():
        try:
            databases.address(url)
        except BadInput as error:
            return f"{where}: {error}"
    if own == databases.POSTGRESQL:
        images.postgresql()
    return ""


def _load(scenario: Scenario) -> str:
    """Return why the inputs of an application cannot be made. Raises BadInput as `workloads.load` does."""
    contract, work = scenario.pipeline.contract, scenario.workload
    if contract is None:
        return ""
    made = load.load(
        {"load": contract.load, "seed": 0, **work.model_dump(include={"keys", "key_skew", "record_bytes"})}
    )
    made.record(0)
    if made.records_max is not None and made.records_max < work.records:
        return f"workload.records: {work.records}; allowed: at most {made.records_max}, the records of {contract.load}"
    return ""


def _clients(scenario: Scenario) -> str:
    """Return the first setting that a client of the run refuses.

    Clients are built only if the scenario configures them. With onceproof's own settings, every value that the keys of
    `[workload]` may have is accepted.
    """
    if not scenario.client_config:
        return ""
    client = scenario.workload.client
    others = ["generator", *(["observer"] if clients.family(client) == "java" else [])]
    config = _worker_config(scenario)
    said = _probe(client, json.dumps({**config, "roles": ["worker"]}))
    said = said or _probe("librdkafka", json.dumps({**config, "roles": others, "client": "librdkafka"}))
    return f"client.config: {client}: {said}" if said else ""


def _worker_config(scenario: Scenario) -> dict[str, Any]:
    """Return the configuration with which a worker builds its clients, at an address where there are no brokers."""
    wiring = scenario.pipeline.wiring
    return {
        **scenario.workload.model_dump(),
        "client_config": dict(scenario.client_config),
        "bootstrap": "127.0.0.1:1",
        "name": "worker-0",
        "incarnation": 1,
        "input": "input",
        "group": "group",
        "stage": 0,
        "fixed": None,
        "isolation": wiring.isolation,
        "idempotent": wiring.idempotent,
        "position": wiring.position,
        "generation": wiring.generation,
        "transactional_id": "id" if wiring.transactional else None,
    }


@cache
def _probe(client: str, config: str) -> str:
    """Build clients in a process of their own, and return what they refuse. Raises HarnessError if it fails."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", processes.PROBE],
            input=config,  # not in a file, since it may contain passwords
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_DEADLINE_S,
            env={**os.environ, **clients.prepare(client)},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HarnessError(f"the client {client} could not be built within {_PROBE_DEADLINE_S} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["(nothing on stderr)"])[-1]
        raise HarnessError(f"the client {client} could not be built: {last[:300]}")
    return done.stdout


def writable(folder: Path) -> Path:
    """Return the folder, which is made if it is not there. Raises BadInput when no file can be written into it."""
    probe = folder / f".onceproof-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except (OSError, ValueError) as error:
        raise BadInput(f"{folder}: cannot be written: {getattr(error, 'strerror', None) or error}") from None
    return folder


def writable_file(path: Path) -> Path:
    """Return the path of a file, whose folder is made. Raises BadInput when the file cannot be written."""
    writable(path.parent)
    there = path.exists()
    try:
        path.open("ab").close()
        if not there:
            path.unlink()
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from None
    return path
