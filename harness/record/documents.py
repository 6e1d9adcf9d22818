"""Reading the JSON files of a run's folder: there, whole, an object, and of the schema that this version knows."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onceproof.harness.base.errors import BadInput


def read(path: Path, *, schema_version: int, missing: str) -> dict[str, Any]:
    """The file's object. Raises BadInput in one line otherwise; `missing` says what its absence means."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; {missing}") from None
    except ValueError as error:  # bad JSON, or bytes that are no text
        raise BadInput(f"{path}: not JSON: {error}") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    if not isinstance(raw, dict) or raw.get("schema_version") != schema_version:
        raise BadInput(f"{path}: schema_version: allowed: {schema_version}")
    return raw


@contextmanager
def as_told(path: Path) -> Iterator[None]:
    """Whoever takes a document apart inside gets BadInput where something is missing in it, or of another kind."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        says = f"{error} is missing" if isinstance(error, KeyError) else error
        raise BadInput(f"{path}: not as onceproof writes it: {says}") from None
