"""Cleans text of what databases and encoders cannot carry, and of nothing else."""

import re
from typing import cast

from memory_pipelines.errors import InvalidInputError

REPLACEMENT = "\ufffd"

# NUL ends a string in PostgreSQL and in C; a lone surrogate cannot be encoded as UTF-8.
_UNCARRIABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Replace NUL and lone surrogates by U+FFFD and leave every other character as it is.

    Args:
        text: any string; emoji, right-to-left marks, joiners and combining marks are kept.

    Returns:
        The text, of the same length, which every encoder and both databases accept.
    """
    return _UNCARRIABLE.sub(REPLACEMENT, text)


def clean_json(value: object) -> object:
    """Clean every string of a JSON value, keys included.

    Args:
        value: None, bool, int, float, str, list, tuple or dict, nested.

    Returns:
        The value with cleaned strings; tuples come back as lists.

    Raises:
        InvalidInputError: something in it has no JSON form; `kind` names its type.
    """
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [clean_json(inner) for inner in cast("list[object]", value)]
    if isinstance(value, dict):
        return {clean_text(str(key)): clean_json(inner) for key, inner in cast("dict[object, object]", value).items()}
    kind = type(value).__name__
    raise InvalidInputError(
        f"A {kind} has no JSON form; give None, bool, int, float, str, list or dict.",
        kind=kind,
    )
