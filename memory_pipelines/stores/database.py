"""The way to a database: engines, transactions, foreign errors, and what differs between databases."""

import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, OperationalError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from memory_pipelines.errors import (
    ConflictError,
    InvalidInputError,
    MemoryPipelinesError,
    SettingsError,
    StoreUnavailableError,
)
from memory_pipelines.stores.tables import Table

T = TypeVar("T")

CHUNK = 1000
"""Values that one statement names in an IN; SQLite takes no more than 32,766 parameters."""

BUSY_SECONDS = 30
"""How long a writer waits for another one."""

BEGIN = "memory_pipelines_begin"
"""Execution option: how a transaction begins on SQLite."""

FORMS = ("sqlite:///path/to/memory.db",)
"""Addresses that can be used."""


class Database:
    """One database. Safe for threads; after a fork each process opens its own."""

    def __init__(self, engine: Engine) -> None:
        """Keep the engine; nothing is opened yet."""
        self.engine = engine
        # A writer takes the lock at once: a transaction that reads first and locks later could only fail.
        self.writers = engine.execution_options(**{BEGIN: "BEGIN IMMEDIATE"})

    @contextmanager
    def read(self) -> Generator[Session]:
        """Give a transaction that sees one state and changes nothing."""
        with translated(), Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Generator[Session]:
        """Give a transaction that is committed at the end, or leaves nothing when anything is raised."""
        with translated(), Session(self.writers, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        """Close all connections; open transactions of other threads end in errors."""
        self.engine.dispose()


def connect(address: str) -> Database:
    """Prepare the way to a database.

    Args:
        address: such as sqlite:///memory.db; a missing folder is made.

    Raises:
        SettingsError: the address has another form, or the folder cannot be made.
        StoreUnavailableError: the database does not answer.
    """
    try:
        url = make_url(address)
    except ArgumentError as error:
        raise SettingsError(f"this is no database address; allowed is {' or '.join(FORMS)}", allowed=FORMS) from error
    if url.drivername not in {"sqlite", "sqlite+pysqlite"}:
        raise SettingsError(
            f"databases of the scheme {url.drivername!r} are not supported; allowed is {' or '.join(FORMS)}",
            scheme=url.drivername,
            allowed=FORMS,
        )
    return Database(_sqlite_engine(url))


def _sqlite_engine(url: URL) -> Engine:
    if not url.database or url.database == ":memory:":
        raise SettingsError(
            f"a database in memory is seen by one connection only; name a file: {FORMS[0]}", allowed=FORMS
        )
    path = Path(url.database).expanduser().absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"the folder {path.parent} of the database cannot be made: {error.strerror}", path=str(path)
        ) from error
    engine = create_engine(
        url.set(database=str(path)),
        connect_args={"timeout": BUSY_SECONDS},
        pool_size=8,
        max_overflow=56,
        hide_parameters=True,  # errors are logged, conversations are not
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, entry: ConnectionPoolEntry) -> None:
    del entry
    connection.isolation_level = None  # we begin transactions, not the driver
    connection.execute("PRAGMA foreign_keys = ON")
    # FULL: what was acknowledged survives a power cut. Transactions are few and each carries much, so that
    # the price, one flush a commit, is small beside a model call.
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: Connection) -> None:
    statement = connection.get_execution_options().get(BEGIN, "BEGIN")
    if statement:
        connection.exec_driver_sql(statement)


def switch_to_wal(engine: Engine) -> None:
    """Let readers go on beside a writer; the database remembers it."""
    if engine.dialect.name != "sqlite":
        return
    deadline = time.monotonic() + BUSY_SECONDS
    with engine.execution_options(**{BEGIN: ""}).connect() as connection:
        while connection.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
            try:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            except OperationalError as error:
                # Others who open the new file at this moment hold it, and this statement does not wait for them.
                if "locked" not in str(error.orig) or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


def lock_schema(connection: Connection) -> None:
    """Keep others from changing the schema until the transaction ends."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7402651198)")
    # On SQLite the writer's BEGIN IMMEDIATE has locked everything already.


def upsert(session: Session, row: type[Table]) -> sqlite.Insert:
    """Return an INSERT that can say what happens on conflict; both databases spell it alike."""
    make = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    return cast("sqlite.Insert", make(row.table()))


def insert_new(session: Session, row: type[Table], values: Sequence[dict[str, Any]]) -> None:
    """Insert rows, leaving those alone that exist."""
    if values:
        session.execute(upsert(session, row).on_conflict_do_nothing(), list(values))


def chunks(values: Iterable[T]) -> Iterator[list[T]]:
    """Yield values in lists that a statement can name one by one: a database takes only so many parameters."""
    rest = iter(values)
    while part := list(islice(rest, CHUNK)):
        yield part


@contextmanager
def translated() -> Generator[None]:
    """Turn errors of the database into ours; the only place that does."""
    try:
        yield
    except PoolTimeoutError as error:
        raise StoreUnavailableError("all connections to the database are busy; try again") from error
    except IntegrityError as error:
        raise ConflictError("somebody wrote the same at the same time; read again and try again") from error
    except DataError as error:
        raise InvalidInputError(f"the database cannot keep a value: {error.orig}") from error
    except DBAPIError as error:
        if "file is not a database" in str(error.orig):
            raise SettingsError(
                "the file exists and is not a database; name another, or move it away", reason=str(error.orig)
            ) from error
        raise StoreUnavailableError(
            f"the database does not answer as it should: {error.orig}", reason=str(error.orig)
        ) from error
    except OverflowError as error:
        raise InvalidInputError("a number is too large for the database") from error
    except UnicodeEncodeError as error:  # a name on the command line whose bytes are not UTF-8, for one
        raise InvalidInputError(
            "a value holds half of a surrogate pair, which no text can; give it in valid UTF-8"
        ) from error
    except StatementError as error:
        if isinstance(error.orig, MemoryPipelinesError):  # raised by a column type
            raise error.orig from None
        raise
