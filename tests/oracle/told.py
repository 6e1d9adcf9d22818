"""What workers told: transactions with their manifests and outcomes, assignments, resets, and gaps in all that."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.rundata import Row, RunData, worker_of

Owner = tuple[int, int, int]
Process = tuple[int, int]


class Transaction:
    """`calls` are its manifests, one for each call of commit; `outcomes` the words that ended it."""

    def __init__(self) -> None:
        self.began: float | None = None
        self.calls: list[Row] = []
        self.outcomes: set[str] = set()
        self.spans: list[Row] = []  # what it read, as each of its lines tells

    @property
    def acknowledged(self) -> bool:
        return "ok" in self.outcomes and bool(self.calls)


class Told:
    def __init__(self, run: RunData) -> None:
        self.run = run
        self.transactions: dict[Owner, Transaction] = defaultdict(Transaction)
        self.assigned: list[tuple[float, Process, list[int]]] = []
        self.resets = [each for each in run.events if each["event"] == "position-reset"]
        self._went_on: set[tuple[str, int, str]] = set()
        self._stood: list[Row] = []
        for event in run.events:
            self._read(event)
        self.assigned.sort(key=lambda each: each[0])
        self.gaps = self._gaps()

    def _read(self, event: Row) -> None:
        what = event["event"]
        if what in ("begin", "invoke", "outcome"):
            transaction = self.transactions[told_by(event)]
            if event.get("sources"):
                transaction.spans.append(event["sources"])
            if what == "begin":
                transaction.began = event["t"]
            elif what == "invoke":
                transaction.calls.append(event)
            else:
                transaction.outcomes.add(event["type"])
        elif what == "assigned":
            self.assigned.append((event["t"], (worker_of(event), event["incarnation"]), event["partitions"]))
        elif what == "went-on":
            self._went_on.add((event["source"], event["incarnation"], event["fault"]))
        elif what == "at-phase" and event["phase"] == "before-commit":
            self._stood.append(event)

    def stood(self) -> set[Owner]:
        """Transactions whose worker stopped before its call of commit for a fault, and never went on."""
        return {
            told_by(each)
            for each in self._stood
            if (each["source"], each["incarnation"], each["fault"]) not in self._went_on
        }

    def never_committed(self, *, each_topic: bool) -> set[Owner]:
        """Transactions that did not call commit, or gave up: the history of their worker being whole."""
        found = {
            owner
            for owner, each in self.transactions.items()
            if not each.calls or "fail" in each.outcomes
            # An outcome without a call can only be that it was given up: otherwise a line is missing.
        }
        if not each_topic:  # else a worker that stands may have committed the transaction of another topic
            found |= self.stood()
        return {owner for owner in found if self.told_whole(owner[:2])}

    def told_whole(self, process: Process) -> bool:
        """Whether all events of a worker's process are there, once each."""
        worker, incarnation = process
        return (f"worker-{worker}", incarnation) not in self.gaps

    def marks(self) -> Iterator[tuple[str, Row]]:
        """What faults deleted: topic and mark (partition, committed position, low watermark)."""
        for event in self.run.events:
            if event["event"] == "records-deleted":
                for mark in event["partitions"]:
                    yield event.get("topic") or "input", mark

    def _gaps(self) -> dict[tuple[str, int | None], tuple[int, int]]:
        """Processes whose events have gaps or repeats in their numbers: how many are missing, and are there twice."""
        if not self.run.numbered:  # they are numbered when the run is written
            return {}
        numbers: dict[tuple[str, int | None], Counter[int]] = defaultdict(Counter)
        for event in self.run.events:
            if "n" in event:
                numbers[event["source"], event.get("incarnation")][event["n"]] += 1
        found = {}
        for process, told in numbers.items():
            missing, twice = max(told) - len(told), sum(count - 1 for count in told.values())
            if missing or twice:
                found[process] = missing, twice
        return found


def told_by(event: Row) -> Owner:
    """The transaction that an event is about."""
    return worker_of(event), event["incarnation"], event["transaction"]
