"""Writes what happens in a rollout, one JSON line each while it goes on."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import JsonValue

from memory_pipelines.errors import MemoryPipelinesError, UnavailableError
from memory_pipelines.memex.blobs import Blobs
from memory_pipelines.memex.budget import Meter
from memory_pipelines.memex.events import EVENT, End, Event, Failed
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
        self._children: dict[str, Recorder] = {}
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

    def child(self, name: str) -> "Recorder":
        """Open the recorder of a subagent; its file is in the folder of this one.

        Args:
            name: its id.

        Raises:
            UnavailableError: the file cannot be written.
        """
        path = None if self._path is None else self._blobs.child(name)
        made = self._children[name] = Recorder(path, redact=self._redact)
        return made

    @property
    def trajectory(self) -> Trajectory:
        """What happened until now, in its subagents too."""
        return Trajectory(self._events, children={name: one.trajectory for name, one in self._children.items()})

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


@contextmanager
def closing(recorder: Recorder, meter: Meter) -> Generator[None]:
    """Write down how a rollout ends, well or in an error, with what it has cost.

    Args:
        recorder: of the rollout.
        meter: of its budget.
    """
    try:
        yield
        recorder.add(_end(meter, ok=True))
    except BaseException as error:
        # The boundary: whatever leaves, cancellation too, is written down with what it has cost, and goes on.
        ours = isinstance(error, MemoryPipelinesError)
        if ours:
            error.facts["usage"] = meter.usage.model_dump()
        try:
            recorder.add(Failed(error=type(error).__name__, status=error.status if ours else "", message=str(error)))
            recorder.add(_end(meter, ok=False))
        except UnavailableError as unwritten:
            error.add_note(f"its trajectory is not complete: {unwritten}")
        raise


def _end(meter: Meter, *, ok: bool) -> End:
    return End(ok=ok, turns=meter.turns, usage=meter.usage, seconds=round(meter.seconds, 3))


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
