"""Cuts what is unread into windows, each the work of one model call. Pure, and the same from the same start."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.records import Item, Segment, SessionNews, Turn, Window
from memory_pipelines.stages.base import Profile
from memory_pipelines.stages.reading import turns_of
from memory_pipelines.wording import question_of, tokens_of

__all__ = ["CONTEXT_TURNS", "join", "plan", "shown_tokens", "stretches", "tokens_of"]

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


def stretches(windows: Sequence[Window], *, most: int) -> list[list[Window]]:
    """Put windows that follow each other together, for a rollout that reads several of them.

    Args:
        windows: in order.
        most: windows of one stretch.

    Returns:
        All windows, in order, in stretches of about the same length.
    """
    count = -(-len(windows) // most)
    cuts = [len(windows) * number // count for number in range(count + 1)] if count else [0]
    return [list(windows[start:stop]) for start, stop in itertools.pairwise(cuts)]


def join(windows: Sequence[Window]) -> Window:
    """Make one window of several that follow each other: one piece of work, committed at once.

    Args:
        windows: at least one, in order.

    Returns:
        All their turns, in order, with the context that is not itself among them; a single window as it is.
    """
    if len(windows) == 1:
        return windows[0]
    turns = tuple(turn for window in windows for turn in window.turns)
    new = set(turns)
    before = dict.fromkeys(turn for window in windows for turn in window.context)
    return Window(
        id=_digest([window.id for window in windows]),
        segments=_merged(segment for window in windows for segment in window.segments),
        turns=turns,
        context=tuple(turn for turn in before if turn not in new),
        tokens=sum(window.tokens for window in windows),
    )


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
    segments = _merged(piece.segment for piece in pieces)
    sessions = itertools.groupby(pieces, key=lambda piece: piece.segment.session_id)
    context = [turn for _, own in sessions for turn in next(own).before]
    return Window(
        id=_digest([pipeline_id, actor_id, [[one.session_id, one.first, one.last] for one in segments]]),
        segments=segments,
        turns=tuple(turn for piece in pieces for turn in piece.turns),
        context=tuple(context),
        tokens=sum(piece.tokens for piece in pieces),
    )


def _merged(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Segments of one session that follow each other as one."""
    merged: list[Segment] = []
    for segment in segments:
        if merged and merged[-1].session_id == segment.session_id:
            merged[-1] = merged[-1].model_copy(update={"last": segment.last})
        else:
            merged.append(segment)
    return tuple(merged)


def _digest(named: object) -> str:
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:32]
