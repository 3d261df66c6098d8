"""The port to conversation files: a path and options go in, sessions come out one by one."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Protocol, Self

from pydantic import BaseModel, ConfigDict, model_validator

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.records import ImportedSession, Moment

MAX_ERRORS = 20
"""How many errors a check keeps; the rest are only counted."""


class ImportOptions(BaseModel):
    """What a person says about a file that the file does not say itself. A format refuses what it has no use for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    actor: str | None = None  # the actor of every line that names none
    actor_field: str | None = None  # where a line holds its actor: dotted path, or $file
    session_field: str | None = None  # where a line holds its session id: dotted path, $file or $line
    time_field: str | None = None  # where a message, else its line, holds the time: dotted path
    assume_time: Moment | None = None  # said then, where nothing else tells the time

    @model_validator(mode="after")
    def _one_way_to_the_actor(self) -> Self:
        if self.actor is not None and self.actor_field is not None:
            raise InvalidInputError(
                f"the actor is given twice, as {self.actor!r} and by the field {self.actor_field!r}; give one of them"
            )
        if self.actor is not None and not self.actor.strip():
            raise InvalidInputError(f"the actor is {self.actor!r}; give an id that is not blank")
        return self

    def given(self) -> dict[str, object]:
        """Return the options that have a value."""
        return {name: value for name, value in self if value is not None}


class ImportCheck(BaseModel):
    """What an import would bring. Checks of several files add up."""

    model_config = ConfigDict(frozen=True)

    session_ids: frozenset[str] = frozenset()
    actor_ids: frozenset[str] = frozenset()
    items: int = 0
    first_at: datetime | None = None  # when the earliest item was said, None without items
    last_at: datetime | None = None  # when the latest item was said
    errors: tuple[str, ...] = ()  # the first MAX_ERRORS, each naming file and line
    error_count: int = 0  # all of them

    @property
    def sessions(self) -> int:
        """How many sessions were found."""
        return len(self.session_ids)

    @property
    def actors(self) -> int:
        """How many actors were found."""
        return len(self.actor_ids)

    def __add__(self, other: "ImportCheck") -> "ImportCheck":
        firsts = [moment for moment in (self.first_at, other.first_at) if moment]
        lasts = [moment for moment in (self.last_at, other.last_at) if moment]
        return ImportCheck(
            session_ids=self.session_ids | other.session_ids,
            actor_ids=self.actor_ids | other.actor_ids,
            items=self.items + other.items,
            first_at=min(firsts, default=None),
            last_at=max(lasts, default=None),
            errors=(self.errors + other.errors)[:MAX_ERRORS],
            error_count=self.error_count + other.error_count,
        )


class Importer(Protocol):
    """Reads one format. Made without arguments, keeps nothing between calls."""

    def sessions(self, path: Path, options: ImportOptions) -> Iterator[ImportedSession]:
        """Yield the sessions of a file in its order, holding one at a time in memory.

        A session may be yielded again later in the file with further items; the store knows what it has.

        Args:
            path: the file.
            options: what the file does not say itself.

        Raises:
            InvalidInputError: at the first thing that cannot be read, with `file` and `line`. What was yielded
                before it is good. The session that was being put together is not yielded.
        """
        ...

    def check(self, path: Path, options: ImportOptions) -> ImportCheck:
        """Read the whole file without keeping it, going on after errors.

        Args:
            path: the file.
            options: as for `sessions`.

        Raises:
            InvalidInputError: the options do not fit the format.
        """
        ...
