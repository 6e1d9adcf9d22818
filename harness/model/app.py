"""The table `[app]` of a scenario: an application that runs in place of onceproof's own workers.

    [app]
    command = ["{python}", "copier.py"]
    [app.env]
    BOOTSTRAP = "{bootstrap}"
    GROUP = "{group}"
    TRANSACTIONAL_ID = "{transactional_id}"
    INPUT = "{topic:input}"
    OUTPUT = "{topic:output}"

The workload of the scenario then says what the application must do, and not how: its topics, the expected outputs of
each input, and what it claims. `workers` is the number of instances. The application is a black box: what its
transactions were follows from its requests and from the log.
"""

import re
import sys
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, model_validator

from onceproof.harness.model.names import Names
from onceproof.harness.model.spec import Strict

_PLACE = re.compile(r"\{([^{}]*)\}")
_PLAIN = ("bootstrap", "group", "instance", "prefix", "python", "transactional_id")
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Word = Annotated[str, Field(min_length=1, max_length=4_000, pattern=r"^[^\x00]*$")]


class AppSpec(Strict):
    """The table `[app]`.

    - `command`: the program and its arguments; a program without `/` is looked for on PATH, and the working folder is
      that of the `onceproof` command.
    - `env`: environment variables, in addition to those of the `onceproof` command. Values and arguments may contain
      `{bootstrap}`, `{group}`, `{topic:input}` and so on for each topic of the workload, `{instance}` (from 0),
      `{transactional_id}` (one for each instance, kept over its restarts), `{prefix}`, with which names of the
      application's own must begin, and `{python}`, the interpreter that runs the `onceproof` command.
    - `stop_s`: the time in seconds that an instance has to end after SIGTERM; then it is killed.
    """

    command: Annotated[tuple[Word, ...], Field(strict=False, min_length=1, max_length=100)]
    env: dict[Variable, Annotated[str, Field(max_length=4_000)]] = Field(default={})
    stop_s: Annotated[float, Field(gt=0, le=120)] = 20.0

    @model_validator(mode="after")
    def _known(self) -> "AppSpec":
        for text in (*self.command, *self.env.values()):
            for name in _PLACE.findall(text):
                if name not in _PLAIN and not name.startswith("topic:"):
                    allowed = ", ".join(f"{{{each}}}" for each in (*_PLAIN, "topic:NAME"))
                    raise ValueError(f"{{{name}}}: allowed: {allowed}")
        return self

    def unknown_topic(self, topics: tuple[str, ...]) -> str:
        """Return the first topic that is named here and that the workload does not have; empty if there is none."""
        named = [name for text in (*self.command, *self.env.values()) for name in _PLACE.findall(text)]
        wrong = (name for name in named if name.startswith("topic:") and name[6:] not in ("input", *topics))
        return next((name.removeprefix("topic:") for name in wrong), "")

    def filled(self, names: Names, instance: int, bootstrap: str) -> tuple[list[str], Mapping[str, str]]:
        """Return command and environment of an instance."""
        values = {
            "bootstrap": bootstrap,
            "group": names.group,
            "instance": str(instance),
            "prefix": names.prefix,
            "python": sys.executable,
            "transactional_id": names.transactional_id(instance),
            **{f"topic:{role}": topic for role, topic in names.topics.items()},
        }

        def fill(text: str) -> str:
            return _PLACE.sub(lambda found: values[found[1]], text)

        return [fill(each) for each in self.command], {name: fill(each) for name, each in self.env.items()}
