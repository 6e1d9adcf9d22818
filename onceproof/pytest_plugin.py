"""The pytest plugin: scenarios as tests, on one cluster for the whole session.

    import pytest

    @pytest.mark.chaos("scenarios/faults/copy-broker-killed.toml")
    def test_copy_survives_a_broker(chaos):
        chaos.check()                       # fails with verdict, findings and the path of the report

    @pytest.mark.chaos
    def test_my_own(cluster): ...           # a Kafka cluster behind Toxiproxy; cluster.bootstrap(lane=1)

`pytest -m chaos` runs them. Options: --chaos-seed, --kafka-version, --chaos-keep, --chaos-runs. The seed is in the
header; the same seed gives the same plans. Nothing heavy is imported before the first fixture is used.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from onceproof.harness.cluster.cluster import Cluster
    from onceproof.harness.cluster.pool import Clusters
    from onceproof.harness.model.scenario import Scenario
    from onceproof.harness.record.results import Results
    from onceproof.run.run import Run

_SEED = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("onceproof", "chaos on real Kafka clusters")
    group.addoption("--chaos-seed", type=int, help="seed of every plan (default: a new one, shown in the header)")
    group.addoption("--kafka-version", help="Kafka version of scenarios and of the `cluster` fixture")
    group.addoption("--chaos-keep", action="store_true", help="leave clusters up for the next session")
    group.addoption("--chaos-runs", default="runs", help="where the folders of runs go (default: runs)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "chaos(scenario): runs on a real cluster, by this scenario file if named")
    config.addinivalue_line("markers", "quick: with chaos, a choice that takes some minutes")
    config.addinivalue_line("markers", "long: with chaos, what the quick choice leaves out")
    seed = config.getoption("--chaos-seed")
    config.stash[_SEED] = secrets.randbelow(1_000_000) if seed is None else seed


def pytest_report_header(config: pytest.Config) -> str:
    version = config.getoption("--kafka-version")
    return f"onceproof: --chaos-seed={config.stash[_SEED]}" + (f" --kafka-version={version}" if version else "")


class Chaos:
    """What a test has of onceproof: `check` runs its scenario and fails the test if the expectation is not met."""

    def __init__(
        self, clusters: Clusters, scenario: Path | None, *, seed: int, runs: Path, version: str | None
    ) -> None:
        self._clusters, self._scenario, self.seed, self._runs, self._version = clusters, scenario, seed, runs, version

    def start(self, scenario: Scenario | Path | None = None, *, faults: bool = True) -> Run:
        """A run whose steps the test takes itself. Close it (`with contextlib.closing(run)`). Without its faults it
        must be `unknown: vacuous`."""
        from onceproof.harness.model import scenario as scenarios
        from onceproof.run.run import Run

        loaded = scenario or self._scenario
        if loaded is None:
            raise pytest.UsageError("no scenario: name one in @pytest.mark.chaos(...) or pass it")
        if isinstance(loaded, Path):
            loaded = scenarios.load(loaded)
        if self._version:
            spec = loaded.cluster.model_copy(update={"version": self._version})
            loaded = loaded.model_copy(update={"cluster": spec})
        command = f"onceproof run {self._scenario or loaded.name} --seed {self.seed} --kafka {loaded.cluster.version}"
        return Run(
            loaded,
            seed=self.seed,
            cluster=self._clusters.get(loaded.cluster),
            runs=self._runs,
            command=command,
            faults=faults,
        )

    def run(self, scenario: Scenario | Path | None = None, at_rest: Callable[[Run], Any] | None = None) -> Results:
        """Run to the verdict. `at_rest` is called before its topics are collected."""
        run = self.start(scenario)
        self.folder = run.folder
        return run.all(at_rest)

    def check(self, scenario: Scenario | Path | None = None) -> Results:
        """Run; fail with the verdict, the findings and the path of the report when it is not as expected."""
        results = self.run(scenario)
        if not results.as_expected:
            pytest.fail(self.explain(results), pytrace=False)
        return results

    def explain(self, results: Results) -> str:
        lines = [f"{results.name}: {results.headline} ({results.expectation})"]
        for finding in results.findings:
            lines.append(f"  {finding.cls} × {finding.count}: {finding.says}")
            lines += [f"    {s['topic']}/{s['partition']} offset {s['offset']}" for s in list(finding.samples)[:3]]
        lines += [f"  {reason.kind}: {reason.says}" for reason in results.reasons]
        return "\n".join([*lines, f"  report: {self.folder / 'report.html'}", f"  repeat: {results.command}"])


@pytest.fixture(scope="session")
def onceproof_clusters(request: pytest.FixtureRequest) -> Iterator[Clusters]:
    """All clusters are taken down at the end, and Spark is ended if it was used."""
    from onceproof.harness.cluster.pool import Clusters
    from onceproof.run import spark_warmup

    clusters = Clusters(keep=request.config.getoption("--chaos-keep"))
    if any("chaos" in getattr(item, "fixturenames", ()) for item in request.session.items):
        spark_warmup.start_spark()  # some test will ask for a verdict
    try:
        yield clusters
    finally:
        clusters.close()
        spark = sys.modules.get("verifiers.spark")
        if spark is not None:
            spark.stop()


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, onceproof_clusters: Clusters) -> Cluster:
    """A Kafka cluster of three brokers and three controllers behind Toxiproxy, up for the whole session."""
    from onceproof.harness.artifacts.clients import DEFAULT_KAFKA
    from onceproof.harness.model.spec import ClusterSpec

    version = request.config.getoption("--kafka-version") or DEFAULT_KAFKA
    return onceproof_clusters.get(ClusterSpec(version=version))


@pytest.fixture
def chaos(request: pytest.FixtureRequest, onceproof_clusters: Clusters) -> Chaos:
    """Runs the scenario that the test's `chaos` marker names (a path, taken from pytest's root)."""
    marker = request.node.get_closest_marker("chaos")
    named = marker.args[0] if marker and marker.args else None
    path = None
    if named is not None:
        path = request.config.rootpath / named
        if not path.exists():
            raise pytest.UsageError(f"{request.node.nodeid}: no scenario at {path}")
    runs = request.config.rootpath / request.config.getoption("--chaos-runs")
    return Chaos(
        onceproof_clusters,
        path,
        seed=request.config.stash[_SEED],
        runs=runs,
        version=request.config.getoption("--kafka-version"),
    )
