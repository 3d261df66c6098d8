"""JSON from objects that leave the kernel.

Part of the worker: standard library only.
"""

import dataclasses
import datetime
import enum
import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

MAX_DEPTH = 100
"""How deep a value may be nested that leaves the kernel; the host's reader stops at 200."""


class CannotLeaveError(TypeError):
    """A value has no JSON form; the message starts with its path."""


def to_json(value: Any, path: str = "", depth: int = 0) -> Any:
    """The JSON form of a value that leaves the kernel.

    Args:
        value: JSON values, models, dataclasses, dates, sets, Decimal, Enum, UUID, paths, numpy scalars.
        path: where it is, for the message.
        depth: how deep it is nested.

    Returns:
        Plain JSON.

    Raises:
        CannotLeaveError: names the path of what has no JSON form.
    """
    if value is None or value is True or value is False:
        return value
    if depth > MAX_DEPTH:
        raise CannotLeaveError(f"{_at(path)}: nested deeper than {MAX_DEPTH}, or part of itself")
    if isinstance(value, enum.Enum):
        return to_json(value.value, path, depth + 1)
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, int):
        return _integer(value, path)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise CannotLeaveError(f"{_at(path)}: {value} is not a JSON number; use None")
        return float(value)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {_key(key, path): to_json(one, f"{path}.{key}", depth + 1) for key, one in pairs}
    if isinstance(value, list | tuple | set | frozenset):
        items = cast("list[object]", value)
        return [to_json(one, f"{path}[{at}]", depth + 1) for at, one in enumerate(items)]
    return to_json(_opened(value, path), path, depth + 1)


def _opened(value: Any, path: str) -> Any:
    if isinstance(value, type):
        raise CannotLeaveError(f"{_at(path)}: the class {value.__name__} cannot leave the kernel")
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        if value != value:  # as pandas writes that there is none
            raise CannotLeaveError(f"{_at(path)}: {value} is no date; use None")
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal | UUID | PurePath):
        return str(value)
    dump = getattr(value, "model_dump", None)  # without an import of pydantic
    if callable(dump):
        return dump(mode="json", by_alias=True)
    item = getattr(value, "item", None)  # numpy scalars
    if callable(item) and getattr(value, "shape", None) == ():
        return item()
    hint = "; was `await` forgotten?" if hasattr(value, "__await__") else _plain_form(value)
    raise CannotLeaveError(f"{_at(path)}: a {type(value).__name__} cannot leave the kernel{hint}")


def _plain_form(value: Any) -> str:
    """How a value of the usual libraries becomes plain."""
    for way, use in (("to_pylist", "to_pylist()"), ("iterrows", "to_dict('records')"), ("tolist", "tolist()")):
        if hasattr(value, way):
            return f"; give it as plain values, with `.{use}`"
    return ""


def _text(value: str, path: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise CannotLeaveError(
            f"{_at(path)}: the text holds half a character pair at {error.start}; "
            "use text.encode('utf-8', 'replace').decode()"
        ) from None
    return str(value)


def _integer(value: int, path: str) -> int:
    if value.bit_length() > 10_000:
        raise CannotLeaveError(f"{_at(path)}: an integer of {value.bit_length():,} bits cannot leave the kernel")
    return int(value)


def _key(key: object, path: str) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, str):
        return _text(key, path)
    if key is None or isinstance(key, int | float):
        return str(key)
    item = getattr(key, "item", None)  # numpy scalars
    if callable(item) and getattr(key, "shape", None) == ():
        return str(item())
    if isinstance(key, datetime.date):
        return key.isoformat()
    raise CannotLeaveError(f"{_at(path)}: a key that is a {type(key).__name__}; keys are text")


def _at(path: str) -> str:
    return path.lstrip(".") or "value"
