"""Named object types of JSON schemas, and how they read as Python."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from memory_pipelines.memex.kernels.spelling import identifier

Schema = dict[str, Any]
"""A JSON schema; `{}` allows anything."""

NUMBERS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
FORMATS = {"date-time": "datetime", "date": "date"}
_REF = re.compile(r'"\$ref": "#/(?:\$defs|definitions)/([^"]+)"')


def parameter_names(parameters: Mapping[str, Any]) -> dict[str, str]:
    """How the arguments of a tool are written in Python, in the order in which they may be given by position.

    Args:
        parameters: JSON schema of the arguments.

    Returns:
        Python name to name in the schema: required ones first.
    """
    required = set(parameters.get("required", ()))
    names = sorted(parameters.get("properties", {}), key=lambda name: name not in required)
    return {identifier(name): name for name in names}


class Shelf:
    """Collects the object types of several schemas under one set of names.

    Equal types are shared; a different type under a taken name gets a number. Schemas that come back from `add` point
    to `types` and have no definitions of their own, so that a stub and an object built from it carry the same name.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.types: dict[str, Schema] = {}
        self._names: dict[str, str] = {}

    def add(self, schema: Mapping[str, Any], hint: str) -> Schema:
        """Move the object types of a schema here.

        Args:
            schema: with its definitions under `$defs`, if any. Unknown keywords are kept and ignored.
            hint: name for an object type that has none.

        Returns:
            The schema, pointing to `types`.
        """
        definitions = {**schema.get("definitions", {}), **schema.get("$defs", {})}
        return self._walk(dict(schema), _camel(hint), definitions, ())

    def _walk(self, schema: Any, hint: str, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Schema:
        given = _schema(schema)
        if "$ref" in given:
            return self._follow(str(given["$ref"]), definitions, inside)
        if given.get("properties"):
            name = str(given.get("title") or hint)
            return {"$ref": self._shelve(name, given, definitions, inside)}
        out = {key: value for key, value in given.items() if key not in ("$defs", "definitions")}
        for key in ("items", "additionalProperties"):
            if isinstance(out.get(key), dict):
                out[key] = self._walk(out[key], f"{hint}Item", definitions, inside)
        for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            if isinstance(out.get(key), list):
                parts = enumerate(out[key])
                out[key] = [self._walk(part, f"{hint}{at or ''}", definitions, inside) for at, part in parts]
        return out

    def _follow(self, ref: str, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Schema:
        name = ref.rpartition("/")[2]
        target = _schema(definitions.get(name))
        if target.get("properties"):
            return {"$ref": self._shelve(name, target, definitions, inside)}
        if name in inside:
            return {}  # a type made of itself without an object in between, as JSON values are
        return self._walk(target, name, definitions, (*inside, name))

    def _shelve(self, wanted: str, schema: Schema, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> str:
        bare = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
        key = json.dumps([wanted, bare, _reached(bare, definitions)], sort_keys=True, default=str)
        if key in self._names:
            return self._names[key]
        name = base = identifier(re.sub(r"\W+", "_", wanted).strip("_"))
        number = 1
        while name in self.types:
            number += 1
            name = f"{base}{number}"
        self._names[key] = name
        self.types[name] = {}  # holds the name and the place in the order while the fields are walked
        fields: dict[str, Schema] = {
            field: {**self._walk(one, name + _camel(field), definitions, inside), **_kept(one)}
            for field, one in bare["properties"].items()
        }
        self.types[name] = {**bare, "properties": fields}
        return name

    def text(self, schema: Mapping[str, Any]) -> str:
        """A schema from `add` as a Python annotation.

        Args:
            schema: what `add` gave.

        Returns:
            Text such as `list[Fact] | None`; `Any` where nothing better is known.
        """
        if "$ref" in schema:
            return str(schema["$ref"])
        if "const" in schema:
            return f"Literal[{schema['const']!r}]"
        if schema.get("enum"):
            return f"Literal[{', '.join(map(repr, schema['enum']))}]"
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list):
                return " | ".join(dict.fromkeys(self.text(part) for part in schema[key])) or "Any"
        parts = schema.get("allOf")
        if isinstance(parts, list) and len(schema["allOf"]) == 1:
            return self.text(schema["allOf"][0])
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(self.text({**schema, "type": one}) for one in schema["type"])
        if kind == "array":
            return self._list_text(schema)
        if kind == "object":
            return f"dict[str, {self.text(_schema(schema.get('additionalProperties')))}]"
        if kind == "string":
            return FORMATS.get(str(schema.get("format")), "str")
        return NUMBERS.get(str(kind), "Any")

    def _list_text(self, schema: Mapping[str, Any]) -> str:
        if schema.get("prefixItems"):
            return f"tuple[{', '.join(self.text(part) for part in schema['prefixItems'])}]"
        return f"list[{self.text(schema.get('items') or {})}]"

    def block(self, name: str) -> str:
        """One of `types` as a class.

        Args:
            name: a key of `types`.

        Returns:
            The text of the class: its fields with their descriptions as comments.
        """
        schema = self.types[name]
        lines = [f"class {name}:"]
        if schema.get("description"):
            lines.append(_docstring(str(schema["description"])))
        for field, _, annotation, default, described in self._fields(schema):
            comment = f"  # {' '.join(described.split())}" if described else ""
            lines.append(f"    {field}: {annotation}{default}{comment}")
        return "\n".join(lines)

    def function(
        self, name: str, description: str, parameters: Mapping[str, Any], returns: Mapping[str, Any] | None
    ) -> str:
        """A tool as an async function.

        Args:
            name: of the tool.
            description: of the tool.
            parameters: JSON schema of the arguments, as the tool has it.
            returns: JSON schema of the result, as the tool has it.

        Returns:
            The text of the function; descriptions of parameters are part of its docstring.
        """
        shape = self.parameters(name, parameters)
        signature: list[str] = []
        notes: list[str] = []
        for field, _, annotation, default, described in self._fields(shape):
            signature.append(f"{field}: {annotation}{default}")
            if described:
                notes.append(f"{field}: {' '.join(described.split())}")
        result = "Any" if returns is None else self.text(self.add(returns, f"{name}_result"))
        doc = _docstring("\n".join([description, *notes]).strip() or name)
        return f"async def {name}({', '.join(signature)}) -> {result}:\n{doc}"

    def parameters(self, name: str, parameters: Mapping[str, Any]) -> Schema:
        """The arguments of a tool with their object types moved here.

        Args:
            name: of the tool.
            parameters: JSON schema of the arguments.

        Returns:
            An object schema whose properties point to `types`.
        """
        definitions = {"$defs": {**parameters.get("definitions", {}), **parameters.get("$defs", {})}}
        fields = {
            field: {**self.add({**one, **definitions}, f"{name}_{field}"), **_kept(one)}
            if isinstance(one, dict)
            else {}
            for field, one in parameters.get("properties", {}).items()
        }
        return {"type": "object", "properties": fields, "required": list(parameters.get("required", ()))}

    def _fields(self, schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str, str]]:
        required = set(schema.get("required", ()))
        for python, field in parameter_names(schema).items():
            one = schema["properties"][field]
            annotation, default = self.text(one), ""
            if "default" in one:
                default = f" = {one['default']!r}"
            elif field not in required:
                annotation = annotation if "None" in annotation.split(" | ") else f"{annotation} | None"
                default = " = None"
            yield python, field, annotation, default, str(one.get("description") or "")


def _schema(value: Any) -> Schema:
    """A schema as a dict; `{}` for true, false and what is none: tools of other makers are not always right."""
    return cast("Schema", value) if isinstance(value, dict) else {}


def _kept(schema: Any) -> Schema:
    return {key: value for key, value in _schema(schema).items() if key in ("description", "default")}


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"\W+|_", name))


def _docstring(text: str) -> str:
    safe = text.replace("\\", "\\\\").replace('"""', "'''")
    lines = safe.split("\n")
    if len(lines) == 1 and not safe.endswith('"'):
        return f'    """{safe}"""'
    indented = "\n".join(f"    {line}".rstrip() for line in lines[1:])
    return f'    """{lines[0]}\n{indented}\n    """'


def _reached(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions that a schema needs, directly or through others."""
    found: dict[str, Any] = {}
    names = _REF.findall(json.dumps(schema, default=str))
    while names:
        name = names.pop()
        if name not in found:
            found[name] = definitions.get(name)
            names.extend(_REF.findall(json.dumps(found[name], default=str)))
    return found
