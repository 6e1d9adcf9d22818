"""Whether each transaction took effect as a whole or not at all: aborted-read and torn-transaction."""

from tests.oracle.case import Case, owner_of, place_of
from tests.oracle.logs import Log, Span
from tests.oracle.stages import Stage, passed_on
from tests.oracle.told import Owner, Transaction
from tests.packing import Place
from tests.rundata import Row

_CLOCK_S = 0.001  # the observer's times are rounded
Part = tuple[str, int, int, int, int]  # topic, partition, first offset, records acknowledged, records visible


class Effects:
    """`never`: transactions that did not commit; `parts`: what became of those with a manifest; `torn`: their calls."""

    def __init__(self, case: Case, stages: list[Stage]) -> None:
        self.case = case
        self.never: set[Owner] = set()
        self.parts: dict[Owner, list[Part]] = {}
        self.torn: list[tuple[Owner, Row]] = []
        self.lost_with: set[tuple[int, int]] = set()  # inputs that torn transactions read
        if case.pipeline.transactional:
            self.never = case.told.never_committed(each_topic=case.pipeline.each_topic)
        self._aborted()
        self._manifests()

    def _aborted(self) -> None:
        case = self.case
        observed = list(case.seen())
        rows = [row for row in [*case.run.outputs, *observed] if self._hidden(place_of(row))]
        rows += [row for row in case.run.outputs if owner_of(row) in self.never and not self._apart(row)]
        if case.pipeline.transactional:
            rows += self._early(observed)
        if case.pipeline.between:
            rows += [row for row in case.run.outputs if self._made_of_hidden(row)]
        for row in rows:
            case.add("aborted-read", *place_of(row))
        case.explain(rows)

    def _hidden(self, place: Place) -> bool:
        return self.case.fate(place) in ("aborted", "open")

    def _apart(self, row: Row) -> bool:
        """Whether an output is in no transaction of the log, so that it was not aborted either."""
        batch = self.case.batch(place_of(row))
        return batch is not None and batch.span is None

    def _made_of_hidden(self, row: Row) -> bool:
        if row["intermediate_partition"] is None:
            return False
        return self._hidden((self.case.pipeline.between, row["intermediate_partition"], row["intermediate_offset"]))

    def _early(self, observed: list[Row]) -> list[Row]:
        """Outputs that the observer saw before the call of commit whose manifest has them."""
        case = self.case
        first: dict[Place, float] = {}
        for row in observed:
            first[place_of(row)] = min(row["at"], first.get(place_of(row), row["at"]))
        found = []
        for row in case.run.outputs:
            place, told = place_of(row), case.told.transactions.get(owner_of(row))
            if place not in first or told is None or not told.calls or not case.whole(*place[:2]):
                continue
            name = f"{case.run.prefix}{place[0]}/{place[1]}"
            spans = [call["outputs"].get(name, (0, 0, -1)) for call in told.calls]
            start = case.logs[place[:2]].start
            told_of = any(begin <= place[2] <= last and begin >= start for _, begin, last in spans)
            if told_of and first[place] + _CLOCK_S < min(call["t"] for call in told.calls):
                found.append(row)
        return found

    def _manifests(self) -> None:
        case = self.case
        ids = set()
        for owner, transaction in case.told.transactions.items():
            for call in transaction.calls:
                parts = list(self._parts(call))
                if parts:
                    self.parts.setdefault(owner, []).extend(parts)
                seen = sum(min(count, visible) for *_, count, visible in parts)
                if 0 < seen < sum(count for *_, count, _ in parts):
                    self.torn.append((owner, call))
                    ids.add(owner)
                    for topic, partition, begin, count, visible in parts:
                        if visible < count:
                            case.add("torn-transaction", topic, partition, begin)
        case.explain(row for row in case.run.outputs if owner_of(row) in ids)
        for owner, call in self.torn:
            self._excuse(owner, call)

    def _excuse(self, owner: Owner, call: Row) -> None:
        """What a torn transaction read is not lost as well."""
        read = {(int(p), offset) for p, (begin, after) in call["sources"].items() for offset in range(begin, after)}
        if self.case.pipeline.stage_of(owner[0]) == 1:
            inputs = passed_on(self.case)
            read = {inputs[place] for place in read if place in inputs}
        self.lost_with |= read

    def _parts(self, call: Row) -> list[Part]:
        """Where a transaction wrote, as far as that can be judged."""
        found = []
        for name, (count, first, last) in call["outputs"].items():
            topic, _, number = self.case.own(name).rpartition("/")
            log = self.case.logs[topic, int(number)]
            if self.case.whole(topic, log.partition) and first >= log.start:
                found.append((topic, log.partition, first, count, _visible(log, first, last)))
        return found


def _visible(log: Log, first: int, last: int) -> int:
    """Visible records of the producer that has the first of these offsets, between them."""
    own = log.at(first)
    if own is None or own.control is not None:
        return 0
    return sum(
        min(batch.last, last) - max(batch.first, first) + 1
        for batch in log.batches
        if batch.first <= last and batch.last >= first and batch.fate == "visible" and batch.producer == own.producer
    )


def acknowledged(case: Case, effects: Effects, stages: list[Stage], lost: set[tuple[int, int | None]]) -> None:
    """Commits that succeeded, as their workers were told, of which nothing is visible and no input is lost; and two
    that one decision of a coordinator ended."""
    if not case.pipeline.claims_transactions or not case.pipeline.transactional:
        return
    seen = {owner_of(row) for row in case.run.outputs}
    seen |= {each.owner for stage in stages for each in stage.commits if each.fate in ("visible", "open", "unknown")}
    whose: dict[Span | tuple[int, int], list[tuple[Owner, Transaction]]] = {}
    for owner, told in case.told.transactions.items():
        parts = effects.parts.get(owner, [])
        if not told.acknowledged or not parts or any(len(call["outputs"]) == 0 for call in told.calls):
            continue
        everything = sum(len(call["outputs"]) for call in told.calls) == len(parts)
        read = [(int(number), *span) for call in told.calls for number, span in call["sources"].items()]
        known = any((number, offset) in lost for number, first, after in read for offset in range(first, after))
        if everything and not known and owner not in seen and not any(visible for *_, visible in parts):
            topic, partition, first, *_ = min(parts)
            case.add("torn-transaction", topic, partition, first)
        spans = {case.logs[part[0], part[1]].span_at(part[2]) for part in parts}
        decisions = {span.decision for span in spans if span is not None and span.committed}
        if len(decisions) == 1 and (decision := decisions.pop()) is not None:
            whose.setdefault(decision, []).append((owner, told))
    if case.pipeline.each_topic:
        return
    for several in whose.values():
        for owner, _ in sorted(several, key=lambda each: each[0])[1:]:
            topic, partition, first, *_ = min(effects.parts[owner])
            case.add("torn-transaction", topic, partition, first)
