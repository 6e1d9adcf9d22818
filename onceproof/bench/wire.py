"""Measure what the request proxy costs: a copy at full speed, in turns with and without it, on one cluster.

    onceproof bench wire --records 200_000

The lanes of all workers lead through the proxy, which reports their requests as it does for lints, or none does.
"""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from onceproof.harness.base.errors import HarnessError
from onceproof.harness.base.progress import Progress
from onceproof.harness.cluster import pool
from onceproof.harness.model.scenario import CollectSpec, Scenario
from onceproof.harness.model.spec import WorkloadSpec
from onceproof.harness.record.events import Began, Outcome
from onceproof.run.run import Run

AT_LEAST = 0.9
Rates = dict[bool, list[float]]  # whether the lanes lead through the proxy → records per second of each turn


class Copied(Run):
    """A run that is not judged."""

    def rate(self) -> float:
        """Execute the run and return its committed records per second, from the first begin to the last commit.

        Raises HarnessError when a step fails or nothing was committed.
        """
        self.work()
        self.quiesce()
        events = self.history.events()
        commits = events.of(Outcome, type="ok")
        if not commits:
            raise HarnessError(f"{self.folder}: nothing was committed")
        begun = events.the(Began).at
        return float(sum(each.records for each in commits) / (commits[-1].at - begun))


def wire(*, records: int, sizes: Sequence[int], rounds: int, folder: Path, progress: Progress) -> Mapping[int, Rates]:
    """Return size of a record in bytes → rates without and with the proxy. Raises HarnessError when a run fails."""
    found = {}
    for size in sizes:
        work = WorkloadSpec(
            name="copy",
            records=records,
            records_per_s=200_000,
            record_bytes=size,
            observer=False,
            transaction_records=1_000,
        )
        plain = Scenario(name=f"bench-wire-{size}", about="A copy at full speed.", workload=work)
        wired = plain.model_copy(update={"collect": CollectSpec(requests=True)})
        turns: Rates = {False: [], True: []}
        with pool.lease(plain.cluster, keep=False, say=progress.say) as cluster:
            for turn in range(2 * rounds):
                through = bool(turn % 2)
                scenario = wired if through else plain
                run = Copied(scenario, seed=turn, cluster=cluster, runs=folder, progress=progress)
                try:
                    turns[through].append(run.rate())
                finally:
                    run.close()
        found[size] = turns
    return found


def ratio(turns: Rates) -> float:
    """Return the median rate with the proxy, divided by the median rate without it."""
    return statistics.median(turns[True]) / statistics.median(turns[False])


def table(found: Mapping[int, Rates]) -> str:
    """Return the medians and the target as a table in Markdown."""
    lines = [
        "| bytes of a record | records/s without proxy | records/s with request proxy | ratio | target: at least |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {size} | {statistics.median(turns[False]):,.0f} | {statistics.median(turns[True]):,.0f} "
        f"| {ratio(turns):.2f} | {AT_LEAST} |"
        for size, turns in found.items()
    ]
    return "\n".join(lines) + "\n"
