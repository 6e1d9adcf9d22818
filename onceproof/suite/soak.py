"""A soak: many runs with faults drawn from seeds, and what they add up to.

    onceproof soak --runs 50 --seed 1

Every scenario of scenarios/soak in turn, each run with a seed of its own, on one cluster. The folders of valid runs are
removed, the others stay. No violation in n independent runs bounds the chance of one at 95%: p ≤ 1 − 0.05^(1/n), which
is 5.8% for 50 (the "rule of three"). Runs that are `unknown` prove nothing; they are counted apart, with their reasons.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

from onceproof.harness.model.scenario import Scenario
from onceproof.harness.record.results import Results
from onceproof.run.run import Run
from onceproof.suite import batch
from onceproof.suite.batch import Line

_CONFIDENCE = 0.95
_UNKNOWN_AT_MOST = 0.1  # of the runs: a soak of which more say nothing has not been one


@dataclass(kw_only=True)
class Soak:
    lines: list[Line] = field(default_factory=list)

    def count(self, verdict: str) -> int:
        return sum(line.verdict == verdict for line in self.lines)

    @property
    def bound(self) -> float | None:
        """The highest chance of a violation in a run that the valid ones leave at 95%; None if there was one."""
        judged = self.count("valid")
        if self.count("invalid") or not judged:
            return None
        return float(1 - (1 - _CONFIDENCE) ** (1 / judged))

    @property
    def held(self) -> bool:
        """Nothing was found, and enough was judged."""
        return not self.count("invalid") and self.count("unknown") <= _UNKNOWN_AT_MOST * len(self.lines)

    def summary(self) -> str:
        """The soak in Markdown: verdicts, faults, inputs, what was not known, and what follows."""
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
            f"| faults that fired | {sum(faults.values())}: "
            + ", ".join(f"{name} {count}" for name, count in sorted(faults.items()))
            + " |",
            f"| runs without a fault | {sum(not line.faults for line in self.lines)} |",
        ]
        if self.bound is not None:
            says = f"0 violations in {self.count('valid')} judged runs: at most {self.bound:.1%} of such runs, at 95%"
            lines.append(f"| bound | {says} |")
        lines += [
            f"| {line.scenario}, seed {line.seed} | {line.headline}: {'; '.join(line.reasons)} |"
            for line in self.lines
            if line.verdict != "valid"
        ]
        return "\n".join(lines) + "\n"


def soak(
    scenarios: Sequence[Scenario], *, runs: int, seed: int, options: batch.Options, say: Callable[[str], None]
) -> Soak:
    """Run them; `soak.json` in the options' folder grows with each. Raises HarnessError when no cluster comes up."""
    done = Soak()

    def after(run: Run, _results: Results, line: Line) -> None:
        if line.verdict == "valid":
            shutil.rmtree(run.folder)
            line = replace(line, folder=None)
        done.lines.append(line)
        (options.folder / "soak.json").write_text(json.dumps([asdict(each) for each in done.lines], indent=1) + "\n")
        say(f"{len(done.lines)}/{runs}  {line.scenario}, seed {line.seed}: {line.headline}")

    batch.run([(scenarios[number % len(scenarios)], seed + number) for number in range(runs)], options, after)
    return done
