"""Object types of JSON schemas under names of their own: what stubs show and kernels build.

Schemas come from anybody, with keywords of any type and references in circles. What leaves here has only keywords that
the renderer and the kernel know, with values of the right type, and references to named types only.
"""

import builtins
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import unquote

from memory_pipelines.memex.kernels.arrow import DATA_FRAME, KIND, TABLE
from memory_pipelines.memex.kernels.spelling import identifier, identifiers

Schema = dict[str, Any]
"""A JSON schema; `{}` allows anything."""

MAX_DEPTH = 50
"""How deep types may be nested without a name; Python reads at most 200 brackets in one another."""

_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_SIZES = ("minLength", "maxLength", "minItems", "maxItems")
_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_CHOICES = ("anyOf", "oneOf", "allOf")


def parameter_names(parameters: Mapping[str, Any]) -> dict[str, str]:
    """How the arguments of a tool are written in Python, in the order in which they may be given by position.

    Args:
        parameters: JSON schema of the arguments.

    Returns:
        Python name to name in the schema: required ones first.
    """
    required = set(_required(parameters))
    names = identifiers(_properties(parameters))
    return dict(sorted(names.items(), key=lambda pair: pair[1] not in required))


def signature(schema: Any) -> Schema:
    """The schema of some arguments with all that may be given in one place, wherever its parts were.

    Args:
        schema: of an object; its properties may be in a definition that it points to, in parts that all hold, or in
            alternatives, of which then no property is required.

    Returns:
        The schema with `properties` and `required` of its own.
    """
    root = cast("Schema", plain_json(schema if isinstance(schema, Mapping) else {}))
    whole = _joined(root, root, 0)
    properties, required = dict(_properties(whole)), _required(whole)
    for key in ("anyOf", "oneOf"):
        for part in _list(whole.get(key)):
            for name, one in _properties(_joined(part, root, 0)).items():
                properties.setdefault(name, one)
    kept = {key: value for key, value in {**root, **whole}.items() if key not in ("$ref", "allOf")}
    if not properties and "properties" not in kept:
        kept.setdefault("additionalProperties", True)  # nothing is said of the arguments, so any will do
    required = [name for name in required if name in properties]
    return {**kept, "type": "object", "properties": properties, "required": required}


def plain_json(value: Any, depth: int = 0) -> Any:
    """A copy of which nothing is nested too deep and everything has a JSON form.

    Args:
        value: of any kind; it may contain itself.
        depth: how deep it is nested.

    Returns:
        Plain JSON.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > 4 * MAX_DEPTH:
        return {}
    if isinstance(value, Mapping):
        return {str(key): plain_json(one, depth + 1) for key, one in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain_json(one, depth + 1) for one in cast("list[Any]", value)]
    return str(value)


class Shelf:
    """Collects the object types of several schemas under one set of names.

    Equal types are shared; a different type under a taken name gets a number. Schemas that come back from `add` point
    to `types` and have no definitions of their own, so that a stub and an object built from it carry the same name.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.types: dict[str, Schema] = {}
        self._names: dict[str, str] = {}

    def add(self, schema: Any, hint: str) -> Schema:
        """Move the object types of a schema here.

        Args:
            schema: with its definitions inside. What is no schema allows anything.
            hint: name for an object type that has none.

        Returns:
            The schema, pointing to `types`.
        """
        root = plain_json(schema)
        return self._walk(root, _camel(hint), root, ())

    def parameters(self, name: str, parameters: Mapping[str, Any]) -> Schema:
        """The arguments of a tool with their object types moved here.

        Args:
            name: of the tool.
            parameters: JSON schema of the arguments.

        Returns:
            An object schema whose properties point to `types`.
        """
        root = cast("Schema", plain_json(parameters))
        fields = {
            field: {**self._walk(one, _camel(f"{name}_{field}"), root, ()), **_kept(one)}
            for field, one in _properties(root).items()
        }
        more = root.get("additionalProperties")
        if isinstance(more, dict):
            more = self._walk(more, _camel(f"{name}_more"), root, ())
        return {"type": "object", "properties": fields, "required": _required(root), "additionalProperties": more}

    def reached(self, *schemas: Schema) -> list[str]:
        """The types that schemas of this shelf need, directly or through others, in their order here."""
        found: set[str] = set()
        waiting = [ref for schema in schemas for ref in _refs(schema)]
        while waiting:
            name = waiting.pop()
            if name in self.types and name not in found:
                found.add(name)
                waiting += _refs(self.types[name])
        return [name for name in self.types if name in found]

    def _walk(self, schema: Any, hint: str, root: Any, inside: tuple[str, ...]) -> Schema:
        if len(inside) > MAX_DEPTH:
            return {}
        ref = _schema(schema).get("$ref")
        if isinstance(ref, str):
            if ref in inside:
                return {}  # a type made of itself without an object in between, as JSON values are
            return self._walk(_resolved(ref, root), _named(ref, hint), root, (*inside, ref))
        given = _joined(_schema(schema), root, 0)
        out = _known(given)
        if _properties(given):
            named: Schema = {"$ref": self._shelve(given, hint, root, inside)}
            nothing: Schema = {"type": "null"}
            return {"anyOf": [named, nothing]} if "null" in _kinds(given) else named
        within = (*inside, "")
        for key in ("items", "additionalProperties"):
            if isinstance(given.get(key), dict):
                out[key] = self._walk(given[key], f"{hint}Item", root, within)
        if isinstance(given.get("items"), list):  # how tuples were written in older schemas
            given = {"prefixItems": given["items"], **given}
        for key in (*_CHOICES, "prefixItems"):
            parts = _list(given.get(key))
            if parts:
                out[key] = [self._walk(part, f"{hint}{at or ''}", root, within) for at, part in enumerate(parts)]
        return out

    def _shelve(self, schema: Schema, hint: str, root: Any, inside: tuple[str, ...]) -> str:
        bare = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
        own = _own_name(schema, inside)
        wanted = own or hint
        # A type without a name of its own is the same wherever it is met, or one that contains itself had no end.
        key = json.dumps([own, bare, _needed(bare, root)], sort_keys=True)
        if key in self._names:
            return self._names[key]
        name = base = identifier(re.sub(r"\W+", "_", wanted).strip("_"))
        number = 1
        while name in self.types or hasattr(builtins, name):
            number += 1
            name = f"{base}{number}"
        self._names[key] = name
        self.types[name] = {}  # holds the name and the place in the order while the fields are walked
        within = ("",) * (len(inside) + 1)
        fields: dict[str, Schema] = {
            field: {**self._walk(one, name + _camel(field), root, within), **_kept(one)}
            for field, one in _properties(bare).items()
        }
        closed: Schema = {"additionalProperties": False} if bare.get("additionalProperties") is False else {}
        self.types[name] = {
            **_kept(bare),
            **closed,
            **({"x-methods": bare["x-methods"]} if "x-methods" in bare else {}),
            "type": "object",
            "properties": fields,
            "required": _required(bare),
        }
        return name


def _joined(schema: Any, root: Any, depth: int) -> Schema:
    """A schema with the properties of what it points to and of the parts that all hold of it."""
    given = _schema(schema)
    if depth > MAX_DEPTH:
        return {}
    ref = given.get("$ref")
    if isinstance(ref, str):
        return _joined(_resolved(ref, root), root, depth + 1)
    parts = [_joined(part, root, depth + 1) for part in _list(given.get("allOf"))]
    if not any(_properties(part) for part in parts):
        return given
    properties: Schema = {}
    required: list[str] = []
    for part in (*parts, given):
        properties.update(_properties(part))
        required += _required(part)
    whole = {key: value for part in (*parts, given) for key, value in part.items() if key != "allOf"}
    return {**whole, "properties": properties, "required": list(dict.fromkeys(required))}


def _known(given: Schema) -> Schema:
    """The keywords without schemas in them whose values are of the right type."""
    out = _kept(given)
    kinds = _kinds(given)
    if kinds:
        out["type"] = kinds if len(kinds) > 1 else kinds[0]
    elif "items" in given or "prefixItems" in given:
        out["type"] = "array"
    if isinstance(given.get("format"), str):
        out["format"] = given["format"]
    if isinstance(given.get("enum"), list) and given["enum"]:
        out["enum"] = given["enum"]
    if "const" in given:
        out["const"] = given["const"]
    if given.get(KIND) in (DATA_FRAME, TABLE):
        out[KIND] = given[KIND]
    if isinstance(given.get("additionalProperties"), bool):
        out["additionalProperties"] = given["additionalProperties"]
    bounds = ((key, given.get(key)) for key in (*_BOUNDS, *_SIZES))
    for key, value in bounds:
        if type(value) is int or (type(value) is float and key in _BOUNDS):
            out[key] = value
    return out


def _kinds(given: Schema) -> list[str]:
    kinds = _list(given.get("type")) or [given.get("type")]
    if given.get("nullable") is True:  # as OpenAPI 3.0 says it
        kinds = [*kinds, "null"]
    known = [one for one in dict.fromkeys(one for one in kinds if isinstance(one, str)) if one in _TYPES]
    return [] if known == ["null"] and given.get("nullable") is True else known


def _kept(schema: Any) -> Schema:
    given = _schema(schema)
    kept: Schema = {"default": given["default"]} if "default" in given else {}
    if isinstance(given.get("description"), str):
        kept["description"] = given["description"]
    return kept


def _schema(value: Any) -> Schema:
    """A schema as a dict; `{}` for true, false and what is none: tools of other makers are not always right."""
    return cast("Schema", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _properties(schema: Mapping[str, Any]) -> Schema:
    return _schema(schema.get("properties"))


def _required(schema: Mapping[str, Any]) -> list[str]:
    return [name for name in _list(schema.get("required")) if isinstance(name, str)]


def _own_name(schema: Schema, inside: tuple[str, ...]) -> str:
    """What a type is called by its maker: as its definition, else by its title; nothing when it has no name."""
    title = schema.get("title")
    referred = _named(inside[-1], "") if inside else ""
    return referred or (title.strip() if isinstance(title, str) else "")


def _named(ref: str, hint: str) -> str:
    """The name of a definition; a pointer into the middle of a schema gives none."""
    place, _, name = ref.rpartition("/")
    return unquote(name) if place.rpartition("/")[2] in ("$defs", "definitions", "schemas") else hint


def _resolved(ref: str, root: Any) -> Any:
    """What a reference within a document points to; nothing is ever fetched."""
    if not ref.startswith("#"):
        return {}
    found = root
    for step in ref[1:].split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = cast("Schema", found).get(key)
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(cast("list[Any]", found)):
            found = cast("list[Any]", found)[int(key)]
        else:
            return {}
    return found


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        given = cast("Schema", value)
        if isinstance(given.get("$ref"), str):
            yield given["$ref"]
        for one in given.values():
            yield from _refs(one)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _refs(one)


def _needed(schema: Schema, root: Any) -> Schema:
    """What a schema points to, directly or through others."""
    found: Schema = {}
    waiting = list(_refs(schema))
    while waiting:
        ref = waiting.pop()
        if ref not in found:
            found[ref] = _resolved(ref, root)
            waiting += _refs(found[ref])
    return found


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"\W+|_", name))
