"""One Spark session for all unit tests that need it, and a good run's folder to break."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from onceproof.verifiers.evidence import spark as sessions
from tests.unit.good_run import GoodRun


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    yield sessions.session()
    sessions.stop()


@pytest.fixture
def good_run() -> GoodRun:
    return GoodRun()
