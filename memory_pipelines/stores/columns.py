"""Column types that read the same on every database."""

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect, Text
from sqlalchemy.types import TypeDecorator

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.records import aware


class Utc(TypeDecorator[datetime]):
    """An aware moment; SQLite has no zones, so there it is kept as UTC without one."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Turn a moment to UTC, refusing one without a zone."""
        if value is None:
            return None
        moment = aware(value).astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give the moment its zone back."""
        del dialect
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Json(TypeDecorator[Any]):
    """A JSON value as text.

    Native JSON columns change values: SQLite turns the bare number 1.0 into 1 and long integers into floats.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:
        """Write the value, refusing what JSON cannot say."""
        del dialect
        return dump(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Read the value."""
        del dialect
        return None if value is None else json.loads(value)


def dump(value: Any) -> str:
    """Return compact JSON; InvalidInputError for NaN, infinity or nesting that nobody could read back."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            "the value cannot be kept as JSON: it holds NaN or infinity, or is nested too deeply; leave these out"
        ) from error
