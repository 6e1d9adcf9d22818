r"""Show settings of Kafka's clients and brokers, and texts that may quote them, without secrets.

    shown({"linger.ms": 5, "sasl.password": "hush"})             {"linger.ms": 5, "sasl.password": "***"}
    Redaction({"sasl.password": "hush"}).text("refused: hush")   "refused: ***"

Names are always shown. A value is shown only if `harmless-settings.txt` lists its name: the settings of Kafka 3.9 and
4.3 and of librdkafka 2.16 whose values are numbers, switches or one of a fixed set of words, and a few others that were
chosen by hand, such as `client.id`. Any other value may be a secret, also that of a setting that nobody knows.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

HIDDEN = "***"
_LIST = Path(__file__).with_name("harmless-settings.txt")
_SHORT = 4  # a shorter value is replaced only where it is a whole word
_LINE = 8  # a line of a value, such as one of a key in PEM format, is replaced from this length on
# username="me" password="hush" of a JAAS configuration, and user:hush@ of an address
_PARTS = re.compile(r"""=\s*"([^"]+)"|=\s*'([^']+)'|=\s*([^\s;,"']+)|://[^/\s:@]*:([^/\s@]+)@""")

Value = str | int | float | bool


@cache
def harmless() -> frozenset[str]:
    """Return the names of the settings whose values are shown."""
    return frozenset(_LIST.read_text(encoding="utf-8").split())


def shown(settings: Mapping[str, Value]) -> dict[str, Value]:
    """Return settings with each value that may be a secret replaced by `***`."""
    return {name: value if name in harmless() else HIDDEN for name, value in settings.items()}


class Redaction:
    """Replaces the hidden values of some settings in texts, such as messages of a client that quote them.

    A value is also replaced where it is written with escapes, and so are its lines and the values inside it.
    """

    def __init__(self, *settings: Mapping[str, Value]) -> None:
        values = {
            part
            for each in settings
            for name, value in each.items()
            if name not in harmless() and not isinstance(value, bool)
            for part in _forms(str(value))
        }
        longest_first = sorted(values, key=lambda value: (-len(value), value))
        patterns = (re.escape(each) if len(each) >= _SHORT else rf"\b{re.escape(each)}\b" for each in longest_first)
        self._pattern = re.compile("|".join(patterns)) if values else None

    def text(self, text: str) -> str:
        """Return a text with each hidden value replaced by `***`."""
        return self._pattern.sub(HIDDEN, text) if self._pattern else text

    def data(self, data: bytes) -> bytes:
        """Return the bytes of a text with each hidden value replaced by `***`; other bytes are not changed."""
        return self.text(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def _forms(value: str) -> Iterator[str]:
    parts = {value, *(part for found in _PARTS.findall(value) for part in found)}
    parts |= {line.strip() for line in value.splitlines() if len(line.strip()) >= _LINE}
    for part in parts - {"", HIDDEN}:
        yield part
        yield repr(part)[1:-1]
        yield part.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
