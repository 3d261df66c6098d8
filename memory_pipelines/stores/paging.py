"""Lists in pages: a token says after which row the next page begins, so that new rows shift nothing."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.stores.base import Page

T = TypeVar("T")

MAX_SIZE = 1000
"""Rows in one page."""


def after(page: Page, kinds: Sequence[type[str] | type[int] | type[datetime]]) -> list[Any] | None:
    """Return the key after which a page begins, None for the first page.

    Args:
        page: as asked for.
        kinds: of the parts of a key in this list.

    Raises:
        InvalidInputError: the size is out of bounds, or the token is none of this list's.
    """
    if not 1 <= page.size <= MAX_SIZE:
        raise InvalidInputError(f"a page of {page.size} is not possible; allowed are 1 to {MAX_SIZE}", size=page.size)
    if not page.token:
        return None
    try:
        key: Any = json.loads(base64.urlsafe_b64decode(page.token.encode()))
        parts = cast("list[Any]", key) if isinstance(key, list) else []
        read = [
            datetime.fromisoformat(part) if kind is datetime else part for kind, part in zip(kinds, parts, strict=True)
        ]
        if not all(isinstance(part, kind) for kind, part in zip(kinds, read, strict=True)):
            raise ValueError
    except (ValueError, TypeError, binascii.Error) as error:
        raise InvalidInputError(
            "the page token was not given out by this list; leave it out to begin with the first page", token=page.token
        ) from error
    return read


def paged(rows: Sequence[T], page: Page, key: Callable[[T], Sequence[Any]]) -> tuple[list[T], str | None]:
    """Cut rows, of which one more than a page was read, and make the token of the next page."""
    if len(rows) <= page.size:
        return list(rows), None
    kept = list(rows[: page.size])
    parts = [part.isoformat() if isinstance(part, datetime) else part for part in key(kept[-1])]
    return kept, base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()
