"""`dev`: the Dagster UI, its daemon and the code location on this project."""

from typing import Annotated

import typer


def dev(
    port: Annotated[int, typer.Option("--port", "-p", min=1, max=65535, help="Of the Dagster UI.")] = 3000,
    host: Annotated[str, typer.Option(help="Address the UI listens on.")] = "127.0.0.1",
) -> None:
    """Start the Dagster UI and daemon, ready to use; Ctrl-C ends them."""
    # Imported here: Dagster takes a second to import, and no other command needs it.
    from memory_pipelines.orchestration.dev import run_dev
    from memory_pipelines.settings import read_settings

    run_dev(read_settings(), port=port, host=host)
