"""Merges new facts into an actor's entries: the host does what is certain, the model decides what is doubtful."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from memory_pipelines.memex.tools import Tool, tool_of
from memory_pipelines.records import Entry, Fact
from memory_pipelines.stages.base import Desk, Merged, StageSettings
from memory_pipelines.stages.board import Board, Spot
from memory_pipelines.stages.layout import layout_of
from memory_pipelines.stages.rules import (
    candidates,
    decide,
    extends,
    forbidden,
    is_certain,
    is_stale,
    replaceable,
)
from memory_pipelines.wording import tokens_of

PROMPT_VERSION = "merge-2"
"""Changes when the task or the answer's form does."""

SHOWN = 6
"""Lines that a fact is compared with, at most."""

_LONGEST = 400  # characters of a line in the task
_ANSWER = 48  # tokens that a decision may take
_LABELS = 24  # tokens around a fact or a line in the task
_FIXED = 900  # tokens of the task beside facts, lines and instructions
_PATHS = 40  # paths that are offered, none longer than 80 characters

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


class Shown(BaseModel):
    """A line of memory as tools show it."""

    model_config = ConfigDict(frozen=True)

    label: str
    path: str
    text: str


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


async def merge(
    facts: Sequence[Fact],
    entries: Sequence[Entry],
    *,
    ties: Mapping[str, Sequence[tuple[str, str]]],
    earlier: Mapping[str, Fact],
    desk: Desk,
    settings: StageSettings,
) -> Merged:
    """Merge facts into entries, one fact a line; lines that no decision touches keep their bytes.

    Facts that are a line already, and facts that nothing resembles and that have a topic, need no model.

    Args:
        facts: a bounded set, of one actor.
        entries: of the actor, none bound to a session.
        ties: entry id to (line, fact id).
        earlier: the tied facts by id, for when they were said.
        desk: where the model is asked.
        settings: of the pipeline and the model.

    Returns:
        Changes, and what became of each fact; facts of replaced lines are superseded.

    Raises:
        StageError: the model's answer could not be read; nothing was changed.
    """
    layout = layout_of(entries, instructions=settings.instructions)
    board = Board(entries, ties=ties, earlier=earlier, layout=layout)
    doubtful: list[Fact] = []
    for fact in sorted(facts, key=lambda fact: fact.observed_at):
        if not _settle_certain(board, fact, doubtful):
            doubtful.append(fact)
    while doubtful:
        size = _fitting(board, doubtful, settings)
        case = _case(board, doubtful[:size], free=settings.profile == "strong")
        doubtful = doubtful[size:]
        answer = await _ask(desk, case, board, settings)
        apply(answer, case, board)
    return board.merged()


def apply(answer: Decisions, case: Case, board: Board) -> None:
    """Take the decisions, in time order; where one is missing, unknown or forbidden, the rules decide.

    Args:
        answer: of the model.
        case: what it was asked.
        board: is changed; nothing else is.
    """
    decided: dict[str, Decision] = {}
    for decision in answer.decisions:
        key = case.labels.get(decision.fact.strip())
        if key is None:
            continue
        before = decided.get(key)
        if before and before.action == decision.action:  # several lines, named one by one
            decision = decision.model_copy(update={"lines": (*before.lines, *decision.lines)})
        if before is None or before.action == decision.action:
            decided[key] = decision
    for fact in case.facts:
        if not (fact.id in decided and _take(decided[fact.id], fact, case, board)):
            _follow_rules(fact, board)


def suggestion(case: Case, board: Board) -> Decisions:
    """What the rules decide, as an answer.

    Args:
        case: what is to be decided.
        board: is left as it is.

    Returns:
        One decision for each fact.
    """
    trial = board.fork()
    found: list[Decision] = []
    labels = {key: label for label, key in case.labels.items()}
    for fact in case.facts:
        action, spots = decide(trial, fact)
        lines = tuple(labels[spot.key] for spot in spots if spot.key in labels)
        # Of a stale fact and a newer line the newer one stands, whichever is said to replace the other.
        shown: Action = "replace" if action == "stale" else action
        found.append(Decision(fact=labels[fact.id], action=shown, lines=lines))
        _follow_rules(fact, trial)
    return Decisions(decisions=tuple(found))


def _settle_certain(board: Board, fact: Fact, doubtful: Sequence[Fact]) -> bool:
    spot = board.exact(fact.text)
    if spot:
        board.tie(fact, spot)
        return True
    found = candidates(board.living(), fact)
    certain = next((match.spot for match in found if is_certain(match)), None)
    if certain and len([match for match in found if match.relation != "near"]) == 1:
        board.tie(fact, certain)
        return True
    place = board.layout.place(fact)
    if found or not place.sure or any(candidates([_as_spot(other)], fact) for other in doubtful):
        return False
    board.add(fact, place.path)
    return True


def _as_spot(fact: Fact) -> Spot:
    return Spot(key=fact.id, path="", text=fact.text, entry=None, number=None, seen=fact.observed_at, facts=[])


def _follow_rules(fact: Fact, board: Board) -> None:
    action, spots = decide(board, fact)
    if action == "same":
        board.tie(fact, spots[0])
    elif action == "stale":
        board.settle(fact, "superseded")
    elif action == "replace":
        board.replace(fact, spots)
    else:
        board.add(fact, board.layout.place(fact).path)


def _take(decision: Decision, fact: Fact, case: Case, board: Board) -> bool:
    """Take one decision; False when it cannot be taken as it is."""
    if decision.action == "skip":
        if not case.free:  # what a small model finds worthless was found worth keeping before
            return False
        board.settle(fact, "skipped")
        return True
    named = [case.labels[label] for label in dict.fromkeys(decision.lines) if label in case.labels]
    allowed = set(case.labels.values()) if case.free else {case.labels[label] for label in case.near[fact.id]}
    spots = {spot.key: spot for key in named if key in allowed and (spot := board.standing(key))}
    gone = any((origin := board.origin(key)) is not None and origin.heir is not None for key in named)
    if decision.action == "add":
        path = decision.path.strip()
        found = [match for match in candidates(board.living(), fact) if is_certain(match)]
        if found:
            board.tie(fact, found[0].spot)
        else:
            wanted = board.layout.room(path, fact.text) if path and board.layout.allows(path) else None
            board.add(fact, wanted or board.layout.place(fact).path)
        return True
    if not spots:
        return False
    chosen = list(spots.values())
    if decision.action == "same" and not gone:
        if forbidden(fact, chosen[0]):
            return False
        if not extends(fact, chosen[0]) or chosen[0].fixed or is_stale(fact, chosen[0]):
            board.tie(fact, chosen[0])
            return True
        chosen = chosen[:1]
    chosen = [spot for spot in chosen if not spot.fixed and fact.id not in spot.facts]
    if len(chosen) > 1 and not case.free:
        chosen = replaceable(fact, chosen)
    if not chosen:
        return False
    if any(is_stale(fact, spot) for spot in chosen):
        board.settle(fact, "superseded")
    else:
        board.replace(fact, chosen)
    return True


def _case(board: Board, facts: Sequence[Fact], *, free: bool) -> Case:
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
        before = [f"F{number}" for number, other in enumerate(facts[:at], 1) if candidates([_as_spot(other)], fact)]
        near[fact.id] = (*lines, *before[-SHOWN:])
    return Case(facts=tuple(facts), labels=labels, near=near, free=free)


def _fitting(board: Board, facts: Sequence[Fact], settings: StageSettings) -> int:
    """How many of the facts fit one context and one answer, with the lines they are compared with; at least one."""
    room = settings.context_tokens - settings.answer_tokens - _FIXED - tokens_of(settings.instructions)
    most = max(1, settings.answer_tokens // _ANSWER)
    living = board.living()
    shown: set[str] = set()
    for at, fact in enumerate(facts[:most]):
        room -= tokens_of(_cut(fact.text)) + _LABELS
        for match in candidates(living, fact)[:SHOWN]:
            if match.spot.key not in shown:
                shown.add(match.spot.key)
                room -= tokens_of(f"{match.spot.path} {_cut(match.spot.text)}") + _LABELS
        if room < 0:
            return max(1, at)
    return min(most, len(facts))


async def _ask(desk: Desk, case: Case, board: Board, settings: StageSettings) -> Decisions:
    strong = settings.profile == "strong"
    scope: dict[str, Any] = {"facts": _shown_facts(case)} if strong else {}
    answer: Decisions = await desk.ask(
        purpose="merge",
        task=_task(case, board, settings),
        result=Decisions,
        scope=scope,
        tools=_tools(case, board, strong=strong),
        answer_schema=None if strong else _schema(case),
    )
    return answer


def _tools(case: Case, board: Board, *, strong: bool) -> list[Tool]:
    def suggest_merge() -> Decisions:
        """What fixed rules would decide."""
        return suggestion(case, board)

    def search_entries(query: str, limit: int = 10) -> list[Shown]:
        """The lines of memory that share most words with the query."""
        found = candidates(board.living(), query, least=0.01)
        return [_shown(case, match.spot) for match in found[: max(1, min(limit, 50))]]

    def read_entry(path: str) -> list[Shown]:
        """The lines of one entry."""
        return [_shown(case, spot) for spot in board.living() if spot.path == path]

    functions = [suggest_merge, search_entries, read_entry] if strong else [suggest_merge]
    return [tool_of(function) for function in functions]


def _shown(case: Case, spot: Spot) -> Shown:
    return Shown(label=case.label_of(spot.key), path=spot.path, text=spot.text)


def _shown_facts(case: Case) -> list[dict[str, Any]]:
    return [
        {
            "label": case.label_of(fact.id),
            "text": fact.text,
            "kind": fact.kind,
            "said": fact.observed_at.date().isoformat(),
            "near": list(case.near[fact.id]),
        }
        for fact in case.facts
    ]


def _task(case: Case, board: Board, settings: StageSettings) -> str:
    name = "merge_strong.md" if settings.profile == "strong" else "merge.md"
    template = Template(resources.files("memory_pipelines.stages").joinpath("prompts", name).read_text("utf-8"))
    shown = {label for labels in case.near.values() for label in labels}
    lines = [
        f"{label} ({spot.path}, {spot.seen.date()}): {_cut(spot.text)}"
        for label, key in case.labels.items()
        if label in shown and label.startswith("L") and (spot := board.spots[key])
    ]
    facts = [
        f"{case.label_of(fact.id)} ({fact.kind}, said {fact.observed_at.date()}"
        + (f", compare {', '.join(case.near[fact.id])}" if case.near[fact.id] else "")
        + f"): {_cut(fact.text)}"
        for fact in case.facts
    ]
    return template.substitute(
        facts="\n".join(facts),
        lines="\n".join(lines) or "(none)",
        paths=", ".join([path for path in board.layout.paths() if len(path) <= 80][:_PATHS]),
        instructions=f"\nInstructions of the pipeline:\n{settings.instructions.strip()}\n"
        if settings.instructions.strip()
        else "",
    )


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else flat[:_LONGEST] + "…"


def _schema(case: Case) -> dict[str, Any]:
    labels = sorted({label for near in case.near.values() for label in near})
    decision = {
        "type": "object",
        "properties": {
            "fact": {"type": "string", "enum": [case.label_of(fact.id) for fact in case.facts]},
            "action": {"type": "string", "enum": ["add", "same", "replace"]},
            "lines": {"type": "array", "items": {"type": "string", **({"enum": labels} if labels else {})}},
            "path": {"type": "string"},
        },
        "required": ["fact", "action", "lines", "path"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "decisions": {"type": "array", "items": decision, "minItems": 1, "maxItems": len(case.facts)},
        },
        "required": ["decisions"],
        "additionalProperties": False,
    }
