"""The data that a report contains: a JSON document, compressed, of at most two megabytes in the page.

A run that is too large for it is embedded in part. What is left out is named in the page, with the command that shows
it: `onceproof serve` reads the run's folder.
"""

import base64
import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import plan
from onceproof.harness.record import payload
from onceproof.harness.record.history import Events
from onceproof.report import curves, facts, timeline, trace
from onceproof.report.facts import Fact
from onceproof.report.folder import Folder
from onceproof.report.timeline import FaultSpan, Json, Transaction, ms

BYTES_MAX = 2_000_000
ROWS_MAX = 400_000  # of records; more do not fit, however well they compress
_FACTS_MAX = 200_000


def of(events: Events, told: Sequence[Transaction], spans: Sequence[FaultSpan], folder: Path) -> str:
    """Return the data of a run for its report, as text.

    `told` and `spans` are the transactions and faults of these events. `folder` may lack tables, as after a run that
    ended early.
    """
    lanes = timeline.lanes(events, told)
    data: Json = {
        "length": ms(events[-1].at - events[0].at),
        "lanes": lanes,
        "transactions": timeline.columns(told, lanes),
        "faults": [{"id": each.id, "begin": ms(each.begin), "end": ms(each.end), "note": each.note} for each in spans],
        "ticks": list(timeline.ticks(events)),
        "curves": curves.of(events, told),
        "words": {"no_output": trace.NO_OUTPUT, "not_covered": trace.NOT_COVERED},
        "left_out": [],
    }
    parts = list(_of_tables(folder, events))
    whole: Json = dict(data)
    for _, part in parts:
        whole |= part or {}
    if all(part is not None for _, part in parts) and len(text := _packed(whole)) <= BYTES_MAX:
        return text
    for name, part in parts:
        if part is None or len(_packed({**data, **part})) > BYTES_MAX:
            data["left_out"].append(name)
        else:
            data |= part
    return _packed(data)


def _packed(data: Json) -> str:
    raw = json.dumps(data, separators=(",", ":"), ensure_ascii=True).encode()
    return base64.b64encode(gzip.compress(raw, 6, mtime=0)).decode()


def _of_tables(path: Path, events: Events) -> Iterator[tuple[str, Json | None]]:
    """Yield the parts of the data that come from the tables, the most useful first; none if there are no tables.

    A part is None if the run is so large that it would not fit in any case.
    """
    try:
        folder = Folder(path, events)
    except BadInput:
        return
    yield "the transactional ids", {"ids": _ids(folder)}
    rows = defaultdict(int, folder.facts["rows"])
    if rows["batches"] + rows["commits"] + len(folder.events) < _FACTS_MAX:
        told = facts.of(folder, observed=rows["outputs"] < ROWS_MAX)
        yield "the batches of the logs", {"facts": _by_place(told), "grouped": facts.without_cover(folder)}
    else:
        yield "the batches of the logs", None
    if max(rows["outputs"], rows["inputs"]) < ROWS_MAX:
        yield "the single records", {"sent": _sent(folder), "outputs": _outputs(folder), "found": _found(folder)}
    else:
        yield "the single records", None


def _ids(folder: Folder) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, says in facts.ids_of(folder):
        found.setdefault(name, []).append(says)
    return found


def _by_place(told: Iterable[Fact]) -> dict[str, list[list[object]]]:
    """Return the facts by `topic/partition`, each as first, last, witness, text, and milliseconds or None."""
    found: dict[str, list[list[object]]] = {}
    for fact in told:
        at = None if fact.at is None else ms(fact.at)
        row = [fact.first, fact.last, fact.witness, fact.says, at]
        found.setdefault(f"{fact.topic}/{fact.partition}", []).append(row)
    return found


def _sent(folder: Folder) -> Json:
    """Return the generator's ledger as columns; `key` is an index of `keys`, or None if the key is not known."""
    rows = _table(folder, "ledger/sent-*.parquet", ["number", "partition", "offset", "acknowledged", "grouping"])
    names = _keys(folder)
    hashes = pc.unique(rows["grouping"]).to_pylist()
    keys = {each: index for index, each in enumerate(each for each in hashes if each in names)}
    return {
        "number": rows["number"].to_pylist(),
        "partition": rows["partition"].to_pylist(),
        "offset": rows["offset"].to_pylist(),
        "acknowledged": [int(each) for each in rows["acknowledged"].to_pylist()],
        "key": [keys.get(each) for each in rows["grouping"].to_pylist()],
        "keys": [names[each] for each in keys],
    }


def _keys(folder: Folder) -> dict[int, str]:
    """Return the keys of the inputs by their hashes, as far as the run's folder tells them."""
    found = [f"k{index}" for index in range(plan.read(folder.path / "plan.json").scenario.workload.keys)]
    if any(folder.path.glob("ledger/load-*.parquet")):
        rows = _table(folder, "ledger/load-*.parquet", ["key"])
        found = [key.decode(errors="replace") for key in pc.unique(rows["key"]).to_pylist() if key is not None]
    return {payload.key_hash(key.encode()): key for key in found}


def _outputs(folder: Folder) -> Json:
    """Return the outputs as columns.

    `place` and `made` are indices of `places`, such as "output/3", and `makers`, the transactions of the outputs. Rows
    of tables have no offset, and their place is the name of the table.
    """
    rows = folder.rows("tables/outputs.parquet", None, ("topic", "partition", "offset"))
    places, makers = dict[str, int](), dict[str, int]()
    of_table = [row["topic"] in folder.workload.tables for row in rows]
    named = [
        row["topic"] if table else f"{row['topic']}/{row['partition']}"
        for row, table in zip(rows, of_table, strict=True)
    ]
    return {
        "number": [row["number"] for row in rows],
        "place": [places.setdefault(name, len(places)) for name in named],
        "offset": [None if table else row["offset"] for row, table in zip(rows, of_table, strict=True)],
        "made": [makers.setdefault(trace.made_by(row), len(makers)) for row in rows],
        "places": list(places),
        "makers": list(makers),
    }


def _found(folder: Folder) -> list[Json]:
    """Return the samples of the findings, by the input that each is about."""
    return [
        {"says": f"{finding.cls}: {finding.says}", "number": sample.get("number"), "place": place}
        for finding in folder.findings
        for sample in finding.samples
        for place in [trace.input_place(folder, sample)]
    ]


def _table(folder: Folder, pattern: str, names: Sequence[str]) -> pa.Table:
    paths = [str(each) for each in sorted(folder.path.glob(pattern))]
    return ds.dataset(paths, format="parquet").to_table(columns=list(names))
