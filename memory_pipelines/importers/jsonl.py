"""What formats of one JSON object a line share: reading lines, telling times, putting sessions together."""

import gzip
import json
import math
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, ClassVar, cast

from pydantic import JsonValue, ValidationError

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.importers.base import MAX_ERRORS, ImportCheck, ImportOptions
from memory_pipelines.names import check_identifier
from memory_pipelines.records import ImportedSession

MAX_LINE = 64 << 20
"""Bytes of one line after decompression: a file without line breaks must not fill the memory."""

MAX_DIGITS = 1000
"""Digits of a whole number; Python itself reads no more than 4,300."""

_GZIP = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_MARKS = {  # UTF-32 first: its mark begins with that of UTF-16
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
# By which of the first four bytes are zero: a line of JSON begins with two characters of ASCII.
_UNMARKED: dict[tuple[bool, ...], str] = {
    (False, True, True, True): "UTF-32",
    (True, True, True, False): "UTF-32",
    (False, True, False, True): "UTF-16",
    (True, False, True, False): "UTF-16",
}
_MILLISECONDS_FROM = 1e11  # as seconds the year 5138, as milliseconds 1973


@dataclass(frozen=True)
class Line:
    """One line of a file."""

    path: Path
    number: int  # 1-based
    value: dict[str, JsonValue]

    def error(self, message: str) -> InvalidInputError:
        """Return an error that names file and line.

        Args:
            message: what was got and what is allowed.
        """
        return _error(self.path, self.number, message)


def _error(path: Path, number: int, message: str) -> InvalidInputError:
    return InvalidInputError(f"{path}:{number}: {message}", file=str(path), line=number)


def kind(value: JsonValue) -> str:
    """Name the JSON type of a value, for messages that must not repeat what people said."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string" if value.strip() else "a blank string"
        case list():
            return "an array"
        case _:
            return "an object"


def read_lines(path: Path) -> Iterator[Line | InvalidInputError]:
    """Yield each line that is not blank as an object or as the error that it is.

    Args:
        path: UTF-8 text, plain or compressed by gzip (told by its content, not by its name).
    """
    number = 0
    try:
        with ExitStack() as opened:
            stream = _open(path, opened)
            while raw := stream.readline(MAX_LINE + 1):
                number += 1
                if len(raw) > MAX_LINE:
                    yield _error(path, number, f"longer than {MAX_LINE} bytes; reading stops here, split the line")
                    return
                if number == 1:
                    encoding = _other_encoding(raw)
                    if encoding:
                        yield _error(path, number, f"the file is {encoding}; save it as UTF-8")
                        return
                    raw = raw.removeprefix(_UTF8_MARK)
                if raw.strip():
                    yield _parse(path, number, raw)
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        place = f"{path}: cannot be read after line {number}" if number else f"{path}: cannot be read"
        yield InvalidInputError(f"{place}: {reason}; give a file that is whole", file=str(path), line=number)


def _open(path: Path, opened: ExitStack) -> BinaryIO:
    raw = opened.enter_context(path.open("rb"))
    if raw.peek(len(_GZIP)).startswith(_GZIP):
        return cast("BinaryIO", opened.enter_context(gzip.GzipFile(fileobj=raw)))
    return raw


def _other_encoding(raw: bytes) -> str | None:
    """Return the name of the encoding that is not UTF-8 in which a file begins, None when it may be UTF-8."""
    marked = next((name for mark, name in _MARKS.items() if raw.startswith(mark)), None)
    return marked or _UNMARKED.get(tuple(byte == 0 for byte in raw[:4]))


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON; write null or leave it out")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]} is too large; allowed are 64-bit floats, write it as a string")
    return number


def _whole(text: str) -> int:
    digits = len(text.removeprefix("-"))
    if digits > MAX_DIGITS:
        raise ValueError(f"a whole number has {digits} digits; allowed are {MAX_DIGITS}, write it as a string")
    return int(text)


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) < len(pairs):
        # Taking the last, as most readers do, would lose in silence what somebody said.
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {twice[:80]!r} stands {counts[twice]} times in one object; keep one of them")
    return value


_DECODER = json.JSONDecoder(
    parse_constant=_no_constant, parse_float=_finite, parse_int=_whole, object_pairs_hook=_object
)


def _parse(path: Path, number: int, raw: bytes) -> Line | InvalidInputError:
    try:
        text = raw.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        return _error(path, number, f"byte {error.start + 1} is not UTF-8; save the file as UTF-8")
    try:
        value: JsonValue = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        hint = ""
        if number == 1 and text in {"{", "["}:
            hint = " (it looks like JSON spread over several lines; `jq -c` puts an object on one line)"
        return _error(path, number, f"not JSON at column {error.colno}: {error.msg}; expected one JSON object{hint}")
    except ValueError as error:
        return _error(path, number, f"cannot be read: {error}")
    except RecursionError:
        return _error(path, number, "nested too deeply; expected one JSON object")
    if not isinstance(value, dict):
        return _error(path, number, f"{kind(value)}; expected one JSON object")
    return Line(path, number, value)


def parse_time(value: JsonValue, *, epoch: bool) -> datetime:
    """Return the moment that a value tells.

    Args:
        value: an RFC 3339 time with its offset; with `epoch` also seconds or milliseconds since 1970.
        epoch: whether numbers are times.

    Raises:
        ValueError: the value is no such time; says what is allowed.
    """
    allowed = "an RFC 3339 time such as 2026-03-02T09:30:00Z" + (" or epoch seconds or milliseconds" if epoch else "")
    number = _number(value) if epoch else None
    if number is None and not isinstance(value, str):
        raise ValueError(f"{kind(value)} is not {allowed}")
    try:
        if number is not None:
            moment = datetime.fromtimestamp(number / 1000 if abs(number) >= _MILLISECONDS_FROM else number, UTC)
        else:
            moment = datetime.fromisoformat(str(value).strip().upper())
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{str(value)[:40]!r} is not {allowed}") from None
    if moment.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone; write {allowed}, with Z or an offset such as +02:00")
    if not 1990 <= moment.year <= 9000:
        raise ValueError(f"{value!r} lies outside the years 1990 to 9000; expected {allowed}")
    return moment


def _number(value: JsonValue) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


class JsonLinesImporter(ABC):
    """An importer whose file has one JSON object a line. Adjacent lines of one session are joined in order."""

    name: ClassVar[str]  # as in the registry
    takes: ClassVar[frozenset[str]]  # the options that mean something to the format
    repeats_history: ClassVar[bool] = False  # whether a further line may begin with all items of those before it

    @abstractmethod
    def part(self, line: Line, options: ImportOptions) -> ImportedSession:
        """Return what a line says of its session.

        Raises:
            InvalidInputError: the line breaks the format.
        """

    def sessions(self, path: Path, options: ImportOptions) -> Iterator[ImportedSession]:
        """Yield the sessions of a file; see `Importer.sessions`."""
        self._accept(options)
        return self._sessions(path, options)

    def check(self, path: Path, options: ImportOptions) -> ImportCheck:
        """Read a file without keeping it; see `Importer.check`."""
        self._accept(options)
        sessions: set[str] = set()
        actors: set[str] = set()
        items, error_count = 0, 0
        errors: list[str] = []
        first: datetime | None = None
        last: datetime | None = None
        for outcome in self._outcomes(path, options):
            if isinstance(outcome, InvalidInputError):
                error_count += 1
                errors += [outcome.message] if len(errors) < MAX_ERRORS else []
                continue
            sessions.add(outcome.session_id)
            actors.add(outcome.actor_id)
            items += len(outcome.items)
            for moment in (item.said_at for item in outcome.items if item.said_at):
                first = moment if first is None else min(first, moment)
                last = moment if last is None else max(last, moment)
        return ImportCheck(
            session_ids=frozenset(sessions),
            actor_ids=frozenset(actors),
            items=items,
            first_at=first,
            last_at=last,
            errors=tuple(errors),
            error_count=error_count,
        )

    def _accept(self, options: ImportOptions) -> None:
        unused = sorted(options.given().keys() - self.takes)
        if unused:
            raise InvalidInputError(
                f"the format {self.name} has no use for {', '.join(map(_flag, unused))};"
                f" it takes {', '.join(map(_flag, sorted(self.takes)))}",
                options=unused,
            )

    def _sessions(self, path: Path, options: ImportOptions) -> Iterator[ImportedSession]:
        for outcome in self._outcomes(path, options):
            if isinstance(outcome, InvalidInputError):
                raise outcome
            yield outcome

    def _outcomes(self, path: Path, options: ImportOptions) -> Iterator[ImportedSession | InvalidInputError]:
        owners: dict[str, tuple[str, int]] = {}  # session to its actor and the line that said so
        held: _Held | None = None
        for line in read_lines(path):
            if isinstance(line, InvalidInputError):
                yield line
                continue
            try:
                part = self.part(line, options)
            except InvalidInputError as error:
                yield error
                continue
            except ValidationError as error:
                place = ".".join(str(step) for step in error.errors()[0]["loc"][:4])
                yield line.error(f"{place} cannot be kept; it is probably nested too deeply")
                continue
            try:
                _check_identifiers(part)
            except InvalidInputError as error:
                yield line.error(error.message)
                continue
            owner, owned_at = owners.setdefault(part.session_id, (part.actor_id, line.number))
            if owner != part.actor_id:
                yield line.error(
                    f"session {part.session_id!r} is given to actor {part.actor_id!r}, but line {owned_at} gave it to"
                    f" {owner!r}; a session belongs to one actor"
                )
                continue
            if held and held.head.session_id == part.session_id:
                held.add(part, repeats_history=self.repeats_history)
                continue
            if held:
                yield held.whole()
            held = _Held(part)
        if held:
            yield held.whole()


def _check_identifiers(part: ImportedSession) -> None:
    """Refuse what the stores would refuse, while the line is known."""
    check_identifier(part.session_id, "a session")
    check_identifier(part.actor_id, "an actor")
    if part.parent_id is not None:
        check_identifier(part.parent_id, "a parent session")


def _flag(option: str) -> str:
    return "--" + option.replace("_", "-")


class _Held:
    """A session that the next line may continue."""

    def __init__(self, part: ImportedSession) -> None:
        self.head = part
        self._items = list(part.items)
        self._metadata = dict(part.metadata)
        self._parent = part.parent_id

    def add(self, part: ImportedSession, *, repeats_history: bool) -> None:
        known = self._items
        # Only a longer line is a repetition: two equal lines may be two messages of the same words.
        again = (
            repeats_history
            and len(part.items) > len(known)
            and all(old.data == new.data for old, new in zip(known, part.items, strict=False))
        )
        known.extend(part.items[len(known) :] if again else part.items)
        self._metadata.update(part.metadata)
        self._parent = part.parent_id or self._parent

    def whole(self) -> ImportedSession:
        return self.head.model_copy(
            update={"items": tuple(self._items), "metadata": self._metadata, "parent_id": self._parent}
        )
