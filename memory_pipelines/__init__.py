"""Turns an agent's past conversations into long-term memory, run by Dagster.

`connect` opens a database, `memory_pipelines.memex` is the code-as-action engine, `memory_pipelines.testing` has
doubles.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_pipelines.wiring import App

__all__ = ["__version__", "connect"]

__version__ = version("memory-pipelines")


def connect(url: str | None = None, **settings: object) -> "App":
    """Open a database and return the app on it.

    Args:
        url: sqlite:///memory.db or another database URL; None for the configured one.
        settings: fields of `memory_pipelines.settings.Settings` that win over the environment.

    Returns:
        An app with `sessions`, `memory` and `pipelines`; call its `close` at the end.

    Raises:
        SettingsError: the URL or a setting cannot be used.
    """
    # Imported here, so that `import memory_pipelines` costs nothing.
    from memory_pipelines.settings import read_settings
    from memory_pipelines.wiring import open_app

    given = settings if url is None else {**settings, "database_url": url}
    return open_app(read_settings(**given))
