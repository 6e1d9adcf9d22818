"""What clients and brokers promise for a configuration holds with both clients (`contracts`, docs/contracts.md)."""

from typing import Any

import pytest

from onceproof.harness.model.spec import ClusterSpec
from tests.chaos.contracts import BROKERS, CLIENTS, CONTRACTS, SETTINGS, party


@pytest.mark.chaos
@pytest.mark.parametrize(
    "version",
    [pytest.param(each, marks=pytest.mark.long if index else pytest.mark.quick) for index, each in enumerate(BROKERS)],
)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", CONTRACTS)
def test_contract(chaos_clusters: Any, name: str, client: str, version: str) -> None:
    with party(chaos_clusters.get(ClusterSpec(version=version, settings=SETTINGS)), client) as one:
        assert CONTRACTS[name](one)
