"""Writes the declaration of a run's workload into the run folder, and reads it: workload.json.

A verdict needs no code of the workload. So a folder can be judged without the file that defines the workload, and no
Python file that a folder names is ever loaded.
"""

import json
from dataclasses import asdict, fields
from pathlib import Path

from pydantic import TypeAdapter

from onceproof.harness.model.workload import Declaration
from onceproof.harness.record import documents

SCHEMA_VERSION = 1
FILE = "workload.json"
_DECLARATION = TypeAdapter(Declaration)


def write(workload: Declaration, folder: Path) -> None:
    """Write workload.json into a run folder; the code of the workload stays out."""
    declared = Declaration(**{each.name: getattr(workload, each.name) for each in fields(Declaration)})
    document = {"schema_version": SCHEMA_VERSION, **asdict(declared)}
    (folder / FILE).write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


def read(folder: Path) -> Declaration:
    """Read the workload.json of a run folder. Raises BadInput with the file and the key when it is damaged."""
    path = folder / FILE
    raw = documents.read(path, schema_version=SCHEMA_VERSION, missing="a run folder has a workload.json")
    return documents.parse(path, {key: each for key, each in raw.items() if key != "schema_version"}, _DECLARATION)
