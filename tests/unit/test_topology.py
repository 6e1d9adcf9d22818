"""compose/links.json is what the topology says; every directed pair has a link of its own."""

import json
from dataclasses import asdict

from onceproof.harness.base.paths import compose_dir
from onceproof.harness.cluster import topology


def test_the_committed_links_are_those_of_the_topology() -> None:
    committed = json.loads((compose_dir() / "links.json").read_text())
    assert committed == [{**asdict(link), "enabled": True} for link in topology.links()]


def test_every_directed_pair_and_every_brokers_self_link() -> None:
    names = {link.name for link in topology.links()}
    for source in topology.NODES:
        for target in topology.NODES:
            assert (f"{source}->{target}" in names) == (source != target or source.startswith("broker"))


def test_the_compose_file_advertises_what_the_links_listen_on() -> None:
    text = (compose_dir() / "cluster.yaml").read_text()
    for broker in topology.BROKERS:
        assert f"LINK://toxiproxy:2910{broker}" in text
        for lane in topology.LANES:
            assert f"LANE{lane}://127.0.0.1:${{ONCEPROOF_PORTS:-190}}{lane}{broker}" in text


def test_a_node_is_cut_off_with_all_its_links_but_clients_stay_with_node_links() -> None:
    every, nodes = topology.links_of("broker2"), topology.links_between({"broker2"}, set(topology.NODES) - {"broker2"})
    assert set(nodes) < set(every)
    assert "lane1->broker2" in every
    assert all("lane" not in name and "app" not in name for name in nodes)
    assert {"broker1->broker2", "broker2->controller3"} <= set(nodes)
