"""Tools that come with a JSON schema in place of types: in the form of a model's API, or from an MCP server."""

import builtins
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from pydantic import TypeAdapter

from memory_pipelines.errors import InvalidInputError, ToolError
from memory_pipelines.memex.checking import Checker
from memory_pipelines.memex.kernels.namespace import OWN_NAMES
from memory_pipelines.memex.kernels.spelling import identifiers
from memory_pipelines.memex.shapes import Schema, plain_json, signature
from memory_pipelines.memex.tools import Tool, schema_of

_TAKEN = frozenset({*OWN_NAMES, *dir(builtins)})
_PARAMETERS = ("parameters", "inputSchema", "input_schema")
_RETURNS = ("outputSchema", "output_schema")
_WRAPPED = "x-fastmcp-wrap-result"
"""How a much used server says that it put a result that is no object into one."""


def tool_of_schema(
    definition: Mapping[str, Any],
    function: Callable[..., Any],
    *,
    name: str | None = None,
    returns: type | Mapping[str, Any] | None = None,
) -> Tool:
    """Make a tool of a definition as model APIs take it, and of the function that does the work.

    Args:
        definition: `{"type": "function", "function": {"name", "description", "parameters"}}`, or its flat form; the
            schema may also be called `input_schema`.
        function: sync or async; gets the arguments by the names of the schema, after they were checked against it.
        name: how the code calls it, else the definition's name, spelt as a Python identifier.
        returns: type or JSON schema of the result; without it the code gets text or plain JSON.

    Returns:
        The tool.

    Raises:
        InvalidInputError: no definition of a function; says what was got.
    """
    given = _definition(definition)
    called = name if name is not None else _called([given["name"]])[0]
    if not called.isidentifier() or called in OWN_NAMES:
        raise InvalidInputError(
            f"a tool cannot be called {called!r}: give `name`, a Python identifier, except those of the kernel: "
            f"{', '.join(OWN_NAMES)}",
            name=called,
        )
    adapter: TypeAdapter[Any] | None = None
    schema = _first(given, _RETURNS)
    if isinstance(returns, Mapping):
        schema = returns
    elif returns is not None:
        schema, adapter = schema_of(returns), TypeAdapter[Any](returns)
    return _made(called, given, schema, function, adapter)


def tools_of_mcp(listing: Any, call: Callable[[str, dict[str, Any]], Any]) -> list[Tool]:
    """Make tools of what an MCP server lists.

    Args:
        listing: the result of `tools/list`, or its tools: dicts, or objects of an MCP library. A listing in several
            pages must be joined before.
        call: takes the server's name of a tool and the arguments, sync or async; gives what `tools/call` gave, as a
            dict or an object of an MCP library.

    Returns:
        A tool for each, called by a Python identifier near the server's name. With an output schema the code gets
        objects, else text; an error of the server becomes a `ToolError`.

    Raises:
        InvalidInputError: no listing, or one page of several; says what was got.
    """
    if _part(listing, "nextCursor", "next_cursor"):
        raise InvalidInputError(
            "the listing has further pages: ask with its nextCursor and give the tools of all pages as one list"
        )
    tools = _part(listing, "tools")
    found = listing if tools is None else tools
    if not isinstance(found, Sequence) or isinstance(found, str | bytes):
        raise InvalidInputError(
            f"a listing of MCP tools is a list, or the result of tools/list with one; got a {type(found).__name__}"
        )
    given = [_definition(_plain(one)) for one in cast("Sequence[Any]", found)]
    names = _called([one["name"] for one in given])
    return [_mcp_tool(name, one, call) for name, one in zip(names, given, strict=True)]


def _mcp_tool(called: str, given: Mapping[str, Any], call: Callable[[str, dict[str, Any]], Any]) -> Tool:
    schema = _first(given, _RETURNS)
    wrapped = schema is not None and schema.get(_WRAPPED) is True
    typed = schema is not None
    original = str(given["name"])
    if schema is None:
        schema = {"type": "string"}
    elif wrapped:
        definitions = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
        inner = _mapping(_mapping(schema.get("properties")).get("result"))
        schema = {**inner, **definitions}

    async def ask(**arguments: Any) -> Any:
        result = call(original, arguments)
        if inspect.isawaitable(result):
            result = await result
        return _result(called, result, typed=typed, wrapped=wrapped)

    return _made(called, given, schema, ask, None)


def _result(called: str, result: Any, *, typed: bool, wrapped: bool) -> Any:
    """What the code gets of the result of `tools/call`; what is no such result, it gets as it is."""
    content = _part(result, "content")
    structured = _part(result, "structuredContent", "structured_content")
    failed = _part(result, "isError", "is_error")
    if content is None and structured is None and failed is None:
        return result
    text = "\n".join(_text(block) for block in cast("Iterable[Any]", content or ()))
    if failed:
        raise ToolError(f"{called}: {text or 'failed, and did not say why'}", tool=called)
    if not typed:
        return text if text or structured is None else json.dumps(_plain(structured), ensure_ascii=False)
    if structured is not None:
        plain = _plain(structured)
        return _mapping(plain).get("result", plain) if wrapped else plain
    try:
        return json.loads(text)  # a server older than structured content, or one that forgot it
    except ValueError:
        return text


def _text(block: Any) -> str:
    """A block of content as text; what is no text is named."""
    kind = _part(block, "type")
    text = _part(block, "text")
    resource = _part(block, "resource")
    if isinstance(text, str):
        return text
    if resource is not None:
        inside = _part(resource, "text")
        return inside if isinstance(inside, str) else f"[resource {_part(resource, 'uri')}: left out]"
    address = _part(block, "uri")
    return f"[{kind} {address if address is not None else _part(block, 'mimeType', 'mime_type')}: left out]"


def _made(
    called: str,
    given: Mapping[str, Any],
    returns: Mapping[str, Any] | None,
    function: Callable[..., Any],
    adapter: TypeAdapter[Any] | None,
) -> Tool:
    parameters = _first(given, _PARAMETERS) or {"type": "object", "properties": {}}
    described = given.get("description") or given.get("title")
    return Tool(
        name=called,
        description=inspect.cleandoc(described) if isinstance(described, str) else "",
        parameters=signature(parameters),
        returns=None if returns is None else cast("Schema", plain_json(returns)),
        function=function,
        result=adapter,
        check=Checker(parameters, name=called).check,
    )


def _definition(definition: Any) -> Mapping[str, Any]:
    outer = _mapping(definition)
    given = _mapping(outer.get("function")) or outer
    kind = outer.get("type", "function")
    name = given.get("name")
    if kind not in ("function", "custom") or not isinstance(name, str) or not name:
        raise InvalidInputError(
            "a tool is defined by a dict with `name`, `description` and `parameters`, alone or under `function`; "
            f"got {_shown(definition)}"
        )
    for key in _PARAMETERS:
        if given.get(key) is not None and not isinstance(given[key], Mapping):
            raise InvalidInputError(
                f"tool {name}: `{key}` is a JSON schema, a dict; got a {type(given[key]).__name__}", tool=name
            )
    return given


def _called(names: Sequence[str]) -> list[str]:
    """Python names, each its own, that hide nothing of the kernel or of Python."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(
            f"two tools are called {', '.join(twice)}: a call could not tell them apart", names=twice
        )
    return list(identifiers(names, _TAKEN))


def _first(given: Mapping[str, Any], keys: Sequence[str]) -> Mapping[str, Any] | None:
    return next((cast("Mapping[str, Any]", given[key]) for key in keys if isinstance(given.get(key), Mapping)), None)


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _part(value: Any, *names: str) -> Any:
    """A part of a dict or of an object of a library, under the first of its names that is there."""
    for name in names:
        found = cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if found is not None:
            return found
    return None


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", by_alias=True, exclude_none=True) if callable(dump) else value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
