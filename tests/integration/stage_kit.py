"""What the tests of stages share: a desk with real agents, and windows made by hand."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from memory_pipelines.gateway.base import Gateway
from memory_pipelines.memex import Budget, Limits
from memory_pipelines.records import Segment, Turn, Window
from memory_pipelines.runner.desk import RolloutDesk
from memory_pipelines.stages.base import StageSettings

SAID = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)  # a Monday


def desk(gateway: Gateway, model: str = "scripted", *, kernel: str = "inprocess", **budget: Any) -> RolloutDesk:
    """Where rollouts are done with a real agent."""
    return RolloutDesk(
        gateway=gateway,
        model=model,
        kernel=kernel,
        isolation=None,
        limits=Limits(),
        budget=Budget(**budget),
        trajectory=None,
    )


def settings(**more: Any) -> StageSettings:
    return StageSettings(now=SAID, **more)


def turn(text: str, *, position: int = 1, speaker: Any = "actor") -> Turn:
    return Turn(session_id="s", item_id=f"i{position}", position=position, speaker=speaker, text=text, said_at=SAID)


def window(*turns: Turn, context: Sequence[Turn] = ()) -> Window:
    last = max((one.position for one in turns), default=1)
    return Window(id="w", segments=(Segment(session_id="s", first=1, last=last),), turns=turns, context=tuple(context))
