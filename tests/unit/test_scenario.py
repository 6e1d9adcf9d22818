"""Bad input gets one line: file, key, allowed values."""

from pathlib import Path

import pytest

from onceproof.harness.base.errors import BadInput
from onceproof.harness.base.paths import scenarios_dir
from onceproof.harness.model import scenario

GOOD = """
name = "x"
about = "a test"
[workload]
name = "copy"
[[faults]]
name = "kill"
target = "broker-1"
at_s = 1
"""


def load(tmp_path: Path, text: str) -> scenario.Scenario:
    path = tmp_path / "x.toml"
    path.write_text(text)
    return scenario.load(path)


def test_good_one_loads(tmp_path: Path) -> None:
    loaded = load(tmp_path, GOOD)
    assert loaded.workload.name == "copy"
    assert loaded.faults[0].target == "broker-1"


@pytest.mark.parametrize("path", sorted(scenarios_dir().rglob("*.toml")), ids=lambda path: path.stem)
def test_each_scenario_that_comes_with_onceproof_loads_and_is_named_as_its_file(path: Path) -> None:
    assert scenario.load(path).name == path.stem


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "copy"', 'name = "copi"', "workload.name: unknown workload 'copi'; did you mean copy?; allowed: "),
        (
            'name = "copy"',
            'name = "copy"\nrecord = 5',
            "workload.record: unknown key; did you mean records?; ",
        ),
        ('name = "copy"', 'name = "copy"\nrecords = 0', "workload.records: Input should be greater than 0"),
        ('name = "copy"', 'name = "copy"\nclient = "sarama"', "workload.client: String should match pattern"),
        ('name = "kill"', 'name = "kil"', "faults[0].name: unknown fault 'kil'; did you mean kill?; allowed: "),
        ('target = "broker-1"', 'target = "broker-9"', "faults[0].target: String should match pattern"),
        (
            'name = "kill"\ntarget = "broker-1"',
            'name = "partition"\nmode = "cut"\ntarget = "worker-3"',
            "faults[0].target: worker-3; allowed: worker-0 to worker-1",
        ),
        ("broker-1", "leader:stock/0", "faults[0].target: leader:stock/0; allowed topics: input, output"),
        ("broker-1", "leader:output/6", "faults[0].target: leader:output/6; allowed partitions: 0 to 5"),
        (
            'name = "kill"\ntarget = "broker-1"',
            'name = "refuse-writes"\ntopic = "stock"',
            "faults[0].topic: stock; allowed: output",
        ),
        (
            'name = "kill"\ntarget = "broker-1"',
            'name = "partition"\nmode = "cut"\ntarget = "ring"\nlinks = "nodes"',
            "links and direction: only of a target that is a node",
        ),
        (
            "[workload]",
            "[bug]\nissue = 'KAFKA-1'\n[[bug.fixed]]\nversion = 4\n[workload]",
            "bug.fixed.0.version: unknown key; did you mean client_version?; allowed: ",
        ),
        ("at_s = 1", "", "faults[0].scenario: give exactly one of at_s, when and after"),
        ("at_s = 1", 'when = { worker = 3, phase = "begun", count = 1 }', "faults[0].when.worker: 3; allowed: 0 to 1"),
        ("at_s = 1", 'when = { worker = 0, phase = "began", count = 1 }', "faults[0].when.phase: Input should be"),
        ("at_s = 1", "at_s = 1\nlast_s = 3", "faults[0].last_s: unknown key; did you mean lasts_s?; allowed: "),
        ("[workload]", "[expect]\nfindings = ['loss']\n[workload]", "expect.findings.0: Input should be 'lost', "),
        ("[workload]", "[expect]\nverdict = 'valid'\nfindings = ['lost']\n[workload]", "a valid run has no findings"),
        ("[workload]", "[workload", "not TOML"),
        ('name = "x"', 'name = "X y"', "name: String should match pattern"),
    ],
)
def test_a_bad_one_is_refused_in_one_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        load(tmp_path, GOOD.replace(old, new, 1))
    text = str(refused.value)
    assert says in text
    assert text.startswith(str(tmp_path / "x.toml"))
    assert "\n" not in text


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        scenario.load(tmp_path / "none.toml")
