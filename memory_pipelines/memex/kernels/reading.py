"""What a trajectory in a kernel's scope can be asked, beside its fields.

Part of the worker: standard library only. The host's `Trajectory` has the same names and searches the same texts.
"""

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast


class _Events:
    """Gives events by their kind."""

    events: list[Any]

    @property
    def blocks(self) -> list[Any]:
        """The code that ran."""
        return _only(self.events, "block")

    @property
    def outputs(self) -> list[Any]:
        """What the blocks showed."""
        return _only(self.events, "observation")

    @property
    def tool_calls(self) -> list[Any]:
        """The calls of tools."""
        return _only(self.events, "tool_call")


@dataclass(frozen=True)
class Turn(_Events):
    """One answer of the model and what came of it."""

    number: int
    events: list[Any]

    @property
    def text(self) -> str:
        """What the model said."""
        return next((event.text for event in _only(self.events, "llm_response")), "")

    @property
    def code(self) -> str:
        """What ran, all blocks of it."""
        return "\n".join(block.code for block in self.blocks)


class TrajectoryMethods(_Events):
    """Goes over the `events` of a record."""

    @property
    def children(self) -> list[Any]:
        """The subagents that were started."""
        return _only(self.events, "spawn")

    @property
    def turns(self) -> list[Turn]:
        """The answers of the model with what came of each."""
        by_turn: dict[int, list[Any]] = {event.turn: [] for event in _only(self.events, "llm_request")}
        for event in self.events:
            if getattr(event, "turn", None) in by_turn:
                by_turn[event.turn].append(event)
        return [Turn(number, events) for number, events in by_turn.items()]

    def grep(self, pattern: str) -> list[Any]:
        """Find events by a regular expression, looked for in every string of an event."""
        wanted = re.compile(pattern)
        return [event for event in self.events if any(map(wanted.search, texts(event)))]


_WORDS_OF_OURS = ("kind", "blobs", "isolation")

METHODS: dict[str, type] = {"trajectory": TrajectoryMethods}
"""By the word that a schema names under `x-methods`."""


def _only(events: list[Any], kind: str) -> list[Any]:
    return [event for event in events if event.kind == kind]


def texts(value: Any) -> Iterator[str]:
    """Give the content of an event, of host or kernel, or of a value in one.

    Args:
        value: a record, or JSON.

    Yields:
        Its strings, keys of JSON objects included: code and tools chose those. Names of fields are ours, not content.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, datetime.date):
        yield value.isoformat()
    elif isinstance(value, Mapping):
        for key, one in cast("Mapping[str, Any]", value).items():
            yield key
            yield from texts(one)
    elif isinstance(value, list | tuple):
        for one in cast("list[Any]", value):
            yield from texts(one)
    elif hasattr(cast("object", value), "model_dump"):  # a model, without an import of pydantic
        for name, one in cast("Iterable[tuple[str, Any]]", value):
            if name not in _WORDS_OF_OURS:
                yield from texts(one)
