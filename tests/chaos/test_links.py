"""Several faults at the same links of a real Toxiproxy: healing one of them leaves the others as they are."""

from collections.abc import Iterator

import pytest

from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster import topology
from onceproof.harness.cluster.cluster import Cluster
from onceproof.harness.cluster.links import Mode

LINKS = topology.lane_links(3)
LATENCY = {"latency": 150, "jitter": 0}


@pytest.fixture
def cluster(chaos_cluster: Cluster) -> Iterator[Cluster]:
    yield chaos_cluster
    chaos_cluster.heal()
    assert chaos_cluster.proxies.healthy()


@pytest.mark.chaos
@pytest.mark.parametrize("mode", ["cut", "blackhole", "stall"])
@pytest.mark.parametrize("close", [False, True])
def test_a_fault_outlives_one_at_the_same_link(cluster: Cluster, mode: Mode, close: bool) -> None:
    first, others = LINKS[:1], LINKS[1:]
    cluster.proxies.break_links(first, mode, fault="0-partition")
    cluster.proxies.degrade_links(LINKS, "latency", LATENCY, fault="1-degrade")
    assert cluster.proxies.broken(LINKS) == LINKS
    cluster.heal_links(LINKS, fault="1-degrade", close=close)
    assert cluster.proxies.broken(LINKS) == first
    cluster.proxies.degrade_links(others, "latency", LATENCY, fault="2-degrade")
    cluster.heal_links(first, fault="0-partition", close=mode != "stall")
    assert cluster.proxies.broken(LINKS) == others
    cluster.heal_links(others, fault="2-degrade", close=close)
    assert cluster.proxies.broken(LINKS) == []


@pytest.mark.chaos
def test_a_restart_of_toxiproxy_heals_a_fault_and_leaves_the_others(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.proxies.break_links(LINKS[:1], "cut", fault="0-partition")
    cluster.proxies.degrade_links(LINKS, "latency", LATENCY, fault="1-degrade")

    def hangs(name: str) -> None:
        raise HarnessError(f"Toxiproxy does not answer for {name}")

    with monkeypatch.context() as patch:
        patch.setattr(cluster.proxies, "_renew", hangs)
        assert not cluster.heal_links(LINKS, fault="1-degrade", close=True)
    assert cluster.proxies.broken(LINKS) == LINKS[:1]
