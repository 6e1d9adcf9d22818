"""Keep the result of each check until the verdict is reached, so that a verdict that was interrupted can be resumed.

    kept = Kept(folder)
    kept.of(check) or kept.keep(check, check.judge(tables))
    kept.forget()                                                  the verdict is reached

The results are on this machine (`ONCEPROOF_HOME`/verdicts), and belong to one run folder with its tables, its history
and its plan, and to one version of the code of the checks. A run folder may come from anyone, so nothing in the folder
itself is taken for a result, and its files are known by what only the kernel sets: another file in the place of one of
them has another inode or another time of its last change. What is not resumed within a week is removed.
"""

import hashlib
import json
import shutil
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pyspark
from pydantic import TypeAdapter

from onceproof.harness.base import files, paths
from onceproof.harness.base.errors import BadInput
from onceproof.harness.record import documents
from onceproof.harness.record.results import CheckResult
from onceproof.verifiers.evidence.check import Check

SCHEMA_VERSION = 1
_DOCUMENTS = ("plan.json", "workload.json", "history.jsonl")
_FOLDERS = ("ledger", "tables")
_WEEK_S = 7 * 86_400
_CODE = Path(__file__).parents[1]
_OURS = f"{__name__.rpartition('.')[0]}."
_RESULT = TypeAdapter(CheckResult)


class Kept:
    """The results of the checks of one run folder.

    Those that an interrupted verdict has left are read at once; `resumed` is the number of them that were taken.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = paths.verdicts_dir() / _key(folder)
        self.resumed = 0
        _remove_old(self._folder.parent)
        self._left = {path.name: found for path in self._folder.glob("*.json") if (found := _read(path))}

    def of(self, check: Check) -> CheckResult | None:
        """Return the result of a check that an interrupted verdict has left; None if there is none, or no whole one."""
        found = self._left.get(_name(check))
        self.resumed += found is not None
        return found

    def keep(self, check: Check, result: CheckResult) -> CheckResult:
        """Keep the result of a check, if there is room for it on the disk, and return it.

        Checks of others are not kept, since their code may change.
        """
        if _name(check):
            with suppress(OSError):
                self._folder.mkdir(parents=True, exist_ok=True)
                document = {"schema_version": SCHEMA_VERSION, "result": asdict(result)}
                files.write(self._folder / _name(check), json.dumps(document) + "\n")
        return result

    def forget(self) -> None:
        """Remove the results, since the verdict is recorded."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _name(check: Check) -> str:
    """Return the name of the file for the result of a check, by its module; empty if the check is not one of ours."""
    module = check.run.__module__
    return f"{module.removeprefix(_OURS)}.json" if module.startswith(_OURS) else ""


def _read(path: Path) -> CheckResult | None:
    try:
        raw = documents.read(path, schema_version=SCHEMA_VERSION, missing="")
        return documents.parse(path, raw.get("result"), _RESULT)
    except (BadInput, OSError):
        return None


def _key(folder: Path) -> str:
    """Return a hash of what the results of a run folder depend on."""
    summed = hashlib.sha256(f"{pyspark.__version__} {folder.resolve()}\n".encode())
    for room in ("harness", "verifiers"):
        for path in sorted((_CODE / room).rglob("*.*")):
            if path.suffix in (".py", ".java"):
                summed.update(f"{path} ".encode() + hashlib.sha256(path.read_bytes()).digest())
    held = [folder / name for name in _DOCUMENTS]
    held += sorted(path for name in _FOLDERS for path in (folder / name).rglob("*"))
    for path in held:
        if path.is_file():
            told = path.stat()
            summed.update(f"{path} {told.st_size} {told.st_mtime_ns} {told.st_ctime_ns} {told.st_ino}\n".encode())
    return summed.hexdigest()


def _remove_old(verdicts: Path) -> None:
    with suppress(OSError):  # another process may remove them as well
        for each in verdicts.iterdir():
            if time.time() - each.stat().st_mtime > _WEEK_S:
                shutil.rmtree(each, ignore_errors=True)
