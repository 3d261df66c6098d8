"""From an address to the stores."""

from memory_pipelines.stores.actors import SqlActors
from memory_pipelines.stores.base import MemoryStores, Pipelines, Progress, SessionStores, Stores
from memory_pipelines.stores.batches import SqlBatches
from memory_pipelines.stores.calls import SqlCalls
from memory_pipelines.stores.commits import SqlCommits
from memory_pipelines.stores.database import Database, connect
from memory_pipelines.stores.memories import SqlMemoryStores
from memory_pipelines.stores.pipelines import SqlPipelines
from memory_pipelines.stores.schema import prepare
from memory_pipelines.stores.sessions import SqlSessionStores


class SqlProgress(SqlBatches, SqlActors, SqlCommits, SqlCalls):
    """Implements stores.base.Progress, one part a file."""


class SqlStores:
    """All stores of one SQL database. Safe for threads; each process opens its own."""

    def __init__(self, database: Database) -> None:
        """Plug the stores together over a database whose schema is up to date."""
        self._database = database
        self.sessions: SessionStores = SqlSessionStores(database)
        self.memories: MemoryStores = SqlMemoryStores(database)
        self.pipelines: Pipelines = SqlPipelines(database)
        self.progress: Progress = SqlProgress(database)

    def close(self) -> None:
        """Close the connections."""
        self._database.close()


def open_stores(url: str, *, migrate: bool = True) -> Stores:
    """Open the stores of a database.

    Args:
        url: such as sqlite:///memory.db; file and folder are made when they are missing.
        migrate: whether a missing or older schema is brought up to date.

    Returns:
        The stores; close them when done.

    Raises:
        SettingsError: the address cannot be used, or the schema is newer than this program.
        StoreUnavailableError: the database does not answer.
    """
    database = connect(url)
    try:
        prepare(database, migrate=migrate)
    except BaseException:
        database.close()
        raise
    return SqlStores(database)
