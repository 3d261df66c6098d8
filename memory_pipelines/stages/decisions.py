"""What becomes of facts: the cases that are put to a model, and its decisions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from memory_pipelines.records import Fact
from memory_pipelines.stages.board import Board, Spot
from memory_pipelines.stages.rules import candidates

SHOWN = 6
"""Lines that a fact is compared with, at most."""

Action = Literal["add", "same", "replace", "skip"]


class Decision(BaseModel):
    """What becomes of one fact."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    fact: str  # label, such as F1
    action: Action
    lines: tuple[str, ...] = ()  # labels of lines or of other facts, for same and replace
    path: str = ""  # for add; empty leaves the place to the host


class Decisions(BaseModel):
    """What becomes of the facts; one decision for each."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    decisions: tuple[Decision, ...] = Field(default=())


@dataclass(frozen=True, kw_only=True)
class Case:
    """What the model decides in one go."""

    facts: tuple[Fact, ...]  # in time order
    labels: dict[str, str]  # label to the key of a line or the id of a fact
    near: dict[str, tuple[str, ...]]  # fact id to the labels it is compared with
    free: bool  # whether a decision may name any label, not only the near ones

    def label_of(self, key: str) -> str:
        """The label of a line or fact."""
        return next(label for label, one in self.labels.items() if one == key)


def case_of(board: Board, facts: Sequence[Fact], *, free: bool) -> Case:
    """Make a case of facts, with labels for what they are compared with.

    Args:
        board: the lines of memory.
        facts: in time order.
        free: whether every line gets a label, and a decision may name any.
    """
    labels: dict[str, str] = {f"F{number}": fact.id for number, fact in enumerate(facts, 1)}
    keys: dict[str, str] = {}
    near: dict[str, tuple[str, ...]] = {}
    living = board.living()
    for fact in facts:
        for match in candidates(living, fact)[:SHOWN]:
            keys.setdefault(match.spot.key, f"L{len(keys) + 1}")
    if free:
        for spot in living:
            keys.setdefault(spot.key, f"L{len(keys) + 1}")
    labels |= {label: key for key, label in keys.items()}
    for at, fact in enumerate(facts):
        lines = [keys[match.spot.key] for match in candidates(living, fact)[:SHOWN]]
        before = [f"F{number}" for number, other in enumerate(facts[:at], 1) if candidates([spot_of(other)], fact)]
        near[fact.id] = (*lines, *before[-SHOWN:])
    return Case(facts=tuple(facts), labels=labels, near=near, free=free)


def spot_of(fact: Fact) -> Spot:
    """A fact as a line that others can be compared with.

    Args:
        fact: in no entry yet.
    """
    return Spot(key=fact.id, path="", text=fact.text, entry=None, number=None, seen=fact.observed_at, facts=[])
