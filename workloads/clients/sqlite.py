"""SQLite, as `DatabaseWriter` uses it.

SQLite lets one process write at a time. The first statement of a transaction that writes takes the lock, so a worker
that is stopped after it lets all others wait.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any, ClassVar

from onceproof.harness.model.databases import SQLITE_URL

_WAIT_S = 30.0


class Sqlite:
    """A connection to the file of a URL `jdbc:sqlite:FILE`, which is made if it is not there."""

    error: ClassVar = sqlite3.Error
    types: ClassVar = {"id": "INTEGER PRIMARY KEY AUTOINCREMENT", "bytes": "BLOB"}

    def __init__(self, url: str) -> None:
        self._connection = sqlite3.connect(
            url.removeprefix(SQLITE_URL), timeout=_WAIT_S, isolation_level=None, check_same_thread=False
        )

    def create(self, statements: Sequence[str]) -> None:
        """Execute statements that make tables unless they are there."""
        self._connection.execute("PRAGMA journal_mode = WAL")
        for statement in statements:
            self._connection.execute(statement)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Execute a statement with `?` for each value, and return how many rows it changed."""
        return self._connection.execute(statement, values).rowcount

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self._connection.execute(statement).fetchall()

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> list[int]:
        """Insert rows, and return the number that each got as its id, in their order."""
        statement = f'INSERT INTO "{table}" ({columns}) VALUES ({", ".join("?" * len(rows[0]))})'
        return [self._connection.execute(statement, row).lastrowid or 0 for row in rows]
