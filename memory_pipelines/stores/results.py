"""What runs did for actors, and what it cost."""

from collections import Counter
from collections.abc import Mapping
from typing import cast

from sqlalchemy import func, select
from sqlalchemy.orm import Session
from sqlmodel import col

from memory_pipelines.errors import NotFoundError
from memory_pipelines.names import run_name
from memory_pipelines.records import ActorResult, ActorState, StageUsage
from memory_pipelines.stores.tables import ResultRow, UsageRow


def result_record(row: ResultRow, usage: tuple[StageUsage, ...]) -> ActorResult:
    """Return a row, with the actor's usage, as a record."""
    return ActorResult(
        pipeline_id=row.pipeline_id,
        run=row.run,
        actor_id=row.actor_id,
        state=cast("ActorState", row.state),
        stages=row.stages,
        targets=row.targets or {},
        error=row.error,
        error_status=row.error_status,
        retryable=row.retryable,
        sessions=len(row.read),
        items=row.items,
        facts=row.facts,
        dropped=row.dropped,
        created=row.created,
        updated=row.updated,
        deleted=row.deleted,
        usage=usage,
        start_time=row.start_time,
        end_time=row.end_time,
    )


def locked_result(session: Session, pipeline: str, run: int, actor_id: str) -> ResultRow:
    """Return an actor's row of a run, which nobody else changes until the transaction ends."""
    row = session.get(ResultRow, (pipeline, run, actor_id), with_for_update=True)
    if row is None:
        raise NotFoundError(f"{run_name(pipeline, run)} has not begun with actor {actor_id!r}", actor=actor_id)
    return row


def note_dropped(row: ResultRow, dropped: Mapping[str, int]) -> None:
    """Add what was dropped, by reason."""
    total = Counter(row.dropped)
    total.update(dropped)
    row.dropped = {reason: number for reason, number in sorted(total.items()) if number}


def usage_record(row: UsageRow) -> StageUsage:
    """Return a row as a record."""
    return StageUsage.model_validate(row.model_dump(include=set(StageUsage.model_fields)))


def usage_by_actor(
    session: Session, pipeline: str, run: int, actor_id: str | None = None, *, batch: int | None = None
) -> dict[str, tuple[StageUsage, ...]]:
    """Return what each actor of a run, or one of them, or of a batch, cost, by stage."""
    found: dict[str, tuple[StageUsage, ...]] = {}
    statement = (
        select(UsageRow)
        .where(col(UsageRow.pipeline_id) == pipeline, col(UsageRow.run) == run)
        .order_by(col(UsageRow.actor_id), col(UsageRow.stage))
    )
    if actor_id is not None:
        statement = statement.where(col(UsageRow.actor_id) == actor_id)
    if batch is not None:
        members = select(col(ResultRow.actor_id)).where(
            col(ResultRow.pipeline_id) == pipeline, col(ResultRow.run) == run, col(ResultRow.batch) == batch
        )
        statement = statement.where(col(UsageRow.actor_id).in_(members))
    for row in session.scalars(statement):
        found[row.actor_id] = (*found.get(row.actor_id, ()), usage_record(row))
    return found


def usage_of(session: Session, pipeline: str, run: int) -> tuple[StageUsage, ...]:
    """Return what a run cost, by stage."""
    statement = (
        select(
            col(UsageRow.stage),
            func.sum(col(UsageRow.calls)),
            func.sum(col(UsageRow.prompt_tokens)),
            func.sum(col(UsageRow.completion_tokens)),
            func.sum(col(UsageRow.cost)),
            func.sum(col(UsageRow.seconds)),
        )
        .where(col(UsageRow.pipeline_id) == pipeline, col(UsageRow.run) == run)
        .group_by(col(UsageRow.stage))
        .order_by(col(UsageRow.stage))
    )
    return tuple(
        StageUsage(
            stage=stage,
            calls=int(calls),
            prompt_tokens=int(prompt),
            completion_tokens=int(answer),
            cost=cost,
            seconds=s,
        )
        for stage, calls, prompt, answer, cost, s in session.execute(statement).all()
    )
