"""What happened in a rollout, written one JSON line each while it goes on, and read again."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import JsonValue, ValidationError

from memory_pipelines.errors import InvalidInputError, NotFoundError, UnavailableError
from memory_pipelines.gateway.base import Usage
from memory_pipelines.memex.events import (
    EVENT,
    Block,
    Event,
    Header,
    LlmRequest,
    LlmResponse,
    Observed,
    Submitted,
    ToolCalled,
)


@dataclass(frozen=True)
class Turn:
    """One answer of the model and what came of it."""

    number: int  # from 1
    text: str  # what the model said; empty when no answer came
    blocks: tuple[Block, ...]
    outputs: tuple[Observed, ...]
    submitted: Submitted | None


class Trajectory:
    """The events of one rollout, in order."""

    def __init__(self, events: Sequence[Event]) -> None:
        """Keep the events."""
        self.events = tuple(events)

    @classmethod
    def load(cls, path: Path | str) -> "Trajectory":
        """Read a file that a rollout wrote.

        Args:
            path: the file. A last line that a crash cut off is left out.

        Returns:
            The trajectory.

        Raises:
            NotFoundError: there is no such file.
            InvalidInputError: a line is not an event; says which and why.
        """
        try:
            lines = Path(path).read_bytes().split(b"\n")
        except FileNotFoundError as error:
            raise NotFoundError(f"there is no trajectory at {path}", path=str(path)) from error
        events: list[Event] = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                events.append(EVENT.validate_json(line))
            except ValidationError as error:
                if number == len(lines):
                    break
                first = error.errors(include_url=False, include_context=False, include_input=False)[0]
                raise InvalidInputError(
                    f"{path}, line {number} is not an event of a trajectory: {first['msg']}",
                    path=str(path),
                    line=number,
                ) from error
        return cls(events)

    @property
    def header(self) -> Header | None:
        """The first event; None in an empty trajectory."""
        return next((event for event in self.events if isinstance(event, Header)), None)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The code that ran."""
        return tuple(event for event in self.events if isinstance(event, Block))

    @property
    def outputs(self) -> tuple[Observed, ...]:
        """What the blocks showed."""
        return tuple(event for event in self.events if isinstance(event, Observed))

    @property
    def tool_calls(self) -> tuple[ToolCalled, ...]:
        """The calls of tools."""
        return tuple(event for event in self.events if isinstance(event, ToolCalled))

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The answers of the model with what came of each."""
        asked = [event.turn for event in self.events if isinstance(event, LlmRequest)]
        return tuple(self._turn(number) for number in asked)

    @property
    def usage(self) -> Usage:
        """What all calls cost, also when the end is missing."""
        return sum((event.usage for event in self.events if isinstance(event, LlmResponse)), start=Usage())

    def grep(self, pattern: str) -> tuple[Event, ...]:
        """Find events by their text.

        Args:
            pattern: regular expression, looked for in every string of an event.

        Returns:
            The events that hold it.

        Raises:
            InvalidInputError: the pattern is not a regular expression.
        """
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            raise InvalidInputError(f"{pattern!r} is not a regular expression: {error}", pattern=pattern) from error
        return tuple(
            event
            for event in self.events
            if any(wanted.search(text) for text in _strings(event.model_dump(mode="json", exclude={"kind"})))
        )

    def _turn(self, number: int) -> Turn:
        answers = [event for event in self.events if isinstance(event, LlmResponse) and event.turn == number]
        submits = [event for event in self.events if isinstance(event, Submitted) and event.turn == number]
        return Turn(
            number=number,
            text=answers[0].text if answers else "",
            blocks=tuple(block for block in self.blocks if block.turn == number),
            outputs=tuple(output for output in self.outputs if output.turn == number),
            submitted=submits[-1] if submits else None,
        )


class Recorder:
    """Takes events as they happen; what is in the file is there even if the process is killed."""

    def __init__(self, path: Path | str | None = None, *, redact: Callable[[str], str] | None = None) -> None:
        """Open the file.

        Args:
            path: a file to write, readable by its owner only; one that is there is replaced. None keeps events in
                memory alone.
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
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            self._file = os.fdopen(descriptor, "w", encoding="utf-8", newline="\n")
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
            self._file.write(event.model_dump_json() + "\n")
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


def _strings(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from _strings(one)
        case dict():
            for key, one in value.items():
                yield key
                yield from _strings(one)
        case _:
            return
