"""Tools: what a typed function becomes, what a model reads of it, and how a call of it is checked."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tool_cases import search, tree

from memory_pipelines.errors import BudgetExceededError, InvalidInputError, ToolError
from memory_pipelines.memex.tools import tool_of


def call(function: Callable[..., Any], **arguments: object) -> Any:
    return asyncio.run(tool_of(function).call(arguments))


def test_a_tool_has_the_name_the_docstring_and_the_schemas_of_its_function() -> None:
    tool = tool_of(search)
    assert tool.name == "search"
    assert tool.description == "Search the documents."
    assert tool.parameters["required"] == ["query"]
    assert tool.parameters["properties"]["query"] == {
        "description": "what to look for",
        "minLength": 2,
        "type": "string",
    }
    assert tool.parameters["properties"]["top"] == {"default": 10, "type": "integer"}
    assert tool.returns is not None
    assert tool.returns["type"] == "array"


def test_results_have_json_form() -> None:
    assert call(search, query="units", top=1) == [
        {"document": "units-0-None", "at": "2026-01-02T03:04:00Z", "kind": "body", "score": None}
    ]


def test_arguments_become_the_types_of_the_parameters() -> None:
    made = call(tree, root={"name": "oak"}, span={"start": 2, "end": 5})
    assert made == {"name": "oak3", "below": [{"name": "oak", "below": []}]}


def test_wrong_arguments_are_told_by_path() -> None:
    with pytest.raises(ToolError) as caught:
        call(search, query="x", top="many", limit=3)
    assert caught.value.message.split("\n") == [
        "search: arguments do not fit",
        "query: String should have at least 2 characters",
        "top: Input should be a valid integer, unable to parse string as an integer",
        "limit: Extra inputs are not permitted",
    ]


def test_only_the_first_ten_complaints_are_told() -> None:
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    with pytest.raises(ToolError) as caught:
        call(total, numbers=["a"] * 25)
    lines = caught.value.message.split("\n")
    assert len(lines) == 12
    assert lines[1].startswith("numbers[0]: ")
    assert lines[-1] == "... and 15 more"


def test_what_a_tool_raises_is_told_with_its_type() -> None:
    def fail() -> int:
        raise KeyError("units.md")

    with pytest.raises(ToolError, match=r"fail: KeyError: 'units.md'"):
        call(fail)


def test_a_spent_budget_is_not_for_the_model_to_mend() -> None:
    def ask() -> int:
        raise BudgetExceededError("no tokens left")

    with pytest.raises(BudgetExceededError):
        call(ask)


def test_a_result_without_json_form_is_an_error_of_the_tool() -> None:
    def lock() -> Any:
        return threading.Lock()

    with pytest.raises(ToolError, match="lock: the result, a lock, has no JSON form"):
        call(lock)


def test_sync_functions_run_beside_the_event_loop() -> None:
    """Two sync tools that wait for each other both end only when they run at the same time."""
    barrier = threading.Barrier(2, timeout=10)

    def meet() -> int:
        return barrier.wait()

    async def both() -> list[int]:
        tool = tool_of(meet)
        return sorted(await asyncio.gather(tool.call({}), tool.call({})))

    assert asyncio.run(both()) == [0, 1]


def untyped(x) -> int:  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]
    return 1


def many(*numbers: int) -> int:
    return sum(numbers)


def opaque(lock: threading.Event) -> int:
    return 1


def opaque_result() -> threading.Event:
    return threading.Event()


@pytest.mark.parametrize(
    ("function", "name", "said"),
    [
        (untyped, None, "parameter x has no type"),
        (many, None, "parameter numbers cannot be given by name"),
        (opaque, None, "a parameter has no JSON form"),
        (opaque_result, None, "Event has no JSON form"),
        (search, "not a name", "cannot be called 'not a name'"),
        (lambda: 1, None, "cannot be called '<lambda>'"),
    ],
)
def test_functions_that_cannot_be_tools_are_refused(function: Callable[..., Any], name: str | None, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        tool_of(function, name=name)
