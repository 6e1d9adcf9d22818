"""Writes settings as a Java properties file, from which java.util.Properties reads each key and value as it was."""

from collections.abc import Mapping

_ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", **{each: f"\\{each}" for each in " =:#!"}}


def properties(settings: Mapping[str, str | int | float | bool]) -> str:
    """Return the lines of a properties file, sorted by key. `true` and `false` are written as Kafka reads them."""
    return "".join(f"{_written(key)}={_written(_text(value))}\n" for key, value in sorted(settings.items()))


def _text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _written(text: str) -> str:
    """Return a key or value with escapes for what has a meaning in such a file, and for what is not ASCII."""
    units = text.encode("utf-16-be", "surrogatepass")
    chars = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(_ESCAPED.get(chr(each)) or (chr(each) if 0x20 < each < 0x7F else f"\\u{each:04x}") for each in chars)
