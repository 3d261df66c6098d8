"""Taking marks back, so that history is read again: backfills, windows that were set aside, sessions made anew."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session
from sqlmodel import col

from memory_pipelines.records import Segment, aware
from memory_pipelines.stores import pending
from memory_pipelines.stores.database import chunks
from memory_pipelines.stores.tables import FactRow, MarkRow, PipelineRow, SessionRow, WindowRow

Verdict = Literal["retry", "skip"]


def rewind(
    session: Session, pipeline: PipelineRow, *, actors: Sequence[str] | None, made_by: str | None, now: datetime
) -> list[str]:
    """Take the marks of actors back to the beginning and mark the actors pending.

    Facts that are found again are the same facts, so memory gains only what was not found before.

    Args:
        session: a writing transaction.
        pipeline: whose marks.
        actors: whose; None for all with sessions.
        made_by: only actors of whom this pipeline's current facts include some of this model.
        now: the time of the request.

    Returns:
        The actors concerned, by id.
    """
    statement = select(col(SessionRow.actor_id)).where(col(SessionRow.store) == pipeline.session_store).distinct()
    if made_by is not None:
        made = select(col(FactRow.actor_id)).where(
            col(FactRow.store) == pipeline.memory_store,
            col(FactRow.pipeline_id) == pipeline.id,
            col(FactRow.model) == made_by,
        )
        statement = statement.where(col(SessionRow.actor_id).in_(made))
    found = sorted(session.scalars(statement))
    if actors is not None:
        wanted = set(actors)
        found = [actor_id for actor_id in found if actor_id in wanted]
    for part in chunks(found):
        mine = (col(MarkRow.pipeline_id) == pipeline.id, col(MarkRow.actor_id).in_(part))
        session.execute(update(MarkRow).where(*mine).values(distilled=0, checkpoint=0))
        read = (col(WindowRow.pipeline_id) == pipeline.id, col(WindowRow.actor_id).in_(part))
        session.execute(delete(WindowRow).where(*read))
        tokens = session.execute(
            select(col(SessionRow.actor_id), func.sum(col(SessionRow.tokens)))
            .where(col(SessionRow.store) == pipeline.session_store, col(SessionRow.actor_id).in_(part))
            .group_by(col(SessionRow.actor_id))
        )
        pending.ask_again(session, pipeline.id, {row[0]: row[1] for row in tokens}, now=now)
    return found


def decide(
    session: Session, pipeline: PipelineRow, actor_id: str, *, verdict: Verdict, session_id: str | None, now: datetime
) -> int:
    """Have the windows of an actor that were set aside read again, or leave them out for good.

    Args:
        session: a writing transaction.
        pipeline: whose windows.
        actor_id: whose conversation.
        verdict: retry or skip.
        session_id: only windows with a stretch of this session.
        now: the time of the request.

    Returns:
        How many windows.
    """
    rows = session.scalars(
        select(WindowRow).where(
            col(WindowRow.pipeline_id) == pipeline.id,
            col(WindowRow.actor_id) == actor_id,
            col(WindowRow.state) == "set_aside",
        )
    ).all()
    chosen = [row for row in rows if session_id is None or session_id in _sessions(row)]
    if verdict == "skip":
        for row in chosen:
            row.state, row.update_time = "skipped", aware(now)
        return len(chosen)
    sessions: set[str] = set()
    for segment in (Segment.model_validate(one) for row in chosen for one in row.segments):
        sessions.add(segment.session_id)
        mark = session.get(MarkRow, (pipeline.id, segment.session_id), with_for_update=True)
        if mark is not None:
            mark.distilled = min(mark.distilled, segment.first - 1)
            mark.checkpoint = min(mark.checkpoint, segment.first - 1)
    # Later windows of these sessions are read again too; what was found in them before is found as the same facts.
    every = select(WindowRow).where(col(WindowRow.pipeline_id) == pipeline.id, col(WindowRow.actor_id) == actor_id)
    for row in session.scalars(every).all():
        if sessions & _sessions(row):
            session.delete(row)
    if chosen:
        pending.ask_again(session, pipeline.id, {actor_id: 0}, now=now)
    return len(chosen)


def forget(session: Session, gone: SessionRow) -> None:
    """Forget how far pipelines have read a session: one made later under its id is news from its first item.

    Args:
        session: a writing transaction.
        gone: the session that is deleted.
    """
    readers = select(col(PipelineRow.id)).where(col(PipelineRow.session_store) == gone.store)
    session.execute(delete(MarkRow).where(col(MarkRow.pipeline_id).in_(readers), col(MarkRow.session_id) == gone.id))
    # A window is known by its positions alone, and those start again: a window that is done would not be read.
    every = select(WindowRow).where(col(WindowRow.pipeline_id).in_(readers), col(WindowRow.actor_id) == gone.actor_id)
    for row in session.scalars(every).all():
        if gone.id in _sessions(row):
            session.delete(row)


def _sessions(row: WindowRow) -> set[str]:
    return {Segment.model_validate(one).session_id for one in row.segments}
