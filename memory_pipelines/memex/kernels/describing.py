"""What a value is, in one line without its content: in the host for a scope, in the kernel for what it shares.

Part of the worker: standard library only. Libraries of frames are not imported before somebody has made a value of
them.
"""

import dataclasses
import sys
from collections.abc import Collection, Mapping, Sized
from typing import Any, cast

from memory_pipelines.memex.kernels.arrow import DATA_FRAME, TABLE

SHOWN_FIELDS = 12
"""How many field names of an object are shown."""
SHOWN_COLUMNS = 30
"""How many columns of a frame are named to the model."""

_NAME_CHARS = 60
_CLASSES = {DATA_FRAME: ("pandas", "DataFrame"), TABLE: ("pyarrow", "Table")}


def described(value: object) -> str:
    """What a value is, by its type and size and never by its content.

    Args:
        value: of the scope.

    Returns:
        Text such as `list of Fact(text, kind), 3 items`.
    """
    if kind_of(value) is not None:
        return frame_text(value)
    kind = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{kind} of shape {' x '.join(str(side) for side in cast('tuple[object, ...]', shape))}"
    if isinstance(value, str):
        return f"str, {_count(value, 'character')}"
    if isinstance(value, Mapping):
        return f"{kind}, {_count(cast('Sized', value), 'key')}"
    if isinstance(value, list | tuple | set | frozenset):
        values = cast("Collection[object]", value)
        kinds = {_typed(one) for one in values}
        inside = f" of {kinds.pop()}" if len(kinds) == 1 else ""
        return f"{kind}{inside}, {_count(values, 'item')}"
    return _typed(value)


def _typed(value: object) -> str:
    """The name of a type with the fields of a record; names of fields are the owner's words, keys of a dict are not."""
    fields: list[str] = []
    known = getattr(type(value), "model_fields", None)  # of a pydantic model, without an import of pydantic
    if isinstance(known, dict):
        fields = list(cast("dict[str, Any]", known))
    elif dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value)]
    if not fields:
        return type(value).__name__
    more = ", ..." if len(fields) > SHOWN_FIELDS else ""
    return f"{type(value).__name__}({', '.join(fields[:SHOWN_FIELDS])}{more})"


def _count(value: Sized, noun: str) -> str:
    return f"{len(value):,} {noun}{'' if len(value) == 1 else 's'}"


def kind_of(value: object) -> str | None:
    """Return which kind of frame a value is; None for anything else."""
    return next((kind for kind, made in known_frames() if isinstance(value, made)), None)


def frame_text(value: Any) -> str:
    """A frame by its shape, and the names and types of its columns; never by its content.

    Args:
        value: of a kind that `kind_of` knows.

    Returns:
        Text such as `DataFrame of shape 3 x 2, columns: day (datetime64[us]), n (int64)`.
    """
    rows, columns = value.shape
    if kind_of(value) == TABLE:
        fields = [(field.name, field.type) for field in value.schema]
    else:
        fields = list(zip(value.columns, value.dtypes, strict=True))
    names = [f"{_name(name)} ({kind})" for name, kind in fields[:SHOWN_COLUMNS]]
    more = [f"and {len(fields) - SHOWN_COLUMNS} more"] if len(fields) > SHOWN_COLUMNS else []
    listed = f", columns: {', '.join([*names, *more])}" if fields else ""
    return f"{type(value).__name__} of shape {rows:,} x {columns:,}{listed}"


def known_frames() -> list[tuple[str, type[Any]]]:
    """The classes of frames that this process has loaded."""
    loaded = ((kind, getattr(sys.modules.get(home), name, None)) for kind, (home, name) in _CLASSES.items())
    return [(kind, made) for kind, made in loaded if made is not None]


def _name(name: object) -> str:
    text = " ".join(str(name).split())
    return text if len(text) <= _NAME_CHARS else f"{text[:_NAME_CHARS]}..."
