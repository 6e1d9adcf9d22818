"""PostgreSQL, as `DatabaseWriter` uses it, with the driver psycopg.

The server ends the session of a client that leaves a transaction open for longer than the workload's transaction
time-out (`idle_in_transaction_session_timeout`), and so rolls the transaction of a zombie back. libpq has no time-out
for an answer that never comes: here a timer closes the connection.
"""

import socket
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, ClassVar

import psycopg

from onceproof.harness.base.deadlines import overdue, until

_WAIT_S = 20.0
_CONNECT_S = 40.0
_LOCK = 0x6F70  # a number of our own among those of pg_advisory_xact_lock


class Postgresql:
    """A connection to the database of a URL `jdbc:postgresql:…`.

    A database that was killed refuses connections until it has recovered. Raises DeadlineError after 40 seconds.
    """

    error: ClassVar = psycopg.Error
    types: ClassVar = {"id": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "bytes": "BYTEA"}

    def __init__(self, url: str, transaction_timeout_ms: int) -> None:
        limits = {"idle_in_transaction_session_timeout": transaction_timeout_ms, "lock_timeout": int(_WAIT_S * 1000)}
        options = " ".join(f"-c {name}={value}" for name, value in limits.items())
        self._connection = until(
            "PostgreSQL to accept a connection",
            partial(psycopg.connect, url.removeprefix("jdbc:"), autocommit=True, connect_timeout=5, options=options),
            deadline_s=_CONNECT_S,
        )

    def create(self, statements: Sequence[str]) -> None:
        """Execute statements that make tables unless they are there.

        Without the lock, two sessions that make the same table at the same time may both find that it is not there.
        """
        for statement in ("BEGIN", f"SELECT pg_advisory_xact_lock({_LOCK})", *statements, "COMMIT"):
            self.execute(statement)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Execute a statement with `?` for each value, and return how many rows it changed."""
        with self._in_time():
            return self._connection.execute(_query(statement), values or None).rowcount

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._in_time():
            return self._connection.execute(_query(statement)).fetchall()

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> list[int]:
        """Insert rows, and return the number that each got as its id, in their order."""
        statement = f'INSERT INTO "{table}" ({columns}) VALUES ({", ".join("?" * len(rows[0]))}) RETURNING id'
        numbers: list[int] = []
        with self._in_time(), self._connection.cursor() as cursor:
            cursor.executemany(_query(statement), rows, returning=True)  # in libpq's pipeline mode
            while True:
                numbers += [number for (number,) in cursor.fetchall()]
                if not cursor.nextset():
                    return numbers

    def _in_time(self) -> AbstractContextManager[None]:
        """Close the connection when the block takes too long, so that its call raises psycopg.OperationalError."""
        return overdue(_WAIT_S + 1, partial(_shut, self._connection.fileno()))


def _query(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


def _shut(descriptor: int) -> None:
    with socket.socket(fileno=socket.dup(descriptor)) as connection:
        connection.shutdown(socket.SHUT_RDWR)
