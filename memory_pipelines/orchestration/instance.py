"""Prepares Dagster's own folder."""

import os
from importlib.resources import files
from pathlib import Path

import dagster as dg

from memory_pipelines.errors import SettingsError
from memory_pipelines.settings import Settings


def dagster_home(settings: Settings) -> Path:
    """Return Dagster's folder with a dagster.yaml in it; DAGSTER_HOME wins over the settings.

    Raises:
        SettingsError: the folder cannot be written.
    """
    given = os.environ.get("DAGSTER_HOME")
    home = Path(given).expanduser().absolute() if given else settings.dagster
    config = home / "dagster.yaml"
    try:
        home.mkdir(parents=True, exist_ok=True)
        if not config.exists():
            packaged = files("memory_pipelines.orchestration") / "dagster.yaml"
            config.write_text(packaged.read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise SettingsError(
            f"Dagster's folder {home} cannot be used: {error}; give another by DAGSTER_HOME or"
            " MEMORY_PIPELINES_DAGSTER_HOME",
            path=str(home),
        ) from error
    return home


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """Open the persistent Dagster instance; the caller disposes of it, best by `with`."""
    home = dagster_home(settings)
    return dg.DagsterInstance.from_config(str(home))
