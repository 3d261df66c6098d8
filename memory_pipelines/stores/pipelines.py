"""Pipelines and their runs as people see them, on SQL."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session
from sqlmodel import col

from memory_pipelines.errors import AbortedError, AlreadyExistsError, NotFoundError, RunInFlightError
from memory_pipelines.names import MEMORY_STORE, PIPELINE, SESSION_STORE, run_name
from memory_pipelines.records import (
    ActorResult,
    Pending,
    Pipeline,
    Policy,
    Run,
    RunKind,
    RunState,
    RunSummary,
    StageUsage,
    aware,
)
from memory_pipelines.stores import again, pending
from memory_pipelines.stores.base import Page
from memory_pipelines.stores.database import Database
from memory_pipelines.stores.paging import after, paged
from memory_pipelines.stores.results import result_record, usage_by_actor, usage_of
from memory_pipelines.stores.runs import (
    close_if_over,
    close_run,
    find_run,
    in_flight,
    locked_pipeline,
    run_record,
    states_of,
)
from memory_pipelines.stores.sessions import unknown_actors
from memory_pipelines.stores.tables import (
    HeartbeatRow,
    MemoryStoreRow,
    PendingRow,
    PipelineRow,
    ResultRow,
    RunRow,
    SessionStoreRow,
)
from memory_pipelines.text import clean_text

FAILURES_SHOWN = 100
"""Failed actors that a summary names."""

_ORCHESTRATOR = "orchestrator"


class SqlPipelines:
    """Implements stores.base.Pipelines."""

    def __init__(self, database: Database) -> None:
        """Keep the way to the database."""
        self._database = database

    def create(
        self,
        pipeline: str,
        *,
        session_store: str,
        memory_store: str,
        display_name: str = "",
        policy: Policy,
        creator: str,
        now: datetime,
    ) -> Pipeline:
        """Create, and mark every actor of the session store pending; AlreadyExistsError for a pair that has one."""
        row = PipelineRow(
            id=PIPELINE.parse(pipeline),
            display_name=clean_text(display_name),
            session_store=SESSION_STORE.parse(session_store),
            memory_store=MEMORY_STORE.parse(memory_store),
            policy=_policy_columns(policy),
            creator=clean_text(creator),
            create_time=aware(now),
            update_time=now,
        )
        with self._database.write() as session:
            # Locked, so that an append either is seen here or sees the new pipeline.
            if session.get(SessionStoreRow, row.session_store, with_for_update=True) is None:
                raise NotFoundError(f"{SESSION_STORE.format(row.session_store)} does not exist; create it first")
            if session.get(MemoryStoreRow, row.memory_store) is None:
                raise NotFoundError(f"{MEMORY_STORE.format(row.memory_store)} does not exist; create it first")
            if session.get(PipelineRow, row.id) is not None:
                raise AlreadyExistsError(f"{PIPELINE.format(row.id)} exists", pipeline=row.id)
            twin = session.scalars(
                select(PipelineRow).where(
                    col(PipelineRow.session_store) == row.session_store,
                    col(PipelineRow.memory_store) == row.memory_store,
                    col(PipelineRow.delete_time).is_(None),
                )
            ).one_or_none()
            if twin is not None:
                raise AlreadyExistsError(
                    f"{PIPELINE.format(twin.id)} joins {row.session_store!r} to {row.memory_store!r} already;"
                    " two stores have one pipeline: use that, or another memory store",
                    pipeline=twin.id,
                )
            session.add(row)
            session.flush()
            pending.seed(session, row, now=now)
        return pipeline_record(row)

    def get(self, pipeline: str) -> Pipeline:
        """Return a pipeline, also a deleted one whose run is in flight, or raise NotFoundError."""
        with self._database.read() as session:
            return pipeline_record(_pipeline(session, pipeline))

    def list_all(self) -> list[Pipeline]:
        """Return all, by id, also deleted ones whose run is in flight (with `delete_time`)."""
        with self._database.read() as session:
            return [pipeline_record(row) for row in session.scalars(select(PipelineRow).order_by(col(PipelineRow.id)))]

    def update(
        self, pipeline: str, *, display_name: str | None = None, policy: Policy | None, now: datetime
    ) -> Pipeline:
        """Change what is given."""
        with self._database.write() as session:
            row = _living(session, pipeline)
            if display_name is not None:
                row.display_name = clean_text(display_name)
            if policy is not None:
                row.policy = _policy_columns(policy)
            row.update_time = aware(now)
        return pipeline_record(row)

    def delete(self, pipeline: str, *, now: datetime) -> None:
        """Delete with marks and pending work; entries, facts and tombstones stay; a run in flight finishes first."""
        with self._database.write() as session:
            row = _living(session, pipeline)
            for run in in_flight(session, row.id):
                close_if_over(session, run, now=aware(now))
            if in_flight(session, row.id):
                row.delete_time = aware(now)
            else:
                session.delete(row)

    def ask(
        self,
        pipeline: str,
        *,
        asked_by: str,
        model: str,
        kind: RunKind = "asked",
        launch: bool = True,
        actors: Sequence[str] | None = None,
        now: datetime,
    ) -> Run:
        """Insert a RUNNING run; RunInFlightError naming the run when one of kind `asked` is in flight.

        A run in flight that nobody works on any more is closed first. NotFoundError for actors without sessions.
        """
        with self._database.write() as session:
            row = _living(session, pipeline)
            unknown = unknown_actors(session, row.session_store, actors) if actors is not None else []
            if unknown:
                raise NotFoundError(
                    f"{SESSION_STORE.format(row.session_store)} has no sessions of {', '.join(map(repr, unknown[:5]))}",
                    actors=unknown,
                )
            for run in in_flight(session, row.id) if kind == "asked" else ():
                if run.kind == "asked" and not close_if_over(session, run, now=aware(now)):
                    raise RunInFlightError.of(run_name(row.id, run.number))
            session.flush()
            row.last_run += 1
            asked = RunRow(
                pipeline_id=row.id,
                number=row.last_run,
                kind=kind,
                state="RUNNING",
                asked_by=asked_by,
                launch=launch,
                actors=None if actors is None else list(dict.fromkeys(actors)),
                model=model,
                create_time=aware(now),
            )
            session.add(asked)
        return run_record(asked)

    def get_run(self, pipeline: str, number: int) -> Run:
        """Return a run, or raise NotFoundError."""
        with self._database.read() as session:
            return run_record(find_run(session, pipeline, number))

    def list_runs(self, pipeline: str, page: Page) -> tuple[list[Run], str | None]:
        """Return runs, newest first."""
        key = after(page, [int])
        statement = select(RunRow).order_by(col(RunRow.number).desc()).limit(page.size + 1)
        if key:
            statement = statement.where(col(RunRow.number) < key[0])
        with self._database.read() as session:
            statement = statement.where(col(RunRow.pipeline_id) == _pipeline(session, pipeline).id)
            rows, token = paged(session.scalars(statement).all(), page, lambda row: [row.number])
        return [run_record(row) for row in rows], token

    def open_runs(self) -> list[Run]:
        """Return all RUNNING runs of all pipelines, oldest first."""
        with self._database.read() as session:
            return [run_record(row) for row in in_flight(session)]

    def close_over(self, pipeline: str | None = None, *, now: datetime) -> list[Run]:
        """Close runs that nobody works on any more: leases over, or every actor ended; return them as closed."""
        with self._database.read() as session:
            wanted = PIPELINE.parse(pipeline) if pipeline else None
            names = sorted({row.pipeline_id for row in in_flight(session, wanted)})
        closed: list[Run] = []
        for name in names:
            with self._database.write() as session:
                if session.get(PipelineRow, name, with_for_update=True) is not None:
                    rows = [row for row in in_flight(session, name) if close_if_over(session, row, now=aware(now))]
                    closed += map(run_record, rows)
        return closed

    def cancel(self, pipeline: str, number: int, *, now: datetime) -> Run:
        """Ask a run to stop; one that nobody has begun is CANCELLED at once, an ended one is an AbortedError."""
        with self._database.write() as session:
            locked_pipeline(session, pipeline)
            row = find_run(session, pipeline, number)
            if row.state not in {"RUNNING", "CANCELLED"}:
                raise AbortedError(f"{run_name(row.pipeline_id, number)} is over: {row.state}", state=row.state)
            row.cancel_requested = True
            if row.start_time is None:
                close_run(session, row, state="CANCELLED", error=None, now=aware(now))
            elif row.state == "RUNNING":
                close_if_over(session, row, now=aware(now))
        return run_record(row)

    def close(self, pipeline: str, number: int, *, state: RunState, error: str | None, now: datetime) -> Run:
        """End a run; ending an ended one changes nothing."""
        with self._database.write() as session:
            locked_pipeline(session, pipeline)
            row = find_run(session, pipeline, number)
            close_run(session, row, state=state, error=None if error is None else clean_text(error), now=aware(now))
        return run_record(row)

    def summary(self, pipeline: str, number: int) -> RunSummary:
        """Return a run added up over its actors."""
        with self._database.read() as session:
            run = find_run(session, pipeline, number)
            mine = (col(ResultRow.pipeline_id) == run.pipeline_id, col(ResultRow.run) == number)
            dropped: Counter[str] = Counter()
            totals: Counter[str] = Counter()
            failures: dict[str, str] = {}
            counted = ("items", "facts", "created", "updated", "deleted")
            rows = session.scalars(select(ResultRow).where(*mine).order_by(col(ResultRow.actor_id)))
            for row in rows.yield_per(1000):
                totals.update({name: getattr(row, name) for name in counted})
                totals.update(actors=1, sessions=len(row.read), succeeded=row.state == "succeeded")
                dropped.update(row.dropped)
                if row.state == "failed":
                    totals["failed"] += 1
                    if len(failures) < FAILURES_SHOWN:
                        failures[row.actor_id] = row.error or ""
            usage = usage_of(session, run.pipeline_id, number)
            last = run.end_time or session.scalar(select(func.max(col(ResultRow.end_time))).where(*mine))
        begun = run.start_time or run.create_time
        return RunSummary(
            run=run_record(run),
            actors=totals["actors"],
            succeeded=totals["succeeded"],
            failed=totals["failed"],
            sessions=totals["sessions"],
            items=totals["items"],
            facts=totals["facts"],
            dropped=dict(dropped),
            created=totals["created"],
            updated=totals["updated"],
            deleted=totals["deleted"],
            usage=usage,
            seconds=max((last - begun).total_seconds(), 0.0) if last else 0.0,
            failures=failures,
        )

    def results(self, pipeline: str, number: int, *, batch: int | None = None) -> list[ActorResult]:
        """Return what a run, or one batch of it, did for each actor, by batch and place."""
        statement = select(ResultRow).order_by(col(ResultRow.batch), col(ResultRow.rank), col(ResultRow.actor_id))
        if batch is not None:
            statement = statement.where(col(ResultRow.batch) == batch)
        with self._database.read() as session:
            run = find_run(session, pipeline, number)
            rows = session.scalars(
                statement.where(col(ResultRow.pipeline_id) == run.pipeline_id, col(ResultRow.run) == number)
            ).all()
            usage: dict[str, tuple[StageUsage, ...]] = usage_by_actor(session, run.pipeline_id, number, batch=batch)
        return [result_record(row, usage.get(row.actor_id, ())) for row in rows]

    def states(self, pipeline: str, number: int) -> dict[str, int]:
        """Return how many actors of a run are in each state."""
        with self._database.read() as session:
            run = find_run(session, pipeline, number)
            return states_of(session, run)

    def pending(self, pipeline: str) -> list[Pending]:
        """Return the actors with work, most tokens first."""
        with self._database.read() as session:
            rows = session.scalars(
                select(PendingRow)
                .where(col(PendingRow.pipeline_id) == _pipeline(session, pipeline).id)
                .order_by(col(PendingRow.tokens).desc(), col(PendingRow.actor_id))
            ).all()
        return [Pending.model_validate(row.model_dump(exclude={"pipeline_id"})) for row in rows]

    def rewind(
        self, pipeline: str, *, actors: Sequence[str] | None, made_by: str | None = None, now: datetime
    ) -> list[str]:
        """Have the whole history of actors read again by the next run; returns the actors concerned."""
        with self._database.write() as session:
            row = locked_pipeline(session, pipeline)
            return again.rewind(session, row, actors=actors, made_by=made_by, now=aware(now))

    def decide_windows(
        self, pipeline: str, actor_id: str, *, verdict: again.Verdict, session_id: str | None = None, now: datetime
    ) -> int:
        """Retry or skip the windows of an actor that were set aside; returns how many."""
        with self._database.write() as session:
            row = locked_pipeline(session, pipeline)
            return again.decide(session, row, actor_id, verdict=verdict, session_id=session_id, now=aware(now))

    def seen_orchestrator(self, now: datetime | None = None) -> datetime | None:
        """Record (with `now`) or return when an orchestrator last looked for work."""
        if now is None:
            with self._database.read() as session:
                row = session.get(HeartbeatRow, _ORCHESTRATOR)
                return None if row is None else row.time
        with self._database.write() as session:
            session.merge(HeartbeatRow(name=_ORCHESTRATOR, time=aware(now)))
        return now


def pipeline_record(row: PipelineRow) -> Pipeline:
    """Return a row as a record."""
    return Pipeline(
        id=row.id,
        display_name=row.display_name,
        session_store=row.session_store,
        memory_store=row.memory_store,
        policy=Policy.model_validate(row.policy),
        creator=row.creator,
        create_time=row.create_time,
        update_time=row.update_time,
        delete_time=row.delete_time,
    )


def _policy_columns(policy: Policy) -> dict[str, object]:
    return policy.model_copy(update={"instructions": clean_text(policy.instructions)}).model_dump(mode="json")


def _pipeline(session: Session, pipeline: str) -> PipelineRow:
    row = session.get(PipelineRow, PIPELINE.parse(pipeline))
    if row is None:
        raise NotFoundError(f"{PIPELINE.format(PIPELINE.parse(pipeline))} does not exist", pipeline=pipeline)
    return row


def _living(session: Session, pipeline: str) -> PipelineRow:
    row = locked_pipeline(session, pipeline)
    if row.delete_time is not None:
        raise NotFoundError(f"{PIPELINE.format(row.id)} is deleted; its last run is still going on", pipeline=row.id)
    return row
