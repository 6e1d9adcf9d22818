"""Reads the JSON files of a run folder and refuses those of another schema version."""

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from onceproof.harness.base import files
from onceproof.harness.base.errors import BadInput

_BYTES_MAX = 64_000_000
T = TypeVar("T")


def read(path: Path, *, schema_version: int, missing: str) -> dict[str, Any]:
    """Read a JSON object whose `schema_version` is the given one.

    Raises BadInput when the file is missing, unreadable, not a JSON object or of another schema version; `missing`
    completes the message for a missing file.
    """
    try:
        raw = json.loads(files.text_of(path, bytes_max=_BYTES_MAX))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; {missing}") from None
    except (ValueError, RecursionError) as error:  # invalid JSON, or too deeply nested
        raise BadInput(f"{path}: not JSON: {error}") from None
    if not isinstance(raw, dict) or raw.get("schema_version") != schema_version:
        raise BadInput(f"{path}: schema_version: allowed: {schema_version}")
    return raw


def parse(path: Path, raw: object, model: TypeAdapter[T]) -> T:
    """Return a document, or a part of it, as its model. Raises BadInput with the file `path`, the key and the problem.

    Nothing is converted: `"1"` is not a number.
    """
    try:
        return model.validate_json(json.dumps(raw), strict=True)  # JSON has no tuples; a list is read as one
    except ValidationError as error:
        raise BadInput(f"{path}: {_first(error)}") from None
    except RecursionError:
        raise BadInput(f"{path}: too deeply nested") from None


def read_list(path: Path, model: TypeAdapter[list[T]], *, what: str) -> list[T]:
    """Read a JSON list of models; `what` says what is in it. Raises BadInput with the file, the key and the problem."""
    try:
        return model.validate_json(files.text_of(path, bytes_max=_BYTES_MAX), strict=True)
    except FileNotFoundError:
        problem = "no such file"
    except ValidationError as error:
        problem = _first(error)
    except BadInput as error:
        problem = str(error).removeprefix(f"{path}: ")
    raise BadInput(f"{path}: this is not a file of {what}: {problem}")


def _first(error: ValidationError) -> str:
    """Return the first of pydantic's errors as `key: problem`."""
    first = error.errors(include_url=False)[0]
    key = ".".join(map(str, first["loc"])) or "the document"
    return f"{key}: {first['msg'][:1].lower()}{first['msg'][1:]}"
