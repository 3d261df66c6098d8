"""The command `memory-pipelines`: puts the nouns together and turns errors into one line and an exit code."""

import sys
from typing import Annotated

import typer

from memory_pipelines import __version__
from memory_pipelines.cli import dev, importing, memory, pipeline, quickstart, runs, stores, trajectory
from memory_pipelines.cli.output import FAILED, WRONG_USE, for_machines, print_error, shown_warnings
from memory_pipelines.errors import InvalidInputError, MemoryPipelinesError, SettingsError

app = typer.Typer(
    name="memory-pipelines",
    help="Turns an agent's past conversations into long-term memory, run by Dagster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("quickstart", epilog="Example: memory-pipelines quickstart")(quickstart.quickstart)
app.command("dev", epilog="Example: memory-pipelines dev --port 3000")(dev.dev)
app.command("import", epilog="Example: memory-pipelines import native history.jsonl --store support --dry-run")(
    importing.import_history
)
app.add_typer(stores.session_stores, name="session-store")
app.add_typer(stores.memory_stores, name="memory-store")
pipeline.app.registered_commands.extend(runs.app.registered_commands)
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(memory.app, name="memory")
app.add_typer(trajectory.app, name="trajectory")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memory-pipelines {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Turns an agent's past conversations into long-term memory, run by Dagster."""


def main() -> None:
    """Run the command; exit code 0 is success, 1 a failure, 2 wrong use."""
    try:
        with shown_warnings():
            code = _run_for_machines() if for_machines() else app()
    except MemoryPipelinesError as error:
        print_error(error.status, error.message)
        code = WRONG_USE if isinstance(error, InvalidInputError | SettingsError) else FAILED
    sys.exit(code)


def _run_for_machines() -> int:
    """Run the command without Typer's frames round wrong use: whoever asked for JSON reads errors as JSON too."""
    try:
        return app(standalone_mode=False) or 0
    except typer.TyperException as error:
        print_error(InvalidInputError.status, f"{error.format_message().rstrip('.')}; see --help")
        return error.exit_code
