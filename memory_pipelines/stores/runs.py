"""What ends a run: closing it, and finding out that nobody works on it any more."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import cast

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session
from sqlmodel import col

from memory_pipelines.errors import NotFoundError
from memory_pipelines.names import PIPELINE, run_name
from memory_pipelines.records import Run, RunKind, RunState
from memory_pipelines.stores import pending
from memory_pipelines.stores.tables import (
    BatchRow,
    LeaseRow,
    PipelineRow,
    ResultRow,
    RunRow,
)

SILENCE = timedelta(minutes=5)
"""A run that no orchestrator starts is taken for dead when the process that should do so was silent for so long."""

OPEN = ("waiting", "running")
"""States of results that are not ended."""


def run_record(row: RunRow) -> Run:
    """Return a row as a record."""
    return Run(
        pipeline_id=row.pipeline_id,
        number=row.number,
        kind=cast("RunKind", row.kind),
        state=cast("RunState", row.state),
        error=row.error,
        asked_by=row.asked_by,
        launch=row.launch,
        actors=None if row.actors is None else tuple(row.actors),
        cancel_requested=row.cancel_requested,
        model=row.model,
        create_time=row.create_time,
        start_time=row.start_time,
        end_time=row.end_time,
    )


def locked_pipeline(session: Session, pipeline: str) -> PipelineRow:
    """Return a pipeline's row; whoever changes its runs and claims waits here for the others."""
    row = session.get(PipelineRow, PIPELINE.parse(pipeline), with_for_update=True)
    if row is None:
        raise NotFoundError(f"{PIPELINE.format(PIPELINE.parse(pipeline))} does not exist", pipeline=pipeline)
    return row


def find_run(session: Session, pipeline: str, number: int) -> RunRow:
    """Return a run's row, or raise NotFoundError."""
    row = session.get(RunRow, (PIPELINE.parse(pipeline), number))
    if row is None:
        raise NotFoundError(f"{run_name(PIPELINE.parse(pipeline), number)} does not exist", run=number)
    return row


def in_flight(session: Session, pipeline: str | None = None) -> Sequence[RunRow]:
    """Return the RUNNING runs, oldest first."""
    statement = (
        select(RunRow)
        .where(col(RunRow.state) == "RUNNING")
        .order_by(col(RunRow.create_time), col(RunRow.pipeline_id), col(RunRow.number))
    )
    if pipeline is not None:
        statement = statement.where(col(RunRow.pipeline_id) == pipeline)
    return session.scalars(statement).all()


def states_of(session: Session, row: RunRow) -> dict[str, int]:
    """Return how many actors of a run are in each state."""
    counted = session.execute(
        select(col(ResultRow.state), func.count())
        .where(col(ResultRow.pipeline_id) == row.pipeline_id, col(ResultRow.run) == row.number)
        .group_by(col(ResultRow.state))
    )
    return {row[0]: row[1] for row in counted}


def close_run(session: Session, row: RunRow, *, state: RunState, error: str | None, now: datetime) -> None:
    """End a run with what its actors left open, and its pipeline when that was waiting for it; twice is once."""
    if row.state != "RUNNING":
        return
    row.state, row.error, row.end_time = state, error, now
    mine = (col(ResultRow.pipeline_id) == row.pipeline_id, col(ResultRow.run) == row.number)
    if state != "CANCELLED":
        interrupted = session.scalars(select(ResultRow).where(*mine, col(ResultRow.state) == "running")).all()
        for result in interrupted:
            result.state, result.end_time, result.retryable = "failed", now, True
            result.error = "the run ended while this actor was being worked on; the next run goes on from there"
            result.error_status = "INTERNAL"
        pending.count_failures(
            session, row.pipeline_id, [one.actor_id for one in interrupted if not one.counted], now=now
        )
        for result in interrupted:
            result.counted = True
        session.flush()
    session.execute(
        update(ResultRow).where(*mine, col(ResultRow.state).in_(OPEN)).values(state="cancelled", end_time=now)
    )
    session.execute(
        delete(LeaseRow).where(col(LeaseRow.pipeline_id) == row.pipeline_id, col(LeaseRow.run) == row.number)
    )
    session.flush()
    pipeline = session.get_one(PipelineRow, row.pipeline_id)
    if pipeline.delete_time is not None and not in_flight(session, pipeline.id):
        session.delete(pipeline)  # its marks, pending work, runs and calls go with it


def verdict(session: Session, row: RunRow, *, now: datetime) -> tuple[RunState, str | None] | None:
    """Say how a run that nobody works on has ended, None while somebody does or may still begin.

    Args:
        session: a transaction.
        row: a run in flight.
        now: leases that end before are over.
    """
    mine = (col(ResultRow.pipeline_id) == row.pipeline_id, col(ResultRow.run) == row.number)
    batches = session.scalars(
        select(BatchRow).where(col(BatchRow.pipeline_id) == row.pipeline_id, col(BatchRow.run) == row.number)
    ).all()
    states = states_of(session, row)
    left = sum(states.get(state, 0) for state in OPEN)
    if not left and (row.cut or batches):
        return _ended(row, states)
    leases = session.scalars(
        select(LeaseRow).where(col(LeaseRow.pipeline_id) == row.pipeline_id, col(LeaseRow.run) == row.number)
    ).all()
    if any(lease.until > now for lease in leases):
        return None
    unbegun = not batches or any(batch.start_time is None for batch in batches)
    if row.cancel_requested:
        return "CANCELLED", None
    if row.launch and unbegun:
        return None  # the orchestrator starts what is left, whenever it comes
    if unbegun or not leases:
        ends = session.scalar(select(func.max(col(ResultRow.end_time))).where(*mine))
        times = (row.create_time, row.start_time, ends, *(lease.until for lease in leases))
        heard = [time for time in times if time is not None]
        if max(heard) + SILENCE > now:
            return None
    what = "the run" if not left else "1 actor" if left == 1 else f"{left} actors"
    return "FAILED", f"the process that worked on {what} ended without a word; the next run goes on from there"


def _ended(row: RunRow, states: dict[str, int]) -> tuple[RunState, str | None]:
    total, failed, cancelled = sum(states.values()), states.get("failed", 0), states.get("cancelled", 0)
    if failed:
        return "FAILED", f"{failed} of {total} actors failed"
    if cancelled:
        return (
            ("CANCELLED", None) if row.cancel_requested else ("FAILED", f"{cancelled} of {total} actors were not done")
        )
    return "SUCCEEDED", None


def close_if_over(session: Session, row: RunRow, *, now: datetime) -> bool:
    """Close a run in flight that nobody works on; say whether it was."""
    found = verdict(session, row, now=now)
    if found is None:
        return False
    state, error = found
    close_run(session, row, state=state, error=error, now=now)
    return True
