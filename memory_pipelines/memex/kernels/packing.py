"""Values of the host on their way into a kernel: JSON, and where in it objects were."""

import dataclasses
import datetime
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticSerializationError

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.memex.frames import packed
from memory_pipelines.memex.kernels.arrow import KIND
from memory_pipelines.memex.kernels.describing import kind_of
from memory_pipelines.memex.shapes import Schema, Shelf
from memory_pipelines.memex.tools import schema_of

MAX_DEPTH = 200

Places = list[tuple[list[str | int], Schema]]
"""Where objects were: the path in the JSON, and the schema of the object to build there."""


class Packer:
    """Packs values for one namespace; types that several values share are described once."""

    def __init__(self) -> None:
        """Start without types."""
        self.shelf = Shelf()
        self._schemas: dict[Any, Schema] = {}

    def pack(self, value: Any, name: str) -> dict[str, Any]:
        """Pack one variable.

        Args:
            value: JSON values, models, dataclasses, dates; lists and dicts of them.
            name: of the variable, for the message.

        Returns:
            `value` in JSON form, and `places`: paths in it with the schema of the object to build there.

        Raises:
            InvalidInputError: a value cannot enter the kernel; names its path.
        """
        places: Places = []
        return {"value": self._walk(value, name, [], places), "places": places}

    def _walk(self, value: Any, at: str, path: list[str | int], places: Places) -> Any:
        if value is None or type(value) in (str, int, float, bool):
            return value
        if len(path) > MAX_DEPTH:
            raise InvalidInputError(f"{at}: nested deeper than {MAX_DEPTH}, or part of itself", path=at)
        if isinstance(value, Mapping):
            out: dict[str, Any] = {}
            for given, one in cast("Mapping[object, Any]", value).items():
                key = _key(given, at)
                out[key] = self._walk(one, f"{at}.{key}", [*path, key], places)
            return out
        if isinstance(value, list | tuple | set | frozenset):
            return self._list(list(cast("list[Any]", value)), at, path, places)
        if isinstance(value, Enum):
            return self._walk(value.value, at, path, places)
        if isinstance(value, str | int | float | Decimal | UUID | PurePath):
            return float(value) if isinstance(value, float) else int(value) if isinstance(value, int) else str(value)
        if kind_of(value) is not None:
            places.append((path, {KIND: kind_of(value)}))
            return packed(value, at)
        kind = cast("type[Any]", type(value))
        if not (isinstance(value, BaseModel | datetime.date) or dataclasses.is_dataclass(kind)):
            raise InvalidInputError(
                f"{at}: a {kind.__name__} cannot enter the kernel; give JSON values, dataclasses, pydantic "
                "models, DataFrames or Arrow tables",
                path=at,
            )
        places.append((path, self._schema(kind, at)))
        return self._dumped(kind, value, at)

    def _list(self, items: list[Any], at: str, path: list[str | int], places: Places) -> list[Any]:
        kinds: set[Any] = {type(one) for one in items}
        kind: Any = kinds.pop() if len(kinds) == 1 else None
        if kind and (issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind)):
            # One place for all: a thousand facts are one entry, not a thousand.
            places.append((path, self._schema(list[kind], at)))
            return self._dumped(list[kind], items, at)
        return [self._walk(one, f"{at}[{number}]", [*path, number], places) for number, one in enumerate(items)]

    def _schema(self, kind: Any, at: str) -> Schema:
        if kind not in self._schemas:
            try:
                self._schemas[kind] = self.shelf.add(schema_of(kind), getattr(kind, "__name__", "Object"))
            except InvalidInputError as error:
                raise InvalidInputError(f"{at}: {error.message}", path=at) from error
        return self._schemas[kind]

    def _dumped(self, kind: Any, value: Any, at: str) -> Any:
        try:
            return TypeAdapter[Any](kind).dump_python(value, mode="json", by_alias=True, warnings="none")
        except (PydanticSerializationError, ValueError) as error:
            raise InvalidInputError(f"{at}: has no JSON form: {error}", path=at) from error


def _key(key: object, at: str) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, Enum):
        return _key(key.value, at)
    if key is None or isinstance(key, bool | int | float | datetime.date | UUID):
        return str(key)
    raise InvalidInputError(f"{at}: a key that is a {type(key).__name__}; keys are text", path=at)
