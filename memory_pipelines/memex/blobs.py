"""Large values of a trajectory: each is stored once, in a file named by its hash, and read when it is looked at."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from pydantic import JsonValue

from memory_pipelines.errors import InvalidInputError, NotFoundError
from memory_pipelines.memex.events import EVENT, Blob, Event

LARGE_BYTES = 8_192
"""Values above this are stored beside the lines."""

HEAD_CHARS = 400
"""How much of a large text stays in its line, for people who read the lines."""

EventT = TypeVar("EventT", bound=Event)

_NAME = re.compile(r"[0-9a-f]{64}\.(?:txt|json)")
_CHILD = re.compile(r"[0-9]+(?:\.[0-9]+)*\.jsonl")


class Blobs:
    """The folder of one trajectory's large values: `t.jsonl.d` beside `t.jsonl`."""

    def __init__(self, trajectory: Path | str) -> None:
        """Name the folder; it is made when first needed.

        Args:
            trajectory: the file with the lines.
        """
        self.folder = Path(f"{trajectory}.d")

    def clear(self) -> None:
        """Remove what an earlier trajectory of the same name left, with its subagents."""
        if self.folder.is_dir():
            for path in list(self.folder.iterdir()):
                if _CHILD.fullmatch(path.name):
                    inner = Blobs(path)
                    inner.clear()
                    if inner.folder.is_dir() and not any(inner.folder.iterdir()):
                        inner.folder.rmdir()
                if _NAME.fullmatch(path.name) or _CHILD.fullmatch(path.name):
                    path.unlink()

    def child(self, name: str) -> Path:
        """Where the lines of a subagent's trajectory are.

        Args:
            name: its id.
        """
        return self.folder / f"{name}.jsonl"

    def store(self, event: EventT) -> EventT:
        """Take the large values out of an event.

        Args:
            event: whole and already redacted.

        Returns:
            The event with references in place of its large values.
        """
        found: dict[str, Blob] = {}
        left: dict[str, Any] = {}
        for name, value in event.model_dump(mode="json", exclude={"blobs", *event.words}).items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if len(text) > LARGE_BYTES // 4 and len(text.encode()) > LARGE_BYTES:
                found[name] = self._put(text, is_json=not isinstance(value, str))
                left[name] = value[:HEAD_CHARS] if isinstance(value, str) else type(value)()
        return event.model_copy(update={**left, "blobs": found}) if found else event

    def whole(self, event: EventT) -> EventT:
        """Put the large values of an event back.

        Args:
            event: with references, or without.

        Returns:
            The whole event.

        Raises:
            NotFoundError: a file is gone.
            InvalidInputError: a file holds something else than what was stored.
        """
        if not event.blobs:
            return event
        fields: dict[str, JsonValue] = event.model_dump(mode="json", exclude={"blobs"})
        for name, blob in event.blobs.items():
            text = self._get(blob)
            fields[name] = json.loads(text) if blob.is_json else text
        made: Any = EVENT.validate_python(fields)
        return made

    def _put(self, text: str, *, is_json: bool) -> Blob:
        blob = Blob(sha256=hashlib.sha256(text.encode()).hexdigest(), chars=len(text), is_json=is_json)
        path = self.folder / blob.file
        if not path.exists():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Renamed when complete: a crash leaves no half of a file under the name of the whole.
            part = path.with_name(f"{blob.file}.{os.getpid()}.part")
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(text.encode())
            part.replace(path)
        return blob

    def _get(self, blob: Blob) -> str:
        path = self.folder / blob.file
        try:
            content = path.read_bytes()
        except OSError as error:
            raise NotFoundError(
                f"{path} is gone: it holds a large value of the trajectory beside it; keep the two together",
                path=str(path),
            ) from error
        if hashlib.sha256(content).hexdigest() != blob.sha256:
            raise InvalidInputError(f"{path} was changed: it is not what the trajectory stored there", path=str(path))
        return content.decode()


class Events(Sequence[EventT], Generic[EventT]):
    """Events in order; the large values of one are read when it is taken."""

    def __init__(self, events: Iterable[EventT], blobs: Blobs | None = None) -> None:
        """Keep the events.

        Args:
            events: whole, or with references.
            blobs: where the references lead.
        """
        self.stored = tuple(events)  # as they are in the lines
        self._blobs = blobs

    @overload
    def __getitem__(self, at: int) -> EventT: ...
    @overload
    def __getitem__(self, at: slice) -> "Events[EventT]": ...
    def __getitem__(self, at: int | slice) -> "EventT | Events[EventT]":
        if isinstance(at, slice):
            return self.of(self.stored[at])
        return self._whole(self.stored[at])

    def __len__(self) -> int:
        return len(self.stored)

    def __iter__(self) -> Iterator[EventT]:
        return map(self._whole, self.stored)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)  # pyright: ignore[reportUnknownArgumentType]

    __hash__ = None  # pyright: ignore[reportAssignmentType] - as a list

    def __repr__(self) -> str:
        return f"<{len(self)} events>"

    def of(self, events: Iterable[Any]) -> "Events[Any]":
        """Return some of these events, with the same way to their large values."""
        return Events(events, self._blobs)

    def _whole(self, event: EventT) -> EventT:
        return event if self._blobs is None else self._blobs.whole(event)
