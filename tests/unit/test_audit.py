"""`onceproof audit` on recorded runs without history and manifest, and on log directories that Kafka's writer made."""

import errno
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from onceproof.cli import commands, main
from onceproof.harness.base import coordinators
from onceproof.verifiers.audit import audit, copies
from onceproof.verifiers.evidence.spark import session
from tests.kafka_writer import batch, marker, plain_batch, transaction_state, transactional_id
from tests.mutants import of_coordinators, of_sequences, of_zombies
from tests.mutants.catalogue import MUTANTS, RUNS

pytestmark = pytest.mark.usefixtures("spark")
_SEQUENCES = ("sequence_with_a_gap", "sequence_that_repeats", "sequence_that_overlaps")
# What the log alone shows. Mutants whose findings do not depend on the workers' history.
_BY_THE_LOG = sorted(
    name
    for name, each in MUTANTS.items()
    if each.change.__module__ == of_coordinators.__name__
    or each.change in (of_zombies.older_epoch_committed, *(getattr(of_sequences, name) for name in _SEQUENCES))
)


def bare(folder: Path, target: Path) -> Path:
    """A run's folder with nothing but the tables of its logs."""
    (target / "tables").mkdir(parents=True)
    for name in ("batches", "states"):
        shutil.copy(folder / "tables" / f"{name}.parquet", target / "tables")
    return target


@pytest.mark.parametrize("run", sorted(each.name for each in RUNS.iterdir() if each.is_dir()))
def test_a_recorded_run_is_valid_by_its_logs_alone(run: str, tmp_path: Path) -> None:
    done = audit.audit(copies.of_run(bare(RUNS / run, tmp_path / run), session))
    assert (done.findings, done.reasons) == ([], [])
    assert done.compared["spans"] > 100 and done.compared["decisions"] > 50
    assert {row["state"] for row in done.ids} <= {"Empty", "CompleteCommit", "CompleteAbort"}


@pytest.mark.parametrize("name", _BY_THE_LOG)
def test_what_the_coordinators_decided_is_judged_by_the_logs_alone(name: str, tmp_path: Path) -> None:
    run, expected = MUTANTS[name].make()
    done = audit.audit(copies.of_run(bare(run.write(tmp_path / "run"), tmp_path / "bare"), session))
    found = {
        each.cls: {(s["topic"].removeprefix(run.prefix), s["partition"], s["offset"]) for s in each.samples}
        for each in done.findings
    }
    assert found == expected


# Log directories


def state(offset: int, status: int, *, epoch: int = 3, partitions: tuple[int, ...] = (0,), name: str = "app") -> bytes:
    """A record of __transaction_state, in a batch of its own."""
    value = transaction_state(status, partitions=partitions, epoch=epoch)
    return plain_batch(offset, [(transactional_id(name), value)])


ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT = 1, 2, 4


def end_of(written: bytes) -> int:
    """The offset behind the last complete batch."""
    at = end = 0
    while (
        at + 61 <= len(written) and (size := 12 + int.from_bytes(written[at + 8 : at + 12], "big")) <= len(written) - at
    ):
        end = int.from_bytes(written[at : at + 8], "big") + int.from_bytes(written[at + 23 : at + 27], "big") + 1
        at += size
    return end


def checkpoint(path: Path, *entries: str) -> None:
    path.write_text("\n".join(["0", str(len(entries)), *entries]) + "\n")


def directory(
    path: Path,
    *,
    node: int = 1,
    cluster: str = "c1",
    out: bytes,
    states: bytes,
    hw: int | None = None,
    epochs: Sequence[str] = (),
    cleaned: Sequence[str] = (),
    base: int = 0,
) -> Path:
    """A broker's log directory with one partition of a topic and one of __transaction_state.

    `hw` is the high watermark of the topic's partition; by default, the end of its log."""
    for name, written, first in (("out-0", out, base), ("__transaction_state-0", states, 0)):
        (path / name).mkdir(parents=True)
        (path / name / f"{first:020}.log").write_bytes(written)
    (path / "meta.properties").write_text(f"#\nversion=1\nnode.id={node}\ncluster.id={cluster}\n")
    ends = {"out": (end_of(out) or base) if hw is None else hw, "__transaction_state": end_of(states)}
    checkpoint(path / "replication-offset-checkpoint", *(f"{topic} 0 {end}" for topic, end in ends.items()))
    if epochs:
        checkpoint(path / "out-0" / "leader-epoch-checkpoint", *epochs)
    if cleaned:
        checkpoint(path / "cleaner-offset-checkpoint", *cleaned)
    return path


def records(count: int) -> list[tuple[bytes, bytes | None]]:
    return [(b"key %d" % number, b"value") for number in range(count)]


DECIDED = (ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT)


def decided(times: int = 1) -> bytes:
    """The states of so many committed transactions."""
    return b"".join(
        state(number, status, partitions=() if status == COMPLETE_COMMIT else (0,))
        for number, status in enumerate(DECIDED * times)
    )


def committed(times: int = 1, *, codec: str = "none") -> bytes:
    """So many transactions of ten records and a marker."""
    return b"".join(
        batch(11 * number, records(10), codec, sequence=10 * number) + marker(11 * number + 10, True)
        for number in range(times)
    )


def judged(*paths: Path, stopped: bool = True) -> tuple[list[tuple[str, str, int, int]], list[str]]:
    done = audit.audit(copies.of_directories(list(paths), session, stopped=stopped))
    places = [(each.cls, s["topic"], s["partition"], s["offset"]) for each in done.findings for s in each.samples]
    return places, [each.says for each in done.reasons]


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "snappy", "zstd"])
def test_directories_of_two_brokers(tmp_path: Path, codec: str) -> None:
    for node in (1, 2):
        directory(tmp_path / f"b{node}", node=node, out=committed(3, codec=codec), states=decided(3))
    assert judged(tmp_path / "b1", tmp_path / "b2") == ([], [])
    assert judged(tmp_path) == ([], []), "a folder that contains the directories"


def test_late_marker(tmp_path: Path) -> None:
    """KAFKA-19446: a marker that ends what its coordinator did not decide to end."""
    torn = batch(11, records(4), "none", sequence=10) + marker(15, True) + batch(16, records(3), "none", sequence=14)
    path = directory(tmp_path / "b1", out=committed() + torn + marker(19, True), states=decided(2))
    assert judged(path) == ([("torn-transaction", "out", 0, 19)], [])


def test_late_produce(tmp_path: Path) -> None:
    """KAFKA-14561: a batch that came after its transaction's marker, and that no transaction owns."""
    path = directory(tmp_path / "b1", out=committed() + batch(11, records(2), "none", sequence=10), states=decided())
    assert judged(path) == ([("hung-transaction", "out", 0, 11)], [])
    places, reasons = judged(path, stopped=False)
    assert places == [] and "the ends of the logs may be missing" in reasons[0]


def test_a_truncated_segment_is_named(tmp_path: Path) -> None:
    path = directory(tmp_path / "b1", out=committed(3)[:-30], states=decided(3))
    places, reasons = judged(path)
    assert places == [], "the marker may be in the bytes that are cut off"
    assert any("00000000000000000000.log: the last" in each for each in reasons)


def test_a_changed_byte_is_named_and_found_by_the_other_replica(tmp_path: Path) -> None:
    written = bytearray(committed(2))
    written[90] ^= 1
    one = directory(tmp_path / "b1", out=bytes(written), states=decided(2))
    places, reasons = judged(one)
    assert places == [] and any("out/0 offset 0: the bytes do not have their CRC" in each for each in reasons)
    other = directory(tmp_path / "b2", node=2, out=committed(2), states=decided(2))
    places, _ = judged(one, other)
    assert {each[0] for each in places} == {"replica-divergence"}


def test_a_partition_with_damaged_bytes_is_not_judged(tmp_path: Path) -> None:
    """What a damaged marker says of its transaction is no finding."""
    written = bytearray(committed(2))
    kind = len(committed()) - 7 - 4  # the value of the record is its version and the coordinator epoch
    while written[kind] != 1:
        kind -= 1
    written[kind] = 0  # an abort
    places, reasons = judged(directory(tmp_path / "b1", out=bytes(written), states=decided(2)))
    assert places == [] and any("out/0 offset 10: the bytes do not have their CRC" in each for each in reasons)


def test_sequence_numbers_are_judged(tmp_path: Path) -> None:
    """A batch that repeats, and one behind a gap; the zombie's batch of an older epoch is neither."""
    for name, sequence, cls in (("gap", 25, "lost"), ("again", 0, "duplicate")):
        written = committed(2)[: -len(marker(21, True))]
        after = batch(21, records(3), "none", sequence=sequence) + marker(24, True)
        path = directory(tmp_path / name, out=written + after, states=decided(2))
        assert judged(path) == ([(cls, "out", 0, 21)], [])


def test_an_empty_replica_has_no_batch_that_the_other_one_has(tmp_path: Path) -> None:
    one = directory(tmp_path / "b1", out=committed(), states=decided())
    other = directory(tmp_path / "b2", node=2, out=b"", states=decided())
    assert judged(one, other) == ([], [])


@pytest.mark.parametrize("reaches", [0, 1, 2, 3])
def test_a_damaged_replica_is_not_replaced_by_a_shorter_one(tmp_path: Path, reaches: int) -> None:
    """The other replica has so many of the three transactions. It is judged if it has all of them."""
    written = bytearray(committed(3))
    written[len(committed(2)) + 80] ^= 1
    one = directory(tmp_path / "b1", out=bytes(written), states=decided(3))
    other = directory(tmp_path / "b2", node=2, out=committed(reaches), states=decided(3))
    places, reasons = judged(one, other)
    if reaches == 3:
        assert places == [("replica-divergence", "out", 0, 22)] * 2 and reasons == []
    else:
        assert places == [] and reasons == ["out/0 offset 22: the bytes do not have their CRC"]


@pytest.mark.parametrize("again", [0, 1])
def test_offsets_that_are_missing_or_there_twice(tmp_path: Path, again: int) -> None:
    """A batch that is there twice does not make up for one that is missing."""
    kept = b"".join(batch(10 * number, records(10), "none", sequence=10 * number) for number in ([0] * again + [0, 2]))
    places, reasons = judged(directory(tmp_path / "b1", out=kept, states=decided()))
    assert places == [] and "1 partitions were not judged, since offsets are missing: out/0" in reasons[0]


def test_folders_that_are_no_partitions(tmp_path: Path) -> None:
    path = directory(tmp_path / "b1", out=committed(), states=decided())
    for name in ("logs-20240601123456", "out-²", "a b-0", "out-1-delete"):
        (path / name).mkdir()
        (path / name / "00000000000000000000.log").write_bytes(b"x" * 100)
    assert judged(path) == ([], [])


def test_a_table_with_missing_files_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = sorted(each for each in RUNS.iterdir() if each.is_dir())[0]
    folder = bare(run, tmp_path / "run")
    batches = folder / "tables" / "batches.parquet"
    table = pq.read_table(batches)
    batches.unlink()
    batches.mkdir()
    assert "batches.parquet: no Parquet file in this folder" in refused(capsys, "--run", str(folder))
    pq.write_table(table.slice(0, table.num_rows - 1), batches / "part-0.parquet")
    shutil.copy(run / "tables" / "collect.json", folder / "tables")
    facts = json.loads((folder / "tables" / "collect.json").read_text())
    facts["rows"]["batches"] = table.num_rows
    (folder / "tables" / "collect.json").write_text(json.dumps(facts))
    said = refused(capsys, "--run", str(folder))
    assert f"{table.num_rows - 1} rows; expected {table.num_rows}, as collect.json says" in said


def test_a_foreign_file_is_named(tmp_path: Path) -> None:
    path = directory(tmp_path / "b1", out=b"this is no segment of Kafka's\n" * 9, states=decided())
    places, reasons = judged(path)
    assert [each for each in places if each[0] != "hung-transaction"] == []
    assert any("00000000000000000000.log" in each for each in reasons)


def test_compacted_states_are_a_reason(tmp_path: Path) -> None:
    """The states of the first two transactions were removed by compaction."""
    kept = b"".join(
        state(6 + number, status, partitions=() if status == COMPLETE_COMMIT else (0,))
        for number, status in enumerate(DECIDED)
    )
    places, reasons = judged(directory(tmp_path / "b1", out=committed(3), states=kept))
    assert places == []
    assert any("states of transactional ids are missing" in each for each in reasons)


@pytest.mark.parametrize("only_the_first", [True, False])
def test_states_that_are_in_no_copy_are_a_reason(tmp_path: Path, only_the_first: bool) -> None:
    """The id would be in partition 1 of two, so there were more of them, perhaps with the other producer's states."""
    assert [coordinators.partition("mine", count) for count in (1, 2, 3)] == [0, 1, 2]
    mine = b"".join(
        state(offset, status, name="mine", partitions=() if status == COMPLETE_COMMIT else (0,))
        for offset, status in enumerate(DECIDED)
    )
    others = batch(11, records(10), "none", 8) + marker(21, True, producer=8)
    path = directory(tmp_path / "b1", out=committed() + others, states=mine)
    if not only_the_first:
        (path / "__transaction_state-1").mkdir()
        (path / "__transaction_state-1" / "00000000000000000000.log").write_bytes(b"")
    places, reasons = judged(path)
    assert bool(places) == only_the_first
    assert any("states of transactional ids are missing" in each for each in reasons) != only_the_first


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main.main(["audit", *arguments]) == commands.BAD_INPUT
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1
    return told.err


def test_bad_input_gets_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = directory(tmp_path / "b1", out=committed(), states=decided())
    other = directory(tmp_path / "b2", node=2, cluster="c2", out=committed(), states=decided())
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    assert "log directories of several clusters" in refused(capsys, str(one), str(other))
    assert ": broker 1 has this partition twice" in refused(capsys, str(one), str(one))
    assert "no broker's log directory at or below it" in refused(capsys, str(tmp_path / "empty"))
    assert "no such directory" in refused(capsys, str(tmp_path / "none"))
    assert "no such directory" in refused(capsys, str(tmp_path / "file"))
    assert "expected either log directories or --run RUN" in refused(capsys)
    assert "expected either log directories or --run RUN" in refused(capsys, str(one), "--run", str(one))
    assert "batches.parquet: no such file" in refused(capsys, "--run", str(tmp_path))


def test_what_cannot_be_read_gets_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that may not be listed, and a pipe among the segments."""
    one = directory(tmp_path / "b1", out=committed(), states=decided())
    (tmp_path / "closed").mkdir()
    listed = Path.iterdir

    def iterdir(path: Path) -> Iterator[Path]:
        if path.name == "closed":  # root may list every folder
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert f"{tmp_path / 'closed'}: cannot be read: Permission denied" in refused(capsys, str(tmp_path / "closed"))
    monkeypatch.undo()
    segment = next(one.rglob("*.log"))
    segment.unlink()
    os.mkfifo(segment)
    assert f"{segment}: not a file" in refused(capsys, str(one))


def test_the_command_prints_places_and_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = directory(tmp_path / "b1", out=committed() + batch(11, records(2), "none", sequence=10), states=decided())
    assert main.main(["audit", "--stopped", "--json", str(tmp_path / "found.json"), str(path)]) == 1
    told = capsys.readouterr().out
    assert "audit: invalid: hung-transaction" in told
    assert "out/0 offset 11" in told and "app" in told
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["verdict"] == "invalid"
    assert found["ids"][0]["commits"] == 1
    assert (
        main.main(["audit", "--stopped", "--quiet", str(directory(tmp_path / "b2", out=committed(), states=decided()))])
        == 0
    )
    assert capsys.readouterr().out == "audit: valid\n"
