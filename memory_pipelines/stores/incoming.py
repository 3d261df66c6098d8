"""What is checked and cleaned on the way in, in this one place."""

from collections.abc import Mapping
from typing import Any

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.stores.columns import dump
from memory_pipelines.text import clean_json, clean_text

MAX_IDENTIFIER = 512
"""Characters of an actor's or a session's id."""


def identifier(value: str, noun: str) -> str:
    """Return the id of an actor or session, which is opaque but neither empty nor endless.

    Args:
        value: as given.
        noun: for the message.

    Raises:
        InvalidInputError: it is empty, too long, or holds what no database can carry.
    """
    if not value or len(value) > MAX_IDENTIFIER or clean_text(value) != value:
        raise InvalidInputError(
            f"{value[:80]!r} cannot be the id of {noun}; allowed are 1 to {MAX_IDENTIFIER} characters without NUL",
            value=value[:MAX_IDENTIFIER],
        )
    return value


def item_data(value: Any) -> Any:
    """Return an item's data cleaned, or refuse what cannot be kept as JSON."""
    try:
        clean = clean_json(value)
    except RecursionError as error:
        raise InvalidInputError("the data of an item is nested too deeply") from error
    dump(clean)
    return clean


def labels(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Return metadata cleaned."""
    return {clean_text(key): clean_text(value) for key, value in (metadata or {}).items()}
