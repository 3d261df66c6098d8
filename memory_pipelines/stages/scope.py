"""What a strong model finds in scope: the stages' values as small typed objects, with what it needs and no more."""

from collections.abc import Sequence
from datetime import date, datetime

from pydantic import BaseModel, ConfigDict

from memory_pipelines.records import Entry, Speaker, Turn, Window


class _Shown(BaseModel):
    model_config = ConfigDict(frozen=True)


class Said(_Shown):
    """One thing that was said."""

    session: str
    position: int
    role: Speaker  # "actor" is the person remembered
    name: str | None
    text: str
    at: datetime


class WindowSpan(_Shown):
    """A window: items[start:stop]."""

    start: int
    stop: int
    tokens: int


class Remembered(_Shown):
    """An entry."""

    path: str
    description: str
    content: str


class Line(_Shown):
    """A line of memory, by its label."""

    label: str
    path: str
    text: str
    said: date | None = None


class NewFact(_Shown):
    """A fact to be decided on."""

    label: str
    text: str
    kind: str
    said: date
    near: tuple[Line, ...]  # lines that look like it
    earlier: tuple[str, ...]  # labels of facts before it that look like it


class EntryLines(_Shown):
    """An entry, line by line."""

    path: str
    lines: tuple[Line, ...]


def said(turns: Sequence[Turn]) -> list[Said]:
    """Turns as a model finds them.

    Args:
        turns: already redacted.
    """
    return [
        Said(
            session=turn.session_id,
            position=turn.position,
            role=turn.speaker,
            name=turn.name,
            text=turn.text,
            at=turn.said_at,
        )
        for turn in turns
    ]


def spans(windows: Sequence[Window]) -> list[WindowSpan]:
    """Where each window is among the turns of all of them.

    Args:
        windows: in order.
    """
    found: list[WindowSpan] = []
    reached = 0
    for window in windows:
        found.append(WindowSpan(start=reached, stop=reached + len(window.turns), tokens=window.tokens))
        reached += len(window.turns)
    return found


def remembered(entries: Sequence[Entry]) -> list[Remembered]:
    """Entries as a model finds them.

    Args:
        entries: already redacted.
    """
    return [Remembered(path=one.path, description=one.description, content=one.content) for one in entries]
