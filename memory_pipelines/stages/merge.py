"""Merges new facts into an actor's entries: the host does what is certain, the model decides what is doubtful."""

import functools
from collections.abc import Mapping, Sequence

from memory_pipelines.records import Entry, Fact
from memory_pipelines.stages.base import Desk, Merged, StageSettings
from memory_pipelines.stages.board import Board
from memory_pipelines.stages.decisions import Action, Case, Decision, Decisions, case_of, spot_of
from memory_pipelines.stages.layout import layout_of
from memory_pipelines.stages.merge_task import ask, fitting
from memory_pipelines.stages.rules import (
    candidates,
    decide,
    extends,
    forbidden,
    is_certain,
    is_stale,
    replaceable,
)

PROMPT_VERSION = "merge-3"
"""Changes when the task or the answer's form does."""

ON_ITS_WORD = 2
"""Lines that a strong model may replace by one fact though the rules see no tie: a move touches few, an attack all."""


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
        size = fitting(board, doubtful, settings)
        case = case_of(board, doubtful[:size], free=settings.profile == "strong")
        doubtful = doubtful[size:]
        answer = await ask(desk, case, board, settings, rules=functools.partial(suggestion, case, board))
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
    if found or not place.sure or any(candidates([spot_of(other)], fact) for other in doubtful):
        return False
    board.add(fact, place.path)
    return True


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
    if len(chosen) > 1:
        close = replaceable(fact, chosen)
        trusted = case.free and len(chosen) - len(close) <= ON_ITS_WORD
        chosen = chosen if trusted else close
    if not chosen:
        return False
    if any(is_stale(fact, spot) for spot in chosen):
        board.settle(fact, "superseded")
    else:
        board.replace(fact, chosen)
    return True
