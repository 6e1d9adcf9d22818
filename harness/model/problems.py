"""What is wrong with a scenario's keys, in one line each, without any value that may be a secret."""

from pydantic import BaseModel, ValidationError

from onceproof.harness.base.errors import suggestion
from onceproof.harness.base.redaction import HIDDEN


def first(error: ValidationError, model: type[BaseModel]) -> str:
    """Return the first of pydantic's errors as `key: problem`, with the allowed keys if a key is unknown."""
    found = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in found["loc"]) or "scenario"
    problem = found["msg"].removeprefix("Value error, ")
    if found["type"] == "extra_forbidden":
        allowed = _keys_at(model, found["loc"][:-1])
        return f"{key}: unknown key{suggestion(str(found['loc'][-1]), allowed)}; allowed: {', '.join(allowed)}"
    return f"{key}: {problem} (got {HIDDEN if _may_be_secret(found['loc']) else repr(found['input'])[:60]})"


def _may_be_secret(path: tuple[int | str, ...]) -> bool:
    """Return whether a value at this place may be a secret, as those of the settings of clients and brokers."""
    return path[:1] == ("client",) or path[:2] == ("cluster", "settings") or path == ("cluster",)


def _keys_at(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    for part in path:
        if part not in model.model_fields:  # a place in a list or a table, whose entries all have the same model
            continue
        annotation = model.model_fields[str(part)].annotation
        candidates = [annotation, *getattr(annotation, "__args__", ())]
        model = next(c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel))
    return sorted(model.model_fields)
