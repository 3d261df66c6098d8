"""Writes what happens in a rollout, one JSON line each while it goes on."""

import os
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import JsonValue

from memory_pipelines.errors import UnavailableError
from memory_pipelines.memex.blobs import Blobs
from memory_pipelines.memex.events import EVENT, Event
from memory_pipelines.memex.trajectory import Trajectory


class Recorder:
    """Takes events as they happen; what is in the file is there even if the process is killed."""

    def __init__(self, path: Path | str | None = None, *, redact: Callable[[str], str] | None = None) -> None:
        """Open the file.

        Args:
            path: a file to write, readable by its owner only; one that is there is replaced. Large values go into
                a folder beside it. None keeps events in memory alone.
            redact: passed over every string of an event before it is kept or written.

        Raises:
            UnavailableError: the file cannot be written.
        """
        self._events: list[Event] = []
        self._redact = redact
        self._path = path
        self._file: TextIOWrapper | None = None
        if path is None:
            return
        self._blobs = Blobs(path)
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            self._file = os.fdopen(descriptor, "w", encoding="utf-8", newline="\n")
            self._blobs.clear()
        except OSError as error:
            raise self._unwritable(error) from error

    def add(self, event: Event) -> None:
        """Keep an event.

        Args:
            event: what happened.

        Raises:
            UnavailableError: the file cannot be written.
        """
        if self._redact is not None:
            event = _redacted(event, self._redact)
        self._events.append(event)
        if self._file is None:
            return
        try:
            stored = self._blobs.store(event)
            self._file.write(stored.model_dump_json(exclude=None if stored.blobs else {"blobs"}) + "\n")
            self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from error

    @property
    def trajectory(self) -> Trajectory:
        """What happened until now."""
        return Trajectory(self._events)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def _unwritable(self, error: OSError) -> UnavailableError:
        return UnavailableError(
            f"the trajectory {self._path} cannot be written: {error.strerror}. Free space or choose another place.",
            path=str(self._path),
        )


def _redacted(event: Event, redact: Callable[[str], str]) -> Event:
    fields: dict[str, JsonValue] = event.model_dump(mode="json")
    return EVENT.validate_python(
        {name: value if name in event.words else _mapped(value, redact) for name, value in fields.items()}
    )


def _mapped(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    match value:
        case str():
            return change(value)
        case list():
            return [_mapped(one, change) for one in value]
        case dict():
            return {change(key): _mapped(one, change) for key, one in value.items()}
        case _:
            return value
