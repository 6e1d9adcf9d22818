"""A password in a scenario reaches its client and no file, message or list of processes."""

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

import onceproof
from onceproof.harness.base.errors import BadInput
from onceproof.harness.base.redaction import Redaction, harmless, shown
from onceproof.harness.context.process import Child
from onceproof.harness.model import plan
from onceproof.harness.model.scenario import parse
from onceproof.harness.record.events import HarnessFailed
from onceproof.harness.record.history import History
from onceproof.run.room import new_folder

_PLANTED = 'hush "and\\quiet'
_DEADLINE_S = 30
_ROOT = Path(onceproof.__file__).parents[1]
# The settings of type PASSWORD of Kafka 4.3.1, and what librdkafka's documentation says to hold a secret.
_PASSWORDS = """
    delegation.token.secret.key sasl.jaas.config sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.client.credentials.client.secret ssl.key.password ssl.keystore.certificate.chain ssl.keystore.key
    ssl.keystore.password ssl.truststore.certificates ssl.truststore.password
    ssl.key.pem ssl.certificate.pem ssl.ca.pem sasl.username sasl.password sasl.oauthbearer.config
    sasl.oauthbearer.client.secret sasl.oauthbearer.assertion.private.key.pem sasl.oauthbearer.extensions
"""
_CHILD = """
import sys
from onceproof.workloads.processes.child import Child
child = Child.begin()
secret = child.config["client_config"]["sasl.password"]
print("the client says", secret, "and", repr(secret), file=sys.stderr)
child.emit("read", length=len(secret), text="." * 195 + secret)
child.begun.wait(30)
"""


def test_only_values_of_known_settings_are_shown() -> None:
    settings: dict[str, Any] = {
        "linger.ms": 5,
        "sasl.password": "hush",
        "transaction.versoin": "hush",
        "isolation.level": "committed",
    }
    assert shown(settings) == {**settings, "sasl.password": "***", "transaction.versoin": "***"}


def test_no_setting_that_is_known_for_a_secret_is_shown() -> None:
    assert not harmless() & set(_PASSWORDS.split())
    assert {"linger.ms", "min.insync.replicas", "session.timeout.ms", "log_level"} <= harmless()


@pytest.mark.parametrize(
    ("setting", "text", "said"),
    [
        ({"a": "hush"}, "refused: hush", "refused: ***"),
        ({"a": "x1"}, "x1 of ax12 x1", "*** of ax12 ***"),
        ({"a": 4711}, "refused: 4711", "refused: ***"),
        ({"a": 'Login required username="me" password="hush";'}, "user has hush", "user has ***"),
        ({"a": "https://me:hush@host/x"}, "no host for hush", "no host for ***"),
        ({"a": "-----BEGIN-----\nMIICXAIBAAKB\n"}, "line MIICXAIBAAKB here", "line *** here"),
        ({"a": True, "linger.ms": "true"}, "true", "true"),
        ({}, "hush", "hush"),
    ],
)
def test_a_text_that_quotes_a_secret(setting: dict[str, Any], text: str, said: str) -> None:
    assert Redaction(setting).text(text) == said


def test_a_process_gets_a_secret_by_its_pipe_only(tmp_path: Path) -> None:
    (tmp_path / "reads_it.py").write_text(_CHILD)
    events: list[dict[str, Any]] = []
    read, ended = threading.Event(), threading.Event()

    def on_event(event: dict[str, Any]) -> None:
        events.append(event)
        read.set()

    child = Child(
        "reads_it",
        {"client_config": {"sasl.password": _PLANTED, "linger.ms": 5}},
        folder=tmp_path / "processes",
        name="reader.1",
        environment={"PYTHONPATH": f"{tmp_path}:{_ROOT}"},
        on_event=on_event,
        on_exit=lambda _child, _code: ended.set(),
    )
    try:
        assert read.wait(_DEADLINE_S), child.log.read_text()
        process = Path("/proc", str(child.pid))
        assert not {"hush", "quiet"} & set((process / "cmdline").read_text().split("\0"))
        assert "hush" not in (process / "environ").read_text()
        child.send("begin")
        assert child.wait(_DEADLINE_S)
        assert ended.wait(_DEADLINE_S)
    finally:
        child.kill()
    assert [(event["length"], event["text"]) for event in events] == [(len(_PLANTED), "." * 195 + "***")]
    config = json.loads((tmp_path / "processes" / "reader.1.json").read_text())
    assert config["client_config"] == {"sasl.password": "***", "linger.ms": 5}
    assert (tmp_path / "processes" / "reader.1.log").read_text() == "the client says *** and '***'\n"


def _scenario(**tables: Any) -> dict[str, Any]:
    return {"name": "x", "about": "a test", "workload": {"name": "copy"}, **tables}


def test_a_plan_has_no_secret_of_clients_or_brokers(tmp_path: Path) -> None:
    raw = _scenario(
        client={"config": {"sasl.password": "hush", "linger.ms": 3}},
        cluster={"settings": {"ssl.key.password": "hush", "broker.heartbeat.interval.ms": 700}},
    )
    scenario = parse(raw, where="test")
    made = plan.make(scenario, 7)
    assert "hush" not in made.to_json() + repr(scenario) + json.dumps(scenario.cluster.described())
    assert scenario.cluster.described()["settings"] == {"ssl.key.password": "***", "broker.heartbeat.interval.ms": 700}
    (tmp_path / "plan.json").write_text(made.to_json())
    assert plan.read(tmp_path / "plan.json").to_json() == made.to_json()


@pytest.mark.parametrize(
    "tables",
    [
        {"client": {"config": {"sasl.password": ["hush"]}}},
        {"client": {"config": "sasl.password=hush"}},
        {"client": "hush"},
        {"cluster": {"settings": {"ssl.key.password": ["hush"]}}},
        {"cluster": {"settings": "hush"}},
    ],
)
def test_a_refused_value_is_not_printed(tables: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        parse(_scenario(**tables), where="x.toml")
    assert "hush" not in str(refused.value)
    assert "(got ***)" in str(refused.value)


def test_the_history_quotes_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history = History(path, Redaction({"sasl.password": "hush"}).text)
    history.append("harness", HarnessFailed(reason="the client refuses hush"))
    history.close()
    assert "the client refuses ***" in path.read_text()
    assert "hush" not in path.read_text()


def test_only_its_owner_reads_the_folder_of_a_run(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        folder = new_folder(tmp_path / "runs", "x-1")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
