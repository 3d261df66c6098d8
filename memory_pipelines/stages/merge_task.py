"""How merge asks a model: a small one by a text and a schema, a strong one by objects in scope and tools."""

from collections.abc import Callable, Sequence
from importlib import resources
from string import Template
from typing import Any

from memory_pipelines.memex.tools import Tool, tool_of
from memory_pipelines.records import Fact
from memory_pipelines.stages.base import Desk, StageSettings
from memory_pipelines.stages.board import Board, Spot
from memory_pipelines.stages.decisions import SHOWN, Case, Decisions
from memory_pipelines.stages.effort import effort_of
from memory_pipelines.stages.rules import candidates
from memory_pipelines.stages.scope import EntryLines, Line, NewFact
from memory_pipelines.wording import tokens_of

_LONGEST = 400  # characters of a line in the task
_ANSWER = 48  # tokens that a decision may take
_LABELS = 24  # tokens around a fact or a line in the task
_FIXED = 900  # tokens of the task beside facts, lines and instructions
_BATCH = 8  # facts that are decided in one go
_PATHS = 40  # paths that are offered, none longer than 80 characters


def fitting(board: Board, facts: Sequence[Fact], settings: StageSettings) -> int:
    """Say how many of the facts can be put in one case.

    Args:
        board: the lines of memory.
        facts: in time order.
        settings: of the pipeline and the model.

    Returns:
        All of them in the `strong` profile, where nothing but a first look is in the context; else as many as fit one
        context and one answer with the lines they are compared with, at least one.
    """
    if settings.profile == "strong":
        return len(facts)
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


async def ask(
    desk: Desk, case: Case, board: Board, settings: StageSettings, *, rules: Callable[[], Decisions]
) -> Decisions:
    """Have a case decided.

    Args:
        desk: where the model is asked.
        case: what is to be decided.
        board: the lines of memory; is left as it is.
        settings: of the pipeline and the model.
        rules: what fixed rules would decide.

    Returns:
        The decisions as answered; unchecked.
    """

    def suggest_merge() -> Decisions:
        """What fixed rules would decide."""
        return rules()

    answer: Decisions
    if settings.profile == "small":
        answer = await desk.ask(
            purpose="merge",
            task=_small_task(case, board, settings),
            result=Decisions,
            tools=[tool_of(suggest_merge)],
            answer_schema=_schema(case),
        )
        return answer
    facts, entries = _new_facts(case, board), _entries(case, board)
    answer = await desk.ask(
        purpose="merge",
        task=Template(_prompt("merge_strong.md")).substitute(
            paths=_paths(board), instructions=_wishes(settings.instructions)
        ),
        result=Decisions,
        scope={"facts": facts, "entries": entries, "instructions": settings.instructions.strip()},
        tools=[tool_of(suggest_merge), *_lookups(case, board)],
        effort=effort_of(
            sum(tokens_of(one.model_dump_json()) for one in (*facts, *entries)),
            settings,
            parts=-(-len(facts) // _BATCH),
            look=True,
        ),
    )
    return answer


def _lookups(case: Case, board: Board) -> list[Tool]:
    def search_entries(query: str, limit: int = 10) -> list[Line]:
        """The lines of memory that share most words with the query."""
        found = candidates(board.living(), query, least=0.01)
        return [_line(case, match.spot) for match in found[: max(1, min(limit, 50))]]

    def read_entry(path: str) -> list[Line]:
        """The lines of one entry."""
        return [_line(case, spot) for spot in board.living() if spot.path == path]

    return [tool_of(search_entries), tool_of(read_entry)]


def _line(case: Case, spot: Spot) -> Line:
    return Line(label=case.label_of(spot.key), path=spot.path, text=spot.text, said=spot.seen.date())


def _new_facts(case: Case, board: Board) -> list[NewFact]:
    return [
        NewFact(
            label=case.label_of(fact.id),
            text=fact.text,
            kind=fact.kind,
            said=fact.observed_at.date(),
            near=tuple(
                _line(case, board.spots[case.labels[label]]) for label in case.near[fact.id] if label.startswith("L")
            ),
            earlier=tuple(label for label in case.near[fact.id] if label.startswith("F")),
        )
        for fact in case.facts
    ]


def _entries(case: Case, board: Board) -> list[EntryLines]:
    lines: dict[str, list[Line]] = {}
    for spot in board.living():
        lines.setdefault(spot.path, []).append(_line(case, spot))
    return [EntryLines(path=path, lines=tuple(own)) for path, own in lines.items()]


def _small_task(case: Case, board: Board, settings: StageSettings) -> str:
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
    return Template(_prompt("merge.md")).substitute(
        facts="\n".join(facts),
        lines="\n".join(lines) or "(none)",
        paths=_paths(board),
        instructions=_wishes(settings.instructions),
    )


def _prompt(name: str) -> str:
    return resources.files("memory_pipelines.stages").joinpath("prompts", name).read_text("utf-8")


def _paths(board: Board) -> str:
    return ", ".join([path for path in board.layout.paths() if len(path) <= 80][:_PATHS])


def _wishes(instructions: str) -> str:
    return f"\nInstructions of the pipeline:\n{instructions.strip()}\n" if instructions.strip() else ""


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
