"""Which actors have work for which pipelines. Every change is one statement over all pipelines concerned."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, String, and_, bindparam, case, exists, func, literal, or_, select
from sqlalchemy.orm import Session
from sqlmodel import col

from memory_pipelines.stores.columns import Utc
from memory_pipelines.stores.database import chunks, upsert
from memory_pipelines.stores.tables import PendingRow, PipelineRow, SessionRow

FIRST_RETRY = timedelta(minutes=5)
LAST_RETRY = timedelta(hours=24)

_COLUMNS = ["pipeline_id", "actor_id", "version", "tokens", "last_said_at", "failures"]


def first_version(now: datetime) -> int:
    """Return the version of a new row: the clock, so that it is never taken for one that was cleared before."""
    return int(now.timestamp() * 1_000_000)


class News(NamedTuple):
    """What of an actor was said."""

    tokens: int
    said_at: datetime  # the last of it

    def __add__(self, other: tuple[Any, ...]) -> "News":
        tokens, said_at = other
        return News(self.tokens + tokens, max(self.said_at, said_at))


def mark_append(session: Session, store: str, news: Mapping[str, News], *, now: datetime) -> None:
    """Mark actors pending for every pipeline on a session store.

    What claims to be said later than now came from a wrong clock: an actor would not fall quiet before that time.
    """
    _mark(
        session,
        col(PipelineRow.session_store) == store,
        {actor_id: (came.tokens, min(came.said_at, now)) for actor_id, came in news.items()},
        now=now,
    )


def mark_write(session: Session, store: str, actor_id: str, *, now: datetime) -> None:
    """Mark an actor whose entries a person or agent changed, for the pipelines that maintain them."""
    conversed = exists().where(
        col(SessionRow.store) == col(PipelineRow.session_store), col(SessionRow.actor_id) == actor_id
    )
    concerned = and_(col(PipelineRow.memory_store) == store, conversed)
    _mark(session, concerned, {actor_id: (0, None)}, now=now)


def _mark(
    session: Session,
    concerned: ColumnElement[bool],
    news: Mapping[str, tuple[int, datetime | None]],
    *,
    now: datetime,
) -> None:
    """Mark actors, each with the tokens of what came and the time of the last of it, for the pipelines concerned."""
    if not news:
        return
    rows = select(
        col(PipelineRow.id),
        bindparam("of_actor", type_=String()),
        literal(first_version(now), BigInteger()),
        bindparam("of_tokens", type_=BigInteger()),
        bindparam("of_time", type_=Utc()),
        literal(0),
    ).where(concerned, col(PipelineRow.delete_time).is_(None))
    statement = upsert(session, PendingRow).from_select(_COLUMNS, rows)
    old, new = PendingRow.table().c, statement.excluded
    session.execute(
        statement.on_conflict_do_update(
            index_elements=["pipeline_id", "actor_id"],
            set_={
                "version": old.version + 1,
                "tokens": old.tokens + new.tokens,
                "last_said_at": case(
                    (or_(old.last_said_at.is_(None), old.last_said_at < new.last_said_at), new.last_said_at),
                    else_=old.last_said_at,
                ),
            },
        ),
        [
            {"of_actor": actor_id, "of_tokens": tokens, "of_time": said_at}
            for actor_id, (tokens, said_at) in news.items()
        ],
    )


def seed(session: Session, pipeline: PipelineRow, *, now: datetime) -> None:
    """Mark every actor of a new pipeline's session store."""
    last, told = func.max(col(SessionRow.last_activity_time)), literal(now, Utc())
    rows = (
        select(
            literal(pipeline.id),
            col(SessionRow.actor_id),
            literal(first_version(now), BigInteger()),
            func.sum(col(SessionRow.tokens)),
            case((last > told, told), else_=last),
            literal(0),
        )
        .where(col(SessionRow.store) == pipeline.session_store)
        .group_by(col(SessionRow.actor_id))
    )
    session.execute(upsert(session, PendingRow).from_select(_COLUMNS, rows))


def ask_again(session: Session, pipeline_id: str, tokens: Mapping[str, int], *, now: datetime) -> None:
    """Mark actors pending for one pipeline, each with about so many tokens, free of what failures put off."""
    if not tokens:
        return
    statement = upsert(session, PendingRow)
    old, new = PendingRow.table().c, statement.excluded
    session.execute(
        statement.on_conflict_do_update(
            index_elements=["pipeline_id", "actor_id"],
            set_={
                "version": old.version + 1,
                "tokens": case((old.tokens < new.tokens, new.tokens), else_=old.tokens),
                "failures": 0,
                "retry_at": None,
            },
        ),
        [
            {
                "pipeline_id": pipeline_id,
                "actor_id": actor_id,
                "version": first_version(now),
                "tokens": number,
                "failures": 0,
            }
            for actor_id, number in tokens.items()
        ],
    )


def clear(session: Session, pipeline_id: str, actor_id: str, *, version: int | None, tokens: int) -> None:
    """Take back what an actor's success has done: the row, or, where more has come since, its share of it."""
    row = locked(session, pipeline_id, actor_id)
    if row is None:
        return
    if row.version == version:
        session.delete(row)
        return
    row.tokens = max(row.tokens - tokens, 0)
    row.failures, row.retry_at = 0, None


def count_failures(session: Session, pipeline_id: str, actors: Iterable[str], *, now: datetime) -> None:
    """Keep failed actors pending and put off their next try by a sensor."""
    for part in chunks(actors):
        found = session.scalars(
            select(PendingRow)
            .where(col(PendingRow.pipeline_id) == pipeline_id, col(PendingRow.actor_id).in_(part))
            .with_for_update()
        )
        rows = {row.actor_id: row for row in found}
        for actor_id in part:
            row = rows.get(actor_id)
            if row is None:
                row = PendingRow(
                    pipeline_id=pipeline_id, actor_id=actor_id, version=first_version(now), tokens=0, failures=0
                )
                session.add(row)
            row.retry_at = now + min(FIRST_RETRY * 2 ** min(row.failures, 20), LAST_RETRY)
            row.failures += 1


def locked(session: Session, pipeline_id: str, actor_id: str) -> PendingRow | None:
    """Return an actor's row, which nobody else changes until the transaction ends."""
    statement: Any = (
        select(PendingRow)
        .where(col(PendingRow.pipeline_id) == pipeline_id, col(PendingRow.actor_id) == actor_id)
        .with_for_update()
    )
    return session.scalars(statement).one_or_none()
