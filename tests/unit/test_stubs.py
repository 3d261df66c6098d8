"""Stubs: what a model reads of tools whose schemas are anybody's."""

import ast
from typing import Any

import pytest
from any_schemas import anything, schemas
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_cases import Hit, Span, search, tree

from memory_pipelines.memex.kernels.objects import Types
from memory_pipelines.memex.kernels.spelling import identifier, identifiers
from memory_pipelines.memex.shapes import Shelf, signature
from memory_pipelines.memex.stubs import annotation, stubs, whole_stub
from memory_pipelines.memex.tools import Tool, schema_of, tool_of


def made(parameters: Any, returns: Any = None, *, name: str = "odd", description: str = "") -> Tool:
    return Tool(name=name, description=description, parameters=parameters, returns=returns, function=dict)


def shown(schema: Any) -> str:
    """A schema as an annotation, with the classes that it needs before it."""
    return stubs([made({"properties": {"x": schema}, "required": ["x"]})])


def test_stubs_are_read_as_python_and_name_each_type_once() -> None:
    text = stubs([tool_of(search), tool_of(tree)], result=schema_of(list[Hit], mode="validation"))
    assert text == (
        "class Hit:\n"
        "    document: str  # where it was found\n"
        "    at: datetime\n"
        "    kind: Literal['title', 'body'] = 'body'\n"
        "    score: float | None = None\n\n"
        "class Node:\n"
        '    """A thing with things below it."""\n'
        "    name: str\n"
        "    below: list[Node] = []\n\n"
        "class Span:\n"
        "    start: int\n"
        "    end: int\n\n"
        "async def search(query: str, top: int = 10, schema: str | None = None) -> list[Hit]:\n"
        '    """Search the documents.\n'
        "    query: what to look for\n"
        '    """\n\n'
        "async def tree(root: Node, span: Span) -> Node:\n"
        '    """Grow a tree."""\n\n'
        "def submit(value: list[Hit]) -> NoReturn:\n"
        '    """Give the result and end the work."""'
    )


def test_different_types_of_one_name_are_kept_apart() -> None:
    shelf = Shelf()
    one = {"type": "object", "title": "Row", "properties": {"a": {"type": "integer"}}}
    other = {"type": "object", "title": "Row", "properties": {"b": {"type": "string"}}}
    assert [annotation(shelf.add(schema, "x")) for schema in (one, other, dict(one))] == ["Row", "Row2", "Row"]


def test_names_that_are_no_python_are_respelt_in_the_stub() -> None:
    parameters = {
        "type": "object",
        "properties": {"class": {"type": "string"}, "no-dash": {"type": "integer"}, "needed": {}},
        "required": ["needed"],
    }
    tool = Tool(name="odd", description='Says "hi"', parameters=parameters, returns=None, function=dict)
    text = stubs([tool])
    assert "async def odd(needed: Any, class_: str | None = None, no_dash: int | None = None) -> Any:" in text
    ast.parse(text)


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        ("plain", "plain"),
        ("class", "class_"),
        ("no-dash", "no_dash"),
        ("$id", "id"),
        ("@type", "type"),
        ("_private", "_private"),
        ("2nd", "x2nd"),
        ("", "x"),
        ("копия", "копия"),
        ("x²", "x2"),
        ("ﬁ", "fi"),
        ("a\0b\ud800", "a_b_"),
        ("None", "None_"),
    ],
)
def test_names_are_spelt_as_python_reads_them(name: str, spelt: str) -> None:
    assert identifier(name) == spelt


def test_names_that_would_be_spelt_alike_get_numbers_and_real_ones_stay() -> None:
    assert identifiers(["a-b", "a_b", "a.b"]) == {"a_b2": "a-b", "a_b": "a_b", "a_b3": "a.b"}
    assert identifiers(["print", "x"], taken=["print"]) == {"print_": "print", "x": "x"}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": ["string", "null"]}, "str | None"),
        ({"type": "string", "nullable": True}, "str | None"),
        ({"type": "string", "format": "date"}, "date"),
        ({"items": {"type": "integer"}}, "list[int]"),
        ({"type": "array", "items": [{"type": "integer"}, {}]}, "tuple[int, Any]"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "dict[str, float]"),
        ({"enum": ["a", 1, None]}, "Literal['a', 1, None]"),
        ({"enum": list(range(60))}, f"Literal[{', '.join(map(str, range(50)))}, ...]"),
        ({"anyOf": [{"type": "string"}, {}]}, "Any"),
        ({"type": 7, "enum": "no list"}, "Any"),
        (True, "Any"),
        (None, "Any"),
    ],
)
def test_types_read_as_annotations(schema: Any, text: str) -> None:
    assert f"(x: {text}) -> Any" in shown(schema)


def test_parts_that_all_hold_are_one_class() -> None:
    base = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    more = {"properties": {"name": {"type": "string"}}, "required": ["name"]}
    shelf = Shelf()
    shape = shelf.add({"title": "Row", "allOf": [{"$ref": "#/$defs/Base"}, more], "$defs": {"Base": base}}, "x")
    assert shape == {"$ref": "Row"}
    assert shelf.types["Row"]["required"] == ["id", "name"]
    assert list(shelf.types["Row"]["properties"]) == ["id", "name"]


def test_a_schema_that_contains_itself_is_one_class() -> None:
    child = {"type": "object", "properties": {"child": {"$ref": "#"}, "at": {"$ref": "#/properties/child"}}}
    shelf = Shelf()
    assert shelf.add(child, "Whole") == {"$ref": "Whole"}
    assert list(shelf.types) == ["Whole"]
    assert shelf.types["Whole"]["properties"] == {"child": {"$ref": "Whole"}, "at": {"$ref": "Whole"}}


def test_references_in_a_circle_allow_anything() -> None:
    circle = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}
    assert Shelf().add(circle, "x") == {}


def test_nothing_is_fetched_for_a_reference_to_elsewhere() -> None:
    assert Shelf().add({"$ref": "https://example.org/schema.json"}, "x") == {}


def test_a_type_that_may_be_missing_says_so() -> None:
    assert "(x: OddX | None) -> Any" in shown({"type": ["object", "null"], "properties": {"a": {}}})


def test_classes_do_not_hide_what_python_has() -> None:
    shelf = Shelf()
    assert shelf.add({"title": "list", "properties": {"a": {}}}, "x") == {"$ref": "list2"}


def test_arguments_that_are_spread_over_a_schema_come_together() -> None:
    parameters = {
        "$ref": "#/$defs/Args",
        "$defs": {
            "Args": {
                "properties": {"a": {"type": "integer"}},
                "required": ["a", "gone"],
                "oneOf": [{"properties": {"b": {"type": "string"}}, "required": ["b"]}, {"properties": {"c": {}}}],
            }
        },
    }
    whole = signature(parameters)
    assert (list(whole["properties"]), whole["required"]) == (["a", "b", "c"], ["a"])
    assert "async def odd(a: int, b: str | None = None, c: Any | None = None) -> Any:" in stubs([made(whole)])


def test_further_arguments_are_shown_where_a_schema_allows_them_by_name() -> None:
    text = stubs([made({"properties": {"more": {}}, "additionalProperties": {"type": "integer"}})])
    assert "async def odd(more: Any | None = None, **more_: int) -> Any:" in text


def test_help_shows_a_tool_with_all_its_types() -> None:
    shelf = Shelf()
    for tool in (tool_of(search), tool_of(tree)):
        shelf.add(tool.returns, "x")
    text = whole_stub(shelf, tool_of(tree))
    assert [line for line in text.splitlines() if line.startswith(("class", "async"))] == [
        "class Node:",
        "class Span:",
        "async def tree(root: Node, span: Span) -> Node:",
    ]


def test_many_tools_are_shown_by_name_and_first_line() -> None:
    def numbered(count: int) -> str:
        each = {"properties": {"row": {"title": "Row", "properties": {"a": {}}}}}
        named = [made(each, name=f"t{n}", description=f"Do {n}.\nAt length.") for n in range(count)]
        return stubs(named, result=schema_of(Span))

    assert "async def t39(row: Row | None = None) -> Any:" in numbered(40)
    text = numbered(41)
    ast.parse(text)
    assert "t40  # Do 40." in text.splitlines()
    assert "At length" not in text
    assert "class Row" not in text
    assert "class Span" in text
    assert "def submit(value: Span)" in text
    assert "help(name)" in text


def test_large_stubs_are_shortened_and_stay_within_the_budget() -> None:
    few = [made({}, name=f"t{n}", description="x " * 1_000 + f"\n{'y' * 3_000}") for n in range(30)]
    text = stubs(few)
    assert "t29  # x x" in text
    assert len(text) < 24_000
    names_only = stubs([made({}, name=f"t{n}", description="word " * 50) for n in range(1_000)])
    assert names_only.splitlines()[-1] == "t999"
    ast.parse(names_only)


@settings(deadline=None)  # a busy machine is no error
@given(schemas, anything, st.text(max_size=30))
def test_no_schema_of_anybody_breaks_the_stub_or_the_objects(schema: Any, value: Any, description: str) -> None:
    for parameters in (schema, {"properties": {"given": schema}}, signature(schema)):
        tool = made(parameters, schema, description=description)
        ast.parse(stubs([tool], result=schema))
        ast.parse(stubs([tool] * 41, result=schema))
        ast.parse(whole_stub(Shelf(), tool))
    shelf = Shelf()
    shape = shelf.add(schema, "Whole")
    types = Types()
    types.learn(shelf.types)
    types.rebuild(shape, value)
    for name in shelf.types:
        types.rebuild({"$ref": name}, {"a": value})


def test_schemas_that_are_nested_without_end_are_cut() -> None:
    deep: Any = {"type": "string"}
    for _ in range(5_000):
        deep = {"type": "array", "items": deep}
    ast.parse(shown(deep))
    inside: Any = {}
    for number in range(900):
        inside = {"properties": {f"f{number}": inside}}
    ast.parse(shown(inside))
    own: dict[str, Any] = {"type": "array"}
    own["items"] = own
    ast.parse(shown(own))
