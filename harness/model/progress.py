"""When the instances of an application may receive inputs, and when they have processed them.

    [app]
    ready = "log: started in"      or "group", "tcp: 8080"

    [done]
    by = "quiet: 10s"              or "group", "sentinel"

By default its group shows both.
"""

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator

from onceproof.harness.model.spec import Strict

_READY = "group, log: REGEX, tcp: PORT"
_DONE = "group, sentinel, quiet: SECONDSs, from 1 to 600"
_QUIET = re.compile(r"quiet: (\d{1,3})s")
_PORT_MAX = 65_535


def ready(text: str) -> tuple[Literal["group", "log", "tcp"], str]:
    """Return how an instance shows that it is ready: `group`, a regular expression on its log, or a TCP port.

    Raises ValueError for any other text.
    """
    kind, _, rest = (part.strip() for part in text.partition(":"))
    if kind == "group" and not rest:
        return "group", ""
    if kind == "log" and rest:
        try:
            re.compile(rest)
        except re.error as error:
            raise ValueError(f"{text!r:.80}: not a regular expression: {error}; allowed: {_READY}") from None
        return "log", rest
    if kind == "tcp" and rest.isdecimal() and 0 < int(rest) <= _PORT_MAX:
        return "tcp", rest
    raise ValueError(f"{text!r:.80}: allowed: {_READY}")


class DoneSpec(Strict):
    """The table `[done]` of a scenario with `[outputs]`: what shows that every input has been processed.

    - `by`: `group`, the group has committed the offset after every input; `sentinel`, the last input of each partition
      has an output on every topic; or `quiet: 10s`, no output has been written for so many seconds.
    """

    by: Annotated[str, Field(max_length=20)] = "group"

    @field_validator("by")
    @classmethod
    def _known(cls, text: str) -> str:
        found = _QUIET.fullmatch(text)
        if text not in ("group", "sentinel") and not (found and 1 <= int(found[1]) <= 600):
            raise ValueError(f"allowed: {_DONE}")
        return text

    @property
    def quiet_s(self) -> float | None:
        """The seconds without an output after which all inputs are processed; None if something else shows it."""
        found = _QUIET.fullmatch(self.by)
        return float(found[1]) if found else None
