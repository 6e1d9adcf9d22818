"""Copy run folders to and from storage that a Spark cluster shares, through Hadoop's file systems.

    storage = Storage("local[2]", "s3a://bucket/runs/copy-1")
    storage.put(folder)                              the whole run folder, in place of an earlier copy
    storage.fetch(folder)                            the other way round
    storage.check_unchanged()                        since then
    storage.put_files(folder, ["results.json"])

Which schemes there are (`hdfs`, `s3a`, `file`, …), their endpoints and their keys is a matter of `spark-defaults.conf`,
as for any other driver.
"""

import re
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError

from onceproof.harness.base.errors import BadInput, HarnessError, in_a_line
from onceproof.verifiers.evidence import spark

_ANSWER_DEADLINE_S = 60.0
_BYTES_PER_S = 1_000_000  # the slowest copy that is waited for
_FILE_S = 0.5  # an object store takes some tenths of a second for each file
_S3A = "; `spark.jars.packages` in spark-defaults.conf adds org.apache.hadoop:hadoop-aws:{version}"
_SAID_MAX = 300
_RUN = "plan.json"  # what tells a run folder

Result = TypeVar("Result")


class Storage:
    """A folder by its URI, for a session with this master, which may be started again meanwhile.

    Every method raises HarnessError, with the URI and the reason in one line, when the storage does not answer within a
    minute (a copy: and a second for each megabyte, and half a second for each file), or refuses what is asked of it.
    """

    def __init__(self, master: str, uri: str) -> None:
        self.uri, self._master = uri.rstrip("/"), master
        self._known: Mapping[str, tuple[int, int]] = {}

    def fetch(self, folder: Path) -> None:
        """Copy the folder to a path that does not exist yet.

        Raises BadInput when there is no such folder, or when it has no `manifest.json`.
        """
        if not self._answer("an answer", lambda: self._files.exists(self._path("manifest.json"))):
            raise BadInput(f"{self.uri}: no folder with a manifest.json; allowed: the URI of a run folder")
        self._known = self._listed(self._path())
        sizes = {name: size for name, (size, _) in self._known.items()}
        source, target = self._path(), self._local(folder)
        self._answer("its files", lambda: self._files.copyToLocalFile(False, source, target, True), sizes)
        if _sizes(folder) != sizes:
            raise HarnessError(f"{self.uri}: its files are not those that were copied")

    def put(self, folder: Path) -> None:
        """Copy a run folder to the URI, in place of an earlier copy, once all of its files are there.

        Raises BadInput when something else is there, or `folder` itself.
        """
        sizes, part = _sizes(folder), self._hadoop.fs.Path(f"{self.uri}.part-{secrets.token_hex(4)}")
        source, target = self._local(folder), self._path()

        def other() -> str:
            if self._files.exists(target) and not self._files.exists(self._path(_RUN)):
                return f"what is there is no run folder, since it has no {_RUN}, and is not replaced"
            self._files.mkdirs(part)
            beside = (folder.parent / part.getName()).exists()  # this file system may be mounted here
            self._files.delete(part, True)
            return "the run folder itself; allowed: another folder" if beside else ""

        if problem := self._answer("an answer", other):
            raise BadInput(f"{self.uri}: {problem}")

        def copy() -> None:
            self._files.copyFromLocalFile(False, True, source, part)

        try:
            self._answer("a copy of the run folder to be written", copy, sizes)
            if {name: size for name, (size, _) in self._listed(part).items()} != sizes:
                raise HarnessError(f"{self.uri}: the files of the copy are not those of {folder}")

            def move() -> bool:
                self._files.delete(target, True)
                return bool(not self._files.exists(target) and self._files.rename(part, target))

            if not self._answer("the copy to be renamed", move, sizes):
                raise HarnessError(f"{self.uri}: an earlier copy cannot be replaced")
        except BaseException:
            self._drop(part)
            raise
        self._known = self._listed(target)

    def put_files(self, folder: Path, names: Sequence[str]) -> None:
        """Copy files of a folder, by their names in it, in place of those that are there."""

        def copy() -> None:
            for name in names:
                part = self._path(f"{name}.part")
                self._files.copyFromLocalFile(False, True, self._local(folder / name), part)
                self._files.delete(self._path(name), False)
                if not self._files.rename(part, self._path(name)):
                    raise OSError(f"{name} cannot be written")

        sizes = _sizes(folder)
        self._answer(f"{', '.join(names)} to be written", copy, {name: sizes[name] for name in names})

    def check_unchanged(self) -> None:
        """Raise HarnessError when files were added, removed or written again since the folder was copied.

        What Spark has read there is then not what was compared with the manifest.
        """
        if self._listed(self._path()) != self._known:
            raise HarnessError(f"{self.uri}: its files were changed while the run was judged")

    @property
    def _hadoop(self) -> Any:
        java: Any = spark.session(self._master)
        return java._jvm.org.apache.hadoop

    @property
    def _files(self) -> Any:
        java: Any = spark.session(self._master)
        return self._path().getFileSystem(java._jsc.hadoopConfiguration())

    def _listed(self, folder: Any) -> dict[str, tuple[int, int]]:
        """Return the size and the time of the last change of each file, by its name in the folder."""

        def listed() -> dict[str, tuple[int, int]]:
            found = {}
            root = self._files.makeQualified(folder).toUri().getPath()
            every = self._files.listFiles(folder, True)
            while every.hasNext():
                each = every.next()
                name = each.getPath().toUri().getPath()[len(root) + 1 :]
                found[str(name)] = int(each.getLen()), int(each.getModificationTime())
            return found

        return self._answer("a list of its files", listed)

    def _drop(self, folder: Any) -> None:
        try:
            self._answer("an answer", lambda: self._files.delete(folder, True))
        except HarnessError:
            return  # what the storage refused before is what is told

    def _path(self, name: str = "") -> Any:
        return self._hadoop.fs.Path(f"{self.uri}/{name}" if name else self.uri)

    def _local(self, path: Path) -> Any:
        return self._hadoop.fs.Path(f"file://{path.absolute()}")

    def _answer(self, what: str, work: Callable[[], Result], sizes: dict[str, int] | None = None) -> Result:
        """Return the result of `work`. Hadoop's clients may try again for many minutes, which nobody waits for."""
        spark.session(self._master)  # it has a deadline of its own
        copied = sizes or {}
        limit_s = _ANSWER_DEADLINE_S + sum(copied.values()) / _BYTES_PER_S + _FILE_S * len(copied)
        done = Future[Result]()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=run, name="asks the storage", daemon=True).start()
        try:
            return done.result(limit_s)
        except TimeoutError:
            raise HarnessError(f"{self.uri}: waited {limit_s:.0f} s for {what}") from None
        except (Py4JError, OSError) as error:
            raise HarnessError(f"{self.uri}: {self._said(error)}") from None

    def _said(self, error: BaseException) -> str:
        """Return the first line of a message, without what the server adds to it: a stack trace, or a link."""
        if not isinstance(error, Py4JJavaError):
            return in_a_line(error)
        java: Any = error
        told = str(java.java_exception.toString())
        line = re.sub(r"^(?:[\w$]+\.)+", "", told.partition("\n")[0].partition("; For more details")[0])[:_SAID_MAX]
        if "S3AFileSystem not found" not in line:
            return line
        return line + _S3A.format(version=self._hadoop.util.VersionInfo.getVersion())


def _sizes(folder: Path) -> dict[str, int]:
    """Return the size of each file, by its name in a folder of this machine.

    Hadoop's file system of a machine keeps checksums in hidden files, and does not copy them.
    """
    found = (path for path in folder.rglob("*") if path.is_file() and not path.match(".*.crc"))
    return {str(path.relative_to(folder)): path.stat().st_size for path in found}
