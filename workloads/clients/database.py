"""A writer into a database, for pipelines that keep outputs and positions there, and none in Kafka.

    BEGIN
    INSERT INTO results …                                               the outputs
    UPDATE positions SET next = 44 WHERE partition = 3 AND owner = ?    the position, unless another owner has come
    COMMIT

Outputs and positions are in one transaction of the database, so that both take effect or neither. After a restart, and
after each rebalance, the consumer seeks to the positions that the database holds. Who takes a partition over puts its
own name into `positions`, and so fences the previous owner: an update that finds another owner changes no row.

SQLite lets one process write at a time. The lock is taken with the first output, so a worker that is stopped later lets
all others wait.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from onceproof.harness.record import own_errors
from onceproof.workloads.clients import ClientError

_WAIT_S = 30.0


class DatabaseWriter:
    """The writer of one worker, which is `owner`, a name for each process.

    With `fenced` false, a position is updated whoever owns its partition: a mistake, which a negative control makes.
    """

    def __init__(self, path: Path, tables: Iterable[str], *, owner: str, fenced: bool) -> None:
        self._tables, self._owner, self._fenced = tuple(tables), owner, fenced
        self._database = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
        self._acknowledged: dict[str, list[int]] = {}

    def start(self) -> None:
        """Make the tables, unless they are there."""
        with _errors("start"):
            self._database.execute("PRAGMA journal_mode = WAL")
            for table in self._tables:
                self._database.execute(
                    f'CREATE TABLE IF NOT EXISTS "{table}" (id INTEGER PRIMARY KEY AUTOINCREMENT, partition INTEGER, '
                    "key BLOB, value BLOB, header BLOB)"
                )
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS positions (partition INTEGER PRIMARY KEY, next INTEGER, owner TEXT)"
            )

    def take_over(self, partitions: Iterable[int]) -> None:
        """Become the owner of these partitions."""
        with _errors("take-over"):
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany(
                "INSERT INTO positions VALUES (?, 0, ?) ON CONFLICT (partition) DO UPDATE SET owner = excluded.owner",
                [(partition, self._owner) for partition in partitions],
            )
            self._database.execute("COMMIT")

    def positions(self) -> dict[int, int]:
        """Return the position of each partition that anybody has ever owned."""
        with _errors("positions"):
            return dict(self._database.execute("SELECT partition, next FROM positions"))

    def begin(self) -> None:
        """Begin a transaction; it takes the lock with the first output."""
        self._acknowledged = {}
        with _errors("begin"):
            self._database.execute("BEGIN")

    def send(self, topic: str, partition: int, key: bytes, value: bytes, header: bytes) -> None:
        """Insert an output into the table `topic`."""
        insert = f'INSERT INTO "{topic}" (partition, key, value, header) VALUES (?, ?, ?, ?)'
        with _errors("send"):
            number = self._database.execute(insert, (partition, key, value, header)).lastrowid or 0
        count, first, _ = self._acknowledged.get(f"{topic}/{partition}", [0, number, number])
        self._acknowledged[f"{topic}/{partition}"] = [count + 1, first, number]

    def flush(self) -> dict[str, list[int]]:
        """Return the numbers of the rows that were inserted: `table/partition` → [count, first, last]."""
        return self._acknowledged

    def send_offsets(self, topic: str, ranges: Mapping[int, tuple[int, int]], metadata: str, group: object) -> None:
        """Update the positions in the transaction. Raises a fatal ClientError where another owner has come."""
        del topic, metadata, group  # Kafka's
        mine = " AND owner = ?" if self._fenced else ""
        for partition, (_, following) in ranges.items():
            update = f"UPDATE positions SET next = ? WHERE partition = ?{mine}"
            values = (following, partition, self._owner) if self._fenced else (following, partition)
            with _errors("send-offsets"):
                changed = self._database.execute(update, values).rowcount
            if not changed:
                text = f"partition {partition} has another owner"
                raise ClientError("send-offsets", own_errors.FENCED, abortable=False, fatal=True, text=text)

    def commit(self) -> None:
        """Commit the transaction."""
        with _errors("commit"):
            self._database.execute("COMMIT")

    def abort(self) -> None:
        """Roll the transaction back."""
        with _errors("abort"):
            self._database.execute("ROLLBACK")

    def commit_offsets(self, ranges: Mapping[int, tuple[int, int]]) -> None:
        """Update the positions in a transaction of their own."""
        self.begin()
        self.send_offsets("", ranges, "", None)
        self.commit()


@contextmanager
def _errors(call: str) -> Iterator[None]:
    """Turn an error of SQLite into a ClientError, which ends the process: the database rolls its transaction back."""
    try:
        yield
    except sqlite3.Error as error:
        raise ClientError(call, type(error).__name__, abortable=False, fatal=True, text=str(error)) from None
