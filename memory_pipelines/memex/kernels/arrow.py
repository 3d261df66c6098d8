"""Data frames on their way from the host into a kernel: an Arrow stream in base64, inside JSON.

Only that way: what comes out of a kernel is plain JSON. Arrow from a worker would be read by a parser that trusts its
input, in the process that has the credentials.
Part of the worker: standard library, and pyarrow once a frame arrives.
"""

import base64
import importlib
from collections.abc import Mapping
from typing import Any, NoReturn, cast

MARK = "$arrow"
"""The key under which a packed frame has its stream; `as` says what it was, `is` describes it."""
KIND = "x-arrow"
"""The keyword of a schema that says which kind of frame a value is."""
DATA_FRAME, TABLE = "DataFrame", "Table"

_LOOKED_AT = 100
"""In containers of so many items packed frames are found without a schema."""


class Unopened:
    """Stands for a frame that could not be opened, and says why whatever is asked of it."""

    def __init__(self, why: str) -> None:
        """Keep the reason."""
        self._why = why

    def __repr__(self) -> str:
        return f"<{self._why}>"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(self._why)

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError(self._why)

    __iter__ = __getitem__ = __len__ = __contains__ = _refuse


def packed(value: object) -> bool:
    """Whether a JSON value is a packed frame."""
    if not isinstance(value, Mapping):
        return False
    given = cast("Mapping[str, object]", value)
    return len(given) == 3 and isinstance(given.get(MARK), str) and isinstance(given.get("is"), str)


def opened(value: Any) -> Any:
    """Make frames of packed ones.

    Args:
        value: JSON, or what was made of it.

    Returns:
        A frame for a packed one, also inside a small dict or list; every other value as it is.
    """
    if packed(value):
        return _opened(value)
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value)
        if len(pairs) <= _LOOKED_AT and any(packed(one) for one in pairs.values()):
            return {key: opened(one) for key, one in pairs.items()}
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        if len(items) <= _LOOKED_AT and any(packed(one) for one in items):
            return [opened(one) for one in items]
    return cast("object", value)


def _opened(value: Mapping[str, str]) -> Any:
    try:
        # Not imported by name: pyarrow is an extra, and most of a second.
        arrow: Any = importlib.import_module("pyarrow")
        ipc: Any = importlib.import_module("pyarrow.ipc")
        with ipc.open_stream(arrow.py_buffer(base64.b64decode(value[MARK]))) as stream:
            table = stream.read_all()
        return table.to_pandas() if value.get("as") == DATA_FRAME else table
    except (ImportError, OSError, ValueError, TypeError, KeyError, MemoryError) as error:
        return Unopened(f"the {value['is']} could not be opened here: {type(error).__name__}: {error}")
