"""`import`: histories from files into a session store."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from memory_pipelines.cli.output import WRONG_USE, AsJson, console, counted, opened, print_json
from memory_pipelines.errors import InvalidInputError
from memory_pipelines.importers.base import ImportCheck, Importer, ImportOptions
from memory_pipelines.importers.jsonl import parse_time
from memory_pipelines.names import SESSION_STORE
from memory_pipelines.records import ImportedSession
from memory_pipelines.registry import IMPORTERS


def import_history(
    file_format: Annotated[str, typer.Argument(metavar="FORMAT", help="native or chat-completions.")],
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files; .jsonl or .jsonl.gz.")],
    store: Annotated[str, typer.Option(help="Session store; created when it does not exist.")],
    actor: Annotated[str | None, typer.Option(help="Actor of every line that names none.")] = None,
    actor_field: Annotated[str | None, typer.Option(help="Where a line holds its actor: metadata.user, $file.")] = None,
    session_field: Annotated[str | None, typer.Option(help="Where a line holds its session: id, $file, $line.")] = None,
    time_field: Annotated[str | None, typer.Option(help="Where a message, else its line, holds the time.")] = None,
    assume_time: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When things were said that carry no time: ISO 8601; without an offset UTC."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and count; store nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Import conversations, keeping the time at which things were said. Importing twice adds nothing.

    native: one line a session, see docs/importing.md.

    chat-completions: lines with `messages`; the field options say where actor, session and time are.
    """
    importer: Importer = IMPORTERS.load(file_format)()
    options = ImportOptions(
        actor=actor,
        actor_field=actor_field,
        session_field=session_field,
        time_field=time_field,
        assume_time=None if assume_time is None else assumed_time(assume_time),
    )
    SESSION_STORE.parse(store)  # refused before a long history is read, by a dry run too
    for path in paths:
        if not path.is_file():
            raise InvalidInputError(f"{path} is not a file; give one or more .jsonl or .jsonl.gz files", path=str(path))
    if dry_run:
        _check(importer, paths, options, as_json=as_json)
        return
    with opened() as app:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("sessions"))
        with Progress(*columns, console=console, transient=True, disable=as_json or not console.is_terminal) as bar:
            task = bar.add_task("importing", total=None)
            reading = _Reading()

            def advance(session: ImportedSession, new_items: int) -> None:
                del new_items
                reading.files.pop(session.session_id, None)
                bar.advance(task)

            try:
                report = app.sessions.add_imported(
                    store, reading.sessions(importer, paths, options), on_session=advance
                )
            except InvalidInputError as error:
                file = reading.files.get(error.facts.get("session", ""))
                if file is None:
                    raise
                # What the database refuses names no file by itself.
                raise InvalidInputError(f"{file}: {error.message}", **error.facts, file=str(file)) from error
        if as_json:
            print_json(report)
            return
        console.print(
            f"Imported {counted(report.sessions, 'session')} of {counted(report.actors, 'actor')} into {store}:"
            f" {counted(report.new_items, 'new item')}, {report.items - report.new_items} known before.",
            markup=False,
        )


def assumed_time(text: str) -> datetime:
    """Return the moment that a person typed.

    Args:
        text: a date or a time in ISO 8601; without an offset it is UTC, whatever the zone of the machine.

    Raises:
        InvalidInputError: it is neither, or no year in which conversations were.
    """
    try:
        moment = datetime.fromisoformat(text.strip().upper())
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return parse_time(moment.isoformat(), epoch=False)
    except ValueError:
        raise InvalidInputError(
            f"--assume-time {text!r} is not a date or time of the years 1990 to 9000 in ISO 8601; write for example"
            " 2026-03-02, 2026-03-02T09:30Z or 2026-03-02T09:30:00.5+02:00; without an offset it is UTC",
            assume_time=text,
        ) from None


class _Reading:
    """Sessions of several files, and where those came from that are not stored yet."""

    def __init__(self) -> None:
        self.files: dict[str, Path] = {}  # session to file

    def sessions(self, importer: Importer, paths: list[Path], options: ImportOptions) -> Iterator[ImportedSession]:
        for path in paths:
            for session in importer.sessions(path, options):
                self.files[session.session_id] = path
                yield session


def _check(importer: Importer, paths: list[Path], options: ImportOptions, *, as_json: bool) -> None:
    found = sum((importer.check(path, options) for path in paths), ImportCheck())
    if as_json:
        print_json({**found.model_dump(exclude={"session_ids", "actor_ids"}),
                    "sessions": found.sessions, "actors": found.actors})  # fmt: skip
    else:
        span = f", said {found.first_at:%Y-%m-%d} to {found.last_at:%Y-%m-%d}" if found.first_at else ""
        console.print(
            f"Would import {counted(found.sessions, 'session')} of {counted(found.actors, 'actor')} with"
            f" {counted(found.items, 'item')}{span}.",
            markup=False,
        )
        for error in found.errors:
            typer.echo(f"Error: {error}", err=True)
        if found.error_count > len(found.errors):
            typer.echo(f"... and {counted(found.error_count - len(found.errors), 'more error')}", err=True)
    if found.error_count:
        raise typer.Exit(WRONG_USE)
