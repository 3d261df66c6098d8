"""Brings a database to the present schema; safe when several processes open a new one at once."""

import threading
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from memory_pipelines.errors import SettingsError
from memory_pipelines.stores.database import Database, lock_schema, switch_to_wal, translated

REVISIONS = ("0001", "0002", "0003")
"""The migrations, oldest first."""

_ALEMBIC = threading.Lock()
"""Alembic keeps the migration that is going on in a global."""


def prepare(database: Database, *, migrate: bool) -> None:
    """Check the schema and bring it up to date.

    Args:
        database: to look at.
        migrate: whether an older or missing schema is upgraded.

    Raises:
        SettingsError: the schema is newer than this program, unknown, or older and `migrate` is False.
        StoreUnavailableError: the database does not answer.
    """
    with translated():
        switch_to_wal(database.engine)
        with database.engine.connect() as connection:
            if _version(connection) == REVISIONS[-1]:
                return
        if not migrate:
            raise SettingsError("the database has no tables of this program, or older ones; open it with migrate=True")
        with database.writers.begin() as connection:
            lock_schema(connection)
            if _version(connection) != REVISIONS[-1]:
                _upgrade(connection)


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if version is not None and version not in REVISIONS:
        raise SettingsError(
            f"the database has schema {version}, and this program knows up to {REVISIONS[-1]}: it was written by a"
            " newer version. Upgrade memory-pipelines, or use another database",
            version=version,
            known=REVISIONS[-1],
        )
    return version


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    with _ALEMBIC:
        command.upgrade(config, "head")
