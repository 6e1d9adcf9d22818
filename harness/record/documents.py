"""Reads the JSON files of a run folder and refuses those of another schema version."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onceproof.harness.base.errors import BadInput


def read(path: Path, *, schema_version: int, missing: str) -> dict[str, Any]:
    """Read a JSON object whose `schema_version` is the given one.

    Raises BadInput when the file is missing, unreadable, not a JSON object or of another schema version; `missing`
    completes the message for a missing file.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; {missing}") from None
    except ValueError as error:  # invalid JSON, or bytes that are not UTF-8
        raise BadInput(f"{path}: not JSON: {error}") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    if not isinstance(raw, dict) or raw.get("schema_version") != schema_version:
        raise BadInput(f"{path}: schema_version: allowed: {schema_version}")
    return raw


@contextmanager
def as_told(path: Path) -> Iterator[None]:
    """Turn the errors of a block that takes the document `path` apart into BadInput."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        says = f"{error} is missing" if isinstance(error, KeyError) else error
        raise BadInput(f"{path}: not in the format that onceproof writes: {says}") from None
