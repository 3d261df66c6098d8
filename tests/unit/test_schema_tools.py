"""Tools that come with a JSON schema: from model APIs and from MCP servers."""

import ast
import asyncio
import dataclasses
import logging
from typing import Any

import pytest
from any_schemas import anything, schemas
from hypothesis import given, settings
from pydantic import BaseModel

from memory_pipelines.errors import InvalidInputError, ToolError
from memory_pipelines.memex.checking import Checker
from memory_pipelines.memex.schema_tools import tool_of_schema, tools_of_mcp
from memory_pipelines.memex.stubs import stubs

WEATHER = {
    "name": "get-weather",
    "description": "The weather of a place.",
    "parameters": {
        "type": "object",
        "properties": {
            "place": {"type": "string", "minLength": 2, "description": "a town"},
            "days": {"type": "integer", "default": 1},
            "unit": {"enum": ["C", "F"]},
        },
        "required": ["place"],
    },
}


def echo(**arguments: object) -> dict[str, object]:
    return arguments


def call(tool: Any, **arguments: object) -> Any:
    return asyncio.run(tool.call(arguments))


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "function", "function": WEATHER},
        {"type": "function", "strict": True, **WEATHER},
        {"name": "get-weather", "description": WEATHER["description"], "input_schema": WEATHER["parameters"]},
    ],
    ids=["chat", "responses", "input_schema"],
)
def test_definitions_of_model_apis_become_tools(definition: dict[str, Any]) -> None:
    tool = tool_of_schema(definition, echo)
    assert stubs([tool]) == (
        "async def get_weather(place: str, days: int = 1, unit: Literal['C', 'F'] | None = None) -> Any:\n"
        '    """The weather of a place.\n    place: a town\n    """'
    )
    assert call(tool, place="Rome", days=2) == {"place": "Rome", "days": 2}


def test_arguments_are_held_against_the_schema() -> None:
    called: list[object] = []
    tool = tool_of_schema(WEATHER, lambda **given: called.append(given))
    with pytest.raises(ToolError) as caught:
        call(tool, place="R", days="two", unit="K", palce="x")
    assert sorted(caught.value.message.split("\n")) == [
        "days: 'two' is not of type 'integer'",
        "get_weather: arguments do not fit",
        "palce: no such argument; there are: place, days, unit",
        "place: 'R' is too short",
        "unit: 'K' is not one of ['C', 'F']",
    ]
    with pytest.raises(ToolError, match="'place' is a required property"):
        call(tool)
    assert called == []


def test_none_for_an_argument_that_may_be_left_out_leaves_it_out() -> None:
    parameters = {
        "properties": {"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}, "c": {"type": "integer"}},
        "required": ["c"],
    }
    tool = tool_of_schema({"name": "f", "parameters": parameters}, echo)
    assert call(tool, a=None, b=None, c=1) == {"b": None, "c": 1}
    with pytest.raises(ToolError, match="c: None is not of type 'integer'"):
        call(tool, c=None)


def test_further_arguments_pass_where_the_schema_says_so() -> None:
    open_one = {"name": "f", "parameters": {"properties": {}, "additionalProperties": {"type": "integer"}}}
    assert call(tool_of_schema(open_one, echo), x=1) == {"x": 1}
    with pytest.raises(ToolError, match="x: 'one' is not of type 'integer'"):
        call(tool_of_schema(open_one, echo), x="one")
    assert call(tool_of_schema({"name": "f", "parameters": {"type": "object"}}, echo), x=1) == {"x": 1}
    with pytest.raises(ToolError, match="x: no such argument; there are: none"):
        call(tool_of_schema({"name": "f"}, echo), x=1)


def test_a_large_wrong_value_is_quoted_in_short() -> None:
    with pytest.raises(ToolError) as caught:
        call(tool_of_schema(WEATHER, echo), place="Rome", days="9" * 100_000)
    assert len(caught.value.message) < 400


def test_what_is_wrong_with_a_schema_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    parameters = {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "required": True},
            "b": {"$ref": "https://example.org/never-fetched.json"},
            "c": {"type": "string", "pattern": "(?<name>[0-9"},
            "d": {"$ref": "#/$defs/X"},
        },
        "$defs": {"X": {"$ref": "#/$defs/Y"}, "Y": {"$ref": "#/$defs/X"}},
    }
    with caplog.at_level(logging.WARNING):
        tool = tool_of_schema({"name": "f", "parameters": parameters}, echo)
    for place in ("properties/a/required", "properties/b/$ref", "properties/c/pattern", "$defs/X/$ref"):
        assert place in caplog.text
    assert call(tool, a=1, b=[2], c="x", d={}) == {"a": 1, "b": [2], "c": "x", "d": {}}
    with pytest.raises(ToolError, match="a: 'one' is not of type 'integer'"):
        call(tool, a="one")


def test_a_type_that_contains_itself_is_checked_all_the_way() -> None:
    node = {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
    parameters = {"properties": {"root": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    tool = tool_of_schema({"name": "f", "parameters": parameters}, echo)
    call(tool, root={"below": [{"below": []}]})
    with pytest.raises(ToolError, match=r"root.below\[0\].below: 3 is not of type 'array'"):
        call(tool, root={"below": [{"below": 3}]})


def test_results_with_a_type_have_its_schema() -> None:
    class Report(BaseModel):
        sky: str
        degrees: int

    typed = tool_of_schema(WEATHER, lambda place: Report(sky=place, degrees=3), returns=Report)
    assert "-> Report:" in stubs([typed])
    assert call(typed, place="Rome") == {"sky": "Rome", "degrees": 3}
    by_schema = {"type": "array", "items": {"type": "integer"}}
    assert "-> list[int]:" in stubs([tool_of_schema(WEATHER, echo, returns=by_schema)])


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ({"type": "web_search"}, "a dict with `name`"),
        ({"type": "function", "function": {"description": "x"}}, "a dict with `name`"),
        ({"name": "f", "parameters": "none"}, "`parameters` is a JSON schema, a dict; got a str"),
        ("f", "got 'f'"),
    ],
)
def test_what_defines_no_function_is_refused(definition: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        tool_of_schema(definition, echo)


@pytest.mark.parametrize("name", ["not a name", "submit"])
def test_names_that_cannot_be_called_are_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot be called"):
        tool_of_schema(WEATHER, echo, name=name)


LISTING = {
    "tools": [
        {
            "name": "files.read",
            "description": "Read a file.",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
        {
            "name": "files/stat",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
            "outputSchema": {
                "title": "Stat",
                "type": "object",
                "properties": {"size": {"type": "integer"}},
                "required": ["size"],
            },
        },
        {"name": "list", "inputSchema": {"type": "object"}},
        {
            "name": "count",
            "inputSchema": {"type": "object", "properties": {}},
            "outputSchema": {
                "type": "object",
                "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/Row"}}},
                "$defs": {"Row": {"type": "object", "properties": {"n": {"type": "integer"}}}},
                "x-fastmcp-wrap-result": True,
            },
        },
    ]
}


def text_block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def mcp(name: str, result: Any) -> Any:
    """What the code gets of a result of an MCP tool, called by its Python name."""
    return call(next(tool for tool in tools_of_mcp(LISTING, lambda *_: result) if tool.name == name))


def test_tools_of_a_server_are_called_by_its_own_names() -> None:
    called: list[tuple[str, dict[str, Any]]] = []

    async def ask(name: str, arguments: dict[str, Any]) -> Any:
        called.append((name, arguments))
        return {"content": [text_block("hello")]}

    tools = tools_of_mcp(LISTING, ask)
    assert [tool.name for tool in tools] == ["files_read", "files_stat", "list_", "count"]
    text = stubs(tools)
    ast.parse(text)
    assert "async def files_read(path: str) -> str:" in text
    assert "async def files_stat(path: str | None = None) -> Stat:" in text
    assert "async def count() -> list[Row]:" in text
    assert call(tools[0], path="/a") == "hello"
    assert called == [("files.read", {"path": "/a"})]
    with pytest.raises(ToolError, match="'path' is a required property"):
        call(tools[0])


@pytest.mark.parametrize(
    ("name", "result", "value"),
    [
        ("files_stat", {"structuredContent": {"size": 3}, "content": [text_block('{"size": 3}')]}, {"size": 3}),
        ("files_stat", {"content": [text_block('{"size": 3}')]}, {"size": 3}),
        ("files_stat", {"content": [text_block("no JSON")]}, "no JSON"),
        ("count", {"structuredContent": {"result": [{"n": 1}]}}, [{"n": 1}]),
        ("list_", {"content": [text_block("a"), text_block("b")]}, "a\nb"),
        ("list_", {"structuredContent": {"a": "é"}, "content": []}, '{"a": "é"}'),
        (
            "list_",
            {"content": [{"type": "image", "mimeType": "image/png"}]},
            "[image image/png: left out]",
        ),
        ("list_", {"content": [{"type": "resource", "resource": {"uri": "f:/a", "text": "inside"}}]}, "inside"),
        ("list_", {"content": [{"type": "resource_link", "uri": "f:/a"}]}, "[resource_link f:/a: left out]"),
        ("list_", "plain", "plain"),
        ("list_", {"own": 1}, {"own": 1}),
    ],
)
def test_results_of_a_server_arrive_as_values_or_text(name: str, result: Any, value: Any) -> None:
    assert mcp(name, result) == value


def test_errors_of_a_server_are_errors_of_the_tool() -> None:
    with pytest.raises(ToolError, match="list_: no such folder"):
        mcp("list_", {"isError": True, "content": [text_block("no such folder")]})
    with pytest.raises(ToolError, match="list_: failed, and did not say why"):
        mcp("list_", {"isError": True, "content": []})


def test_objects_of_a_library_do_as_well_as_dicts() -> None:
    @dataclasses.dataclass
    class Block:
        type: str
        text: str

    @dataclasses.dataclass
    class Result:
        content: list[Block]
        structured_content: Any = None
        is_error: bool = False

    class Listed(BaseModel):
        name: str
        inputSchema: dict[str, Any]  # noqa: N815 - the protocol's spelling
        outputSchema: dict[str, Any] | None = None  # noqa: N815

    class Page(BaseModel):
        tools: list[Listed]
        nextCursor: str | None = None  # noqa: N815

    page = Page(tools=[Listed(name="a-b", inputSchema={"type": "object"})])
    (tool,) = tools_of_mcp(page, lambda *_: Result([Block("text", "x")]))
    assert (tool.name, call(tool)) == ("a_b", "x")
    (same,) = tools_of_mcp(page.tools, lambda *_: Result([Block("text", "no")], is_error=True))
    with pytest.raises(ToolError, match="a_b: no"):
        call(same)


@pytest.mark.parametrize(
    ("listing", "said"),
    [
        ({"tools": [], "nextCursor": "p2"}, "further pages"),
        ("tools", "got a str"),
        ([{"title": "nameless"}], "a dict with `name`"),
        ([{"name": "a"}, {"name": "a"}], "two tools are called a"),
    ],
)
def test_what_is_no_whole_listing_is_refused(listing: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        tools_of_mcp(listing, lambda *_: None)


@settings(deadline=None, max_examples=50)
@given(schemas, anything)
def test_no_schema_of_anybody_breaks_the_check(schema: Any, value: Any) -> None:
    for parameters in (schema, {"properties": {"given": schema}}):
        taken, wrong = Checker(parameters, name="f").check({"given": value})
        assert isinstance(taken, dict)
        assert all(isinstance(line, str) for line in wrong)
