"""Objects from JSON, inside the kernel.

Part of the worker: standard library and pydantic, which is imported when first needed because it is most of the
start of a worker.
"""

import datetime
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, ForwardRef, Literal, NoReturn, Optional, Union, cast

from memory_pipelines.memex.kernels.arrow import KIND, opened
from memory_pipelines.memex.kernels.capture import short
from memory_pipelines.memex.kernels.reading import METHODS
from memory_pipelines.memex.kernels.spelling import complaints, identifiers

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter

Schema = dict[str, Any]

_SCALARS: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "null": type(None)}
_FORMATS: dict[str, Any] = {"date-time": datetime.datetime, "date": datetime.date}
_BOUNDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
}


class Text(str):
    """Text that a tool gave. When it is JSON it says so to code that takes it for an object."""

    __slots__ = ()

    def json(self) -> Any:
        """Read it as JSON.

        Returns:
            Plain values.

        Raises:
            ValueError: it is no JSON.
        """
        return json.loads(self)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"'str' object has no attribute {name!r}{self._hint()}", name=name, obj=self)

    def __getitem__(self, at: Any) -> str:
        if isinstance(at, str):
            raise TypeError(f"string indices must be integers, not {at!r}{self._hint()}")
        return super().__getitem__(at)

    def _hint(self) -> str:
        return "; it is text that holds JSON: read it with `.json()`" if self.lstrip()[:1] in ("{", "[") else ""


class Types:
    """The object types that the host named, as classes; and values of them."""

    def __init__(self) -> None:
        """Start without types."""
        self._schemas: dict[str, Schema] = {}
        self._classes: dict[str, type[BaseModel]] = {}
        self._adapters: dict[int, tuple[Schema, TypeAdapter[Any]]] = {}

    def learn(self, schemas: Mapping[str, Schema]) -> None:
        """Take further types; nothing is built yet.

        Args:
            schemas: by name; they may point to each other and to earlier ones by `{"$ref": name}`.
        """
        self._schemas.update(schemas)

    def __contains__(self, name: object) -> bool:
        return name in self._schemas

    def __getitem__(self, name: str) -> type["BaseModel"]:
        if name not in self._classes:
            self._build()
        return self._classes[name]

    def rebuild(self, schema: Schema | None, value: Any) -> Any:
        """Make objects of JSON.

        Args:
            schema: of the value, pointing to the types; None when nothing is known of it.
            value: plain JSON.

        Returns:
            Objects with attributes, or the plain JSON when it does not fit the schema: tools are not always right.
        """
        made = value = opened(value)
        if schema and KIND not in schema and schema.get("type") not in ("integer", "boolean", "null"):
            from pydantic import ValidationError

            with suppress(ValidationError):
                made = self._adapter(schema).validate_python(value)
        return Text(made) if type(made) is str else made

    def complaints(self, schema: Schema, value: Any) -> str:
        """Hold a JSON value against a schema.

        Args:
            schema: pointing to the types.
            value: plain JSON.

        Returns:
            Lines `path: message`, at most ten; empty when it fits.
        """
        from pydantic import ValidationError

        try:
            self._adapter(schema).validate_python(value)
        except ValidationError as error:
            return complaints(error)
        return ""

    def _adapter(self, schema: Schema) -> "TypeAdapter[Any]":
        known = self._adapters.get(id(schema))
        if known is not None:
            return known[1]
        from pydantic import TypeAdapter

        self._build()
        try:
            adapter = TypeAdapter[Any](self._kind(schema, self._classes))
            adapter.validate_python  # noqa: B018 - a type that cannot be built says so here, not at the first value
        except _odd_schema():
            adapter = TypeAdapter[Any](Any)
        self._adapters[id(schema)] = (schema, adapter)  # the schema is kept, so that its id stays its own
        return adapter

    def _build(self) -> None:
        new = [name for name in self._schemas if name not in self._classes]
        with warnings.catch_warnings():
            # A field may be called `schema` or `copy`; it then hides a method of pydantic, which is what is wanted.
            warnings.simplefilter("ignore")
            for name in new:
                self._classes[name] = self._class(name, self._schemas[name])
            for name in new:
                try:
                    self._classes[name].model_rebuild(_types_namespace=self._classes)
                except _odd_schema():
                    self._classes[name] = _records.open

    def _class(self, name: str, schema: Schema) -> type["BaseModel"]:
        from pydantic import Field, create_model

        fields: dict[str, Any] = {}
        lent: set[str] = set()
        required = schema.get("required", ())
        properties = cast("dict[str, Schema]", schema.get("properties", {}))
        plain = {field: one for field, one in properties.items() if not field.startswith("_")}
        for python, field in identifiers(properties).items():
            if field not in plain:
                continue
            one = plain[field]
            kind = self._kind(one, None)
            if field in required and "default" not in one:
                default = ...
            else:
                default = one.get("default")
                if "default" not in one:
                    kind = Optional[kind]  # noqa: UP045 - built at run time
                    lent.add(python)
            fields[python] = (kind, Field(default, alias=field if python != field else None))
        base = _records.closed if schema.get("additionalProperties") is False and plain == properties else _records.open
        try:
            methods = METHODS.get(str(schema.get("x-methods")))
            bases: Any = (base, methods) if methods else base
            made = create_model(name, __base__=bases, __module__="kernel", **fields)
        except _odd_schema():
            return _records.open
        cast("Any", made).lent = frozenset(lent)
        return made

    def _kind(self, schema: Any, classes: Mapping[str, Any] | None) -> Any:
        """The type of a schema; other object types by name as long as they are being built."""
        if not isinstance(schema, dict):
            return Any
        given = cast("Schema", schema)
        if "$ref" in given:
            name = str(given["$ref"])
            if name not in self._schemas:
                return Any
            return ForwardRef(name) if classes is None else classes[name]
        if KIND in given:
            return _frame()
        values = [given["const"]] if "const" in given else given.get("enum")
        if isinstance(values, list) and values:
            plain = all(one is None or isinstance(one, str | int) for one in cast("list[Any]", values))
            return Literal[tuple(cast("list[Any]", values))] if plain else Any
        for key in ("anyOf", "oneOf"):
            parts = cast("list[Any]", given.get(key) or [])
            if parts:
                return Union[tuple(self._kind(part, classes) for part in parts)]  # noqa: UP007 - built at run time
        return self._plain(given, classes)

    def _plain(self, given: Schema, classes: Mapping[str, Any] | None) -> Any:
        several = cast("list[Any]", given.get("allOf") or [])
        if len(several) == 1:
            return self._kind(several[0], classes)
        kind = given.get("type")
        if isinstance(kind, list):
            kinds = cast("list[str]", kind)
            return Union[tuple(self._kind({**given, "type": one}, classes) for one in kinds)]  # noqa: UP007
        if kind == "array":
            places = cast("list[Any]", given.get("prefixItems") or [])
            if places:
                return _bounded(tuple[tuple(self._kind(one, classes) for one in places)], {})
            return _bounded(list[self._kind(given.get("items"), classes)], given)
        if kind == "object":
            return _bounded(dict[str, self._kind(given.get("additionalProperties"), classes)], {})
        if kind == "string" and given.get("format") in _FORMATS:
            return _FORMATS[given["format"]]
        return _bounded(_SCALARS[kind], given) if kind in _SCALARS else Any


def _frame() -> Any:
    from typing import Annotated

    from pydantic import BeforeValidator

    return Annotated[Any, BeforeValidator(opened)]


def _odd_schema() -> tuple[type[Exception], ...]:
    """What pydantic raises when the schema of a tool's maker means nothing to it."""
    from pydantic.errors import PydanticUserError
    from pydantic_core import SchemaError

    return (PydanticUserError, SchemaError, NameError, TypeError, ValueError)


class _Records:
    """The bases of all object types, made when first asked for."""

    @cached_property
    def open(self) -> type["BaseModel"]:
        from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

        class Record(BaseModel):
            model_config = ConfigDict(extra="allow", populate_by_name=True, protected_namespaces=())
            lent: ClassVar[frozenset[str]] = frozenset()  # fields that are None until set, and have no default

            def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
                cut = short()
                for name, value in super().__repr_args__():
                    yield name, _Shown(value.isoformat() if isinstance(value, datetime.date) else cut(value))

            def __getitem__(self, name: str) -> Any:
                for field, one in type(self).model_fields.items():
                    if name in (field, one.alias):
                        return self.__dict__[field]
                return (self.model_extra or {})[name]

            @model_serializer(mode="wrap")
            def _sent(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
                """What nobody set stays away, where only we put None: who made the schema may not take it."""
                whole: dict[str, Any] = dump(self)
                for field in self.lent - self.model_fields_set:
                    whole.pop(type(self).model_fields[field].alias or field, None)
                return whole

            def __str__(self) -> str:
                return repr(self)

        return Record

    @cached_property
    def closed(self) -> type["BaseModel"]:
        from pydantic import ConfigDict

        class Record(self.open):
            model_config = ConfigDict(extra="forbid")

        return Record


_records = _Records()


class _Shown(str):
    """Text that is its own repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _bounded(kind: Any, schema: Schema) -> Any:
    from typing import Annotated

    from pydantic import Field

    bounds = {ours: schema[theirs] for theirs, ours in _BOUNDS.items() if theirs in schema}
    return Annotated[kind, Field(**bounds)] if bounds else kind
