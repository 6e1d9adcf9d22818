"""Keep the result of each check until the verdict is reached, so that a verdict that was interrupted can be resumed.

    kept = Kept(folder)
    kept.of(check) or kept.keep(check, check.judge(tables))
    kept.forget()                                                  the verdict is reached

The results are on this machine (`ONCEPROOF_HOME`/verdicts), under a hash of all that they depend on: the manifest,
which has the hashes of the tables, the plan, the history, and the code of the checks. A run folder may come from
anyone, so nothing in the folder itself is taken for a result. What is not resumed within a week is removed.
"""

import json
import shutil
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pyspark
import xxhash
from pydantic import TypeAdapter

from onceproof.harness.base import files, paths
from onceproof.harness.base.errors import BadInput
from onceproof.harness.record import documents
from onceproof.harness.record.results import CheckResult
from onceproof.verifiers.evidence.check import Check

SCHEMA_VERSION = 1
_INPUTS = ("manifest.json", "plan.json", "workload.json", "history.jsonl")
_WEEK_S = 7 * 86_400
_CODE = Path(__file__).parents[1]
_OURS = f"{__name__.partition('.')[0]}."
_RESULT = TypeAdapter(CheckResult)


class Kept:
    """The results of the checks of one run folder; `resumed` is the number of those that were taken."""

    def __init__(self, folder: Path) -> None:
        self._folder = paths.verdicts_dir() / _key(folder)
        self.resumed = 0
        _remove_old(self._folder.parent)

    def of(self, check: Check) -> CheckResult | None:
        """Return the result of a check that an interrupted verdict has left; None if there is none, or no whole one."""
        try:
            raw = documents.read(self._path(check), schema_version=SCHEMA_VERSION, missing="")
            found = documents.parse(self._path(check), raw.get("result"), _RESULT)
        except (BadInput, OSError):
            return None
        self.resumed += 1
        return found

    def keep(self, check: Check, result: CheckResult) -> CheckResult:
        """Keep the result of a check, if there is room for it, and return it.

        Checks of others are not kept, since their code may change.
        """
        if check.run.__module__.startswith(_OURS):
            with suppress(OSError):
                self._folder.mkdir(parents=True, exist_ok=True)
                document = {"schema_version": SCHEMA_VERSION, "result": asdict(result)}
                files.write(self._path(check), json.dumps(document) + "\n")
        return result

    def forget(self) -> None:
        """Remove the results, since the verdict is recorded."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, check: Check) -> Path:
        return self._folder / f"{check.name}.json"


def _key(folder: Path) -> str:
    """Return a hash of what the results of a run folder depend on."""
    summed = xxhash.xxh3_128(pyspark.__version__.encode())
    code = (path for room in ("harness", "verifiers") for path in sorted((_CODE / room).rglob("*.[pj]*")))
    inputs = (path for name in _INPUTS if (path := folder / name).exists())
    for path in (*(path for path in code if path.suffix in (".py", ".java")), *inputs):
        content = path.read_bytes()
        summed.update(f"{path.name} {len(content)} ".encode())
        summed.update(content)
    return summed.hexdigest()


def _remove_old(verdicts: Path) -> None:
    with suppress(OSError):  # another process may remove them as well
        for each in verdicts.iterdir():
            if time.time() - each.stat().st_mtime > _WEEK_S:
                shutil.rmtree(each, ignore_errors=True)
