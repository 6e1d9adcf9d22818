"""What the wire proxy costs: a copy at full speed, its workers' lanes through it and not, in turns on one cluster.

    onceproof bench wire --records 200_000

No rule is active: every frame is read and passed on.
"""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from onceproof.harness.base.errors import HarnessError
from onceproof.harness.base.progress import Progress
from onceproof.harness.cluster import pool, topology
from onceproof.harness.model.scenario import Scenario
from onceproof.harness.model.spec import WorkloadSpec
from onceproof.harness.record.events import Began, Outcome
from onceproof.run.run import Run

AT_LEAST = 0.5
Rates = dict[bool, list[float]]  # whether through the proxy → records per second, a figure a turn


class Copied(Run):
    """A run that is not judged, with every worker's lane through the wire proxy or none."""

    wired: bool

    def wired_links(self) -> set[str]:
        lanes = range(self.plan.scenario.workload.workers) if self.wired else ()
        return {link for worker in lanes for link in topology.lane_links(topology.lane_of_worker(worker))}

    def rate(self) -> float:
        """Committed records per second, from the first begin to the last commit."""
        self.work()
        self.quiesce()
        events = self.history.events()
        commits = events.of(Outcome, type="ok")
        if not commits:
            raise HarnessError(f"{self.folder}: nothing was committed")
        begun = events.the(Began).at
        return float(sum(each.records for each in commits) / (commits[-1].at - begun))


def wire(*, records: int, sizes: Sequence[int], rounds: int, folder: Path, progress: Progress) -> Mapping[int, Rates]:
    """Records per second straight and through the proxy, for each size. Raises HarnessError when a run breaks off."""
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
        scenario = Scenario(name=f"bench-wire-{size}", about="A copy at full speed.", workload=work)
        turns: Rates = {False: [], True: []}
        with pool.lease(scenario.cluster, keep=False, say=progress.say) as cluster:
            for turn in range(2 * rounds):
                run = Copied(scenario, seed=turn, cluster=cluster, runs=folder, progress=progress)
                run.wired = bool(turn % 2)
                try:
                    turns[run.wired].append(run.rate())
                finally:
                    run.close()
        found[size] = turns
    return found


def ratio(turns: Rates) -> float:
    return statistics.median(turns[True]) / statistics.median(turns[False])


def table(found: Mapping[int, Rates]) -> str:
    """Medians in Markdown."""
    lines = ["| bytes | records/s straight | through the wire proxy | ratio | at least |", "|---|---|---|---|---|"]
    lines += [
        f"| {size} | {statistics.median(turns[False]):,.0f} | {statistics.median(turns[True]):,.0f} "
        f"| {ratio(turns):.2f} | {AT_LEAST} |"
        for size, turns in found.items()
    ]
    return "\n".join(lines) + "\n"
