"""The results of a run: the verdict, the findings and reasons that it follows from, and the file results.json.

Verdicts are ordered `valid` < `unknown` < `invalid`, and the worst one applies: any finding makes a run `invalid`, and
otherwise any reason makes it `unknown`. Safety and liveness are kept apart: a run that makes no progress is
`unknown: stalled` and not `invalid`.

    unknown: stalled         the run did not come to rest in time
    unknown: vacuous         a fault, or a condition that it needs, did not occur
    unknown: indeterminate   the tables do not determine the answer
    unknown: unplanned-failure  a node failed that no fault of the plan stopped
    unknown: interrupted     somebody interrupted the run
    unknown: workload-error  the code of the workload fails, and nothing is claimed about the system
    unknown: harness-error   the harness failed, and nothing is claimed about the system

In mode `full`, the input topic was read; in mode `ledger`, the acknowledgements of the inputs are trusted instead.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter

from onceproof.harness.base import files
from onceproof.harness.base.errors import BadInput
from onceproof.harness.record import documents

SCHEMA_VERSION = 2
SAMPLES_MAX = 10
Mode = Literal["full", "ledger"]
Verdict = Literal["valid", "unknown", "invalid"]
ReasonKind = Literal[
    "stalled", "vacuous", "indeterminate", "unplanned-failure", "interrupted", "workload-error", "harness-error"
]
_CONFIG = ConfigDict(extra="forbid")  # of each model in results.json


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An anomaly that a check found.

    - `cls`: its class.
    - `count`: the number of occurrences.
    - `says`: a description.
    - `samples`: up to ten occurrences, with their coordinates in the log.
    """

    __pydantic_config__ = _CONFIG
    cls: str
    count: int
    says: str
    samples: Sequence[dict[str, Any]] = ()

    @property
    def line(self) -> str:
        """The finding in one line: `duplicate × 1,940: outputs belong to …`."""
        return f"{self.cls} × {self.count:,}: {self.says}"


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A reason for which a run without findings is not valid.

    - `kind`: the kind of reason, as in the verdict.
    - `says`: a description.
    """

    __pydantic_config__ = _CONFIG
    kind: ReasonKind
    says: str


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The result of one check.

    - `name`: the name of the check.
    - `claim`: the property that it checks, in words.
    - `findings`: the anomalies that it found.
    - `reasons`: why it is not certain that there are no others.
    - `compared`: the number of compared records, transactions and so on, by unit.
    - `not_judged`: why the check did not run; empty if it ran.
    """

    __pydantic_config__ = _CONFIG
    name: str
    claim: str
    findings: Sequence[Finding] = ()
    reasons: Sequence[Reason] = ()
    compared: dict[str, int] = field(default_factory=dict)
    not_judged: str = ""

    @property
    def says(self) -> str:
        """The result in words: the classes found, `not judged: …`, `not known: …`, or `holds for …` with counts."""
        if self.findings:
            return ", ".join(sorted({finding.cls for finding in self.findings}))
        if self.not_judged:
            return f"not judged: {self.not_judged}"
        if self.reasons:
            return "not known: " + ", ".join(sorted({reason.kind for reason in self.reasons}))
        return "holds for " + ", ".join(f"{count:,} {unit}" for unit, count in self.compared.items())


@dataclass(frozen=True, kw_only=True)
class Lint:
    """Something unsafe in what the workers' clients asked the brokers for; it is no finding, since nothing broke.

    `name` is that of the rule, `kip` the source, `count` how many requests it concerns, `says` what can go wrong, and
    `first` the first of these requests: its time (`at`, s), worker and link.
    """

    __pydantic_config__ = _CONFIG
    name: str
    kip: str
    count: int
    says: str
    first: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Results:
    """The content of results.json.

    - `name`: the name of the scenario.
    - `seed`: the seed of the run.
    - `command`: the command that repeats the run.
    - `verdict`: the verdict in one word.
    - `as_expected`: whether the result is the one that the scenario expects.
    - `expectation`: the comparison with the scenario's expectation, in words.
    - `findings`: the anomalies of all checks.
    - `reasons`: why a run without findings is not valid.
    - `checks`: the result of each check.
    - `counts`: the numbers of inputs, outputs, transactions and so on.
    - `versions`: the versions of Kafka, the clients and onceproof.
    - `mode`: whether the input topic was read (`full`), or the acknowledgements were trusted (`ledger`).
    - `level`: the level of proof, 0 to 2.
    - `classes`: how far each class of anomaly was judged; empty if the run ended early.
    - `lints`: what is unsafe in the clients' requests; null if these were not recorded.
    - `issue`: the bug that the scenario reproduces, such as KAFKA-17754; empty if there is none.
    - `result`: whether the bug was `proved` or `refuted`; empty if neither, or if there is none.
    - `schema_version`: the version of this document.
    """

    __pydantic_config__ = _CONFIG
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
    level: int = 2
    classes: dict[str, str] = field(default_factory=dict)
    lints: Sequence[Lint] | None = None
    issue: str = ""
    result: str = ""
    schema_version: int = SCHEMA_VERSION

    @property
    def headline(self) -> str:
        """The verdict in one line, such as `valid`, `invalid: duplicate, lost` or `unknown: vacuous`.

        A valid run below level 2 is `valid at level 0` or 1. For a scenario about a bug, the line begins with the issue
        and whether it is proved or refuted. In mode `ledger`, it ends with `(ledger mode)`.
        """
        word: str = self.verdict
        if word == "valid" and self.level < 2:
            word += f" at level {self.level}"
        if word == "invalid":
            word += ": " + ", ".join(sorted({finding.cls for finding in self.findings}))
        elif word == "unknown":
            word += ": " + ", ".join(sorted({reason.kind for reason in self.reasons}))
        about = f"{self.issue} {self.result or 'neither proved nor refuted'}: " if self.issue else ""
        return about + word + (" (ledger mode)" if self.mode == "ledger" else "")

    def write(self, path: Path) -> None:
        """Write results.json. If that fails, as on a full disk, an earlier one stays whole."""
        files.write(path, json.dumps(asdict(self), indent=1) + "\n")


_RESULTS = TypeAdapter(Results)


def decide(findings: Sequence[Finding], reasons: Sequence[Reason]) -> Verdict:
    """Return the verdict that follows from findings and reasons."""
    if findings:
        return "invalid"
    return "unknown" if reasons else "valid"


def read(path: Path) -> Results:
    """Read a results.json.

    Raises BadInput with the file and the key when it is missing, damaged or of another schema version.
    """
    raw = documents.read(path, schema_version=SCHEMA_VERSION, missing="`onceproof verify` writes it")
    results = documents.parse(path, raw, _RESULTS)
    follows = decide(results.findings, results.reasons)
    if results.verdict != follows:
        raise BadInput(f"{path}: verdict: {results.verdict}, but {follows} follows from its findings and reasons")
    return results
