"""Anomalies that must be found on a real cluster: foreign records, broken pipelines, and runs that show nothing."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from onceproof.harness.base import paths
from onceproof.harness.base.paths import scenarios_dir
from onceproof.harness.model import scenario
from onceproof.harness.record import history, payload
from onceproof.harness.record.events import AtPhase, FaultTarget, Finished, Outcome, Started
from onceproof.harness.record.provenance import HEADER, provenance
from onceproof.pytest_plugin import Chaos
from onceproof.run.run import Run
from onceproof.verifiers.audit import audit, copies
from onceproof.verifiers.evidence import spark
from onceproof.verifiers.verify import verify

BROKEN = Path(__file__).parent / "broken_copies.py"


def quiet_scenario(workload: str = "copy", **work: Any) -> scenario.Scenario:
    """A short run without faults. The mistake is in the workload, or the test introduces it."""
    raw = {
        "name": "detection",
        "about": "a short run",
        "workload": {"name": workload, "records": 20_000, "records_per_s": 5_000, "observer": False, **work},
    }
    return scenario.parse(raw, where="test")


def samples(results: Any, cls: str) -> list[dict[str, Any]]:
    return [sample for finding in results.findings if finding.cls == cls for sample in finding.samples]


def write(
    run: Run, *, partition: int, key: bytes, value: bytes, header: bytes | None = None, end: str | None = None
) -> int:
    """Write one record to the output from outside the pipeline, and return its offset.

    With `end`, the record is in a transaction that ends with `commit` or `abort`.
    """
    offsets: list[int] = []
    identity = {"transactional.id": f"intruder-{run.names.prefix}"} if end else {}
    producer = Producer({"bootstrap.servers": run.cluster.bootstrap(0), "enable.idempotence": True, **identity})
    if end:
        producer.init_transactions(20)
        producer.begin_transaction()
    producer.produce(
        run.names.topic("output"),
        value,
        key,
        partition,
        headers=[(HEADER, header)] if header else [],
        on_delivery=lambda error, message: offsets.append(message.offset()),
    )
    assert producer.flush(20) == 0
    if end:
        (producer.commit_transaction if end == "commit" else producer.abort_transaction)(20)
    return offsets[0]


def sent(run: Run, partition: int) -> dict[str, Any]:
    """One input of the partition as it was sent: number, key, value, offset."""
    rows = (
        row
        for part in sorted((run.folder / "ledger").glob("sent-*.parquet"))
        for row in pq.read_table(part).to_pylist()
    )
    row = next(row for row in rows if row["partition"] == partition and row["offset"] > 50)
    work, seed = run.plan.scenario.workload, run.plan.seed
    key = payload.Keys(seed, work.keys, work.key_skew).key(row["number"])
    return {**row, "key": key, "value": payload.value(seed, row["number"], work.record_bytes)}


@pytest.mark.chaos
def test_what_is_written_to_the_real_topics_before_collect_is_found(chaos: Chaos) -> None:
    """Six changes to the topics, each in its own partition, are made when the run is at rest.

    What is written or committed outside of any transaction is `unprotected` as well.
    """
    written: dict[str, tuple[int, int]] = {}
    copied: dict[int, int] = {}

    def intrude(run: Run) -> None:
        written["stranger"] = 2, write(run, partition=2, key=b"k", value=b"who am I?")
        value = payload.value(run.plan.seed, 999_999_999, 200)
        written["never sent"] = 3, write(run, partition=3, key=b"k1", value=value, header=provenance(3, 17, 0, 1, 4))
        for partition, names_another, end in ((0, True, None), (1, False, "commit")):
            row = sent(run, partition)
            copied[row["number"]] = partition
            header = provenance(partition, 1 if names_another else row["offset"], 0, 1, 1)
            written[f"copy {partition}"] = (
                partition,
                write(run, partition=partition, key=row["key"], value=row["value"], header=header, end=end),
            )
        row = sent(run, 4)
        write(
            run,
            partition=4,
            key=row["key"],
            value=row["value"],
            header=provenance(4, row["offset"], 0, 1, 1),
            end="abort",
        )
        [(_, (position, _))] = [
            each for each in run.cluster.admin.group_offsets(run.names.group).items() if each[0][1] == 5
        ]
        move = ConsumerGroupTopicPartitions(run.names.group, [TopicPartition(run.names.input, 5, position - 1)])
        client = AdminClient({"bootstrap.servers": run.cluster.bootstrap(0)})
        client.alter_consumer_group_offsets([move])[run.names.group].result(20)
        written["position"] = 5, position - 1

    results = chaos.run(quiet_scenario(), at_rest=intrude)
    assert results.headline == "invalid: duplicate, offset-divergence, phantom, unprotected"

    def places(cls: str) -> list[tuple[int, int]]:
        return sorted((s["partition"], s["offset"]) for s in samples(results, cls))

    assert places("phantom") == sorted([written["stranger"], written["never sent"]])
    assert {written["copy 0"], written["copy 1"]} < set(places("duplicate"))
    assert sorted(s["number"] for s in samples(results, "duplicate")) == sorted([*copied, *copied])
    [above] = samples(results, "offset-divergence")
    assert (above["input"]["partition"], above["input"]["offset"]) == written["position"]
    bare = ("stranger", "never sent", "copy 0", "position")
    assert places("unprotected") == sorted(written[each] for each in bare)


@pytest.mark.chaos
def test_outputs_deleted_before_collect_are_not_called_lost(chaos: Chaos) -> None:
    """The first records of an output partition are deleted when the run is at rest."""

    def delete(run: Run) -> None:
        run.cluster.admin.delete_records({(run.names.topic("output"), 1): 100})

    results = chaos.run(quiet_scenario(), at_rest=delete)
    assert results.headline == "unknown: indeterminate"
    assert any("it starts at 100: somebody deleted records" in reason.says for reason in results.reasons)


@pytest.mark.chaos
@pytest.mark.long
@pytest.mark.parametrize(
    ("broken", "cls"),
    [("SKIPS_ONE", "lost"), ("DOUBLES_ONE", "duplicate"), ("SKIPS_FIRST", "lost"), ("DOUBLES_FIRST", "duplicate")],
)
def test_a_copy_that_skips_or_doubles_one_record_is_found(chaos: Chaos, broken: str, cls: str) -> None:
    results = chaos.run(quiet_scenario(f"{BROKEN}:{broken}"))
    assert [finding.cls for finding in results.findings] == [cls]
    places = {(s["topic"].rpartition("-")[2], s["partition"], s["offset"]) for s in samples(results, cls)}
    if cls == "lost":
        expected = {("input", 3, 0 if broken == "SKIPS_FIRST" else 1234)}
        assert places == expected
    else:
        inputs = {(s["input"]["partition"], s["input"]["offset"]) for s in samples(results, cls)}
        assert inputs == {(3, 0 if broken == "DOUBLES_FIRST" else 1234)}
        assert len(places) == 2


@pytest.mark.chaos
def test_a_state_that_keeps_what_was_aborted_gives_wrong_totals(chaos: Chaos) -> None:
    raw = {
        "name": "detection-state",
        "about": "sums whose state is not taken up again after an abort",
        "workload": {"name": f"{BROKEN}:KEEPS_WHAT_WAS_ABORTED", "records": 20_000, "records_per_s": 4_000},
        "faults": [
            {
                "name": "refuse-writes",
                "topic": "changelog",
                "lasts_s": 2,
                "when": {"worker": 0, "phase": "begun", "count": 8},
            }
        ],
        "expect": {"findings": ["wrong-aggregate"]},
    }
    for sample in samples(chaos.check(scenario.parse(raw, where="test")), "wrong-aggregate"):
        assert sample["total"] > sample["total_before"] + sample["amount"]


@pytest.mark.chaos
def test_one_record_skipped_in_the_transaction_that_was_open_at_the_fault_is_found(chaos: Chaos) -> None:
    raw = {
        "name": "detection-at-fault",
        "about": "the transaction that a fault meets loses its last record",
        "workload": {"name": f"{BROKEN}:SKIPS_AT_FAULT", "records": 20_000, "records_per_s": 4_000},
        "faults": [
            {"name": "delete-records", "to": "behind", "when": {"worker": 0, "phase": "before-commit", "count": 8}}
        ],
        "expect": {"findings": ["lost"], "open_transactions_at_fault": 1},
    }
    [sample] = samples(chaos.check(scenario.parse(raw, where="test")), "lost")
    assert ("worker-0", 8) in {(each["source"], each["transaction"]) for each in sample["transactions"]}


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (
            {"name": "kill-worker", "target": "worker-0", "when": {"worker": 0, "phase": "begun", "count": 9_999}},
            "never happened",
        ),
        pytest.param(
            {
                "name": "zombie",
                "when": {"worker": 0, "phase": "produced", "count": 4},
                "past": ["session"],
                "fenced": "generation",
                "lasts_s": 1,
            },
            "never taken for dead",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_fault_without_effect_makes_the_run_vacuous(
    chaos: Chaos, fault: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A phase that is never reached, and a zombie that is resumed long before its session times out."""
    monkeypatch.setattr("onceproof.run.nemesis._PHASE_DEADLINE_S", 8.0)
    raw = quiet_scenario().model_dump(exclude={"faults"}) | {"faults": [fault]}
    results = chaos.run(scenario.parse(raw, where="test"))
    assert results.headline == "unknown: vacuous", results.reasons
    assert any(says in reason.says for reason in results.reasons)


@pytest.mark.chaos
@pytest.mark.long
def test_same_scenario_and_seed_same_plan_and_same_faults(chaos: Chaos) -> None:
    """Two runs have equal plans, and each fault hits the same role, worker, phase and count."""
    raw = quiet_scenario().model_dump(exclude={"faults"}) | {
        "faults": [
            {
                "name": "kill-worker",
                "target": "worker-random",
                "lasts_s": 0.5,
                "when": {"worker": 1, "phase": "produced", "count": 5},
            }
        ]
    }
    seen = []
    for _ in range(2):
        run = chaos.start(scenario.parse(raw, where="test"))
        assert run.all().verdict == "valid"
        keys = ("fault", "role", "source", "phase", "count")
        faults = [
            tuple(getattr(event, key, None) for key in keys)
            for event in history.read(run.folder / "history.jsonl")
            if isinstance(event, AtPhase | FaultTarget)
        ]
        seen.append(((run.folder / "plan.json").read_bytes(), faults))
    assert seen[0] == seen[1]


@pytest.mark.chaos
def test_what_a_transform_prints_and_what_a_value_contains_disturb_nothing(chaos: Chaos) -> None:
    """The observer, Kafka's console consumer, reads every record, although values contain line breaks and tabs."""
    run = chaos.start(quiet_scenario(f"{BROKEN}:PRINTS", observer=True))
    assert run.all().headline == "valid"
    watched = history.read(run.folder / "history.jsonl").first(Finished, source="observer-output")
    assert watched is not None and watched.records == 20_000
    assert b"\xff\x00 no text" in (run.folder / "processes" / "worker-0.1.log").read_bytes()


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("broken", "headline", "says"),
    [
        ("RAISES", "workload-error", "the workload raises raised LookupError: no price of 0, with the input "),
        ("NAMES_ANOTHER_TOPIC", "workload-error", "the topic 'ouput'; allowed: output"),
        ("LEAVES", "harness-error", "worker-0 ended with exit status 0"),
    ],
)
def test_a_worker_that_fails_again_and_again_ends_the_run(chaos: Chaos, broken: str, headline: str, says: str) -> None:
    run = chaos.start(quiet_scenario(f"{BROKEN}:{broken}"))
    results = run.all()
    assert results.headline == f"unknown: {headline}"
    assert any(says in reason.says for reason in results.reasons), results.reasons
    events = history.read(run.folder / "history.jsonl")
    assert all(len(events.of(Started, source=f"worker-{worker}")) <= 4 for worker in (0, 1))


@pytest.mark.chaos
def test_log_directories_of_a_run_are_audited(chaos: Chaos, tmp_path: Path) -> None:
    """The brokers' log directories are copied while the brokers run; the run's own tables say the same."""

    def take(run: Run) -> None:
        for broker, folder in run.cluster.log_dirs().items():
            # Kafka still deletes the topics of earlier runs, while this one is copied.
            shutil.copytree(folder, tmp_path / broker, ignore=shutil.ignore_patterns("*-delete"))

    run = chaos.start(quiet_scenario())
    assert run.all(at_rest=take).headline == "valid"
    done = audit.audit(copies.of_directories([tmp_path], spark.session, stopped=False))
    assert done.findings == []
    assert not [each.says for each in done.reasons if "not compared" in each.says]
    assert done.compared["decisions"] > 20 and done.compared["replicas"] >= 3 * 12
    by_run = audit.audit(copies.of_run(run.folder, spark.session))
    assert (by_run.verdict, by_run.findings) == ("valid", [])


@contextmanager
def spark_killed_when(there: Callable[[], Any]) -> Iterator[threading.Event]:
    """Kill Spark's process as soon as something is there, and say whether that has happened."""
    done, killed = threading.Event(), threading.Event()

    def watch() -> None:
        while not done.wait(0.01) and not killed.is_set():
            if there():
                spark.kill()
                killed.set()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        done.set()
        thread.join()


@pytest.mark.chaos
def test_spark_is_killed_while_topics_are_read_and_while_the_run_is_judged(
    chaos: Chaos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is started again, and reads what it had not written whole. The second time, that is the reason of the verdict,
    and the next verdict takes the results of the checks that were done."""
    monkeypatch.setattr(paths, "verdicts_dir", lambda: tmp_path)  # other processes may judge folders meanwhile
    run = chaos.start(quiet_scenario())

    def left() -> list[Path]:
        return list(tmp_path.glob("*/*.json"))

    with (
        spark_killed_when((run.folder / "tables" / "outputs.parquet").exists) as first,
        spark_killed_when(lambda: bool(left())) as second,
    ):
        assert run.all().headline == "unknown: harness-error"
    assert first.is_set() and second.is_set() and left()
    assert verify(run.folder).headline == "valid"
    assert not left()


@pytest.mark.chaos
def test_a_broker_that_dies_by_itself_is_named(chaos: Chaos) -> None:
    """Nobody tells the run that broker 2 is killed. It heals, every input has its output, and that is not enough."""
    run = chaos.start(quiet_scenario())

    def kill() -> None:
        run.history.wait("the first transactions", Outcome, deadline_s=60)
        run.cluster._container("broker2").kill(signal="SIGKILL")

    killer = threading.Thread(target=kill)
    killer.start()
    results = run.all()
    killer.join(60)
    assert results.headline == "unknown: unplanned-failure"
    [reason] = results.reasons
    assert reason.says == "broker2 exited with status 137, and no fault caused it"


@pytest.mark.chaos
def test_without_toxiproxy_a_run_ends_at_once(chaos: Chaos) -> None:
    run = chaos.start(quiet_scenario())

    def kill() -> None:
        run.history.wait("the first transactions", Outcome, deadline_s=60)
        run.cluster._container("toxiproxy").kill(signal="SIGKILL")

    killer = threading.Thread(target=kill)
    killer.start()
    results = run.all()
    killer.join(60)
    assert results.headline == "unknown: harness-error"
    assert "toxiproxy exited with status 137" in results.reasons[0].says
    assert run.progress.seconds["work"] < 60


@pytest.mark.long
def test_what_an_unclean_election_loses(chaos: Chaos) -> None:
    """The twin of copy-unclean-election-refused; what is lost depends on the transactions that were open."""
    loaded = scenario.load(scenarios_dir() / "faults" / "copy-unclean-election-refused.toml")
    [fault] = loaded.faults
    results = chaos.run(loaded.model_copy(update={"faults": (fault.model_copy(update={"allowed": True}),)}))
    assert results.verdict == "invalid"
    assert "hung-transaction" in {finding.cls for finding in results.findings}
