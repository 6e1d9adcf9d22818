"""The package as another project installs it: the files of the wheel, its scripts, and the manners of its plugin."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_DEADLINE_S = 120
_FOLDERS = ("onceproof", "harness", "faults", "workloads", "verifiers", "compose", "scenarios", "applications", "ci")
# A project may have packages of these names, which onceproof must not import.
_OWN = ("harness", "faults", "workloads", "verifiers", "compose", "ci")
_TESTS = """
import pytest

def test_of_the_project():
    import harness.mine

@pytest.mark.chaos("copy-broker-killed")
def test_of_chaos(chaos):
    chaos.check()
"""
_STUBS = {
    "java": "echo 'openjdk version \"21.0.2\" 2024-01-16' >&2",
    "go": "echo go version go1.24.4 linux/amd64",
    "docker": """case "$1" in
        info) echo 26.1.5 ;;
        compose) echo 2.26.1 ;;
        image) exit 1 ;;
        *) touch "$0.changed" ;;
    esac""",
}
# Of all plugins that are installed, only these are loaded: pytest then starts in half the time.
_PLUGINS = ("-p", "onceproof.pytest_plugin")
_PYTEST = ("-m", "pytest", "-p", "no:cacheprovider", *_PLUGINS)
# Prints what the plugin adds to the output of an option, with one start of Python for all.
_ADDED = f"""
import contextlib, io, json, pytest

def lines(*options):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        pytest.main(["-p", "no:cacheprovider", *options])
    return out.getvalue().splitlines()

options = ["--markers", "--fixtures", "--help"]
without = {{option: set(lines(option, "-m", "not chaos")) for option in options}}
added = {{
    option: [line for line in lines(option, "-m", "not chaos", *{_PLUGINS}) if line not in without[option]]
    for option in options
}}
print(json.dumps(added))
"""


def build(target: str, source: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=_DEADLINE_S)
    [made] = folder.iterdir()
    return made


def version(wheel: Path) -> str:
    return wheel.name.split("-")[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH that holds the wheel, so that it is imported instead of the checkout."""
    folder = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def run(site: Path, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {"PYTHONPATH": str(site), "ONCEPROOF_HOME": str(folder / "home"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **own, **environment},
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )


def test_the_wheel_holds_what_a_run_needs(wheel: Path) -> None:
    found = set(zipfile.ZipFile(wheel).namelist())
    assert found >= {
        "onceproof/py.typed",
        "onceproof/pytest_plugin.py",
        "onceproof/cli/main.py",
        "onceproof/ci/setup.sh",
        "onceproof/compose/cluster.yaml",
        "onceproof/compose/links.json",
        "onceproof/compose/kafka/Dockerfile",
        "onceproof/compose/kafka/start.sh",
        "onceproof/compose/toxiproxy/Dockerfile",
        "onceproof/compose/wire/start.sh",
        "onceproof/compose/wire/java/onceproof/wire/Proxy.java",
        "onceproof/report/page/report.html.j2",
        "onceproof/report/page/uplot/LICENSE",
        "onceproof/scenarios/faults/copy-broker-killed.toml",
        "onceproof/verifiers/collect/java/onceproof/TopicSource.java",
        f"onceproof-{version(wheel)}.dist-info/licenses/LICENSE",
    }


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs version control")
def test_the_wheel_holds_each_file_of_its_folders_and_no_other(wheel: Path) -> None:
    found = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *_FOLDERS],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    kept = {name for name in listed.stdout.splitlines() if not (ROOT / name).is_symlink()}
    wanted = {name if name.startswith("onceproof/") else f"onceproof/{name}" for name in kept if (ROOT / name).exists()}
    assert found == wanted


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(build("sdist", ROOT, tmp_path / "sdist")) as packed:
        assert len(packed.getnames()) == len(set(packed.getnames()))
        packed.extractall(tmp_path / "unpacked", filter="data")
    [source] = (tmp_path / "unpacked").iterdir()
    assert {path.name for path in source.iterdir()} >= {"LICENSE", "CHANGELOG.md", "Makefile", "tests", "docs"}
    again = build("wheel", source, tmp_path / "again")
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(wheel).namelist()


def test_the_command_works_outside_of_the_checkout(wheel: Path, site: Path, tmp_path: Path) -> None:
    code = "import sys, onceproof; from onceproof.cli import main; print(onceproof.__file__); main.main(['list'])"
    listed = run(site, tmp_path, "-c", code, COLUMNS="200")
    assert listed.stdout.startswith(f"{site / 'onceproof' / '__init__.py'}\n")
    assert "faults/copy-broker-killed" in listed.stdout
    assert run(site, tmp_path, "-m", "onceproof.cli.main", "--version").stdout == f"onceproof {version(wheel)}\n"


def stubs(folder: Path, **scripts: str) -> str:
    """A PATH on which these programs are found before all others."""
    folder.mkdir()
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_setup_says_what_it_would_do_and_does_nothing(site: Path, tmp_path: Path) -> None:
    path = stubs(tmp_path / "bin", **_STUBS)
    done = run(site, tmp_path, "-m", "onceproof.cli.main", "setup", "--dry-run", PATH=path)
    assert done.returncode == 0, done.stderr
    says = [line.removeprefix("setup: ").split(",")[0] for line in done.stdout.splitlines()]
    assert says == [
        "there: Java 21",
        "there: Docker engine 26.1.5",
        "would pull eclipse-temurin:17-jre as onceproof/jre:17",
        "would make onceproof/toxiproxy:2.12.0 from its Go module",
        "would fetch Kafka's jars and build onceproof/kafka:4.3.1",
    ]
    assert {each.name for each in tmp_path.iterdir()} == {"bin"}
    assert {each.name for each in (tmp_path / "bin").iterdir()} == set(_STUBS)


_PULLS = """echo "$*" >>"$0.log"
case "$1" in
    info) echo 26.1.5 ;;
    compose) echo 2.26.1 ;;
    image) exit 1 ;;
esac"""


@pytest.mark.parametrize("base", ["eclipse-temurin:17-jre", "of-my-own:1"])
def test_setup_says_first_what_it_will_do_and_uses_only_what_has_the_right_hash(
    site: Path, tmp_path: Path, base: str
) -> None:
    go = """case "$1" in version) echo go version go1.24.4 linux/amd64 ;; *) echo '"Sum": "h1:other"' ;; esac"""
    path = stubs(tmp_path / "bin", **{**_STUBS, "docker": _PULLS, "go": go})
    done = run(site, tmp_path, "-m", "onceproof.cli.main", "setup", PATH=path, BASE_IMAGE=base)
    says = [line.removeprefix("setup: ") for line in done.stdout.splitlines()]
    assert [line.split(",")[0] for line in says[:3]] == [
        f"will pull {base} as onceproof/jre:17",
        "will make onceproof/toxiproxy:2.12.0 from its Go module",
        "will fetch Kafka's jars and build onceproof/kafka:4.3.1",
    ]
    digest = json.loads((site / "onceproof/harness/artifacts/hashes.json").read_text())["images"].get(base)
    pulled = f"{base.partition(':')[0]}@{digest}" if digest else base
    unpinned = [] if digest else [f"image {base} is not pinned: onceproof has no hash of it to compare with"]
    assert says[3:] == [
        *unpinned,
        f"pulled {pulled} as onceproof/jre:17",
        "making onceproof/toxiproxy:2.12.0 from its Go module",
    ]
    assert f"pull --quiet {pulled}\n" in (tmp_path / "bin" / "docker.log").read_text()
    assert (tmp_path / "home" / "installed").read_text() == f"image {pulled}\n"
    assert done.returncode == 2
    assert done.stderr.endswith("github.com/Shopify/toxiproxy/v2@v2.12.0 has the wrong sum, so it is not used\n")
    assert done.stderr.count("\n") == 1


def test_setup_without_installing_says_what_is_missing(site: Path, tmp_path: Path) -> None:
    path = stubs(tmp_path / "bin", **_STUBS)
    done = run(site, tmp_path, "-m", "onceproof.cli.main", "setup", "--no-install", PATH=path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert [line.split(",")[0] for line in done.stderr.splitlines()] == [
        "setup: not done: pull eclipse-temurin:17-jre as onceproof/jre:17",
        "setup: not done: make onceproof/toxiproxy:2.12.0 from its Go module",
        "setup: not done: fetch Kafka's jars and build onceproof/kafka:4.3.1",
    ]
    assert {each.name for each in tmp_path.iterdir()} == {"bin"}
    assert {each.name for each in (tmp_path / "bin").iterdir()} == set(_STUBS)


def test_setup_says_in_one_line_what_it_may_not_install(site: Path, tmp_path: Path) -> None:
    path = stubs(tmp_path / "bin", **{**_STUBS, "docker": "exit 1", "id": "echo 1000"})
    done = run(site, tmp_path, "-m", "onceproof.cli.main", "setup", PATH=path)
    assert done.returncode == 2
    assert done.stderr.startswith("setup: missing: a Docker engine with Compose v2")
    assert done.stderr.count("\n") == 1


def test_the_scripts_work_where_sha256sum_has_another_name(tmp_path: Path) -> None:
    stubs(tmp_path / "bin", shasum="cat >/dev/null; echo of macOS")
    for program in ("bash", "dirname", "cat"):
        (tmp_path / "bin" / program).symlink_to(shutil.which(program) or "")
    done = subprocess.run(
        ["bash", "-c", f". {ROOT}/ci/lib.sh; printf x | sha256sum"],
        env={"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("of macOS\n", "")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with folders that are named like those of onceproof."""
    for name in _OWN:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / "mine.py").touch()
    (tmp_path / "test_it.py").write_text(_TESTS)
    return tmp_path


def test_the_plugin_adds_only_what_has_its_prefix(site: Path, project: Path) -> None:
    added = json.loads(run(site, project, "-c", _ADDED).stdout.splitlines()[-1])
    assert [line.split("(")[0] for line in added["--markers"]] == ["@pytest.mark.chaos"]
    fixtures = [line.split()[0] for line in added["--fixtures"] if " -- " in line]
    assert fixtures == ["chaos_clusters", "chaos_cluster", "chaos"]
    options = [line.split("=")[0].split()[0] for line in added["--help"] if line.startswith("  --")]
    assert options == ["--chaos-seed", "--chaos-kafka", "--chaos-keep", "--chaos-runs"]


def test_a_project_without_chaos_tests_sees_nothing_of_it(site: Path, project: Path) -> None:
    done = run(site, project, *_PYTEST, "-m", "not chaos", "--strict-markers", "-n1", "-p", "xdist.plugin")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert "--chaos" not in done.stdout


_IN_GROUPS = ("-n2", "--dist", "loadgroup", "-p", "xdist.plugin")
_TOGETHER = """
import os

import pytest

@pytest.mark.parametrize("number", range(6))
def test_of_the_project(number): ...

@pytest.mark.chaos("any.toml")
@pytest.mark.parametrize("number", range(4))
def test_of_chaos(number, request):
    print(os.environ["PYTEST_XDIST_WORKER"], request.config.option.chaos_seed)
    assert False
"""


def test_chaos_tests_run_in_one_process_beside_others(site: Path, project: Path) -> None:
    (project / "test_it.py").write_text(_TOGETHER)
    done = run(site, project, *_PYTEST, *_IN_GROUPS)
    assert "4 failed, 6 passed" in done.stdout
    [told] = set(re.findall(r"^gw\d \d+$", done.stdout, re.MULTILINE))
    [_, seed] = told.split()
    assert done.stdout.count(f"\nonceproof: --chaos-seed={seed}\n") == 1


def test_chaos_tests_are_not_spread_over_groups(site: Path, project: Path) -> None:
    (project / "test_it.py").write_text(f'{_TOGETHER}\npytestmark = pytest.mark.xdist_group("mine")\n')
    done = run(site, project, *_PYTEST, *_IN_GROUPS)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stderr.strip().startswith("ERROR: chaos tests share clusters") and done.stderr.strip().count("\n") == 0


def test_the_plugin_is_light(site: Path, project: Path) -> None:
    heavy = ("pyspark", "docker", "confluent_kafka", "jpype", "pydantic", "pyarrow", "matplotlib", "rich")
    code = f"import sys, onceproof.pytest_plugin; print([name for name in {heavy} if name in sys.modules])"
    assert run(site, project, "-c", code).stdout == "[]\n"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-n1", "-p", "xdist.plugin"), "chaos tests share clusters and cannot run in parallel under pytest-xdist"),
        (("--chaos-kafka", "4.1"), "--chaos-kafka: kafka version '4.1': allowed: "),
    ],
)
def test_what_the_plugin_refuses_is_one_line(site: Path, project: Path, options: tuple[str, ...], says: str) -> None:
    done = run(site, project, *_PYTEST, *options)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stderr.strip().startswith(f"ERROR: {says}")
    assert done.stderr.strip().count("\n") == 0
