"""A history database: transactions that are tried again, and errors in words without secrets."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, create_engine, event, text
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from pytest_ttnn_perf._base.errors import TtnnPerfError
from pytest_ttnn_perf._base.text import visible
from pytest_ttnn_perf.history.database_schema import SchemaError, check_schema, upgrade

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection, Engine

    from pytest_ttnn_perf.records.database_url import DatabaseUrl

T = TypeVar("T")

#: After these pauses a transaction is tried again. With what each try may wait itself, a database
#: that does not answer is given up within a minute.
_PAUSES_S: Final = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0)
#: How long one try waits for a lock of SQLite, or for a server to take a connection.
_WAIT_S: Final = 5
#: How long a server may take for one statement; inserting a run takes a fraction of a second.
_STATEMENT_MS: Final = 60_000
#: Of PostgreSQL: connections, conflicts of transactions, too many clients, a server that stops or
#: starts, a lock that is not to be had.
_PASSING: Final = ("08", "40", "53300", "57P", "55P03")
#: How a server refuses a client for good; without these words it is not there, or about to start.
_REFUSED: Final = "FATAL:"
_NOT_YET: Final = ("starting up", "shutting down", "recovery", "too many", "remaining connection")
#: Of SQLite: another process writes.
_LOCKED: Final = ("database is locked", "database table is locked", "database schema is locked")
_NO_DATABASE: Final = "file is not a database"


class HistoryError(TtnnPerfError):
    """A database that cannot be used; without the password of its URL."""

    def __init__(self, url: DatabaseUrl, problem: str) -> None:
        super().__init__(str(url), problem)
        self.problem = problem
        self._place = str(url)

    def __str__(self) -> str:
        return visible(f"{self._place}: {self.problem}")


class Database:
    """A database, in which work is done in transactions of its own.

    Nothing is kept open between them: a server may stop and come back.
    """

    def __init__(self, url: DatabaseUrl, *, pause: Callable[[float], None] = time.sleep) -> None:
        self.url = url
        self._pause = pause
        #: By whether they write; statements are compiled once for each.
        self._engines: dict[bool, Engine] = {}
        self._is_current = False

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return what ``work`` reads.

        Raises:
            HistoryError: there is no history, or it cannot be read.
        """
        if self.url.file is not None and not self.url.file.exists():
            raise HistoryError(self.url, "expected a database, found nothing")

        def checked(connection: Connection) -> T:
            if not self._is_current:
                check_schema(connection)
            return work(connection)

        return self._attempts(checked, writes=False)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do ``work`` as a whole or not at all, and return its result; tables are made first.

        What was done may be done again, if the server was lost before it could say so: ``work``
        must look for what it writes.

        Raises:
            HistoryError: it could not be done.
        """

        def upgraded(connection: Connection) -> T:
            if not self._is_current:
                upgrade(connection)
            return work(connection)

        done = self._attempts(upgraded, writes=True)
        self._is_current = True
        return done

    def compact(self) -> None:
        """Give the room of what was deleted back; a server does so by itself.

        Raises:
            HistoryError: it could not be done.
        """
        if self.url.file is None:
            return
        try:
            with closing(self._open_file(writes=True)) as connection:
                connection.execute("VACUUM")
        except sqlite3.Error as error:
            problem = f"it is pruned, but its file cannot be made smaller now: {error}"
            raise HistoryError(self.url, problem) from None

    def _attempts(self, work: Callable[[Connection], T], *, writes: bool) -> T:
        engine = self._engine(writes=writes)
        for pause_s in (*_PAUSES_S, None):
            try:
                with self._told(), engine.begin() as connection:
                    if connection.dialect.name == "postgresql":
                        limit = f"SET LOCAL statement_timeout = {_STATEMENT_MS}"
                        connection.execute(text(limit))
                    return work(connection)
            except _PassingError as error:
                if pause_s is None:
                    raise HistoryError(self.url, error.problem) from None
            # Many runners that start again at once would meet again at once.
            self._pause(pause_s * random.uniform(0.5, 1.5))
        raise AssertionError

    def _engine(self, *, writes: bool) -> Engine:
        if writes not in self._engines:
            self._engines[writes] = self._new_engine(writes=writes)
        return self._engines[writes]

    def _new_engine(self, *, writes: bool) -> Engine:
        if self.url.file is None:
            return create_engine(self._server(), poolclass=NullPool, hide_parameters=True)
        engine = create_engine(
            "sqlite://",
            creator=lambda: self._open_file(writes=writes),
            poolclass=NullPool,
            hide_parameters=True,
        )
        # A transaction that reads first and then writes cannot wait for another one.
        begin = "BEGIN IMMEDIATE" if writes else "BEGIN"
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        return engine

    def _open_file(self, *, writes: bool) -> sqlite3.Connection:
        mode = "rwc" if writes else "rw"
        place = f"file:{quote(str(self.url.file))}?mode={mode}"
        return sqlite3.connect(place, uri=True, timeout=_WAIT_S, isolation_level=None)

    def _server(self) -> URL:
        url = self.url
        usual = {
            "connect_timeout": str(_WAIT_S),
            "tcp_user_timeout": str(_STATEMENT_MS // 2),
            "application_name": "ttnn-perf",
        }
        return URL.create(
            url.scheme,
            username=url.user,
            password=url.password,
            host=url.host,
            port=url.port,
            database=url.database,
            query={**usual, **dict(url.options)},
        )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what goes wrong into our words; the chain of causes may have secrets in it."""
        try:
            yield
        except SchemaError as error:
            raise HistoryError(self.url, str(error)) from None
        except DBAPIError as error:
            problem = self._problem(error)
            if _may_pass(error):
                raise _PassingError(problem) from None
            raise HistoryError(self.url, problem) from None
        except SQLAlchemyError as error:
            raise HistoryError(self.url, self._problem(error)) from None

    def _problem(self, error: SQLAlchemyError) -> str:
        told = str(error.orig if isinstance(error, DBAPIError) else error)
        lines = [line.strip() for line in told.splitlines() if line.strip()]
        if _NO_DATABASE in told:
            return "expected a database of SQLite, found another file"
        return self.url.without_secrets(lines[0] if lines else type(error).__name__)


class _PassingError(Exception):
    """What may be gone when it is tried again."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


def _may_pass(error: DBAPIError) -> bool:
    # Somebody else wrote the same row meanwhile: now it can be seen.
    if isinstance(error, IntegrityError) or error.connection_invalidated:
        return True
    told, state = str(error.orig), _state_of(error.orig)
    if state is not None:
        return state.startswith(_PASSING)
    if isinstance(error.orig, sqlite3.Error):
        return told.startswith(_LOCKED)
    is_connecting = type(error.orig).__name__ in {"OperationalError", "ConnectionTimeout"}
    return is_connecting and (_REFUSED not in told or any(word in told for word in _NOT_YET))


def _state_of(error: Any) -> str | None:
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None
