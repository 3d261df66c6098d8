"""Telling work from no work, and the first look at a scope."""

from typing import Any

import pytest

from memory_pipelines.memex.looking import Looking, look
from memory_pipelines.wording import tokens_of


@pytest.mark.parametrize(
    "code",
    [
        "x = 1",
        "x += 1",
        "x: int = 1",
        "del x",
        "for x in y: pass",
        "with y as x: pass",
        "import x",
        "import x.z",
        "from y import z as x",
        "def x(): pass",
        "class x: pass",
        "(x := 1)",
        "[z for y in w if (x := y)]",
        "try: pass\nexcept OSError as x: pass",
        "match y:\n    case {'a': 1, **x}: pass",
        "match y:\n    case [1, *x]: pass",
        "match y:\n    case str() as x: pass",
        "if y:\n    while z:\n        x, w = 1, 2",
        "def f():\n    global x\n    x = 1",
        "await y\nx = 1",
    ],
)
def test_assigning_at_the_top_of_a_block_is_seen(code: str) -> None:
    assert Looking({"x": 1}, []).saw(code) == ["x"]


@pytest.mark.parametrize(
    "code",
    [
        "x",
        "x.y = 1",
        "x[0] = 1",
        "def f(x): x = 2",
        "[x for x in y]",
        "f = lambda x: x",
        "class A:\n    x = 1",
        "f(x=1)",
        "x = (",
        "'x = 1'",
    ],
)
def test_names_of_inner_scopes_and_changes_of_a_value_are_not(code: str) -> None:
    assert Looking({"x": 1}, []).saw(code) == []


@pytest.mark.parametrize(
    ("code", "looked"), [("f(x)", True), ("x = 1", False), ("t()", True), ("y", False), ("(", False)]
)
def test_looking_is_naming_what_was_given_or_can_be_called(code: str, looked: bool) -> None:
    looking = Looking({"x": 1}, ["t"])
    looking.saw(code)

    assert looking.looked is looked


@pytest.mark.parametrize(
    ("value", "line"),
    [([1, 2, 3, 4], "print(x[:3])"), ("long text", "print(x[:3])"), ([1], "print(x)"), ({"a": 1}, "print(x)")],
)
def test_the_line_to_write_fits_the_value(value: Any, line: str) -> None:
    assert Looking({"x": value}, []).line() == line


def test_a_look_shows_small_values_whole() -> None:
    text, whole = look({"a": {"k": [1, "x"]}, "b": (None,)}, 100)

    assert (text, whole) == ("- a = {'k': [1, 'x']}\n- b = (None)", True)


@pytest.mark.parametrize("tokens", [1, 5, 20, 100])
@pytest.mark.parametrize(
    "value", ["word " * 999, "语" * 999, [["nested"] * 50] * 50, dict.fromkeys(range(999), "v"), [1e9]]
)
def test_a_look_never_costs_more_than_it_may(value: Any, tokens: int) -> None:
    text, whole = look({"a": value, "b": value}, tokens)

    assert tokens_of(text) <= tokens
    assert not whole or value == [1e9]


def test_what_one_value_leaves_is_there_for_the_others() -> None:
    text, _ = look({"a": 1, "b": "x" * 999}, 100)

    assert tokens_of(text) > 80
