"""The documents that commands write with `--json`: one dataclass for each, from which the reference is generated.

onceproof run … --json runs.json        a list of JudgedRun
onceproof verify RUN --json -           one JudgedRun, on standard output
onceproof soak … --json soak.json       SoakDocument
onceproof matrix … --json cells.json    a list of Cell (`onceproof/suite/matrix.py`)
onceproof audit … --json audit.json     AuditDocument
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ConfigDict

from onceproof.harness.record.results import Finding, Reason, Results, Verdict

SCHEMA_VERSION = 1
_CONFIG = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True)
class JudgedRun:
    """A run with its verdict.

    - `folder`: the run's folder.
    - `report`: the path of its report; empty if it was not written.
    - `results`: the content of the run's results.json.
    - `seconds`: the seconds of each phase; empty if the run was only judged again.
    - `schema_version`: the version of this document.
    """

    __pydantic_config__ = _CONFIG
    folder: str
    report: str
    results: Results
    seconds: dict[str, float] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, kw_only=True)
class SoakDocument:
    """A soak.

    - `valid`: the number of valid runs.
    - `unknown`: the number of unknown runs.
    - `invalid`: the number of invalid runs.
    - `bound`: the upper bound on the probability of a violation in a run, with 95% confidence; null if a run was
      invalid, or if none was valid.
    - `held`: whether no run, and no audit of the logs of one, was invalid, and at most one run in ten was unknown.
    - `runs`: a table for each run, as in soak.json.
    - `schema_version`: the version of this document.
    """

    __pydantic_config__ = _CONFIG
    valid: int
    unknown: int
    invalid: int
    bound: float | None
    held: bool
    runs: Sequence[dict[str, Any]]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, kw_only=True)
class AuditDocument:
    """An audit of logs.

    - `verdict`: valid, unknown or invalid.
    - `findings`: the anomalies, with their coordinates in the log.
    - `reasons`: why the audit is not valid although nothing was found.
    - `compared`: what was compared, by unit.
    - `ids`: a table for each transactional id.
    - `schema_version`: the version of this document.
    """

    __pydantic_config__ = _CONFIG
    verdict: Verdict
    findings: Sequence[Finding]
    reasons: Sequence[Reason]
    compared: dict[str, int]
    ids: Sequence[dict[str, Any]]
    schema_version: int = SCHEMA_VERSION
