"""The verdict and what it is made of: findings, reasons for not knowing, and the file that keeps them.

The verdict is a lattice, worst wins: `valid` < `unknown` < `invalid`. Safety and liveness are never mixed: a run that
stands still is `unknown: stalled`, not invalid.

    unknown: stalled         it did not come to rest in time
    unknown: vacuous         a fault, or what it needs, never happened
    unknown: indeterminate   the tables do not tell
    unknown: harness-error   we failed; nothing is said about the system

`mode` says what it rests on: the full proof reads the input topic; the ledger mode trusts what was acknowledged.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from onceproof.harness.record import documents

SCHEMA_VERSION = 2
SAMPLES_MAX = 10
Mode = Literal["full", "ledger"]
Verdict = Literal["valid", "unknown", "invalid"]
ReasonKind = Literal["stalled", "vacuous", "indeterminate", "harness-error"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One class of anomaly, how often, and up to ten samples with their coordinates in the log."""

    cls: str
    count: int
    says: str
    samples: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a run cannot be called valid although nothing was found."""

    kind: ReasonKind
    says: str


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """What one check did: its claim in words, findings, reasons, and how many things of each kind it compared.

    `not_judged` is why it does not apply to this run, or could not be asked; empty when it was.
    """

    name: str
    claim: str
    findings: Sequence[Finding] = ()
    reasons: Sequence[Reason] = ()
    compared: dict[str, int] = field(default_factory=dict)
    not_judged: str = ""

    @property
    def says(self) -> str:
        """The result in words: what was found, `not known`, `not judged: …`, or `holds for …` with numbers."""
        if self.findings:
            return ", ".join(sorted({finding.cls for finding in self.findings}))
        if self.not_judged:
            return f"not judged: {self.not_judged}"
        if self.reasons:
            return "not known: " + ", ".join(sorted({reason.kind for reason in self.reasons}))
        return "holds for " + ", ".join(f"{count:,} {unit}" for unit, count in self.compared.items())


@dataclass(frozen=True, kw_only=True)
class Results:
    """All that results.json holds."""

    name: str
    seed: int
    command: str
    verdict: Verdict
    as_expected: bool
    expectation: str
    findings: Sequence[Finding]
    reasons: Sequence[Reason]
    checks: Sequence[CheckResult]
    counts: dict[str, int]
    versions: dict[str, str]
    mode: Mode = "full"
    issue: str = ""
    result: str = ""
    schema_version: int = SCHEMA_VERSION

    @property
    def headline(self) -> str:
        """`valid`, `invalid: lost, duplicate` or `unknown: vacuous`; ` (ledger mode)` behind it when it is that. With a
        bug's issue in front, and whether it is proved or refuted, where the scenario is about one."""
        word: str = self.verdict
        if word == "invalid":
            word += ": " + ", ".join(sorted({finding.cls for finding in self.findings}))
        elif word == "unknown":
            word += ": " + ", ".join(sorted({reason.kind for reason in self.reasons}))
        about = f"{self.issue} {self.result or 'neither proved nor refuted'}: " if self.issue else ""
        return about + word + (" (ledger mode)" if self.mode == "ledger" else "")

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def decide(findings: Sequence[Finding], reasons: Sequence[Reason]) -> Verdict:
    if findings:
        return "invalid"
    return "unknown" if reasons else "valid"


def read(path: Path) -> Results:
    """Read a results.json back. Raises BadInput when it is missing or not one."""
    raw = documents.read(path, schema_version=SCHEMA_VERSION, missing="`onceproof verify` makes it")
    with documents.as_told(path):
        raw["findings"] = [Finding(**each) for each in raw["findings"]]
        raw["reasons"] = [Reason(**each) for each in raw["reasons"]]
        raw["checks"] = [
            CheckResult(
                **{
                    **each,
                    "findings": [Finding(**found) for found in each["findings"]],
                    "reasons": [Reason(**reason) for reason in each["reasons"]],
                }
            )
            for each in raw["checks"]
        ]
        return Results(**raw)
