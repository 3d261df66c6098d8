"""What a strong model's rollout may take: numbers by hand."""

from datetime import UTC, datetime
from typing import Any

import pytest

from memory_pipelines.stages.base import Effort, StageSettings
from memory_pipelines.stages.effort import effort_of, reads_alone


def settings(**more: Any) -> StageSettings:
    return StageSettings(profile="strong", now=datetime(2026, 3, 1, tzinfo=UTC), **more)


@pytest.mark.parametrize(
    ("tokens", "parts", "context", "turns", "bound"),
    [
        (2_000, 1, 128_000, 10, 70_000),  # 10 x (5,000 + 2,000)
        (12_000, 6, 128_000, 20, 340_000),
        (48_000, 24, 128_000, 30, 1_590_000),  # never more than 30 turns
        (48_000, 24, 8_000, 30, 390_000),  # no request holds more than the context
        (0, 0, 8_000, 8, 40_000),
    ],
)
def test_turns_grow_with_the_portions_and_tokens_with_the_size(
    tokens: int, parts: int, context: int, turns: int, bound: int
) -> None:
    effort = effort_of(tokens, settings(context_tokens=context), parts=parts)

    assert (effort.turns, effort.tokens, effort.look_tokens) == (turns, bound, 0)


@pytest.mark.parametrize(
    ("context", "answer", "look"), [(128_000, 4096, 2000), (8_192, 2048, 2000), (2_048, 1024, 512)]
)
def test_an_answer_and_a_first_look_leave_room_in_the_context(context: int, answer: int, look: int) -> None:
    effort = effort_of(100, settings(context_tokens=context), look=True)

    assert effort == Effort(turns=10, tokens=51_000, answer_tokens=answer, look_tokens=look)


@pytest.mark.parametrize(
    ("windows", "tokens", "context", "alone"),
    [
        (6, 12_000, 128_000, True),
        (7, 7_000, 128_000, False),
        (3, 6_000, 18_000, True),
        (3, 6_001, 18_000, False),
        (1, 9_000, 8_192, True),  # one item alone may be longer than a window; there is nothing to divide
    ],
)
def test_a_model_reads_alone_what_it_can_keep_before_it(windows: int, tokens: int, context: int, alone: bool) -> None:
    assert reads_alone(windows, tokens, settings(context_tokens=context)) is alone
