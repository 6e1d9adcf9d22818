"""Reading the JSON files of a run's folder: there, whole, an object, and of the schema that this version knows."""

import json
from pathlib import Path
from typing import Any

from harness.errors import BadInput


def read(path: Path, *, schema_version: int, missing: str) -> dict[str, Any]:
    """The file's object. Raises BadInput in one line otherwise; `missing` says what its absence means."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; {missing}") from None
    except ValueError as error:  # bad JSON, or bytes that are no text
        raise BadInput(f"{path}: not JSON: {error}") from None
    if not isinstance(raw, dict) or raw.get("schema_version") != schema_version:
        raise BadInput(f"{path}: schema_version: allowed: {schema_version}")
    return raw
