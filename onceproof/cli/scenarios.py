"""The scenarios that a command line names: their files, and what its options change in them."""

import argparse
import shlex
from collections.abc import Iterable
from pathlib import Path

from onceproof.harness.artifacts import clients, jars
from onceproof.harness.base import paths
from onceproof.harness.base.errors import BadInput, suggestion
from onceproof.harness.model import registry
from onceproof.harness.model.scenario import Expect, Scenario
from onceproof.harness.model.spec import RandomSpec, WorkloadSpec


def find(path: Path) -> list[Path]:
    """Return a scenario file, all files in a folder, or the file of a scenario that comes with onceproof.

    Such a scenario is given by its name, with or without `.toml`. Raises BadInput when there is no such file.
    """
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:  # too long, in a loop of links, not permitted
        says = getattr(error, "strerror", None) or error
        raise BadInput(f"{str(path)[:80]}: no such scenario: {says}") from None
    if path.is_dir():
        files = sorted(path.rglob("*.toml"))
        if not files:
            raise BadInput(f"{path}: there is no scenario in this folder; scenarios are TOML files")
        return files
    if path.exists():
        return [path]
    names = sorted(paths.scenarios_dir().rglob("*.toml"))
    for candidate in names:
        if path.name in (candidate.name, candidate.stem) and len(path.parts) == 1:
            return [candidate]
    stems = [name.stem for name in names]
    says = (
        f"{path}: no such scenario{suggestion(path.stem, stems)}; a TOML file, or one of {', '.join(stems)} is expected"
    )
    raise BadInput(says)


def find_one(path: Path) -> Path:
    """Return the one scenario file that a path or a name stands for. Raises BadInput as `find`, and for several."""
    files = find(path)
    if len(files) > 1:
        raise BadInput(f"{path}: one scenario is expected, and this folder has {len(files)}")
    return files[0]


def on_release(loaded: Scenario, kafka: str | None) -> Scenario:
    """Return the scenario on a Kafka release; None: on its own. Raises BadInput when there is no such release."""
    version = jars.release(kafka or loaded.cluster.version)
    return loaded.model_copy(update={"cluster": loaded.cluster.model_copy(update={"version": version})})


def prepare(wanted: Iterable[tuple[str, str]]) -> None:
    """Build or fetch what pairs of a Kafka version and a client need, before anything starts.

    Raises BadInput when a version does not exist.
    """
    from onceproof.harness.artifacts import images

    pairs = set(wanted)
    for version in sorted({version for version, _ in pairs}):
        images.kafka(version)
    for client in sorted({client for _, client in pairs}):
        clients.prepare(client)


def repeat_command(each: Scenario, seed: int, path: str = "") -> str:
    """Return the command line that repeats a run."""
    said = f"onceproof run {shlex.quote(path or each.name)} --seed {seed} --kafka {each.cluster.version}"
    defaults, work = WorkloadSpec(name=each.workload.name), each.workload
    said += f" --client {work.client}" if work.client != defaults.client else ""
    said += f" --group-protocol {work.group_protocol}" if work.group_protocol != defaults.group_protocol else ""
    return said + "".join(f" --feature {name}={level}" for name, level in each.cluster.features.items())


def with_options(loaded: Scenario, options: argparse.Namespace) -> Scenario:
    """Return the scenario with the options of the command line applied."""
    if options.faults == "random":
        loaded = with_random(loaded)
    if options.twin:
        loaded = twin(loaded)
    loaded = on_release(loaded, options.kafka)
    cluster = {"features": {**loaded.cluster.features, **options.feature}}
    work = {
        "client": options.client or loaded.workload.client,
        "group_protocol": options.group_protocol or loaded.workload.group_protocol,
    }
    return loaded.model_copy(
        update={
            "cluster": loaded.cluster.model_copy(update=cluster),
            "workload": loaded.workload.model_copy(update=work),
        }
    )


def twin(loaded: Scenario) -> Scenario:
    """Return the twin of a scenario: without its faults on single requests, and expected to be valid.

    Raises BadInput when the scenario has no such fault.
    """
    from onceproof.harness.context.fault import Wired

    faults = tuple(each for each in loaded.faults if not isinstance(registry.fault(each.name), Wired))
    if len(faults) == len(loaded.faults):
        raise BadInput(f"--twin: the scenario {loaded.name} has no fault on single requests to leave out")
    return loaded.model_copy(update={"faults": faults, "expect": Expect(verdict="valid"), "bug": None})


def with_random(scenario: Scenario) -> Scenario:
    """Return the scenario with faults drawn from the seed, unless it already has some."""
    return scenario if scenario.random else scenario.model_copy(update={"random": RandomSpec()})
