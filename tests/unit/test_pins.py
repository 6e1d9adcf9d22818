"""Downloads are compared with the hashes that onceproof keeps, jars by Ivy and wheels by uv, here from a folder."""

import base64
import hashlib
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from onceproof.harness.artifacts import clients, jars, pins
from onceproof.harness.artifacts.clients import DEFAULT_KAFKA
from onceproof.harness.base import paths
from onceproof.harness.base.errors import BadInput, HarnessError

_ROOT = Path(__file__).parents[2]
_SETTINGS = """<ivysettings><settings defaultResolver="central"/>
<resolvers><ibiblio name="central" m2compatible="true" usepoms="true" root="{root}"/></resolvers></ivysettings>
"""
_POM = """<project><modelVersion>4.0.0</modelVersion><groupId>{0}</groupId><artifactId>{1}</artifactId>
<version>{2}</version></project>
"""
_ECJ = f"{jars.COMPILER}.jar"


@pytest.fixture
def central(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in a folder, which Ivy uses in place of Maven Central, and an empty cache."""
    repository = tmp_path / "central"
    repository.mkdir()
    monkeypatch.setattr(jars, "_SETTINGS", _SETTINGS.format(root=repository.as_uri() + "/"))
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path / "home"))
    return repository


def publish(central: Path, group: str, artifact: str, version: str, content: bytes = b"a jar") -> None:
    folder = central.joinpath(*group.split("."), artifact, version)
    folder.mkdir(parents=True)
    (folder / f"{artifact}-{version}.jar").write_bytes(content)
    (folder / f"{artifact}-{version}.pom").write_text(_POM.format(group, artifact, version))


def keep(monkeypatch: pytest.MonkeyPatch, **parts: Any) -> None:
    content = {"releases": [], "jars": {}, "wheels": {}} | parts
    monkeypatch.setattr(pins, "kept", lambda: content)


def ecj(content: bytes, central: Path) -> None:
    publish(central, "org.eclipse.jdt", "ecj", jars.COMPILER.removeprefix("ecj-"), content)


def test_a_jar_with_the_right_hash_is_used(
    central: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ecj(b"a jar", central)
    keep(monkeypatch, releases=[jars.COMPILER], jars={_ECJ: hashlib.sha256(b"a jar").hexdigest()})
    assert jars.compiler().read_bytes() == b"a jar"
    assert capsys.readouterr().err == ""


def test_a_jar_with_a_wrong_hash_is_refused_and_not_kept(central: Path) -> None:
    ecj(b"something else", central)
    with pytest.raises(HarnessError, match=rf"^{jars.COMPILER}: {_ECJ} has the wrong SHA-256, so nothing.*kept$"):
        jars.compiler()
    assert list(paths.home().rglob("*.jar")) == []


def test_a_jar_that_a_known_release_does_not_contain_is_refused(central: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ecj(b"a jar", central)
    keep(monkeypatch, releases=[jars.COMPILER])
    with pytest.raises(HarnessError, match="which this release does not contain"):
        jars.compiler()


def test_a_jar_of_an_unknown_release_that_others_have_as_well_is_compared(central: Path) -> None:
    for name in ("kafka_2.13", "kafka-tools"):
        publish(central, "org.apache.kafka", name, "3.99.0")
    publish(central, "org.slf4j", "slf4j-reload4j", "1.7.36", b"another jar")
    publish(central, "ch.qos.reload4j", "reload4j", "1.2.25", b"another jar")
    with pytest.raises(HarnessError, match=r"^kafka-3\.99\.0: .*reload4j-.*\.jar has the wrong SHA-256"):
        jars.kafka("3.99.0")


def test_a_release_that_is_not_known_works(
    central: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ecj(b"a jar", central)
    keep(monkeypatch)
    assert jars.compiler().exists()
    said = f"onceproof: {jars.COMPILER} is not pinned: onceproof has no hash of it to compare with\n"
    assert capsys.readouterr().err == said


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a wheel that is called confluent-kafka 0.0.1, from which uv installs."""
    wheel = tmp_path / "index" / "confluent_kafka-0.0.1-py3-none-any.whl"
    wheel.parent.mkdir()
    files = {
        "confluent_kafka/__init__.py": b"",
        "confluent_kafka-0.0.1.dist-info/METADATA": b"Metadata-Version: 2.1\nName: confluent-kafka\nVersion: 0.0.1\n",
        "confluent_kafka-0.0.1.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')},{len(data)}\n"
        for name, data in files.items()
    )
    with zipfile.ZipFile(wheel, "w") as packed:
        for name, data in {**files, "confluent_kafka-0.0.1.dist-info/RECORD": record.encode()}.items():
            packed.writestr(name, data)
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(wheel.parent), "CACHE_DIR": str(tmp_path / "uv")}.items():
        monkeypatch.setenv(f"UV_{name}", value)
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path / "home"))
    return wheel


def test_a_wheel_with_the_right_hash_is_installed(
    index: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(monkeypatch, wheels={"0.0.1": [f"sha256:{pins.sha256(index)}"]})
    found = clients.prepare("librdkafka==0.0.1")
    assert Path(found["PYTHONPATH"], "confluent_kafka", "__init__.py").exists()
    assert capsys.readouterr().err == ""


def test_a_wheel_with_a_wrong_hash_is_refused_and_not_kept(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(monkeypatch, wheels={"0.0.1": [f"sha256:{'0' * 64}"]})
    with pytest.raises(
        BadInput, match=r"^client librdkafka==0\.0\.1: its wheel has the wrong SHA-256, so .* not kept$"
    ):
        clients.prepare("librdkafka==0.0.1")
    assert {path.name for path in (paths.home() / "clients").iterdir()} == {".confluent-kafka-0.0.1.lock"}


def test_a_wheel_of_an_unknown_version_is_installed_and_said_not_to_be_pinned(
    index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert clients.prepare("librdkafka==0.0.1")
    assert "onceproof: confluent-kafka 0.0.1 is not pinned" in capsys.readouterr().err


def test_the_releases_that_scenarios_use_are_pinned() -> None:
    kept = json.loads(pins.FILE.read_text())
    assert {f"kafka-{DEFAULT_KAFKA}", "kafka-3.9.2", "kafka-3.7.0", jars.COMPILER} <= set(kept["releases"])
    assert f"kafka-clients-{DEFAULT_KAFKA}.jar" in kept["jars"]
    assert clients.ours("librdkafka") in kept["wheels"]
    script = (_ROOT / "ci" / "images.sh").read_text()
    assert set(re.findall(r'^: "\$\{\w+:=(\S+)\}"$', script, re.MULTILINE)) == set(kept["images"])
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in kept["images"].values())
    version = re.findall(r"^toxiproxy_version=(\S+)$", script, re.MULTILINE)
    assert list(kept["modules"]) == [f"github.com/Shopify/toxiproxy/v2@v{version[0]}"]


@pytest.mark.skipif(not (_ROOT / ".github").exists(), reason="the source distribution has no workflows")
def test_workflows_name_actions_by_commit() -> None:
    used = [
        line.split("uses:")[1].strip()
        for path in (_ROOT / ".github" / "workflows").glob("*.yml")
        for line in path.read_text().splitlines()
        if "uses:" in line
    ]
    assert len(used) >= 9
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", each)] == []
