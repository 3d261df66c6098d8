"""What the model reads."""

from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from memory_pipelines.memex import prompt
from memory_pipelines.memex.kernels.base import Observation
from memory_pipelines.memex.tools import schema_of, tool_of


class Turn(BaseModel):
    position: int
    text: str


@dataclass
class Point:
    x: int
    y: int


class Frame:
    shape = (120, 4)


async def search(query: str, limit: int = 5) -> list[Turn]:
    """Find turns by words."""
    return []


def test_the_system_prompt_shows_tools_result_and_instructions() -> None:
    text = prompt.system_prompt(
        [tool_of(search)], result=schema_of(list[str]), instructions="Keep units.", output_chars=2_000
    )

    assert "async def search(query: str, limit: int = 5) -> list[Turn]" in text
    assert "def submit(value: list[str])" in text
    assert text.endswith("Keep units.")
    assert "2,000" in text
    assert "$" not in text


def test_the_same_agent_has_the_same_prompt_to_the_byte() -> None:
    def build() -> str:
        return prompt.system_prompt([tool_of(search)], result=schema_of(Turn), instructions="$x {y}")

    assert build() == build()
    assert build().endswith("$x {y}")


def test_the_json_prompt_shows_the_schema_and_no_code() -> None:
    text = prompt.json_prompt({"type": "array", "title": "größe"}, instructions="Extract $facts.")

    assert '{"type":"array","title":"größe"}' in text
    assert text.startswith("Extract $facts.")
    assert "submit" not in text


@pytest.mark.parametrize(
    ("value", "row"),
    [
        ("secret text", "str, 11 characters"),
        ("x", "str, 1 character"),
        ([Turn(position=1, text="secret")] * 3, "list of Turn(position, text), 3 items"),
        ([1, "secret"], "list, 2 items"),
        ((), "tuple, 0 items"),
        ({"secret": 1}, "dict, 1 key"),
        (Point(1, 2), "Point(x, y)"),
        (Frame(), "Frame of shape 120 x 4"),
        (None, "NoneType"),
        (12345, "int"),
        ("a" * 12_000, "str, 12,000 characters"),
    ],
)
def test_scope_is_shown_by_type_and_size_and_never_by_content(value: object, row: str) -> None:
    text = prompt.task_message("Do it.", {"thing": value})

    assert text == f"Do it.\n\nIn scope:\n- thing: {row}"
    assert "secret" not in text
    assert "12345" not in text


def test_a_task_without_scope_is_the_task() -> None:
    assert prompt.task_message(" Do it.\n", {}) == "Do it."


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        (Observation(output="3\n"), "[observation]\n3"),
        (Observation(), "[observation]\n(nothing was printed)"),
        (Observation(error="NameError: x"), "[observation]\n[error]\nNameError: x"),
        (Observation(output="1", error="E"), "[observation]\n1\n[error]\nE"),
    ],
)
def test_observations_show_output_then_error(seen: Observation, text: str) -> None:
    assert prompt.observation_text(seen, number=1, blocks=1) == text


def test_the_model_is_told_when_its_variables_are_gone() -> None:
    text = prompt.observation_text(Observation(error="died", state="lost"), number=2, blocks=2)

    assert text.startswith("[observation of block 2]")
    assert "variables of earlier blocks are gone" in text


@pytest.mark.parametrize("problem", ["malformed", "truncated", "empty", "repetition"])
@pytest.mark.parametrize(
    ("form", "word"), [("code", "block"), ("json", "JSON"), ("call", "`python`"), ("tools", "nswer")]
)
def test_each_problem_has_words_of_its_own_in_each_form(problem: str, form: prompt.Form, word: str) -> None:
    text = prompt.feedback(problem, form=form)

    assert word in text
    assert "#" not in text
    assert len({prompt.feedback(problem, form=one) for one in ("code", "json", "call", "tools")}) == 4


def test_an_unusable_answer_stays_short_and_is_never_empty() -> None:
    assert prompt.shortened("") == "(no answer)"
    assert prompt.shortened("short") == "short"
    assert len(prompt.shortened("long" * 1000)) < 700
