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

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from onceproof.harness.artifacts import builds, jars
from onceproof.harness.base.errors import BadInput
from onceproof.harness.model import progress
from onceproof.harness.model.names import Names
from onceproof.harness.model.spec import Strict
from onceproof.harness.model.workload import Claim

_PLACE = re.compile(r"\{([^{}]*)\}")
_IMAGE = r"^[\w.-]+(:\d+)?(/[\w.-]+)*(:[\w.-]+)?(@sha256:[0-9a-f]{64})?$"
_PLAIN = (
    "bootstrap",
    "build",
    "classpath",
    "database",
    "group",
    "instance",
    "prefix",
    "python",
    "state",
    "transactional_id",
)
Position = Literal["in-transaction", "transactional", "group", "none"]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Artifact = Annotated[str, Field(pattern=r"^[\w.-]+:[\w.-]+:[\w.-]+$")]
Word = Annotated[str, Field(min_length=1, max_length=4_000, pattern=r"^[^\x00]*$")]


class JavaSpec(Strict):
    """The table `[app.java]` of a scenario: what `{classpath}` has. It is made ready before the run.

    - `jars`: artifacts of Maven Central with all that they depend on, each as `GROUP:NAME:VERSION`.
    - `sources`: Java files of one program, which are compiled for Java 17.
    """

    jars: Annotated[tuple[Artifact, ...], Field(strict=False, max_length=20)] = ()
    sources: Annotated[tuple[Word, ...], Field(strict=False, max_length=100)] = ()

    def classpath(self, folder: Path) -> str:
        """Return the class path; what is missing is downloaded and compiled. `folder` is that of the sources.

        Raises BadInput when a file or an artifact does not exist, and HarnessError when the download fails or the files
        do not compile.
        """
        libraries = jars.artifacts(self.jars) if self.jars else None
        there = sorted(libraries.glob("*.jar")) if libraries else []
        found = [f"{libraries}/*"] if libraries else []
        if self.sources:
            files = [folder / each for each in self.sources]
            if missing := next((each for each in files if not each.is_file()), None):
                raise BadInput(f"app.java.sources: {missing}: no such file")
            found.append(str(jars.compiled("app", files, there)))
        return os.pathsep.join(found)


class AppSpec(Strict):
    """The table `[app]`.

    - `command`: the program and its arguments; a program without `/` is looked for on PATH. With `image` it is what
      the container runs (default: what the image says).
    - `image`: run each instance in a container of this image, which is pulled unless it is here or `build` makes it.
      The container has the network of this machine, the user of the `onceproof` command, and the folders `{state}`,
      `{build}` and `{classpath}` under the same paths.
    - `folder`: the working folder of command and build, and that of Java sources, relative to that of the `onceproof`
      command (default: the same).
    - `build`: a program and its arguments that are run once before a run, such as a compiler. The folder `{build}` is
      for what it makes; it is kept in the cache.
    - `env`: environment variables, in addition to those of the `onceproof` command. Values and arguments may contain
      `{bootstrap}`, `{group}`, `{topic:input}` and so on for each topic of the workload, `{table:NAME}` for a table of
      a database, `{database}`, the JDBC URL of `workload.database`, `{instance}` (from 0), `{transactional_id}` (one
      for each instance, kept over its restarts), `{prefix}`, with which names of the application's own must begin,
      `{state}` (a folder for each instance), `{build}`, `{classpath}` (see `java`), and `{python}`, the interpreter
      that runs the `onceproof` command.
    - `java`: the Java program and libraries in `{classpath}`.
    - `state`: whether the folder `{state}` is kept when an instance starts again, or is empty then.
    - `ready`: what shows that an instance may receive inputs: `group`, the group has assigned every partition; `log:
      REGEX`, it has printed a line that matches; or `tcp: PORT`, it accepts connections on 127.0.0.1, on that port plus
      its number.
    - `stop_s`: the time in seconds that an instance has to end after SIGTERM; then it is killed.
    - `transactional`: with `[outputs]`, whether it writes in transactions. What it has done then follows from the
      offsets that its group commits, and no fault can begin at a phase of a transaction.
    - `assignment`: with `[outputs]`, whether the group assigns partitions to its instances (`group`), or they choose
      partitions by themselves and the group only keeps their offsets (`fixed`). With `fixed`, `ready` must say
      something other than `group`.
    - `position`: with `[outputs]`, what it claims of the offsets that its group commits: each is in the transaction of
      the outputs that were made from the same input (`in-transaction`); or in some transaction, as of an application
      with several steps (`transactional`); or anywhere (`group`). `none` is for one that keeps its place in its input
      elsewhere, such as in a checkpoint; then `[done]` says when it has processed its inputs.
    """

    command: Annotated[tuple[Word, ...], Field(strict=False, max_length=100)] = ()
    image: Annotated[str, Field(max_length=400, pattern=_IMAGE)] | None = None
    folder: Word = "."
    build: Annotated[tuple[Word, ...], Field(strict=False, max_length=100)] = ()
    env: dict[Variable, Annotated[str, Field(max_length=4_000)]] = Field(default={})
    java: JavaSpec | None = None
    state: Literal["kept", "wiped"] = "kept"
    ready: Annotated[str, Field(max_length=400)] = "group"
    stop_s: Annotated[float, Field(gt=0, le=120)] = 20.0
    transactional: bool = True
    assignment: Literal["group", "fixed"] = "group"
    position: Position = "in-transaction"

    @field_validator("ready")
    @classmethod
    def _ready(cls, text: str) -> str:
        progress.ready(text)
        return text

    @model_validator(mode="after")
    def _known(self) -> "AppSpec":
        if not self.command and self.image is None:
            raise ValueError("command: missing; allowed: a program and its arguments, or a key image in its place")
        for text in (*self.command, *self.env.values()):
            for name in _PLACE.findall(text):
                if name not in _PLAIN and not name.startswith(("topic:", "table:")):
                    allowed = ", ".join(f"{{{each}}}" for each in (*_PLAIN, "table:NAME", "topic:NAME"))
                    raise ValueError(f"{{{name}}}: allowed: {allowed}")
                if name == "python" and self.image is not None:
                    raise ValueError("{python}: not with image; allowed: a program of the image")
                if name == "classpath" and self.java is None:
                    raise ValueError("{classpath}: allowed only with a table [app.java]")
                if name == "build" and not self.build:
                    raise ValueError("{build}: allowed only with a key build")
        return self

    @property
    def place(self) -> Path:
        """The working folder of an instance."""
        return Path(self.folder).absolute()

    @property
    def claim(self) -> Claim:
        """What the application promises, whatever it does."""
        return Claim(transactional=self.transactional, position=self.position if self.transactional else "group")

    def prepare(self) -> None:
        """Build and download what an instance needs. Raises BadInput, or HarnessError when a download fails."""
        if not self.place.is_dir():
            raise BadInput(f"app.folder: {self.folder:.200}: no such folder")
        if self.build:
            builds.built(self.build, self.place)
        if self.java is not None:
            self.java.classpath(self.place)

    @property
    def made(self) -> list[Path]:
        """The folders that `{build}` and `{classpath}` name."""
        parts = self.java.classpath(self.place).split(os.pathsep) if self.java else []
        built = [builds.folder(self.build, self.place)] if self.build else []
        return [*built, *(Path(each.removesuffix("/*")) for each in parts)]

    def names(self, place: str) -> bool:
        """Return whether command or environment has a place such as `{database}`."""
        return any(place in text for text in (*self.command, *self.env.values()))

    def unknown(self, topics: Sequence[str], tables: Sequence[str]) -> str:
        """Return the first topic or table that is named here and that the workload does not have, as `topic:orders`.

        The result is empty if there is none.
        """
        named = [name for text in (*self.command, *self.env.values()) for name in _PLACE.findall(text)]
        known = {"topic:input", *(f"topic:{each}" for each in topics), *(f"table:{each}" for each in tables)}
        return next((name for name in named if ":" in name and name not in known), "")

    def filled(
        self, names: Names, instance: int, *, bootstrap: str, database: str, state: Path
    ) -> tuple[list[str], Mapping[str, str]]:
        """Return command and environment of an instance. `database` is a JDBC URL, and `state` its folder."""
        values = {
            "bootstrap": bootstrap,
            "build": str(builds.folder(self.build, self.place)) if self.build else "",
            "classpath": self.java.classpath(self.place) if self.java else "",
            "database": database,
            "group": names.group,
            "instance": str(instance),
            "prefix": names.prefix,
            "python": sys.executable,
            "state": str(state),
            "transactional_id": names.transactional_id(instance),
            **{f"topic:{role}": topic for role, topic in names.topics.items()},
            **{f"table:{role}": names.table(role) for role in names.tables},
        }

        def fill(text: str) -> str:
            return _PLACE.sub(lambda found: values[found[1]], text)

        return [fill(each) for each in self.command], {name: fill(each) for name, each in self.env.items()}
