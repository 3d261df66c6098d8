"""What all commands share: opening the database, and printing for people or for machines."""

import json
import sys
import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from pydantic import BaseModel, TypeAdapter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memory_pipelines.cli.program import as_started
from memory_pipelines.errors import InvalidInputError, MemoryPipelinesWarning
from memory_pipelines.gateway.base import NOT_AN_LLM, OFFLINE

if TYPE_CHECKING:
    from memory_pipelines.wiring import App

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]

FAILED, WRONG_USE = 1, 2
"""Exit codes; 0 is success."""

console = Console(highlight=False, soft_wrap=True, emoji=False)


@contextmanager
def opened() -> Generator["App"]:
    """Open the configured database for one command."""
    # Imported here, so that `--help` does not wait for the database libraries.
    from memory_pipelines.wiring import open_app

    app = open_app()
    try:
        yield app
    finally:
        app.close()


def print_json(value: Any) -> None:
    """Print records, or lists and dicts of them, as JSON on standard output."""
    typer.echo(TypeAdapter(Any).dump_json(value, indent=2).decode())


def for_machines() -> bool:
    """Whether this command was asked for JSON, told before its options are read: errors come before that too."""
    return "--json" in sys.argv


def print_error(status: str, message: str) -> None:
    """Print an error on standard error: a line for people, or JSON with the status word."""
    message = as_started(message)
    if for_machines():
        typer.echo(json.dumps({"error": {"code": status, "message": message}}), err=True)
    else:
        typer.echo(f"Error: {message}", err=True)


def warn(message: str) -> None:
    """Print a warning on standard error: a line for people, or JSON."""
    if for_machines():
        typer.echo(json.dumps({"warning": {"message": as_started(message)}}), err=True)
    else:
        typer.echo(f"Warning: {as_started(message)}", err=True)


@contextmanager
def shown_warnings() -> Generator[None]:
    """Print our own warnings as one line each instead of with the place in the code, each text once."""
    others = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, MemoryPipelinesWarning):
            warn(str(message))
        else:
            others(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        warnings.filterwarnings("once", category=MemoryPipelinesWarning)
        warnings.showwarning = show
        yield


def print_records(records: Iterable[BaseModel], columns: Sequence[str], *, as_json: bool, empty: str) -> None:
    """Print records as a table of some of their fields, or whole as JSON.

    Args:
        records: what to print.
        columns: dotted field names, also the headings.
        as_json: for machines.
        empty: what to say to people when there are none, with what to do next.
    """
    rows = list(records)
    if as_json:
        print_json(rows)
        return
    if not rows:
        console.print(empty, markup=False)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.rsplit(".", 1)[-1].replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(field_of(row, column))) for column in columns))
    console.print(table)


def print_record(record: BaseModel, *, as_json: bool, said: str) -> None:
    """Print one record: a sentence for people, or whole as JSON."""
    if as_json:
        print_json(record)
    else:
        console.print(said, markup=False)


def confirm(question: str, *, yes: bool) -> None:
    """Ask a person, and end the command unless it is confirmed.

    Args:
        question: what is about to happen.
        yes: it was confirmed beforehand.

    Raises:
        InvalidInputError: a machine is there, which nobody asks.
    """
    if yes:
        return
    if for_machines():
        raise InvalidInputError("--json asks nobody; confirm with --yes")
    typer.confirm(question, abort=True)


def print_deleted(name: str, *, as_json: bool, stays: str | None = None) -> None:
    """Say what was deleted.

    Args:
        name: its full name.
        as_json: for machines.
        stays: full name of what one might fear for.
    """
    if as_json:
        print_json({"deleted": name})
    else:
        console.print(f"Deleted {name}{f'; {stays} stays' if stays else ''}.", markup=False)


def field_of(record: Any, dotted: str) -> Any:
    """Return a field of a field."""
    for name in dotted.split("."):
        record = getattr(record, name)
    return record


def shown(value: Any) -> str:
    """Return a value as people read it in a table."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%SZ")
    return str(value)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_parts(*parts: str | tuple[str, str]) -> None:
    """Print one line of data, each part as it stands or with a style.

    Args:
        parts: texts, or pairs of a text and a style of Rich. None is read as markup: what people say may look like
            it, and no way of escaping is right for backslashes before brackets.
    """
    console.print(Text.assemble(*parts))


def model_name(model: str) -> str:
    """Return how a model is named to people: what is not an LLM says so."""
    return NOT_AN_LLM if model == OFFLINE else model
