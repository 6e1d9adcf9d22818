"""The pytest plugin: scenarios as tests, on clusters that are shared by the whole session.

    import pytest

    @pytest.mark.chaos("chaos/my-scenario.toml")
    def test_no_input_is_lost(chaos):
        chaos.check()                       # fails with the verdict, the findings and the path of the report

    @pytest.mark.chaos(app="orders.toml", faults=["kill-worker@before-commit", "rebalances"])
    def test_orders(chaos):                 # one test for each plan; `onceproof battery` has the same plans
        chaos.check()

    @pytest.mark.chaos
    def test_my_own(chaos_cluster): ...     # a Kafka cluster behind Toxiproxy; chaos_cluster.bootstrap(lane=1)

`pytest -m chaos` runs them. The plugin adds the marker `chaos`, the fixtures `chaos`, `chaos_cluster` and
`chaos_clusters`, and the options --chaos-seed, --chaos-kafka, --chaos-keep and --chaos-runs. pytest prints the seed
after collection if chaos tests are selected; the same seed gives the same plans.

Chaos tests share clusters and the memory of one machine, so they do not run in parallel. Under pytest-xdist, they need
`--dist loadgroup`: one process then runs all of them, one after another, while the others run what else is selected. A
session that selects them with another distribution ends with a usage error.

Nothing heavy is imported until a chaos test is set up.
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

_RELEASE = pytest.StashKey[str | None]()
_MASTER = "local[2]"
_SEED = "onceproof_chaos_seed"  # in what a process of pytest-xdist is given
_SELECTED = "onceproof_chaos_selected"  # in what it hands back
_MARKER = (
    "chaos(scenario, *, app, faults): run the test on a real Kafka cluster. The `chaos` fixture runs `scenario`: the "
    "path of a TOML file from pytest's root directory, or the name of a scenario that `onceproof list` shows. Or it "
    "runs `app`, a file without faults, once with each of `faults`, which are plans of `onceproof battery`."
)
_NOT_RUN = "the scenario of the marker `chaos` was not run"
_GROUP = "chaos"  # of pytest-xdist: its tests run in one process
_NOT_PARALLEL = (
    "chaos tests share clusters and cannot run in parallel under pytest-xdist: use --dist loadgroup, with no "
    'xdist_group of your own for them, or -n0, or deselect them: -m "not chaos"'
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options, which all begin with `--chaos-`."""
    group = parser.getgroup("onceproof", "chaos tests on real Kafka clusters")
    group.addoption(
        "--chaos-seed", type=int, metavar="N", help="seed of the plans of all chaos tests (default: random)"
    )
    group.addoption(
        "--chaos-kafka",
        metavar="VERSION",
        help="Kafka release of scenarios and of `chaos_cluster`, such as 4.1.2, 4.1.x, latest or latest-1 "
        "(default: the scenario's)",
    )
    group.addoption("--chaos-keep", action="store_true", help="leave the clusters up for the next session")
    group.addoption(
        "--chaos-runs", default="runs", metavar="FOLDER", help="parent of the folders of runs (default: runs)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker `chaos`, and choose the session's seed if none is given."""
    config.addinivalue_line("markers", _MARKER)
    if config.option.chaos_seed is None:
        handed = getattr(config, "workerinput", {}).get(_SEED)
        config.option.chaos_seed = secrets.randbelow(1_000_000) if handed is None else handed


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test for each plan that a marker `chaos` names."""
    for marker in metafunc.definition.iter_markers("chaos"):
        if "faults" in marker.kwargs and "chaos" in metafunc.fixturenames:
            metafunc.parametrize("chaos", list(marker.kwargs["faults"]), indirect=True)
            return


def pytest_itemcollected(item: pytest.Item) -> None:
    """Put chaos tests into one group of pytest-xdist."""
    if _is_chaos(item) and getattr(item.config.option, "loadgroup", False):
        item.add_marker(pytest.mark.xdist_group(_GROUP))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that passed without having run the scenario that its marker names."""
    yield
    chaos = getattr(item, "funcargs", {}).get("chaos")
    marker = item.get_closest_marker("chaos")
    if marker is None or not (marker.args or marker.kwargs):
        return
    if chaos is None and any(each.name == "chaos" for each in item.own_markers):
        pytest.fail(f"{_NOT_RUN}: give the test the fixture `chaos`, and call chaos.check()", pytrace=False)
    if isinstance(chaos, Chaos) and not chaos.started:
        pytest.fail(f"{_NOT_RUN}: call chaos.check()", pytrace=False)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse what chaos tests cannot run with, before anything starts."""
    chaos = [item for item in items if _is_chaos(item)]
    if hasattr(config, "workeroutput"):  # a process of pytest-xdist, whose errors would not be one line
        if not all(_in_group(item.nodeid) for item in chaos):
            config.workeroutput[_SELECTED] = True
            items.clear()
    elif chaos:
        _release(config)  # a release that does not exist is refused before anything starts


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """In the main process of pytest-xdist: give the others the session's seed."""
    node.workerinput[_SEED] = node.config.option.chaos_seed


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """In the main process of pytest-xdist, which collects nothing itself: check and print what a session would."""
    config = node.config
    if any(map(_in_group, ids)) and _RELEASE not in config.stash:
        config.get_terminal_writer().line(_repeats(config))


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_testnodedown(node: Any) -> None:
    """In the main process of pytest-xdist: end the session if a worker selected chaos tests."""
    if getattr(node, "workeroutput", {}).get(_SELECTED):
        raise pytest.UsageError(_NOT_PARALLEL)


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Print the options that repeat this session's chaos tests."""
    return [_repeats(config)] if any(map(_is_chaos, items)) and not config.option.collectonly else []


def _is_chaos(item: pytest.Item) -> bool:
    return bool(item.get_closest_marker("chaos")) or "chaos_clusters" in getattr(item, "fixturenames", ())


def _in_group(nodeid: str) -> bool:
    """Whether pytest-xdist has a test in the group of chaos tests, and in no other one besides."""
    return nodeid.endswith(f"@{_GROUP}")


def _repeats(config: pytest.Config) -> str:
    release = _release(config)
    return f"onceproof: --chaos-seed={config.option.chaos_seed}" + (f" --chaos-kafka={release}" if release else "")


def _release(config: pytest.Config) -> str | None:
    """The release that --chaos-kafka names, or None. Raises UsageError if there is no such release."""
    if _RELEASE not in config.stash:
        config.stash[_RELEASE] = None
        if named := config.getoption("--chaos-kafka"):
            from onceproof.harness.artifacts import jars
            from onceproof.harness.base.errors import BadInput, HarnessError

            try:
                config.stash[_RELEASE] = jars.release(named)
            except (BadInput, HarnessError) as error:
                raise pytest.UsageError(f"--chaos-kafka: {error}") from None
    return config.stash[_RELEASE]


class Chaos:
    """The `chaos` fixture: `check` runs the test's scenario and fails the test if the verdict is not as expected.

    `started` says whether the test has run a scenario.
    """

    def __init__(
        self, clusters: Clusters, scenario: Path | None, *, seed: int, runs: Path, version: str | None
    ) -> None:
        self._clusters, self._scenario, self.seed, self._runs, self._version = clusters, scenario, seed, runs, version
        self.started = False

    def start(self, scenario: Scenario | Path | None = None, *, faults: bool = True) -> Run:
        """A run whose steps the test takes itself.

        Close it (`with contextlib.closing(run)`). Without `faults`, its verdict must be `unknown: vacuous`. What
        cannot be run fails the test in one line, before a cluster is started.
        """
        from onceproof.harness.base.errors import BadInput, HarnessError
        from onceproof.run.run import Run

        self.started = True
        named = scenario or self._scenario
        if named is None:
            raise pytest.UsageError("no scenario: name one in @pytest.mark.chaos(...) or pass it to the call")
        try:
            loaded = self._checked(named)
        except (BadInput, HarnessError) as error:
            pytest.fail(str(error), pytrace=False)
        command = f"onceproof run {self._scenario or loaded.name} --seed {self.seed} --kafka {loaded.cluster.version}"
        return Run(
            loaded,
            seed=self.seed,
            cluster=self._clusters.get(loaded.cluster),
            runs=self._runs,
            command=command,
            faults=faults,
        )

    def _checked(self, named: Scenario | Path) -> Scenario:
        """Return the scenario, checked as `onceproof check` does. Raises BadInput when it cannot be run here.

        Spark is started, since a verdict will be asked for. The SQL of a workload by file is waited for.
        """
        from onceproof.harness.base.errors import BadInput
        from onceproof.harness.model import scenario as scenarios
        from onceproof.run import spark_warmup
        from onceproof.suite import preflight

        loaded = scenarios.load(named) if isinstance(named, Path) else named
        if self._version:
            spec = loaded.cluster.model_copy(update={"version": self._version})
            loaded = loaded.model_copy(update={"cluster": spec})
        where = str(named) if isinstance(named, Path) else loaded.name
        preflight.writable(self._runs)
        preflight.machine(_MASTER)
        preflight.check(loaded, where)
        analysed = spark_warmup.start_spark(_MASTER, loaded)
        try:
            analysed()
        except BadInput as error:
            raise BadInput(f"{where}: {error}") from None
        return loaded

    def run(self, scenario: Scenario | Path | None = None, at_rest: Callable[[Run], Any] | None = None) -> Results:
        """Run to the verdict. `at_rest` is called before the topics are collected."""
        run = self.start(scenario)
        self.folder = run.folder
        return run.all(at_rest)

    def check(self, scenario: Scenario | Path | None = None) -> Results:
        """Run to the verdict, and fail with the findings and the path of the report if it is not as expected."""
        results = self.run(scenario)
        if not results.as_expected:
            pytest.fail(self.explain(results), pytrace=False)
        return results

    def explain(self, results: Results) -> str:
        """The verdict with its findings and reasons, the report, and the command that repeats the run."""
        lines = [f"{results.name}: {results.headline} ({results.expectation})"]
        for finding in results.findings:
            lines.append(f"  {finding.line}")
            lines += [f"    {s['topic']}/{s['partition']} offset {s['offset']}" for s in list(finding.samples)[:3]]
        lines += [f"  {reason.kind}: {reason.says}" for reason in results.reasons]
        return "\n".join([*lines, f"  report: {self.folder / 'report.html'}", f"  repeat: {results.command}"])


@pytest.fixture(scope="session")
def chaos_clusters(request: pytest.FixtureRequest) -> Iterator[Clusters]:
    """The clusters of the session: `chaos_clusters.get(ClusterSpec(version="3.9.2"))` starts one or gives it again.

    All of them are removed at the end of the session, unless --chaos-keep is given.
    """
    from onceproof.harness.cluster.pool import Clusters
    from onceproof.run import spark_warmup

    clusters = Clusters(keep=request.config.getoption("--chaos-keep"))
    try:
        yield clusters
    finally:
        clusters.close()
        spark_warmup.wait()  # a module that another thread imports is there in part only
        spark = sys.modules.get("onceproof.verifiers.evidence.spark")
        if spark is not None:
            spark.stop()


@pytest.fixture(scope="session")
def chaos_cluster(request: pytest.FixtureRequest, chaos_clusters: Clusters) -> Cluster:
    """A Kafka cluster of three brokers and three controllers behind Toxiproxy, shared by the whole session.

    `chaos_cluster.bootstrap(lane=1)` is its bootstrap.servers. --chaos-kafka chooses its release.
    """
    from onceproof.harness.artifacts.clients import DEFAULT_KAFKA
    from onceproof.harness.model.spec import ClusterSpec

    return chaos_clusters.get(ClusterSpec(version=_release(request.config) or DEFAULT_KAFKA))


@pytest.fixture
def chaos(request: pytest.FixtureRequest, chaos_clusters: Clusters) -> Chaos:
    """Runs the scenario that the test's `chaos` marker names: `chaos.check()` fails if the verdict is not as expected.

    `chaos.run()` returns the results without comparing, and `chaos.start()` a run whose steps the test takes itself.
    """
    marker = request.node.get_closest_marker("chaos")
    config = request.config
    named = marker and (marker.args[0] if marker.args else marker.kwargs.get("app"))
    path = _scenario(config.rootpath, named) if named else None
    runs = config.rootpath / config.getoption("--chaos-runs")
    if path is not None and (plan := getattr(request, "param", None)):
        path = _under(path, plan, runs)
    return Chaos(chaos_clusters, path, seed=config.option.chaos_seed, runs=runs, version=_release(config))


def _under(file: Path, plan: str, runs: Path) -> Path:
    """Write the scenario of a file under a plan of a battery, and return its path. Fails if there is no such plan."""
    from onceproof.harness.base.errors import BadInput
    from onceproof.suite import battery

    runs.mkdir(parents=True, exist_ok=True)
    try:
        [(_, path)] = battery.write(file, runs, [plan])
    except BadInput as error:
        pytest.fail(str(error), pytrace=False)
    return path


def _scenario(root: Path, named: str) -> Path:
    """A scenario file below pytest's root directory, or one that comes with onceproof. Fails if there is none."""
    from onceproof.harness.base.paths import scenarios_dir

    path = root / named
    if path.exists():
        return path
    for shipped in scenarios_dir().rglob("*.toml"):
        if shipped.stem == named:
            return shipped
    pytest.fail(f"chaos({named!r}): no such file below {root}, and no scenario of that name", pytrace=False)
