"""A small good run of an application with a contract: an upper-casing copy of JSON, judged at each level.

run = DescribedRun(level=2)
run.contents[7]["value"] = b'{"number":7,"text":"wrong"}'
run.write(folder)
"""

import json
from typing import Any

from onceproof.harness.record import payload
from tests.rundata import Row
from tests.unit.good_run import GoodRun

APP = {"command": ["true"]}
MODEL = {"sql": "SELECT number, upper(text) AS text FROM inputs"}
TOTALS = {"sql": "SELECT key, sum(amount) AS total FROM inputs GROUP BY key", "compare": "final-per-key"}
STEPS = {
    "sql": "SELECT number, key, sum(amount) OVER (PARTITION BY key ORDER BY number) AS total FROM inputs",
    "compare": "steps",
}


class DescribedRun(GoodRun):
    """`contents` has key and value of each output, by its number. At level 0, outputs name no input."""

    def __init__(self, level: int = 2, **tables: Any) -> None:
        super().__init__()
        self.contents: dict[int, Row] = {}
        totals: dict[str, int] = {}
        for told, row in zip(self.ledger, self.inputs, strict=True):
            number = told["number"]
            # Numbers of one partition have the same parity, so that each key is in one partition.
            key = f"k{number % 4}"
            totals[key] = totals.get(key, 0) + number
            value = json.dumps({"number": number, "key": key, "amount": number, "text": f"text {number}"}).encode()
            told["digest"] = row["digest"] = payload.digest(key.encode(), value)
            told["grouping"] = row["grouping"] = payload.key_hash(key.encode())
            self.load.append({"number": number, "key": key.encode(), "value": value})
            output = {"number": number, "text": f"TEXT {number}", "total": totals[key]}
            self.contents[number] = {"key": key.encode(), "value": json.dumps(output).encode()}
        for row in self.outputs:
            row.update(digest=0, content=row["digest"], of=row["number"])
            if level == 0:
                row.update(number=None, source_partition=None, source_offset=None)
        workload = {"partitions": 2}
        self.raw = {"name": "good", "about": "a good run", "app": APP, "workload": workload, "outputs": {"output": {}}}
        if level:
            self.raw["outputs"]["output"] = {"input": "json: $.number"}
        if level == 2:
            self.raw["model"] = MODEL
        self.raw |= tables

    def content_of(self, row: Row) -> Row:
        return self.contents.get(row["of"], {"key": None, "value": None}) if "model" in self.raw else {}
