"""Execute a soak: many runs with faults drawn from seeds, and a bound on the probability of a violation.

    onceproof soak --count 50 --seed 1

The scenarios in scenarios/soak take turns, and each run has a seed of its own. The logs of each run are also audited
alone, without its history and its ledger. The folders of runs that are valid in both ways are removed.

If n independent runs are valid and none is invalid, the probability p of a violation in such a run is, with 95%
confidence, at most 1 − 0.05^(1/n): 5.8% for n = 50 (see the "rule of three"). Runs that are `unknown` prove nothing;
they are counted separately and listed with their reasons.
"""

import json
import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from onceproof.harness.base import files
from onceproof.harness.base.errors import BadInput
from onceproof.harness.model.scenario import Scenario
from onceproof.harness.record import documents
from onceproof.harness.record.results import Results
from onceproof.report.documents import SoakDocument
from onceproof.run.run import Run
from onceproof.suite import batch, rates
from onceproof.suite.batch import Line

_log = logging.getLogger(__name__)
_LINES = TypeAdapter(list[Line])
_UNKNOWN_AT_MOST = 0.1  # the share of unknown runs above which a soak proves too little


@dataclass(kw_only=True)
class Soak:
    """The runs of a soak so far, one line each."""

    lines: list[Line] = field(default_factory=list)

    def count(self, verdict: str) -> int:
        """Return the number of runs with this verdict: valid, unknown or invalid."""
        return sum(line.verdict == verdict for line in self.lines)

    @property
    def last(self) -> str:
        """Return the last run in one line."""
        line = self.lines[-1]
        audited = f"; audit of its logs: {line.audit}" if line.audit != "valid" else ""
        return f"{line.scenario}, seed {line.seed}: {line.headline}{audited}"

    def add(self, line: Line, folder: Path) -> None:
        """Add a run, remove its folder if it and its audit are valid, and rewrite soak.json and soak.md in `folder`."""
        if line.verdict == line.audit == "valid" and line.folder is not None:
            shutil.rmtree(line.folder)
            line = replace(line, folder=None)
        self.lines.append(line)
        files.write(folder / "soak.json", json.dumps([asdict(each) for each in self.lines], indent=1) + "\n")
        files.write(folder / "soak.md", self.summary())

    @property
    def bound(self) -> float | None:
        """Return the upper bound on the probability of a violation in a run, with 95% confidence.

        None if a run was invalid, or if no run was valid.
        """
        valid = self.count("valid")
        if self.count("invalid") or not valid:
            return None
        return rates.upper_bound(valid)

    @property
    def held(self) -> bool:
        """Return whether a run was valid, no run and no audit was invalid, and at most one run in ten was unknown."""
        wrong = self.count("invalid") or any(line.audit == "invalid" for line in self.lines)
        return self.count("valid") > 0 and not wrong and self.count("unknown") <= _UNKNOWN_AT_MOST * len(self.lines)

    def document(self) -> dict[str, Any]:
        """Return the soak as `--json` writes it."""
        counts = {word: self.count(word) for word in ("valid", "unknown", "invalid")}
        runs = [asdict(line) for line in self.lines]
        return asdict(SoakDocument(**counts, bound=self.bound, held=self.held, runs=runs))

    def summary(self) -> str:
        """Return the soak as a table in Markdown: verdicts, counts, faults, the bound, and runs that are not valid."""
        inputs, outputs = sum(line.inputs for line in self.lines), sum(line.outputs for line in self.lines)
        faults = Counter(name for line in self.lines for name in line.faults)
        transactions = sum(line.transactions for line in self.lines)
        lines = [
            f"| runs | {len(self.lines)} |",
            "|---|---|",
            *(f"| {word} | {self.count(word)} |" for word in ("valid", "unknown", "invalid")),
            f"| inputs | {inputs:,} |",
            f"| outputs | {outputs:,} |",
            f"| transactions | {transactions:,} |",
            f"| injected faults | {sum(faults.values())}: "
            + ", ".join(f"{name} {count}" for name, count in sorted(faults.items()))
            + " |",
            f"| runs without a fault | {sum(not line.faults for line in self.lines)} |",
            f"| audits of the logs alone | {_counted(line.audit or 'none' for line in self.lines)} |",
        ]
        if self.bound is not None:
            says = f"no violation in {self.count('valid')} valid runs: with 95% confidence, at most {self.bound:.1%}"
            if faulted := sum(line.verdict == "valid" and bool(line.faults) for line in self.lines):
                says += f"; in the {faulted} of them with faults, at most {rates.upper_bound(faulted):.1%}"
            lines.append(f"| probability of a violation in a run | {says} |")
        lines += self._resources()
        lines += [
            f"| {line.scenario}, seed {line.seed} | {line.headline}: {'; '.join(line.reasons)} |"
            for line in self.lines
            if line.verdict != "valid"
        ]
        return "\n".join(lines) + "\n"

    def _resources(self) -> list[str]:
        """Return rows about memory, disk and the lag of the verdicts, if they were measured."""
        lines = [line for line in self.lines if line.memory_mb]
        if not lines:
            return []
        quarter = max(1, len(lines) // 4)
        rows = []
        for what, name in (("memory of all processes", "memory_mb"), ("used on the disk", "disk_mb")):
            first, later = (
                max((getattr(line, name) for line in some), default=0.0) for some in (lines[:quarter], lines[quarter:])
            )
            rows.append(f"| {what} | at most {first:,.0f} MB in the first quarter, {later:,.0f} MB after it |")
        rows.append(
            f"| time from the end of a run to its verdict | at most {max(line.lag_s for line in lines):.0f} s |"
        )
        return rows


def _counted(words: Iterable[str]) -> str:
    """Return how often each word occurs: "48 valid, 2 unknown"."""
    return ", ".join(f"{count} {word}" for word, count in Counter(words).most_common())


def read(path: Path) -> Soak:
    """Return the soak whose runs so far are in a soak.json. Raises BadInput when the file cannot be read."""
    return Soak(lines=documents.read_list(path, _LINES, what="the runs of a soak"))


def soak(
    scenarios: Sequence[Scenario],
    *,
    runs: int,
    seed: int,
    options: batch.Options,
    say: Callable[[str], None],
    done: Soak | None = None,
) -> Soak:
    """Execute `runs` runs of the scenarios in turn, with the seeds from `seed` on, and return the soak.

    `done` has runs that need not be repeated. `soak.json` and `soak.md` in the folder of `options` are rewritten after
    each run, and `say` gets a line about it. Raises HarnessError when a cluster does not come up, and BadInput when
    `done` has runs with other scenarios or seeds.
    """
    done = done or Soak()
    wanted = [(scenarios[number % len(scenarios)], seed + number) for number in range(runs)]
    for line, (scenario, its_seed) in zip(done.lines, wanted, strict=False):
        if (line.scenario, line.seed) != (scenario.name, its_seed):
            has, needs = f"{line.scenario}, seed {line.seed}", f"{scenario.name}, seed {its_seed}"
            raise BadInput(f"{options.folder / 'soak.json'}: the soak to resume has {has}; allowed: {needs}")

    def after(run: Run, _results: Results, line: Line) -> None:
        done.add(replace(line, audit=audit_of(run.folder, options.master)), options.folder)
        say(f"{len(done.lines)}/{runs}  {done.last}")

    batch.run(wanted[len(done.lines) :], options, after)
    return done


def audit_of(folder: Path, master: str) -> str:
    """Return the verdict of an audit of a run's logs; empty if the run ended before they were read.

    It is unknown if Spark fails, so that a soak goes on.
    """
    from onceproof.verifiers.audit import audit, copies
    from onceproof.verifiers.evidence.spark import session

    try:
        return audit.audit(copies.of_run(folder, partial(session, master))).verdict
    except BadInput:
        return ""
    except Exception:
        _log.exception("the logs of %s were not audited", folder)
        return "unknown"
