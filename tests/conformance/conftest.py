"""The back ends over which the suites of the stores run."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from stores_world import World

from memory_pipelines.stores.base import Stores
from memory_pipelines.stores.sql import open_stores


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database with its tables, made once and copied."""
    path = tmp_path_factory.mktemp("template") / "empty.db"
    open_stores(f"sqlite:///{path}").close()
    return path


@pytest.fixture(params=["sqlite"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database is, as another process would be told."""
    path = tmp_path / "stores.db"
    shutil.copy(request.getfixturevalue("sqlite_template"), path)
    return f"sqlite:///{path}"


@pytest.fixture
def stores(address: str) -> Iterator[Stores]:
    opened = open_stores(address)
    yield opened
    opened.close()


@pytest.fixture
def world(stores: Stores) -> World:
    return World.make(stores)
