"""Bad input of every kind: each is refused with status 2 and one line, which names the place. Nothing is started.

Each entry is a change of a good scenario, or the options of a command, and what the line must say.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from onceproof.cli import commands, main

HEAD = 'name = "x"\nabout = "a test"\n'
GOOD = f"""{HEAD}[workload]
name = "copy"
"""
KILL = """[[faults]]
name = "kill"
target = "broker-1"
at_s = 1
"""
INT, FLOAT, HUGE = "Input should be a valid integer", "Input should be a valid number", "1" + "0" * 26


def work(line: str) -> str:
    return f"{GOOD}{line}\n"


def fault(lines: str) -> str:
    return f"{GOOD}[[faults]]\n{lines}\n"


def kill(line: str, *, at: str = "at_s = 1") -> str:
    return f"{GOOD}{KILL.replace('at_s = 1', at)}{line}\n"


def table(name: str, lines: str) -> str:
    return f"{GOOD}[{name}]\n{lines}\n"


def refuse(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    """The only line on stderr of a command that is refused."""
    try:
        status = main.main(arguments)
    except SystemExit as ended:  # of argparse
        status = int(ended.code or 0)
    told = capsys.readouterr()
    assert status == commands.BAD_INPUT, told.err
    assert told.out == ""
    assert told.err.startswith("onceproof: ")
    assert told.err.endswith("\n") and len(told.err.splitlines()) == 1, told.err
    assert "Traceback" not in told.err
    assert told.err[:-1].isprintable()
    assert len(told.err) < 2500
    return told.err


_RANGES = {
    "workers": ("1", "4"),
    "records": ("0", "100000000"),
    "records_per_s": ("0", "200000"),
    "record_bytes": ("64", "1000000"),
    "keys": ("0", "1000000"),
    "partitions": ("1", "64"),
    "transaction_records": ("0", "100000"),
    "transaction_timeout_ms": ("1000", "900000"),
    "message_timeout_ms": ("500", "900000"),
    "request_timeout_ms": ("500", "60000"),
    "session_timeout_ms": ("1000", "300000"),
}


def _numbers() -> Iterator[tuple[str, str, str]]:
    for key, (low, high) in _RANGES.items():
        yield f"{key}, too low", work(f"{key} = {int(low) - 1}"), f"workload.{key}: Input should be greater than"
        yield f"{key}, too high", work(f"{key} = {int(high) + 1}"), f"workload.{key}: Input should be less than"
        yield f"{key}, far too high", work(f"{key} = {HUGE}"), f"or equal to {high}"
        yield f"{key}, a fraction", work(f"{key} = 1.5"), f"workload.{key}: {INT}"
        yield f"{key}, a text", work(f'{key} = "100"'), f"workload.{key}: {INT}"
        yield f"{key}, nan", work(f"{key} = nan"), f"workload.{key}: {INT}"
    for key in ("static_member", "observer"):
        yield f"{key}, a number", work(f"{key} = 1"), f"workload.{key}: Input should be a valid boolean"
    for value in ("-0.1", "3.1", "nan", "inf", "-inf"):
        yield f"key_skew, {value}", work(f"key_skew = {value}"), "workload.key_skew: Input should be"
    for value in ("-1", "3601", "nan", "inf", '"1"', "true"):
        yield f"at_s, {value}", kill("", at=f"at_s = {value}"), "faults[0].at_s: Input should be"
    for value in ("0", "-1", "601", "nan", "inf", '"1"'):
        yield f"lasts_s, {value}", kill(f"lasts_s = {value}"), "faults[0].lasts_s: Input should be"
    for value in ("0", "101", "1.5", HUGE):
        yield f"periods, {value}", table("random", f"periods = {value}"), "random.periods: Input should be"
    for value in ("19", "601", "nan", "true"):
        yield f"period_s, {value}", table("random", f"period_s = {value}"), "random.period_s: Input should be"
    for value in ("-1", "65", HUGE, "0.5"):
        yield f"open, {value}", table("expect", f"open_transactions_at_fault = {value}"), "open_transactions_at_fault: "
    yield "more open than producers", table("expect", "open_transactions_at_fault = 3"), "3; allowed: 0 to 2"
    for value in ("-1", "3", HUGE):
        says = "bug.transaction_version.0: Input should be"
        yield f"bug, {value}", table("bug", f'issue = "K-1"\ntransaction_version = [{value}]'), says


_WHEN = 'when = { worker = 0, phase = "begun", count = 1 }'
_REQUEST = 'name = "hold-request"\ntarget = "worker-0"\napi = "EndTxn"\nat_s = 1'
_PARTITION = 'name = "partition"\ntarget = "worker-0"\nmode = "cut"\nat_s = 1'
_ZOMBIE = f'name = "zombie"\nfenced = "epoch"\n{_WHEN}'
_REPLACE = f'name = "replace"\nby = 1\nfenced = "epoch"\n{_WHEN}'


def _faults() -> Iterator[tuple[str, str, str]]:
    yield "no start", kill("", at=""), "faults[0].scenario: give exactly one of at_s, when and after"
    yield "two starts", kill(_WHEN), "give exactly one of at_s, when and after"
    yield "after itself", kill("", at="after = 0"), "faults[0].after: 0; allowed: the number of an earlier fault"
    yield "after, negative", kill("", at="after = -1"), "faults[0].after: Input should be greater"
    yield "after, far away", kill("", at=f"after = {HUGE}"), "faults[0].after: Input should be less"
    for key, value, says in (
        ("worker", "2", "faults[0].when.worker: 2; allowed: 0 to 1"),
        ("worker", "-1", "faults[0].when.worker: Input should be greater"),
        ("worker", "99", "faults[0].when.worker: Input should be less"),
        ("phase", '"ended"', "faults[0].when.phase: Input should be 'polled', "),
        ("count", "0", "faults[0].when.count: Input should be greater"),
        ("count", HUGE, "faults[0].when.count: Input should be less than or equal to 1000000"),
        ("count", "1.0", f"faults[0].when.count: {INT}"),
        ("extra", "1", "faults[0].when.extra: unknown key; allowed: count, phase, worker"),
    ):
        keys = {"worker": "0", "phase": '"begun"', "count": "1"} | {key: value}
        at = ", ".join(f"{name} = {each}" for name, each in keys.items())
        yield f"when.{key}, {value}", kill("", at=f"when = {{ {at} }}"), says
    yield "when, a text", kill("", at='when = "begun"'), "faults[0].when: Input should be a valid dictionary"
    for target in ("broker-0", "broker-4", "broker-1\\n", "worker-0", "", "leader:output/6", "leader:output/9999999"):
        yield f"kill, {target!r}", kill("").replace("broker-1", target), "faults[0].target: "
    yield "leader of no topic", kill("").replace("broker-1", "leader:stock/0"), "allowed topics: input, output"
    yield "digits of another script", kill("").replace("broker-1", "leader:output/٣"), "faults[0].target: "
    yield "coordinator of nobody", kill("").replace("broker-1", "transaction-coordinator:worker-3"), "allowed: worker-0"
    for name, lines, says in (
        ("unknown fault", 'name = "flood"\nat_s = 1', "faults[0].name: unknown fault 'flood'; allowed: abort, "),
        ("fault without a name", "at_s = 1", "faults[0].name: missing; allowed: abort, "),
        ("fault with a number as name", "name = 1\nat_s = 1", "faults[0].name: missing; allowed: abort, "),
        ("fault of a file that is none", 'name = "none.py:X"\nat_s = 1', "no Python file at none.py"),
        ("fault of a device", 'name = "/dev/zero:X"\nat_s = 1', "no Python file at /dev/zero"),
        ("fault of a long name", f'name = "{"a" * 5000}.py:X"\nat_s = 1', "not the name of a Python file"),
        ("fault with a colon alone", 'name = ":"\nat_s = 1', "faults[0].name: "),
        ("unknown mode", _PARTITION.replace("cut", "tear"), "faults[0].mode: Input should be 'cut', "),
        ("links of a worker", f'{_PARTITION}\nlinks = "nodes"', "links and direction: only of a target that is a node"),
        ("peer of a ring", f'{_PARTITION}\npeer = "broker-1"'.replace("worker-0", "ring"), "peer: must be a node's"),
        ("peer by chance", f'{_PARTITION}\npeer = "broker-random"', "peer: must be a node's number or role"),
        ("no such peer", f'{_PARTITION}\npeer = "database"'.replace("worker-0", "broker-1"), "no node connects to it"),
        ("no database", f'{_PARTITION}\npeer = "database"', 'allowed with workload.database = "postgresql"'),
        (
            "no such partition to elect in",
            'name = "unclean-election"\nat_s = 1\ntarget = "follower-1:output/9"',
            "faults[0].target: follower-1:output/9; allowed partitions: 0 to 5",
        ),
        ("a topic that is none", 'name = "reassign"\nat_s = 1\ntopic = "stock"', "__consumer_offsets"),
        (
            "retention of outputs",
            'name = "retention"\nat_s = 1\ntopic = "output"',
            "allowed: no topic of this workload",
        ),
        ("no toxic", 'name = "degrade"\ntarget = "worker-0"\nat_s = 1', "faults[0].toxic: Field required"),
        ("unknown toxic", 'name = "degrade"\ntoxic = "acid"\ntarget = "worker-0"\nat_s = 1', "faults[0].toxic: Input "),
        ("unknown API", _REQUEST.replace("EndTxn", "EndTx"), "faults[0].api: Input should be 'Produce', "),
        ("too many requests", f"{_REQUEST}\nrequests = 1001", "faults[0].requests: Input should be less"),
        ("until another worker", f"{_REQUEST}\nuntil = {_WHEN[7:].replace('0', '3', 1)}", "until.worker: 3; allowed"),
        ("no topic", 'name = "refuse-writes"\ntopic = "stock"\nat_s = 1', "faults[0].topic: stock; allowed: output"),
        ("no such end", 'name = "delete-records"\nto = "end"\nat_s = 1', "faults[0].to: Input should be 'behind', "),
        ("zombie past nothing", f"{_ZOMBIE}\npast = []", "faults[0].past: Tuple should have at least 1 item"),
        ("zombie past the end", f'{_ZOMBIE}\npast = ["end"]', "faults[0].past.0: Input should be 'session' or "),
        ("zombie without a transaction", f'{_ZOMBIE}\npast = ["transaction"]', "past: no transaction is open at begun"),
        ("replaced by nobody", _REPLACE.replace("by = 1", "by = 3"), "faults[0].by: 3; allowed: 0 to 1"),
        ("replaced and fenced by luck", _REPLACE.replace('"epoch"', '"luck"'), "faults[0].fenced: Input should be "),
        ("hijack of a role", 'name = "hijack"\ntarget = "worker-random"\nat_s = 1', "faults[0].target: String should"),
        (
            "kill late",
            'name = "kill-worker"\ntarget = "worker-0"\nafter_s = 31\nat_s = 1',
            "after_s: Input should be le",
        ),
        ("rebalances too often", 'name = "rebalances"\nevery_s = 0.1\nat_s = 1', "every_s: Input should be greater"),
        ("upgrade to no release", 'name = "upgrade"\nto = "4.x"\nat_s = 1', "faults[0].to: String should match"),
        ("feature of a strange name", 'name = "raise-feature"\nfeature = "A b"\nat_s = 1', "faults[0].feature: String"),
        (
            "level of no integer",
            f'name = "raise-feature"\nfeature = "a"\nlevel = {HUGE}\nat_s = 1',
            "faults[0].level: ",
        ),
    ):
        yield name, fault(lines), says
    yield "a hundred and one faults", GOOD + KILL * 101, "faults: 101 of them; allowed: at most 100"
    yield "faults as a table", table("faults", 'name = "kill"'), "faults: expected tables [[faults]]"
    yield "faults as numbers", f"faults = [1, 2]\n{GOOD}", "faults[0].name: missing"
    yield "faults as a text", f'faults = "kill"\n{GOOD}', "faults: expected tables [[faults]]"


def _tables() -> Iterator[tuple[str, str, str]]:
    yield "empty", "", "name: Field required"
    yield "no workload", HEAD, "workload.name: missing; allowed: bank, "
    yield "workload as a text", f'{HEAD}workload = "copy"\n', "workload: Input should be a valid dictionary"
    yield "two workloads", f'{HEAD}[[workload]]\nname = "copy"\n', "workload: Input should be a valid dictionary"
    yield (
        "unknown table",
        table("workloads", "a = 1"),
        "workloads: unknown key; did you mean workload?; allowed: about, app, bug, ",
    )
    yield "a database for a copy", work('database = "postgresql"'), "workload.database: postgresql; allowed with"
    yield "no database", work('database = "mysql"'), "workload.database: String should match"
    yield "unknown key", work("record = 1"), "workload.record: unknown key; did you mean records?; allowed: "
    yield "a key with a line break", work('"a\\nb" = 1'), "workload.a\\nb: unknown key; allowed: "
    yield "a key that moves the cursor", work('"a\\u001b[2J" = 1'), "workload.a\\x1b[2J: unknown key"
    yield "a date as name", GOOD.replace('"x"', "2020-01-01"), "name: Input should be a valid string"
    for name in ("", "X", "a b", "-a", "a" * 81, "../x", "a\\n", "é"):
        yield f"name {name[:9]!r}", GOOD.replace('"x"', f'"{name}"'), "name: String should match pattern"
    yield "no words about it", GOOD.replace("a test", ""), "about: String should have at least 1 character"
    yield "many words about it", GOOD.replace("a test", "a" * 2001), "about: String should have at most 2000 char"
    yield "colours about it", GOOD.replace("a test", "\\u001b[31m"), "about: String should match pattern"
    for name, says in (
        ("copi", "workload.name: unknown workload 'copi'; did you mean copy?; allowed: bank, "),
        (":", "workload.name: workload ':': no Python file"),
        ("none.py:X", "workload.name: workload 'none.py:X': no Python file at none.py"),
        ("/tmp:X", "workload.name: workload '/tmp:X': no Python file at /tmp"),
        ("a\\u0000b.py:X", "not the name of a Python file: embedded null byte"),
        (f"{'a' * 5000}.py:X", "not the name of a Python file: "),
    ):
        yield f"workload {name[:12]!r}", GOOD.replace('"copy"', f'"{name}"'), says
    for client in ("sarama", "java==", "java==3.9", "java\\n", "java==3.٣.1", "librdkafka>=2"):
        yield f"client {client!r}", work(f'client = "{client}"'), "workload.client: String should match pattern"
    for key, value in (("group_protocol", "share"), ("assignor", "sticky"), ("auto_offset_reset", "none")):
        yield key, work(f'{key} = "{value}"'), f"workload.{key}: Input should be "
    says = "workload.message_timeout_ms: 5000; allowed: at most transaction_timeout_ms, 1000"
    yield "transactions too short", work("transaction_timeout_ms = 1000"), says
    says = "workload.workers: 1; allowed: 2 to 4, because a chain has two services"
    yield "half a chain", GOOD.replace("copy", "chain") + "workers = 1\n", says
    for key, value, says in (
        ("version", "4", "cluster.version: 4; allowed: versions that match"),
        ("version", "4.3.1\\n", "cluster.version: 4.3.1\\n; allowed: "),
        ("version", "4.٣.1", "cluster.version: "),
        ("version", f"4.{'9' * 5000}.1", "cluster.version: 4.999"),
        ("version", "2.8.1", "cluster.version: 2.8.1; allowed: "),
        ("system", "pulsar", "cluster.system: unknown system 'pulsar'; allowed: kafka"),
        ("system", "", "cluster.system: String should have at least 1 character"),
        ("system", "a\\u0000b.py:X", "cluster.system: system 'a\\x00b.py:X': not the name of a Python file"),
    ):
        yield f"cluster.{key} {value[:9]!r}", table("cluster", f'{key} = "{value}"'), says
    yield "five brokers", table("cluster", "brokers = 5"), "cluster.brokers: Input should be 3"
    for name in ("", "A", "a b", "a;b", "a\\n"):
        yield f"feature {name!r}", table("cluster.features", f'"{name}" = 1'), "String should match pattern"
    for level in ("-1", "32768", HUGE, "true", '"2"', "1.0"):
        says = "cluster.features.transaction.version: Input should be"
        yield f"level {level[:9]}", table("cluster.features", f'"transaction.version" = {level}'), says
    for value in ("[1]", "2020-01-01", "{ a = 1 }", "nan", "inf"):
        for where in ("cluster.settings", "client.config"):
            yield f"{where} = {value}", table(where, f'"linger.ms" = {value}'), f"{where}.linger.ms."
    for key in ("bootstrap.servers", "metadata.broker.list", "client.id", "group.id", "transactional.id"):
        yield f"client's {key}", table("client.config", f'"{key}" = "x"'), f"client.config.{key}: allowed: settings of"
    yield "client.conf", table("client.conf", '"linger.ms" = 5'), "client.conf"
    yield "client as a number", f"client = 3\n{GOOD}", "client: Input should be a valid dictionary"
    yield "unknown verdict", table("expect", 'verdict = "unknown"'), "expect.verdict: Input should be 'valid' or"
    yield "unknown finding", table("expect", 'findings = ["loss"]'), "expect.findings.0: Input should be 'lost', "
    yield "findings as a text", table("expect", 'findings = "lost"'), "expect.findings: Input should be a valid tuple"
    yield (
        "valid with findings",
        table("expect", 'verdict = "valid"\nfindings = ["lost"]'),
        "a valid run has no findings",
    )
    yield (
        "error of no call",
        table("expect", 'client_error = { code = "X" }'),
        "expect.client_error.call: Field required",
    )
    yield (
        "error with more",
        table("expect.client_error", 'call = "a"\ncode = "b"\nx = 1'),
        "client_error.x: unknown key",
    )
    yield "a bug without an issue", table("bug", 'issue = ""'), "bug.issue: String should have at least 1 character"
    yield "fixed as a number", table("bug", 'issue = "K-1"\nfixed = 3'), "bug.fixed: Input should be a valid tuple"
    yield "fixed nowhere", table("bug", 'issue = "K-1"\nfixed = [{ kafka = "new" }]'), "expected a version specifier"
    yield "fixed in no client", table("bug", 'issue = "K"\nfixed = [{ client = "go" }]'), "bug.fixed.0.client: Input sh"
    yield "checks as a text", f'checks = "order"\n{GOOD}', "checks: Input should be a valid tuple"
    yield "checks as numbers", f"checks = [1]\n{GOOD}", "checks.0: Input should be a valid string"
    yield (
        "too many checks",
        "checks = [" + '"order", ' * 101 + f"]\n{GOOD}",
        "checks: Tuple should have at most 100 items",
    )
    yield "collect as a text", table("collect", 'read_uncommitted = "yes"'), "collect.read_uncommitted: Input should be"


def _texts() -> Iterator[tuple[str, str, str]]:
    yield "3,000 nested arrays", f"x = {'[' * 3000}{']' * 3000}", "nested too deeply"
    yield "3,000 nested tables", f"x = {'{ a = ' * 3000}1{'}' * 3000}", "nested too deeply"
    yield "5,000 dotted keys", f"{GOOD}[{'.'.join('a' * 5000)}]\n", "a: unknown key; allowed: "
    yield "an integer of 5,000 digits", work(f"records = {'9' * 5000}"), "not TOML: "
    yield "not closed", GOOD.replace("[workload]", "[workload"), "not TOML: "
    yield "a key twice", work('name = "copy"'), "not TOML: Cannot overwrite a value"
    yield "a byte order mark", f"\ufeff{GOOD}", "not TOML: "
    yield "JSON", '{ "name": "x" }', "not TOML: "
    yield "a null character", GOOD.replace("a test", "a\0test"), "not TOML: "
    yield "two megabytes", f"# {'x' * 2_000_000}\n{GOOD}", "allowed: a scenario of at most 1000000 bytes"


_APP = 'command = ["true"]'


def _apps() -> Iterator[tuple[str, str, str]]:
    """Applications that cannot be run."""
    for what, keys, says in (
        ("no command", "stop_s = 3", "app: command: missing; allowed: a program and its arguments, or a key image"),
        ("an empty command", "command = []", "app: command: missing; allowed: "),
        ("a command as a text", 'command = "copy.py"', "app.command: Input should be a valid tuple"),
        ("an empty word", 'command = ["sh", ""]', "app.command.1: String should have at least 1 character"),
        ("a null character", 'command = ["a\\u0000b"]', "app.command.0: String should match pattern"),
        ("an unknown key", f"{_APP}\nimages = 1", "app.images: unknown key; did you mean image?"),
        ("an impossible image", 'image = "a b"', "app.image: String should match pattern"),
        ("no image", 'image = ""', "app.image: String should match pattern"),
        ("an image with {python}", 'image = "a"\ncommand = ["{python}"]', "{python}: not with image"),
        ("ready in another way", f'{_APP}\nready = "soon"', "app.ready: 'soon': allowed: group, log: REGEX, tcp: PORT"),
        ("ready at no port", f'{_APP}\nready = "tcp: 70000"', "app.ready: 'tcp: 70000': allowed: "),
        ("ready by half an expression", f'{_APP}\nready = "log: ("', "app.ready: 'log: (': not a regular expression: "),
        ("an unknown place", 'command = ["{boot}"]', "{boot}: allowed: {bootstrap}, {build}, {classpath}, "),
        (
            "an unknown topic",
            'command = ["{topic:orders}"]',
            "app: {topic:orders}: allowed: {topic:input}, {topic:output}",
        ),
        ("an impossible variable", f'{_APP}\nenv = {{ "A B" = "1" }}', "app.env.A B"),
        ("a number as a variable", f"{_APP}\nenv = {{ A = 1 }}", "app.env.A: Input should be a valid string"),
        ("no time to end", f"{_APP}\nstop_s = 0", "app.stop_s: Input should be greater than 0"),
        ("a day to end", f"{_APP}\nstop_s = 86400", "app.stop_s: Input should be less than or equal to 120"),
    ):
        yield f"app, {what}", table("app", keys), says
    app = table("app", _APP)
    for name in ("sums", "chain", "produce", "copy-fixed"):
        yield f"app as {name}", app.replace('name = "copy"', f'name = "{name}"'), "allowed with [app]: a workload "
    late = '\n[[faults]]\nname = "kill-worker"\ntarget = "worker-0"\nwhen = { worker = 0, phase = "polled", count = 2 }'
    yield "app at a phase that cannot be seen", app + late, "faults[0].when.phase: polled: not with [app]"
    moved = (
        '\n[[faults]]\nname = "replace"\nby = 1\nfenced = "epoch"\nwhen = { worker = 0, phase = "begun", count = 2 }'
    )
    yield "app that is replaced", app + moved, "faults[0].name: replace: not with [app], since"


SCENARIOS = [*_numbers(), *_faults(), *_tables(), *_texts(), *_apps()]


@pytest.mark.parametrize(("text", "says"), [each[1:] for each in SCENARIOS], ids=[each[0] for each in SCENARIOS])
def test_a_bad_scenario_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    told = refuse(capsys, ["run", str(path), "--runs", str(tmp_path / "runs")])
    assert f"{path}: " in told
    assert says in told
    assert not (tmp_path / "runs").exists()


def test_it_is_a_large_set() -> None:
    assert len({each[1] for each in SCENARIOS}) == len(SCENARIOS) >= 150


_SHIPPED = "copy-broker-killed"
OPTIONS = [
    (["run"], "scenario"),
    (["fly"], "invalid choice: 'fly'"),
    (["run", "nothing-like-it"], "no such scenario; a TOML file, or one of "),
    (["run", "a" * 5000], "no such scenario: File name too long"),
    (["run", "a\0b"], "no such scenario: embedded null byte"),
    (["run", _SHIPPED, "--seed", "x"], "--seed: 'x': allowed: "),
    (["run", _SHIPPED, "--seed", "-1"], "--seed"),
    (["run", _SHIPPED, "--seed", "9" * 5000], "--seed: '999"),
    (["run", _SHIPPED, "--count", "0"], "--count: '0': allowed: "),
    (["run", _SHIPPED, "--count", HUGE], "--count: "),
    (["run", _SHIPPED, "--count", "٣"], "--count: "),
    (["run", _SHIPPED, "--kafka", "4.3"], "kafka version '4.3': allowed: "),
    (["run", _SHIPPED, "--kafka", "4.3.1\n"], "kafka version '4.3.1\\n': allowed: "),
    (["run", _SHIPPED, "--kafka", "٤.3.1"], "kafka version "),
    (["run", _SHIPPED, "--client", "sarama"], "--client: 'sarama': allowed: "),
    (["run", _SHIPPED, "--client", "java==3.9.2\n"], "--client: 'java==3.9.2\\n': allowed: "),
    (["run", _SHIPPED, "--feature", "transaction.version"], "--feature: 'transaction.version': expected NAME=LEVEL"),
    (["run", _SHIPPED, "--feature", "transaction.version=-1"], "--feature: "),
    (["run", _SHIPPED, "--feature", f"transaction.version={'9' * 5000}"], "--feature: "),
    (["run", _SHIPPED, "--feature", "a b=1"], "--feature: 'a b=1': expected NAME=LEVEL"),
    (["run", _SHIPPED, "--feature", "transaction.version=1,2"], "--feature: 'transaction.version=1,2': only one level"),
    (["run", _SHIPPED, "--group-protocol", "share"], "--group-protocol: invalid choice: 'share'"),
    (["run", _SHIPPED, "--mode", "fast"], "--mode: invalid choice: 'fast'"),
    (["run", _SHIPPED, "--faults", "all"], "--faults: invalid choice: 'all'"),
    (["run", _SHIPPED, "--twin"], "--twin: the scenario copy-broker-killed has no fault on single requests"),
    (["run", _SHIPPED, "--bogus"], "unrecognized arguments: --bogus"),
    (["run", _SHIPPED, "--runs", "/dev/null"], "/dev/null: cannot be written: "),
    (["run", _SHIPPED, "--runs", "/proc/none"], "/proc/none: cannot be written: "),
    (["run", _SHIPPED, "--runs", "/proc"], "/proc: cannot be written: "),
    (["run", _SHIPPED, "--spark-master", "nonsense"], "--spark-master: 'nonsense'; allowed: local, "),
    (["run", _SHIPPED, "--spark-master", "local[0]"], "--spark-master: 'local[0]'; allowed: local, "),
    (["matrix"], "scenarios"),
    (["matrix", _SHIPPED, "--group-protocol", "classic,share"], "--group-protocol: 'share': allowed: "),
    (["matrix", _SHIPPED, "--client", "java,"], "--client: '': allowed: "),
    (["matrix", _SHIPPED, "--kafka", "4.3.1,"], "kafka version '': allowed: "),
    (["matrix", _SHIPPED, "--json", "/proc/none/cells.json"], "/proc/none: cannot be written: "),
    (["matrix", _SHIPPED, "--json", "/tmp"], "/tmp: cannot be written: "),
    (["matrix", _SHIPPED, "--json", "/dev/full/x.json"], "/dev/full: cannot be written: "),
    (["matrix", _SHIPPED, "--runs", "/dev/null/x"], "/dev/null/x: cannot be written: "),
    (["matrix", _SHIPPED, "--against", "/none.json"], "/none.json: this is not a file of the cells of a matrix"),
    (["matrix", _SHIPPED, "--against", "/dev/null"], "/dev/null: this is not a file of the cells of a matrix"),
    (["matrix", _SHIPPED, "--against", "/dev/zero"], "a matrix: not a file"),
    (["soak", "--count", "many"], "--count: 'many': allowed: "),
    (["soak", "--hours", "0"], "--hours: '0': allowed: hours, from 0.001 to 999"),
    (["soak", "--hours", "1", "--count", "2"], "--count: not allowed with argument --hours"),
    (["soak", "--hours", "1", "--resume", "/tmp"], "--resume: not with --hours; allowed with --count"),
    (["soak", "--runs", "/proc/none"], "/proc/none: cannot be written: "),
    (["soak", "/none"], "/none: no such scenario"),
    (["bench", "fly"], "invalid choice: 'fly'"),
    (["bench", "transactions", "--rounds", "5"], "--rounds: 5; allowed with transactions: at least 6"),
    (["bench", "transactions", "--claims", "P9"], "--claims: 'P9': allowed: throughput, cost, isolation, scope"),
    (["bench", "verify", "--records", HUGE], "--records: "),
    (["bench", "verify", "--sizes", "63"], "--sizes: '63': allowed: sizes from 64 to 1000000 bytes"),
    (["bench", "verify", "--runs", "/dev/null"], "/dev/null: cannot be written: "),
    (["verify", "/none"], "/none: no such folder"),
    (["verify", "a" * 5000], "no such folder: File name too long"),
    (["verify", "/dev/null"], "/dev/null: no such folder"),
    (["verify", "/proc"], "/proc: no tables/ in this folder"),
    (["report", "/none"], "/none: no such folder"),
    (["report", "/proc"], "results.json: no such file"),
    (["images", "4"], "kafka version '4': allowed: "),
    (["list", "--page", "/proc/none/page.md"], "/proc/none: cannot be written: "),
    (["lint"], "scenario"),
    (["lint", "/none"], "/none: no such scenario"),
    (["lint", str(Path(__file__).parents[2] / "scenarios")], "one scenario is expected, and this folder has "),
    (["lint", _SHIPPED, "--kafka", "4"], "kafka version '4': allowed: "),
    (["lint", _SHIPPED, "--runs", "/proc/none"], "/proc/none: cannot be written: "),
    (["check"], "scenarios"),
    (["check", "nothing-like-it"], "no such scenario; a TOML file, or one of "),
    (["check", _SHIPPED, "--spark-master", "mesos://x"], "--spark-master: 'mesos://x'; allowed: "),
]


@pytest.mark.parametrize(("arguments", "says"), OPTIONS, ids=[" ".join(each)[:50] for each, _ in OPTIONS])
def test_a_bad_option_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in refuse(capsys, arguments)
    assert not any(tmp_path.rglob("*.json"))


def test_a_scenario_that_never_ends_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    assert f"{pipe}: not a file" in refuse(capsys, ["run", str(pipe)])
    assert "/dev/zero: not a file" in refuse(capsys, ["run", "/dev/zero"])


def test_a_loop_of_links_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.toml").symlink_to(tmp_path / "b.toml")
    (tmp_path / "b.toml").symlink_to(tmp_path / "a.toml")
    assert "Too many levels of symbolic links" in refuse(capsys, ["run", str(tmp_path / "a.toml")])
