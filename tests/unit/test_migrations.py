"""The schema by migrations is the schema of the tables, also when several open a new database at once."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from memory_pipelines.errors import SettingsError, StoreUnavailableError
from memory_pipelines.stores.schema import REVISIONS
from memory_pipelines.stores.sql import open_stores
from memory_pipelines.stores.tables import METADATA


def test_migrations_make_the_tables_as_they_are_written(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'made.db'}"
    open_stores(url).close()
    engine = create_engine(url)
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), METADATA)
        tables = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master WHERE type = 'table'").scalar()
    engine.dispose()

    assert differences == []
    assert tables is not None
    assert tables > 15


def test_every_migration_is_known() -> None:
    folder = Path(open_stores.__code__.co_filename).parent / "migrations" / "versions"
    numbers = sorted(path.stem[1:5] for path in folder.glob("v*.py"))

    assert tuple(numbers) == REVISIONS


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    open_stores(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()

    with pytest.raises(SettingsError, match="newer version"):
        open_stores(f"sqlite:///{path}")


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("these are my notes\n" * 100)

    with pytest.raises((SettingsError, StoreUnavailableError)):
        open_stores(f"sqlite:///{tmp_path / 'notes.db'}")


def test_an_unknown_kind_of_database_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="mongodb"):
        open_stores("mongodb://localhost/x")


def test_several_may_open_a_new_database_at_once(tmp_path: Path) -> None:
    code = "import sys; from memory_pipelines.stores.sql import open_stores; open_stores(sys.argv[1]).close()"
    url = f"sqlite:///{tmp_path / 'deep' / 'new.db'}"
    children = [subprocess.Popen([sys.executable, "-c", code, url], stderr=subprocess.PIPE) for _ in range(4)]

    assert [(child.communicate(timeout=60)[1], child.returncode) for child in children] == [(b"", 0)] * 4
