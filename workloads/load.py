"""The inputs of a run: key, value and headers of each, by its number.

    load(config).record(17)    → Record(key=b"k3", value=b'{"number":17,"key":"k3","amount":812,"text":"…"}')

Workloads with a name read payloads (`harness/record/payload.py`). An application with tables `[outputs]` reads JSON, or
what its scenario names: a function, or the records of a file. Each of its inputs has its number in a header.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow.parquet as pq

from onceproof.harness.base import foreign
from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import registry
from onceproof.harness.model.contract import NUMBER
from onceproof.harness.record import payload

_AMOUNTS = 1_000
Headers = Sequence[tuple[str, bytes]]


class Record(NamedTuple):
    """The content of an input."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Load(Protocol):
    """The inputs of a run. `records_max` is how many there are at most; None if there is no end."""

    records_max: int | None

    def record(self, number: int) -> Record:
        """Return the input with this number, from 0, which is the same each time."""
        ...


def load(config: Mapping[str, Any]) -> Load:
    """Return the load of a generator's configuration. Raises BadInput when its function or file cannot be used."""
    what = config.get("load", "")
    if what in ("", "json"):
        keys = payload.Keys(config["seed"], config["keys"], config["key_skew"])
        return (_Json if what else _Payload)(config["seed"], keys, config["record_bytes"])
    return _OfFunction(what, config["seed"]) if ".py:" in what else _OfFile(what)


class _Payload:
    """The payload of onceproof's own workloads."""

    records_max: int | None = None

    def __init__(self, seed: int, keys: payload.Keys, record_bytes: int) -> None:
        self._seed, self._keys, self._bytes = seed, keys, record_bytes

    def record(self, number: int) -> Record:
        return Record(self._keys.key(number), payload.value(self._seed, number, self._bytes))


class _Json(_Payload):
    """JSON objects with number, key, amount and a text that fills them up to their size."""

    def record(self, number: int) -> Record:
        key = self._keys.key(number)
        text = f"{payload.digest(key, str(self._seed + number).encode()):x}"
        fields = {"number": number, "key": key.decode(), "amount": amount(number), "text": ""}
        bare = json.dumps(fields, separators=(",", ":"))
        missing = max(1, self._bytes - len(bare))
        filled = (text * (missing // len(text) + 1))[:missing]
        return Record(key, f'{bare[:-2]}{filled}"}}'.encode(), _numbered(number))


def amount(number: int) -> int:
    """Return the amount in the JSON of an input: an integer from 0 to 999."""
    return payload.digest(None, str(number).encode()) % _AMOUNTS


def _numbered(number: int, headers: Headers = ()) -> Headers:
    return [*headers, (NUMBER, str(number).encode())]


class _OfFunction:
    """What a function of a Python file returns."""

    records_max: int | None = None

    def __init__(self, named: str, seed: int) -> None:
        self._named, self._seed = named, seed
        self._make: Callable[[int, random.Random], Any] = registry.get("load", named)
        self.record(0)

    def record(self, number: int) -> Record:
        dice = random.Random(f"{self._seed}:{number}")
        found = foreign.call(f"load.value: {self._named}: input {number}", lambda: self._make(number, dice))
        parts = found if isinstance(found, tuple) else ()
        headers = parts[2] if len(parts) == 3 else ()
        if len(parts) not in (2, 3) or not all(isinstance(each, bytes | str | None) for each in parts[:2]):
            expected = "key and value (bytes, text or None), and optionally a list of headers"
            raise BadInput(f"load.value: {self._named}: expected {expected}; got {foreign.shown(found)}")
        return Record(_binary(parts[0]), _binary(parts[1]), _numbered(number, list(headers)))


class _OfFile:
    """The records of a JSONL or Parquet file, in its order."""

    def __init__(self, path: str) -> None:
        try:
            rows = pq.read_table(path).to_pylist() if path.endswith(".parquet") else list(_lines(Path(path)))
        except (OSError, ValueError) as error:
            raise BadInput(f"load.value: {path}: cannot be read: {error}") from None
        if not rows or any(not isinstance(each, dict) or not {"key", "value"} <= each.keys() for each in rows):
            raise BadInput(f"load.value: {path}: allowed: records with key and value")
        self._rows = [(_binary(each["key"]), _binary(each["value"])) for each in rows]
        self.records_max: int | None = len(self._rows)

    def record(self, number: int) -> Record:
        return Record(*self._rows[number], _numbered(number))


def _lines(path: Path) -> Any:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def _binary(part: Any) -> bytes | None:
    """Return a key or value as bytes: text as UTF-8, an object as JSON."""
    if part is None or isinstance(part, bytes):
        return part
    return (part if isinstance(part, str) else json.dumps(part, separators=(",", ":"))).encode()
