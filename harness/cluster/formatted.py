"""Log directories as Kafka's storage tool has formatted them, kept for clusters of the same kind.

Formatting starts one JVM per node and takes half of a cluster's start-up time; its result is always the same.

    ~/.cache/onceproof/formatted/kafka-4.3.1-transaction.version-2/broker1/log/meta.properties
"""

import shutil
from pathlib import Path

from onceproof.harness.base import paths
from onceproof.harness.cluster import topology
from onceproof.harness.model.spec import ClusterSpec

_FILES = ("meta.properties", "bootstrap.checkpoint")


def use(spec: ClusterSpec, data: Path) -> None:
    """Copy what an earlier cluster with the same system, version and features has kept, if there is one."""
    kept = _folder(spec)
    if kept.is_dir():
        shutil.copytree(kept, data, dirs_exist_ok=True)


def keep(spec: ClusterSpec, data: Path, name: str) -> None:
    """Keep the formatted log directories of the cluster `name`, which has just started, unless some are kept."""
    target = _folder(spec)
    if target.is_dir():
        return
    work = target.with_name(f".{target.name}-{name}")
    for node in topology.NODES:
        (work / node / "log").mkdir(parents=True)
        for file in _FILES:
            shutil.copy(data / node / "log" / file, work / node / "log" / file)
    work.rename(target)


def _folder(spec: ClusterSpec) -> Path:
    features = "".join(f"-{key}-{value}" for key, value in sorted(spec.features.items()))
    return paths.home() / "formatted" / f"{spec.system}-{spec.version}{features}"
