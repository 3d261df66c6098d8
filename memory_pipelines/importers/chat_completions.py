"""Lines of `{"messages": [...], ...}` as used with chat completions, with a mapping for actor, session and time."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from pydantic import JsonValue

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.importers.base import ImportOptions
from memory_pipelines.importers.jsonl import JsonLinesImporter, Line, kind, parse_time
from memory_pipelines.records import ImportedSession, NewItem

FILE, LINE = "$file", "$line"
"""In place of a path: the file's name without its endings, and that name with the number of the line."""

_ENDINGS = (".gz", ".jsonl", ".ndjson", ".json")


class ChatCompletionsImporter(JsonLinesImporter):
    """Reads chat messages as they are sent to a model; nothing in a message is changed or left out."""

    name: ClassVar[str] = "chat-completions"
    takes: ClassVar[frozenset[str]] = frozenset({"actor", "actor_field", "session_field", "time_field", "assume_time"})
    repeats_history: ClassVar[bool] = True  # a log of requests holds the whole conversation again in every line

    def part(self, line: Line, options: ImportOptions) -> ImportedSession:
        """Return the session that a line belongs to, with the messages of the line."""
        messages = line.value.get("messages")
        if not isinstance(messages, list):
            got = f"messages is {kind(messages)}" if "messages" in line.value else "no messages"
            raise line.error(f"{got}; expected an array of objects with a role")
        return ImportedSession(
            session_id=_name(line, options.session_field or LINE, "--session-field"),
            actor_id=options.actor or _name(line, options.actor_field or "", "--actor-field"),
            metadata=_metadata(line),
            items=_items(line, messages, options),
        )

    def _accept(self, options: ImportOptions) -> None:
        super()._accept(options)
        if options.actor is None and options.actor_field is None:
            raise InvalidInputError(
                "nothing says whose conversations these are; give --actor VALUE for the whole file, or"
                f" --actor-field PATH, for example metadata.user_id or {FILE}"
            )
        for flag, field in (("--actor-field", options.actor_field), ("--session-field", options.session_field)):
            if field is not None and field.startswith("$") and field not in (FILE, LINE):
                raise InvalidInputError(f"{flag} is {field!r}; expected a dotted path, {FILE} or {LINE}")


def find(value: JsonValue, path: str) -> JsonValue:
    """Return what lies at a dotted path, None when nothing does.

    Args:
        value: an object.
        path: keys and positions in arrays (from 0), joined by dots. A key that has dots itself is found too.
    """
    if isinstance(value, dict) and path in value:
        return value[path]
    head, _, rest = path.partition(".")
    if isinstance(value, dict):
        found = value.get(head)
    elif isinstance(value, list) and head.isascii() and head.isdigit() and int(head) < len(value):
        found = value[int(head)]
    else:
        return None
    return find(found, rest) if rest else found


def _stem(path: Path) -> str:
    name = path.name
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name or path.name


def _name(line: Line, field: str, flag: str) -> str:
    if field == FILE:
        return _stem(line.path)
    if field == LINE:
        return f"{_stem(line.path)}:{line.number}"
    value = find(line.value, field)
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise line.error(
        f"{kind(value) if value is not None else 'nothing'} at {field!r}; expected a string or a whole number."
        f" The line has {', '.join(sorted(line.value)[:20])}: give {flag} a path into it"
    )


def _metadata(line: Line) -> dict[str, str]:
    value = line.value.get("metadata")
    if not isinstance(value, dict):
        return {}
    return {
        key: part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
        for key, part in value.items()
        if part is not None
    }


def _time(line: Line, value: JsonValue, field: str | None, place: str) -> datetime | None:
    found = None if field is None else find(value, field)
    if found is None:
        return None
    try:
        return parse_time(found, epoch=True)
    except ValueError as error:
        raise line.error(f"{place}: {field}: {error}") from None


def _items(line: Line, messages: Sequence[JsonValue], options: ImportOptions) -> tuple[NewItem, ...]:
    last = _time(line, line.value, options.time_field, "the line")
    items: list[NewItem] = []
    for position, message in enumerate(messages, start=1):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            got = "an object without a role" if isinstance(message, dict) else kind(message)
            raise line.error(f"message {position} is {got}; expected an object with a role such as user or assistant")
        own = _time(line, message, options.time_field, f"message {position}")
        last = own or last or options.assume_time
        if last is None:
            where = f"at {options.time_field!r} in it or in the line" if options.time_field else "(no --time-field)"
            raise line.error(
                f"message {position} has no time {where}; give --time-field PATH, or --assume-time TIME"
                " when nothing in the file tells it"
            )
        items.append(NewItem(data=dict(message), said_at=last))
    return tuple(items)
