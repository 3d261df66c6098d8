"""Who works on what: batches of a run, and the claims on their actors."""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.orm import Session
from sqlmodel import col

from memory_pipelines.errors import AbortedError, NotFoundError
from memory_pipelines.names import run_name
from memory_pipelines.records import Batch, Policy, Run, aware
from memory_pipelines.stores.database import Database, chunks, upsert
from memory_pipelines.stores.runs import find_run, locked_pipeline
from memory_pipelines.stores.sessions import unknown_actors
from memory_pipelines.stores.tables import (
    BatchRow,
    ClaimRow,
    LeaseRow,
    PendingRow,
    PipelineRow,
    ResultRow,
    RunRow,
)


class SqlBatches:
    """The part of stores.base.Progress about batches and claims."""

    def __init__(self, database: Database) -> None:
        """Keep the way to the database."""
        self._database = database

    def cut(self, run: Run, *, now: datetime) -> list[Batch]:
        """Cut the run's actors into batches, most pending tokens first, once: asked again it returns the same."""
        with self._database.write() as session:
            pipeline = locked_pipeline(session, run.pipeline_id)
            row = find_run(session, run.pipeline_id, run.number)
            if not row.cut:
                row.cut = True
                _cut(session, pipeline, row, now=aware(now))
            return _batches(session, row)

    def add_batch(self, run: Run, actors: Sequence[str], *, now: datetime) -> Batch:
        """Add a batch to a run that people started; actors who have no session are left out."""
        del now
        with self._database.write() as session:
            pipeline = locked_pipeline(session, run.pipeline_id)
            row = find_run(session, run.pipeline_id, run.number)
            if row.state != "RUNNING":
                raise AbortedError(f"{run_name(run.pipeline_id, run.number)} is over: {row.state}", state=row.state)
            unknown = set(unknown_actors(session, pipeline.session_store, actors))
            wanted = [actor for actor in dict.fromkeys(actors) if actor not in unknown]
            last = session.scalar(
                select(func.max(col(BatchRow.number))).where(
                    col(BatchRow.pipeline_id) == run.pipeline_id, col(BatchRow.run) == run.number
                )
            )
            for part in chunks(wanted):  # done again from the start
                session.execute(
                    delete(ResultRow).where(
                        col(ResultRow.pipeline_id) == run.pipeline_id,
                        col(ResultRow.run) == run.number,
                        col(ResultRow.actor_id).in_(part),
                    )
                )
            return _insert(session, row, (last or 0) + 1, wanted)

    def batch(self, pipeline: str, run: int, number: int) -> Batch:
        """Return a batch, or raise NotFoundError."""
        with self._database.read() as session:
            found = _batches(session, find_run(session, pipeline, run), number)
        if not found:
            raise NotFoundError(f"{run_name(pipeline, run)} has no batch {number}", batch=number)
        return found[0]

    def claim(self, batch: Batch, *, holder: str, now: datetime, lease_seconds: float) -> dict[str, str]:
        """Claim the batch's actors for a Dagster run; return those that a living other holder has, with that holder.

        AbortedError when the run is over.
        """
        until = aware(now) + timedelta(seconds=lease_seconds)
        with self._database.write() as session:
            locked_pipeline(session, batch.pipeline_id)
            run = find_run(session, batch.pipeline_id, batch.run)
            if run.state != "RUNNING":
                raise AbortedError(f"{run_name(batch.pipeline_id, batch.run)} is over: {run.state}", state=run.state)
            living = (
                select(col(ClaimRow.actor_id), col(ClaimRow.holder))
                .join(LeaseRow, col(LeaseRow.holder) == col(ClaimRow.holder))
                .where(
                    col(ClaimRow.pipeline_id) == batch.pipeline_id,
                    col(ClaimRow.holder) != holder,
                    col(LeaseRow.until) > now,
                )
            )
            held = {row[0]: row[1] for row in session.execute(living)}
            session.merge(
                LeaseRow(holder=holder, pipeline_id=batch.pipeline_id, run=batch.run, batch=batch.number, until=until)
            )
            session.flush()
            free = [actor for actor in batch.actors if actor not in held]
            if free:
                statement = upsert(session, ClaimRow)
                session.execute(
                    statement.on_conflict_do_update(
                        index_elements=["pipeline_id", "actor_id"], set_={"holder": statement.excluded.holder}
                    ),
                    [{"pipeline_id": batch.pipeline_id, "actor_id": actor, "holder": holder} for actor in free],
                )
            run.start_time = run.start_time or now
            begun = session.get_one(BatchRow, (batch.pipeline_id, batch.run, batch.number))
            begun.start_time = begun.start_time or now
        return {actor: held[actor] for actor in batch.actors if actor in held}

    def beat(self, holder: str, *, now: datetime, lease_seconds: float) -> bool:
        """Renew the lease; False when the run was asked to cancel, is over, or the lease was taken away."""
        with self._database.write() as session:
            session.execute(
                update(LeaseRow)
                .where(col(LeaseRow.holder) == holder)
                .values(until=aware(now) + timedelta(seconds=lease_seconds))
            )
            run = session.scalars(
                select(RunRow)
                .join(
                    LeaseRow,
                    (col(LeaseRow.pipeline_id) == col(RunRow.pipeline_id)) & (col(LeaseRow.run) == col(RunRow.number)),
                )
                .where(col(LeaseRow.holder) == holder)
            ).one_or_none()
            return run is not None and run.state == "RUNNING" and not run.cancel_requested

    def release(self, holder: str) -> None:
        """Give up what a holder has claimed; one that holds nothing is no error."""
        with self._database.write() as session:
            session.execute(delete(LeaseRow).where(col(LeaseRow.holder) == holder))

    def lease_of(self, holder: str) -> datetime | None:
        """Return until when a holder's lease runs, None when it holds nothing."""
        with self._database.read() as session:
            row = session.get(LeaseRow, holder)
            return None if row is None else row.until


def _cut(session: Session, pipeline: PipelineRow, row: RunRow, *, now: datetime) -> None:
    policy = Policy.model_validate(pipeline.policy)
    statement = select(col(PendingRow.actor_id), col(PendingRow.tokens)).where(
        col(PendingRow.pipeline_id) == pipeline.id
    )
    if row.actors is None and row.asked_by == "sensor":
        quiet = now - timedelta(seconds=policy.quiet_seconds)
        retry_at, said = col(PendingRow.retry_at), col(PendingRow.last_said_at)
        statement = statement.where(or_(retry_at.is_(None), retry_at <= now), or_(said.is_(None), said <= quiet))
    tokens = {row[0]: row[1] for row in session.execute(statement)}
    if row.actors is not None:
        tokens = {actor: tokens.get(actor, 0) for actor in row.actors}
    ordered = sorted(tokens.items(), key=lambda item: (-item[1], item[0]))
    for number, actors in enumerate(_split(ordered, policy.batch_size), start=1):
        _insert(session, row, number, actors)


def _split(ordered: Sequence[tuple[str, int]], size: int) -> Iterator[list[str]]:
    """Cut actors, largest first, into batches; one with more than an average batch would hold up all in its own."""
    if not ordered:
        return
    average = math.ceil(sum(tokens for _, tokens in ordered) / len(ordered)) * size
    large = [actor for actor, tokens in ordered if tokens > average]
    yield from ([actor] for actor in large)
    rest = [actor for actor, _ in ordered[len(large) :]]
    for start in range(0, len(rest), size):
        yield rest[start : start + size]


def _insert(session: Session, row: RunRow, number: int, actors: Sequence[str]) -> Batch:
    session.add(BatchRow(pipeline_id=row.pipeline_id, run=row.number, number=number))
    session.add_all(
        ResultRow(pipeline_id=row.pipeline_id, run=row.number, actor_id=actor, batch=number, rank=rank)
        for rank, actor in enumerate(actors)
    )
    session.flush()
    return Batch(pipeline_id=row.pipeline_id, run=row.number, number=number, actors=tuple(actors))


def _batches(session: Session, row: RunRow, number: int | None = None) -> list[Batch]:
    numbers = select(col(BatchRow.number)).where(
        col(BatchRow.pipeline_id) == row.pipeline_id, col(BatchRow.run) == row.number
    )
    results = select(col(ResultRow.batch), col(ResultRow.actor_id)).where(
        col(ResultRow.pipeline_id) == row.pipeline_id, col(ResultRow.run) == row.number
    )
    if number is not None:
        numbers = numbers.where(col(BatchRow.number) == number)
        results = results.where(col(ResultRow.batch) == number)
    actors: dict[int, list[str]] = {one: [] for one in session.scalars(numbers.order_by(col(BatchRow.number)))}
    for one, actor in session.execute(results.order_by(col(ResultRow.batch), col(ResultRow.rank))):
        actors.setdefault(one, []).append(actor)
    return [
        Batch(pipeline_id=row.pipeline_id, run=row.number, number=one, actors=tuple(names))
        for one, names in actors.items()
    ]
