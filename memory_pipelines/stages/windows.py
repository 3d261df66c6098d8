"""Cuts what is unread into windows, each the work of one model call. Pure, and the same from the same start."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.records import Item, Segment, SessionNews, Turn, Window
from memory_pipelines.stages.base import Profile
from memory_pipelines.stages.reading import turns_of
from memory_pipelines.wording import question_of, tokens_of

__all__ = ["CONTEXT_TURNS", "plan", "shown_tokens", "tokens_of"]

CONTEXT_TURNS = 4
"""How many turns before a window are given for understanding; what the person answers is always among them."""


@dataclass(frozen=True)
class _Piece:
    """A stretch of a session that cannot be cut: an item with turns, and the items without any that follow it."""

    segment: Segment
    turns: tuple[Turn, ...]
    before: tuple[Turn, ...]
    tokens: int


def plan(
    news: Sequence[SessionNews],
    *,
    pipeline_id: str,
    actor_id: str,
    budget_tokens: int,
    profile: Profile = "small",
) -> list[Window]:
    """Cut the unread items of an actor into windows.

    Every position from the first unread to the last is in exactly one segment, also of items that say nothing.

    Args:
        news: what is unread, by session.
        pipeline_id: for the windows' ids.
        actor_id: for the windows' ids.
        budget_tokens: most tokens that a window shows, unless one item alone shows more.
        profile: `small` shows the actor's turns and the questions they answer, one session a window; `strong` shows
            all turns, and short sessions that follow each other share a window.

    Returns:
        Windows in the order in which things were said.

    Raises:
        InvalidInputError: the budget is not positive.
    """
    if budget_tokens <= 0:
        raise InvalidInputError(
            f"budget_tokens is {budget_tokens}; give a positive number", budget_tokens=budget_tokens
        )
    unread = [one for one in news if one.items]
    unread.sort(key=lambda one: (one.items[0].said_at, one.session.id))
    windows: list[Window] = []
    held: list[_Piece] = []

    def close() -> None:
        if held:
            windows.append(_window(held, pipeline_id=pipeline_id, actor_id=actor_id))
            held.clear()

    for one in unread:
        if profile == "small":
            close()
        for piece in _pieces(one, profile):
            if held and sum(part.tokens for part in held) + piece.tokens > budget_tokens:
                close()
            held.append(piece)
    close()
    return windows


def shown_tokens(turn: Turn, profile: Profile) -> int:
    """Estimate what of a turn enters the model's context."""
    if profile == "strong" or turn.speaker == "actor":
        return tokens_of(turn.text)
    return tokens_of(question_of(turn.text)) if turn.speaker == "other" else 0


def _pieces(news: SessionNews, profile: Profile) -> Iterable[_Piece]:
    """Cut a session before every item that says something new."""
    cuts: list[list[Item]] = []
    pending: list[Item] = []
    for item in news.items:
        pending.append(item)
        if not item.context and turns_of([item]):
            cuts.append(pending)
            pending = []
    if pending:
        cuts[-1:] = [[*cuts[-1], *pending]] if cuts else [pending]
    earlier = list(turns_of(news.before))
    reached = news.items[0].position - 1
    for cut in cuts:
        context = turns_of([item for item in cut if item.context])
        turns = turns_of([item for item in cut if not item.context])
        earlier += context
        segment = Segment(session_id=news.session.id, first=reached + 1, last=cut[-1].position)
        tokens = sum(shown_tokens(turn, profile) for turn in turns)
        yield _Piece(segment, turns, _context(earlier), tokens)
        earlier += turns
        reached = segment.last


def _context(earlier: Sequence[Turn]) -> tuple[Turn, ...]:
    """Take the last turns, reaching back to the last one of the other party over calls and results between."""
    start = max(len(earlier) - CONTEXT_TURNS, 0)
    asked = next((n for n in range(len(earlier) - 1, -1, -1) if earlier[n].speaker == "other"), None)
    kept = list(earlier[start:])
    if asked is not None and asked < start:
        kept.insert(0, earlier[asked])
    return tuple(kept)


def _window(pieces: Sequence[_Piece], *, pipeline_id: str, actor_id: str) -> Window:
    segments: list[Segment] = []
    context: list[Turn] = []
    for piece in pieces:
        if segments and segments[-1].session_id == piece.segment.session_id:
            segments[-1] = segments[-1].model_copy(update={"last": piece.segment.last})
        else:
            segments.append(piece.segment)
            context.extend(piece.before)
    named = [pipeline_id, actor_id, [[one.session_id, one.first, one.last] for one in segments]]
    return Window(
        id=hashlib.sha256(json.dumps(named).encode()).hexdigest()[:32],
        segments=tuple(segments),
        turns=tuple(turn for piece in pieces for turn in piece.turns),
        context=tuple(context),
        tokens=sum(piece.tokens for piece in pieces),
    )
