"""A broker's file system of its own can be filled, and the machine's disk is never filled in its place."""

import os
from pathlib import Path

import pytest

from onceproof.harness.base.errors import BadInput, HarnessError
from onceproof.harness.cluster import disks
from onceproof.harness.model.scenario import parse

as_root = pytest.mark.skipif(bool(disks.why_impossible()), reason=disks.why_impossible() or "it is possible")


@as_root
def test_a_disk_is_filled_and_has_room_again(tmp_path: Path) -> None:
    data = tmp_path / "cluster" / "data" / "broker1"
    data.mkdir(parents=True)
    disks.mount(data, 8)
    try:
        (data / "before").write_bytes(bytes(100_000))
        assert disks.fill(data) > 7_000_000
        with pytest.raises(OSError, match="No space left"):
            (data / "after").write_bytes(bytes(10_000))
        disks.make_room(data)
        disks.make_room(data)
        (data / "after").write_bytes(bytes(10_000))
    finally:
        disks.remove(tmp_path / "cluster")
    assert not (tmp_path / "cluster").exists() and not os.path.ismount(data)


def test_the_disk_of_the_machine_is_not_filled(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="no file system of its own"):
        disks.fill(tmp_path)
    assert not list(tmp_path.iterdir())
    disks.unmount(tmp_path)


def test_a_disk_is_filled_only_if_the_cluster_has_its_own() -> None:
    fault = {"name": "fill-disk", "target": "broker-1", "at_s": 1.0}
    raw = {"name": "x", "about": "x", "workload": {"name": "copy"}, "faults": [fault]}
    with pytest.raises(BadInput, match=r"faults\[0\]\.name: fill-disk: allowed only with cluster\.disk_mb"):
        parse(raw, where="x")
    assert parse({**raw, "cluster": {"disk_mb": 300}}, where="x").cluster.disk_mb == 300
