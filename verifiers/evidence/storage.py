"""Copy run folders to and from storage that a Spark cluster shares, through Hadoop's file systems.

    storage = Storage(spark, "s3a://bucket/runs/copy-1")
    storage.put(folder)                       the whole run folder; what was there is removed
    storage.fetch(folder)                     the other way round
    storage.put_files(folder, ["results.json"])

Which schemes there are (`hdfs`, `s3a`, `file`, …), their endpoints and their keys is a matter of `spark-defaults.conf`,
as for any other driver. A copy that was interrupted is never taken for whole: `manifest.json` has the size and the hash
of each file.
"""

import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from onceproof.harness.base.errors import BadInput, HarnessError

_ANSWER_DEADLINE_S = 60.0
_BYTES_PER_S = 1_000_000  # the slowest copy that is waited for
_S3A = "; `spark.jars.packages` in spark-defaults.conf adds org.apache.hadoop:hadoop-aws:{version}"
_SAID_MAX = 300
_DOCUMENTS = ("plan.json", "manifest.json")  # what tells a run folder

Result = TypeVar("Result")


class Storage:
    """A folder by its URI.

    Every method raises HarnessError, with the URI and the reason in one line, when the storage does not answer within a
    minute (a copy: and a second for each megabyte), or refuses what is asked of it.
    """

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.uri = uri.rstrip("/")
        java: Any = spark
        self._hadoop: Any = java._jvm.org.apache.hadoop
        settings = java._jsc.hadoopConfiguration()
        self._files: Any = self._answer("an answer", lambda: self._path().getFileSystem(settings))

    def fetch(self, folder: Path) -> None:
        """Copy the folder to a path that does not exist yet.

        Raises BadInput when there is no such folder, or when it has no `manifest.json`.
        """
        if not self._answer("an answer", lambda: self._files.exists(self._path("manifest.json"))):
            raise BadInput(f"{self.uri}: no folder with a manifest.json; allowed: the URI of a run folder")
        size: int = self._answer("its size", lambda: self._files.getContentSummary(self._path()).getLength())
        source, target = self._path(), self._local(folder)
        self._answer("its files", lambda: self._files.copyToLocalFile(False, source, target, True), size)

    def put(self, folder: Path) -> None:
        """Copy a run folder to the URI, in place of an earlier copy.

        Raises BadInput when the URI is the folder itself, or one in or around it, and when something else is there.
        """
        self._check_apart(folder)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        source, target = self._local(folder), self._path()

        def copy() -> None:
            self._files.delete(target, True)
            self._files.mkdirs(target.getParent())
            self._files.copyFromLocalFile(False, True, source, target)

        self._answer("a copy of the run folder to be written", copy, size)

    def _check_apart(self, folder: Path) -> None:
        if self.uri.startswith("file:"):
            there, here = Path(urlsplit(self.uri).path).resolve(), folder.resolve()
            if there.is_relative_to(here) or here.is_relative_to(there):
                raise BadInput(f"{self.uri}: the run folder itself, or in or around it; allowed: another folder")

        def is_other() -> bool:
            documents = (self._files.exists(self._path(name)) for name in _DOCUMENTS)
            return bool(self._files.exists(self._path())) and not any(documents)

        if self._answer("an answer", is_other):
            raise BadInput(f"{self.uri}: what is there has no {' and no '.join(_DOCUMENTS)}, so it is not replaced")

    def put_files(self, folder: Path, names: Sequence[str]) -> None:
        """Copy files of a folder, by their names in it, in place of those that are there."""
        size = sum((folder / name).stat().st_size for name in names)

        def copy() -> None:
            for name in names:
                self._files.copyFromLocalFile(False, True, self._local(folder / name), self._path(name))

        self._answer(f"{', '.join(names)} to be written", copy, size)

    def _path(self, name: str = "") -> Any:
        return self._hadoop.fs.Path(f"{self.uri}/{name}" if name else self.uri)

    def _local(self, path: Path) -> Any:
        return self._hadoop.fs.Path(f"file://{path.absolute()}")

    def _answer(self, what: str, work: Callable[[], Result], size: int = 0) -> Result:
        """Return the result of `work`. Hadoop's clients may try again for many minutes, which nobody waits for."""
        limit_s, done = _ANSWER_DEADLINE_S + size / _BYTES_PER_S, Future[Result]()

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
        java: Any = error
        told = str(java.java_exception.toString() if isinstance(error, Py4JJavaError) else error)
        line = re.sub(r"^(?:[\w$]+\.)+", "", told.partition("\n")[0].partition("; For more details")[0])[:_SAID_MAX]
        hint = (
            _S3A.format(version=self._hadoop.util.VersionInfo.getVersion()) if "S3AFileSystem not found" in line else ""
        )
        return line + hint
