"""Every mutant is found with its class and its coordinates, and nothing else is. (`make mutants` prints the table.)"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from onceproof.verifiers.evidence import spark as sessions
from tests.mutants import damage
from tests.mutants.run import Packs, survivors

pytestmark = pytest.mark.xdist_group("mutants")  # making them takes long, so one process does it, and begins with it


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Packs:
    return Packs(tmp_path_factory.mktemp("packs"))


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    yield sessions.session()
    sessions.stop()


def test_no_mutant_survives(spark: SparkSession, packs: Packs) -> None:
    wrong = [each for pack in packs.each() for each in survivors(packs.judge(spark, pack))]
    assert [(each.name, wanted, each.unknown, found.findings, found.reasons) for each, wanted, found in wrong] == []


def test_a_mutant_is_harmless_unknown_or_found(packs: Packs) -> None:
    """What a mutant's text says is what is expected of it."""
    for each, expected in (mutant for _, made in packs.made for mutant in made):
        said = each.about.lower().removeprefix("ledger mode, ")
        assert each.harmless == (not expected and not each.unknown), each.name
        assert bool(each.unknown) == said.startswith("nothing is asserted"), each.name


def test_damage_is_never_a_verdict_on_the_system(spark: SparkSession, tmp_path: Path) -> None:
    assert [(name, says) for name, _, says in damage.survivors(tmp_path) if says] == []
