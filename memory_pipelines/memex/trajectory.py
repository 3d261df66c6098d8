"""What happened in a rollout, read again: turn by turn, by kind of event, by a search."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from memory_pipelines.errors import InvalidInputError, NotFoundError
from memory_pipelines.gateway.base import Usage
from memory_pipelines.memex.blobs import Blobs, Events
from memory_pipelines.memex.events import (
    EVENT,
    FORMAT,
    Block,
    End,
    Event,
    Feedback,
    Header,
    LlmRequest,
    LlmResponse,
    Observed,
    Spawned,
    Submitted,
    ToolCalled,
)
from memory_pipelines.memex.kernels.reading import texts

KindT = TypeVar("KindT", bound=Event)


class _Kinds:
    """Gives events by their kind."""

    events: Events[Event]

    @property
    def blocks(self) -> Events[Block]:
        """The code that ran."""
        return _only(self.events, Block)

    @property
    def outputs(self) -> Events[Observed]:
        """What the blocks showed."""
        return _only(self.events, Observed)

    @property
    def tool_calls(self) -> Events[ToolCalled]:
        """The calls of tools."""
        return _only(self.events, ToolCalled)


@dataclass(frozen=True)
class Turn(_Kinds):
    """One answer of the model and what came of it."""

    number: int  # from 1
    events: Events[Event]  # all of this turn, in order

    @property
    def text(self) -> str:
        """What the model said; empty when no answer came."""
        return next((event.text for event in _only(self.events, LlmResponse)), "")

    @property
    def code(self) -> str:
        """What ran, all blocks of it."""
        return "\n".join(block.code for block in self.blocks)

    @property
    def submitted(self) -> Submitted | None:
        """The last value that was submitted, accepted or not."""
        given = _only(self.events, Submitted)
        return given[-1] if given else None

    @property
    def errors(self) -> tuple[str, ...]:
        """What went wrong: errors of blocks, refused values, and what was told of an answer that could not be used."""
        found: list[str] = []
        for event in self.events:
            match event:
                case Observed(error=str() as error):
                    found.append(error)
                case Submitted(ok=False, errors=errors):
                    found.extend(errors)
                case Feedback(text=text):
                    found.append(text)
                case _:
                    pass
        return tuple(found)

    @property
    def usage(self) -> Usage:
        """What the answer cost."""
        return _usage(self.events)

    @property
    def seconds(self) -> float:
        """How long it took: waiting for the model, and running what it wrote."""
        return self.usage.seconds + sum(event.milliseconds for event in _stored(self.events, Observed)) / 1000


class Trajectory(_Kinds):
    """The events of one rollout, in order."""

    def __init__(
        self,
        events: Iterable[Event],
        *,
        blobs: Blobs | None = None,
        cut: bool = False,
        children: "Mapping[str, Trajectory] | None" = None,
    ) -> None:
        """Keep the events.

        Args:
            events: what happened.
            blobs: where the large values of events are that do not hold them.
            cut: whether the file they were read from ended in the middle of a line.
            children: trajectories of subagents, by id, where they are not in files.
        """
        self._blobs = blobs
        self._given = dict(children or {})
        self.events: Events[Event] = Events(events, blobs)
        self.cut = cut

    def __repr__(self) -> str:
        return f"<Trajectory of {len(self.turns)} turns>"

    @classmethod
    def load(cls, path: Path | str) -> "Trajectory":
        """Read a file that a rollout wrote.

        Args:
            path: the file. A last line that a crash cut off is left out, and `cut` says so. Large values are read
                from the folder beside it when they are looked at.

        Returns:
            The trajectory.

        Raises:
            NotFoundError: there is no such file.
            InvalidInputError: it cannot be read, is empty, or a line is not an event; says which and why.
        """
        try:
            lines = Path(path).read_bytes().split(b"\n")
        except FileNotFoundError as error:
            raise NotFoundError(f"there is no trajectory at {path}", path=str(path)) from error
        except OSError as error:
            raise InvalidInputError(f"{path} cannot be read: {error.strerror}", path=str(path)) from error
        events: list[Event] = []
        cut = False
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                events.append(EVENT.validate_json(line))
            except ValidationError as error:
                if number == len(lines) and events:
                    cut = True
                    break
                raise _no_event(path, number, error) from error
        if not events:
            raise InvalidInputError(
                f"{path} is empty: nothing of a rollout is in it. Give a file that an agent wrote.", path=str(path)
            )
        trajectory = cls(events, blobs=Blobs(path), cut=cut)
        if trajectory.header is not None and trajectory.header.format > FORMAT:
            raise InvalidInputError(
                f"{path} has format {trajectory.header.format}; this version reads up to {FORMAT}. Read it with a "
                "newer one.",
                path=str(path),
            )
        return trajectory

    @property
    def header(self) -> Header | None:
        """The first event; None where the rollout failed before its kernel was there."""
        return next(iter(_only(self.events, Header)), None)

    @property
    def end(self) -> End | None:
        """The last event; None in a rollout that is going on or was killed."""
        return next(iter(_only(self.events, End)), None)

    @property
    def children(self) -> Events[Spawned]:
        """The subagents that were started."""
        return _only(self.events, Spawned)

    def child(self, name: str) -> "Trajectory":
        """What happened in a subagent.

        Args:
            name: its id, as `children` gives it.

        Returns:
            Its trajectory.

        Raises:
            NotFoundError: there is none of this id; lists those that are.
        """
        if name in self._given:
            return self._given[name]
        if self._blobs is None or not any(event.child == name for event in _stored(self.events, Spawned)):
            known = ", ".join(event.child for event in self.children) or "none"
            raise NotFoundError(f"there is no subagent {name!r}; there are: {known}", name=name)
        return Trajectory.load(self._blobs.child(name))

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The answers of the model with what came of each."""
        numbers = [event.turn for event in _stored(self.events, LlmRequest)]
        by_turn: dict[int, list[Event]] = {number: [] for number in numbers}
        for event in self.events.stored:
            turn = getattr(event, "turn", None)
            if turn in by_turn:
                by_turn[turn].append(event)
        return tuple(Turn(number=number, events=self.events.of(found)) for number, found in by_turn.items())

    @property
    def value(self) -> JsonValue:
        """What was submitted and accepted, in JSON form; None when nothing was."""
        return next((event.value for event in _only(self.events, Submitted) if event.ok), None)

    @property
    def usage(self) -> Usage:
        """What all calls cost, also when the end is missing."""
        return _usage(self.events)

    def grep(self, pattern: str) -> Events[Event]:
        """Find events by their text.

        Args:
            pattern: regular expression, looked for in the content of an event, large values included: in its strings
                and in keys of JSON that code or a tool made, not in the names of fields.

        Returns:
            The events that hold it.

        Raises:
            InvalidInputError: the pattern is not a regular expression.
        """
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            raise InvalidInputError(f"{pattern!r} is not a regular expression: {error}", pattern=pattern) from error
        pairs = zip(self.events.stored, self.events, strict=True)
        return self.events.of([stored for stored, event in pairs if any(wanted.search(text) for text in texts(event))])


def _no_event(path: Path | str, number: int, error: ValidationError) -> InvalidInputError:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return InvalidInputError(
        f"{path}, line {number} is not an event of a trajectory: {first['msg']}. Give a file that an agent wrote.",
        path=str(path),
        line=number,
    )


def _only(events: Events[Event], kind: type[KindT]) -> Events[KindT]:
    return events.of(_stored(events, kind))


def _stored(events: Events[Event], kind: type[KindT]) -> Sequence[KindT]:
    return [event for event in events.stored if isinstance(event, kind)]


def _usage(events: Events[Event]) -> Usage:
    return sum((event.usage for event in _stored(events, LlmResponse)), start=Usage())
