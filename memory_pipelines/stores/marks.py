"""The two marks of a session: how far facts are extracted, and how far they are merged. Neither goes back by itself."""

from collections.abc import Iterable
from typing import Any, cast

from sqlalchemy import and_, func, select, update
from sqlalchemy.orm import Session
from sqlmodel import col

from memory_pipelines.records import Pipeline, Segment
from memory_pipelines.stores.database import insert_new
from memory_pipelines.stores.tables import FactRow, ItemRow, MarkRow, SessionRow


def with_marks(*columns: Any, pipeline: Pipeline, actor_id: str) -> Any:
    """Return a SELECT over an actor's items, each with its session and the marks on it, without copies of a fork."""
    return (
        select(*columns)
        .select_from(ItemRow)
        .join(
            SessionRow, and_(col(SessionRow.store) == col(ItemRow.store), col(SessionRow.id) == col(ItemRow.session_id))
        )
        .outerjoin(
            MarkRow, and_(col(MarkRow.pipeline_id) == pipeline.id, col(MarkRow.session_id) == col(SessionRow.id))
        )
        .where(
            col(SessionRow.store) == pipeline.session_store,
            col(SessionRow.actor_id) == actor_id,
            col(ItemRow.context).is_(False),
        )
    )


def targets(session: Session, pipeline: Pipeline, actor_id: str) -> dict[str, int]:
    """Return the last position of every session with something beyond its checkpoint.

    Beyond the checkpoint, not beyond `distilled`: should the facts in between be discarded, the same run reads again.
    """
    statement = (
        with_marks(col(ItemRow.session_id), func.max(col(ItemRow.position)), pipeline=pipeline, actor_id=actor_id)
        .where(col(ItemRow.position) > func.coalesce(col(MarkRow.checkpoint), 0))
        .group_by(col(ItemRow.session_id))
        .order_by(col(ItemRow.session_id))
    )
    rows = cast("Iterable[tuple[str, int]]", session.execute(statement))
    return {row[0]: row[1] for row in rows}


def advance(session: Session, pipeline: Pipeline, actor_id: str, segments: Iterable[Segment]) -> dict[str, int]:
    """Move `distilled` to the ends of the segments.

    Args:
        session: a writing transaction.
        pipeline: whose marks.
        actor_id: whose sessions; segments of others, or of sessions deleted meanwhile, move nothing.
        segments: that are read.

    Returns:
        How many items of each session were passed.
    """
    passed: dict[str, int] = {}
    for segment in segments:
        owner = session.get(SessionRow, (pipeline.session_store, segment.session_id))
        if owner is None or owner.actor_id != actor_id:
            continue
        insert_new(
            session,
            MarkRow,
            [
                {
                    "pipeline_id": pipeline.id,
                    "session_id": segment.session_id,
                    "actor_id": actor_id,
                    "distilled": 0,
                    "checkpoint": 0,
                }
            ],
        )
        mark = session.get_one(MarkRow, (pipeline.id, segment.session_id), with_for_update=True, populate_existing=True)
        if segment.last <= mark.distilled:
            continue
        number = session.scalar(
            select(func.count())
            .select_from(ItemRow)
            .where(
                col(ItemRow.store) == pipeline.session_store,
                col(ItemRow.session_id) == segment.session_id,
                col(ItemRow.position) > mark.distilled,
                col(ItemRow.position) <= segment.last,
                col(ItemRow.context).is_(False),
            )
        )
        mark.distilled = segment.last
        session.flush()
        passed[segment.session_id] = passed.get(segment.session_id, 0) + (number or 0)
    return passed


def check_in(session: Session, pipeline: Pipeline, actor_id: str) -> None:
    """Move the checkpoint of every session of an actor that has no facts left to merge up to `distilled`."""
    waiting = select(col(FactRow.session_id)).where(
        col(FactRow.store) == pipeline.memory_store,
        col(FactRow.pipeline_id) == pipeline.id,
        col(FactRow.actor_id) == actor_id,
        col(FactRow.state) == "new",
    )
    session.flush()
    session.execute(
        update(MarkRow)
        .where(
            col(MarkRow.pipeline_id) == pipeline.id,
            col(MarkRow.actor_id) == actor_id,
            col(MarkRow.checkpoint) < col(MarkRow.distilled),
            col(MarkRow.session_id).not_in(waiting),
        )
        .values(checkpoint=MarkRow.table().c.distilled)
        .execution_options(synchronize_session=False)
    )
