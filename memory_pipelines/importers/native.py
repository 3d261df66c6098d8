"""Our own format: one session a line, described in docs/importing.md."""

from datetime import datetime
from typing import ClassVar

from pydantic import JsonValue

from memory_pipelines.importers.base import ImportOptions
from memory_pipelines.importers.jsonl import JsonLinesImporter, Line, kind, parse_time
from memory_pipelines.records import ImportedSession, NewItem

KEYS = ("actor_id", "session_id", "parent_id", "metadata", "created_at", "items")
"""All that a line may hold; anything else is a misspelling, and refused."""


class NativeImporter(JsonLinesImporter):
    """Reads lines of `{"actor_id", "session_id", "items": [{..., "at": time}], ...}`."""

    name: ClassVar[str] = "native"
    takes: ClassVar[frozenset[str]] = frozenset({"actor", "assume_time"})

    def part(self, line: Line, options: ImportOptions) -> ImportedSession:
        """Return the session that a line describes, or a further stretch of it."""
        unknown = sorted(line.value.keys() - set(KEYS))
        if unknown:
            raise line.error(f"unknown key {unknown[0][:80]!r}; allowed are {', '.join(KEYS)}")
        created_at = line.value.get("created_at")
        return ImportedSession(
            session_id=_text(line, "session_id", None),
            actor_id=_text(line, "actor_id", options.actor),
            parent_id=None if line.value.get("parent_id") is None else _text(line, "parent_id", None),
            metadata=_metadata(line),
            items=_items(line, None if created_at is None else _time(line, "created_at", created_at), options),
        )


def _text(line: Line, key: str, default: str | None) -> str:
    value = line.value.get(key)
    if value is None and default is not None:
        return default
    if isinstance(value, str) and value.strip():
        return value
    if key not in line.value:
        raise line.error(f"no {key}; every line names its actor_id and session_id")
    raise line.error(f"{key} is {kind(value)}; expected a string that is not blank")


def _metadata(line: Line) -> dict[str, str]:
    value = line.value.get("metadata")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise line.error(f"metadata is {kind(value)}; expected an object of strings")
    kept: dict[str, str] = {}
    for key, text in value.items():
        if not isinstance(text, str):
            raise line.error(f"metadata.{key[:80]} is {kind(text)}; expected a string")
        kept[key] = text
    return kept


def _time(line: Line, place: str, value: JsonValue) -> datetime:
    try:
        return parse_time(value, epoch=False)
    except ValueError as error:
        raise line.error(f"{place}: {error}") from None


def _items(line: Line, created_at: datetime | None, options: ImportOptions) -> tuple[NewItem, ...]:
    values = line.value.get("items")
    if not isinstance(values, list):
        got = f"items is {kind(values)}" if "items" in line.value else "no items"
        raise line.error(f"{got}; expected an array of objects, which may be empty")
    last = created_at
    items: list[NewItem] = []
    for position, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise line.error(f"item {position} is {kind(value)}; expected an object such as a message")
        at = value.get("at")
        last = _time(line, f"item {position}: at", at) if at is not None else last or options.assume_time
        if last is None:
            raise line.error(
                f'item {position} has no time; give "at" on it or an item before it, "created_at" on the line,'
                " or --assume-time"
            )
        items.append(NewItem(data={key: part for key, part in value.items() if key != "at"}, said_at=last))
    return tuple(items)
