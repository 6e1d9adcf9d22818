"""Check that each batch whose acknowledgement a client got is in the log, as it was sent.

    lost    a batch was acknowledged with acks=all, and the log has none with its producer id, epoch and sequence
            number, or another one

    worker 0 sends sequence 40 of producer 4000 (CRC 17), and is told: offset 812
      output/3: [sequence 40, CRC 17] at 812                      right
      output/3: [sequence 40, CRC 99] at 790                      lost: the broker took it for a repetition of that one

The brokers keep the last five batches of a producer and acknowledge a repetition without appending it (KIP-98). A
client that gives a batch up and uses its sequence number again for another one is told that this one is in the log,
where it is not (franz-go 1217). Nothing that outputs say of themselves is used here, so an application can be judged by
it of which nothing else is known.

A broker may write a batch anew. Where no batch of a partition has the CRC with which it was sent, none of it is judged.
If the brokers have a compression of their own, they write those batches anew that have another one, so a batch is lost
only if there is none with its sequence number. Batches of producers without an id are not judged.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from onceproof.harness.record.results import Finding
from onceproof.harness.record.tables import REQUESTS
from onceproof.verifiers import completeness
from onceproof.verifiers.evidence.check import LOG, Check, Judged
from onceproof.verifiers.evidence.check import REQUESTS as RECORDED
from onceproof.verifiers.evidence.findings import Sample, explained
from onceproof.verifiers.evidence.tables import Tables

CLAIM = "each acknowledged batch is in the log as it was sent"
_SAYS = "batches were acknowledged, and the log does not have them, or has others with their sequence numbers"
_PRODUCE, _ALL, _NONE = 0, -1, 0
_COMPRESSION, _OF_THE_PRODUCER = "compression.type", "producer"
Partition = tuple[str, int]
Key = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A batch that was sent and acknowledged: where, by whom, its CRC and records, and the offset that was returned."""

    place: Partition
    key: Key
    crc: int
    records: int
    offset: int
    worker: int


def acknowledged(rows: Iterable[Mapping[str, Any]]) -> Iterator[Sent]:
    """Yield the batches with a sequence number that were acknowledged with acks=all; `rows` are those of `requests`."""
    for row in rows:
        if row["api"] != _PRODUCE or row["response"] is None:
            continue
        asked, told = json.loads(row["request"]), json.loads(row["response"])
        if asked.get("acks", _ALL) != _ALL:
            continue
        offsets = {
            (topic.get("name", ""), each["index"]): each["baseOffset"]
            for topic in told.get("responses", ())
            for each in topic["partitionResponses"]
            if each["errorCode"] == _NONE
        }
        for batch in asked.get("batches", ()):
            place = batch.get("topic", ""), batch["partition"]
            if place in offsets and batch["producerId"] >= 0 and "crc" in batch:
                yield Sent(
                    place=place,
                    key=(batch["producerId"], batch["producerEpoch"], batch["baseSequence"]),
                    crc=batch["crc"],
                    records=batch["records"],
                    offset=offsets[place],
                    worker=row["worker"],
                )


def wrong(
    sent: Iterable[Sent], log: Mapping[Partition, Mapping[Key, int]], *, as_sent: bool = True
) -> Iterator[tuple[Sent, int | None]]:
    """Yield the batches that are not in the log as they were sent, with the CRC that is there.

    `log` has the CRC of each batch of the partitions that are judged, and `as_sent` is whether brokers keep batches as
    they are.
    """
    mine = [each for each in sent if each.place in log]
    kept = {each.place for each in mine if log[each.place].get(each.key) == each.crc}
    for each in mine:
        there = log[each.place].get(each.key)
        lost = each.place in kept and there != each.crc if as_sent else there is None
        if lost:
            yield each, there


def _log(tables: Tables) -> dict[Partition, dict[Key, int]]:
    """Return the batches of the leader of each partition that is complete and of which nothing was deleted."""
    whole = {
        (each["topic"], each["partition"]): each["leader"]
        for each in tables.pinned
        if not each["start"] and (tables.role(each["topic"]), each["partition"]) not in completeness.incomplete(tables)
    }
    found: dict[Partition, dict[Key, int]] = {place: {} for place in whole}
    columns = ["topic", "partition", "broker", "producer_id", "producer_epoch", "sequence", "control", "crc"]
    for row in pq.read_table(tables.folder / "tables" / "batches.parquet", columns=columns).to_pylist():
        place = row["topic"], row["partition"]
        if whole.get(place) == row["broker"] and row["control"] is None:
            found[place][row["producer_id"], row["producer_epoch"], row["sequence"]] = row["crc"]
    return found


def _judge(tables: Tables) -> Judged:
    path = tables.folder / "tables" / "requests.parquet"
    REQUESTS.check([path])
    sent = list(acknowledged(pq.read_table(path).to_pylist()))
    as_sent = tables.plan.scenario.cluster.settings.get(_COMPRESSION, _OF_THE_PRODUCER) == _OF_THE_PRODUCER
    differ = list(wrong(sent, _log(tables), as_sent=as_sent))
    samples = [_sample(each, there) for each, there in differ[: tables.samples_max]]
    findings = []
    if differ:
        shown = explained(tables, "lost", samples)
        findings = [Finding(cls="lost", count=len(differ), says=_SAYS, samples=shown)]
    return Judged(compared={"acknowledged batches": len(sent)}, findings=findings)


def _sample(sent: Sent, there: int | None) -> Sample:
    producer, epoch, sequence = sent.key
    return {
        "topic": sent.place[0],
        "partition": sent.place[1],
        "offset": sent.offset,
        "worker": sent.worker,
        "records": sent.records,
        "producer_id": producer,
        "producer_epoch": epoch,
        "sequence": sequence,
        "sent_crc": sent.crc,
        "crc_in_the_log": there,
    }


CHECK = Check(name="written", claim=CLAIM, run=_judge, needs=(LOG, RECORDED))
