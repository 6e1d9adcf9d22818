"""A writer into a database, for pipelines that keep outputs and positions there, and none in Kafka.

    BEGIN
    INSERT INTO results …                                               the outputs
    UPDATE positions SET next = 44 WHERE partition = 3 AND owner = ?    the position, unless another owner has come
    COMMIT

Outputs and positions are in one transaction of the database, so that both take effect or neither. After a restart, and
after each rebalance, the consumer seeks to the positions that the database holds. Who takes a partition over puts its
own name into `positions`, and so fences the previous owner: an update that finds another owner changes no row.

Where inputs are delivered at least once and the group commits their offsets, the table `seen` has the ids of the inputs
whose outputs are there.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from onceproof.harness.base.errors import DeadlineError
from onceproof.harness.record import own_errors, payload
from onceproof.workloads.clients import ClientError

_COLUMNS = "partition, key, value, header"


class Database(Protocol):
    """A connection to a database, which commits each statement by itself unless it is told to begin a transaction."""

    @property
    def error(self) -> type[Exception]:
        """The class of the errors that the methods raise."""
        ...

    @property
    def types(self) -> Mapping[str, str]:
        """The database's own names of the types `id` and `bytes`."""
        ...

    def create(self, statements: Sequence[str]) -> None:
        """Execute statements that make tables unless they are there."""
        ...

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Execute a statement with `?` for each value, and return how many rows it changed."""
        ...

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        ...

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> list[int]:
        """Insert rows, of which there is at least one, and return the number that each got as its id."""
        ...


class DatabaseWriter:
    """The writer of one worker, which is `owner`, a name for each process.

    `tables` has the workload's own name of each table → its name in the database, with `positions` and `seen` among
    them. With `fenced` false, a position is updated whoever owns its partition: a mistake, which a negative control
    makes. The ids of the last `remembers` inputs are remembered, or of all if it is None.
    """

    def __init__(
        self,
        connect: Callable[[], Database],
        tables: Mapping[str, str],
        *,
        owner: str,
        fenced: bool = True,
        remembers: int | None = 0,
    ) -> None:
        self._connect, self._tables, self._owner, self._fenced = connect, tables, owner, fenced
        self._positions, self._seen, self._remembers = tables["positions"], tables["seen"], remembers
        self._rows: dict[str, list[Sequence[Any]]] = defaultdict(list)

    def start(self) -> None:
        """Connect, and make the tables unless they are there."""
        try:
            self._database = self._connect()
        except DeadlineError as error:
            raise ClientError("connect", "DeadlineError", abortable=False, fatal=True, text=str(error)) from None
        types = self._database.types
        outputs = f"id {types['id']}, partition INTEGER, key {types['bytes']}, value {types['bytes']}, "
        columns = dict.fromkeys(self._tables.values(), f"{outputs}header {types['bytes']}")
        columns[self._positions] = "partition INTEGER PRIMARY KEY, next BIGINT, owner TEXT"
        columns[self._seen] = f"id {types['id']}, input BIGINT UNIQUE"
        with self._errors("start"):
            self._database.create([f'CREATE TABLE IF NOT EXISTS "{name}" ({each})' for name, each in columns.items()])

    def take_over(self, partitions: Iterable[int]) -> None:
        """Become the owner of these partitions. Waits while the previous owner has an open transaction on them."""
        statement = (
            f'INSERT INTO "{self._positions}" VALUES (?, 0, ?) ON CONFLICT (partition) DO UPDATE SET owner = '
            "excluded.owner"
        )
        with self._errors("take-over"):
            for partition in sorted(partitions):
                self._database.execute(statement, (partition, self._owner))

    def positions(self) -> dict[int, int]:
        """Return the position of each partition that anybody has ever owned."""
        with self._errors("positions"):
            return dict(self._database.query(f'SELECT partition, next FROM "{self._positions}"'))

    def begin(self) -> None:
        """Begin a transaction."""
        self._rows.clear()
        with self._errors("begin"):
            self._database.execute("BEGIN")

    def send(self, topic: str, partition: int, key: bytes, value: bytes, header: bytes) -> None:
        """Take an output for the table `topic`, which `flush` inserts."""
        self._rows[topic].append((partition, key, value, header))

    def flush(self) -> dict[str, list[int]]:
        """Insert the outputs, and return the numbers of their rows: `table/partition` → [count, first, last]."""
        acknowledged: dict[str, list[int]] = {}
        for table, outputs in self._rows.items():
            if not (rows := outputs if self._remembers == 0 else [row for row in outputs if self._is_new(row)]):
                continue
            with self._errors("send"):
                numbers = self._database.insert(self._tables[table], _COLUMNS, rows)
            for (partition, *_), number in zip(rows, numbers, strict=True):
                count, first, _ = acknowledged.get(f"{table}/{partition}", [0, number, number])
                acknowledged[f"{table}/{partition}"] = [count + 1, first, number]
        self._rows.clear()
        return acknowledged

    def _is_new(self, row: Sequence[Any]) -> bool:
        """Return whether the input of an output has not been seen, and remember it."""
        with self._errors("send"):
            new = self._database.execute(
                f'INSERT INTO "{self._seen}" (input) VALUES (?) ON CONFLICT (input) DO NOTHING',
                (payload.number(row[2]),),
            )
            if new and self._remembers is not None:
                oldest = f'SELECT max(id) - ? FROM "{self._seen}"'
                self._database.execute(f'DELETE FROM "{self._seen}" WHERE id <= ({oldest})', (self._remembers,))
        return bool(new)

    def send_offsets(self, topic: str, ranges: Mapping[int, tuple[int, int]], metadata: str, group: object) -> None:
        """Update the positions in the transaction. Raises a fatal ClientError where another owner has come."""
        del topic, metadata, group  # Kafka's
        mine = " AND owner = ?" if self._fenced else ""
        statement = f'UPDATE "{self._positions}" SET next = ? WHERE partition = ?{mine}'
        for partition, (_, following) in sorted(ranges.items()):
            values = (following, partition, self._owner) if self._fenced else (following, partition)
            with self._errors("send-offsets"):
                changed = self._database.execute(statement, values)
            if not changed:
                text = f"partition {partition} has another owner"
                raise ClientError("send-offsets", own_errors.FENCED, abortable=False, fatal=True, text=text)

    def commit(self) -> None:
        """Commit the transaction."""
        with self._errors("commit"):
            self._database.execute("COMMIT")

    def abort(self) -> None:
        """Roll the transaction back."""
        with self._errors("abort"):
            self._database.execute("ROLLBACK")

    def commit_offsets(self, ranges: Mapping[int, tuple[int, int]]) -> None:
        """Update the positions in a transaction of their own."""
        self.begin()
        self.send_offsets("", ranges, "", None)
        self.commit()

    @contextmanager
    def _errors(self, call: str) -> Iterator[None]:
        """Turn an error of the database into a ClientError, which ends the process: the transaction is rolled back."""
        try:
            yield
        except self._database.error as error:
            raise ClientError(call, type(error).__name__, abortable=False, fatal=True, text=str(error)) from None
