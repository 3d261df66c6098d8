"""Tools as the model reads them: Python stubs, several times shorter than their JSON schemas."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from memory_pipelines.memex.kernels.arrow import DATA_FRAME, KIND, TABLE
from memory_pipelines.memex.shapes import Schema, Shelf, parameter_names
from memory_pipelines.memex.tools import Tool

FULL_TOOLS = 40
"""Beyond this many tools only their names and what they are for are shown; `help` shows the rest."""
FULL_CHARS = 24_000
"""The same for the size of the stubs: about 6,000 tokens."""
SHOWN_VALUES = 50
"""How many values of an enumeration are shown."""

_DEFAULT_CHARS = 200
_LINE_CHARS = 100
_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_FRAMES = {DATA_FRAME: "pandas.DataFrame", TABLE: "pyarrow.Table"}
_FORMATS = {"date-time": "datetime", "date": "date"}
_SHORT = "# Too many tools to show in full: `help(name)` prints how one is called. Each is an async function."


def stubs(tools: Sequence[Tool], *, result: Mapping[str, Any] | None = None) -> str:
    """What the model reads of its tools.

    Args:
        tools: in the order in which they are shown.
        result: JSON schema of what `submit` takes, None to leave `submit` out.

    Returns:
        Python: a class for each object type, then a function for each tool. When that would be more than 40 tools or
        about 6,000 tokens, the tools are a list of names with the first line of what they say of themselves.
    """
    shelf = Shelf()
    functions = [function_stub(shelf, tool) for tool in tools]
    called = list(shelf.types)
    submit: list[str] = []
    needed: list[str] = []
    if result is not None:
        shape = shelf.add(result, "Result")
        doc = "Give the result and end the work." + (" Its fields may be given by name." if "$ref" in shape else "")
        submit = [f'def submit(value: {annotation(shape)}) -> NoReturn:\n    """{doc}"""']
        needed = shelf.reached(shape)
    full = [class_stub(shelf, name) for name in called] + functions
    if len(tools) > FULL_TOOLS or sum(map(len, full)) > FULL_CHARS:
        own = [class_stub(shelf, name) for name in needed]
        return "\n\n".join([*own, _listed(tools), *submit])
    more = [class_stub(shelf, name) for name in shelf.types if name not in called]
    return "\n\n".join([*full[: len(called)], *more, *functions, *submit])


def whole_stub(shelf: Shelf, tool: Tool) -> str:
    """All that there is to know of one tool.

    Args:
        shelf: has the object types of all tools.
        tool: which one.

    Returns:
        The object types that it takes and gives, then the function.
    """
    function = function_stub(shelf, tool)
    shapes = [shelf.parameters(tool.name, tool.parameters), *_given(shelf, tool)]
    return "\n\n".join([*(class_stub(shelf, name) for name in shelf.reached(*shapes)), function])


def function_stub(shelf: Shelf, tool: Tool) -> str:
    """A tool as an async function.

    Args:
        shelf: gets the object types that it takes and gives.
        tool: which one.

    Returns:
        The text of the function; descriptions of parameters are part of its docstring.
    """
    shape = shelf.parameters(tool.name, tool.parameters)
    written: list[str] = []
    notes: list[str] = []
    for field, kind, default, described in _fields(shape):
        written.append(f"{field}: {kind}{default}")
        if described:
            notes.append(f"{field}: {described}")
    more = shape["additionalProperties"]
    if more is True or isinstance(more, dict):
        name = "more" if "more" not in parameter_names(shape) else "more_"
        written.append(f"**{name}: {annotation(cast('Schema', more) if isinstance(more, dict) else {})}")
    result = annotation(*_given(shelf, tool))
    doc = _docstring("\n".join([tool.description, *notes]).strip() or tool.name)
    return f"async def {tool.name}({', '.join(written)}) -> {result}:\n{doc}"


def class_stub(shelf: Shelf, name: str) -> str:
    """An object type as a class.

    Args:
        shelf: has it.
        name: a key of its types.

    Returns:
        The text of the class: its fields with their descriptions as comments.
    """
    schema = shelf.types[name]
    lines = [f"class {name}:"]
    if schema.get("description"):
        lines.append(_docstring(str(schema["description"])))
    for field, kind, default, described in _fields(schema):
        lines.append(f"    {field}: {kind}{default}{f'  # {described}' if described else ''}")
    return "\n".join(lines)


def annotation(schema: Mapping[str, Any] | None = None) -> str:
    """A schema as a Python annotation.

    Args:
        schema: what `Shelf.add` gave.

    Returns:
        Text such as `list[Fact] | None`; `Any` where nothing better is known.
    """
    given = schema or {}
    if "$ref" in given:
        return str(given["$ref"])
    if KIND in given:
        return _FRAMES[given[KIND]]
    if "const" in given:
        return f"Literal[{_literal(given['const'])}]"
    if given.get("enum"):
        values = [_literal(one) for one in given["enum"][:SHOWN_VALUES]]
        return f"Literal[{', '.join([*values, *(['...'] if len(given['enum']) > SHOWN_VALUES else [])])}]"
    for key in ("anyOf", "oneOf"):
        if given.get(key):
            kinds = list(dict.fromkeys(annotation(part) for part in given[key]))
            return "Any" if "Any" in kinds else " | ".join(kinds)
    if len(given.get("allOf", ())) == 1:
        return annotation(given["allOf"][0])
    kind = given.get("type")
    if isinstance(kind, list):
        return " | ".join(annotation({**given, "type": one}) for one in cast("list[str]", kind))
    if kind == "array":
        if given.get("prefixItems"):
            return f"tuple[{', '.join(annotation(part) for part in given['prefixItems'])}]"
        return f"list[{annotation(given.get('items'))}]"
    if kind == "object":
        more = given.get("additionalProperties")
        return f"dict[str, {annotation(cast('Schema', more) if isinstance(more, dict) else {})}]"
    if kind == "string":
        return _FORMATS.get(str(given.get("format")), "str")
    return _SCALARS.get(str(kind), "Any")


def _given(shelf: Shelf, tool: Tool) -> list[Schema]:
    return [] if tool.returns is None else [shelf.add(tool.returns, f"{tool.name}_result")]


def _fields(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Name, annotation, default and description of each field, required ones first."""
    for python, field in parameter_names(schema).items():
        one = schema["properties"][field]
        kind, default = annotation(one), ""
        if "default" in one:
            default = f" = {_literal(one['default'])}"
        elif field not in schema["required"]:
            kind = kind if "None" in kind.split(" | ") else f"{kind} | None"
            default = " = None"
        yield python, kind, default, _clean(" ".join(str(one.get("description") or "").split()))


def _listed(tools: Sequence[Tool]) -> str:
    """The tools in short: names with a line each, or only names where that is still too much."""
    lines = [f"{tool.name}{f'  # {line}' if (line := _first_line(tool)) else ''}" for tool in tools]
    if sum(map(len, lines)) > FULL_CHARS:
        lines = [tool.name for tool in tools]
    return "\n".join([_SHORT, *lines])


def _first_line(tool: Tool) -> str:
    line = _clean(" ".join(tool.description.strip().split("\n", 1)[0].split()))
    return line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}..."


def _literal(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _DEFAULT_CHARS else "..."


def _clean(text: str) -> str:
    """Text that can stand in a source file."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()


def _docstring(text: str) -> str:
    safe = _clean(text).replace("\\", "\\\\").replace('"""', "'''")
    lines = safe.splitlines() or [""]
    if len(lines) == 1 and not safe.endswith('"'):
        return f'    """{safe}"""'
    indented = "\n".join(f"    {line}".rstrip() for line in lines[1:])
    return f'    """{lines[0]}\n{indented}\n    """'
