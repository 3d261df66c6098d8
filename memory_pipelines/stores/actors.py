"""One actor of a run: beginning, what there is to read, and the end."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session
from sqlmodel import col

from memory_pipelines.records import (
    ActorResult,
    ActorState,
    Entry,
    Fact,
    Item,
    Pipeline,
    SessionNews,
    Span,
    Tombstone,
    aware,
)
from memory_pipelines.stores import marks, pending
from memory_pipelines.stores.database import Database
from memory_pipelines.stores.entries import entry_record
from memory_pipelines.stores.evidence import fact_record, tied_lines
from memory_pipelines.stores.results import locked_result, result_record, usage_by_actor
from memory_pipelines.stores.runs import OPEN, find_run
from memory_pipelines.stores.sessions import item_record, session_record
from memory_pipelines.stores.tables import (
    CallRow,
    EntryRow,
    FactRow,
    ItemRow,
    MarkRow,
    PendingRow,
    ResultRow,
    SessionRow,
    TombstoneRow,
)
from memory_pipelines.text import clean_text

BEFORE = 6
"""Items before the unread ones that are given for understanding."""


class SqlActors:
    """The part of stores.base.Progress about one actor, without what is committed."""

    def __init__(self, database: Database) -> None:
        """Keep the way to the database."""
        self._database = database

    def begin(self, pipeline: Pipeline, run: int, actor_id: str, *, now: datetime) -> ActorResult:
        """Start or go on with an actor: pins the target positions the first time, returns its progress.

        A failed or cancelled actor is running again; one that has succeeded stays as it is.
        """
        with self._database.write() as session:
            owner = find_run(session, pipeline.id, run)
            row = session.get(ResultRow, (pipeline.id, run, actor_id), with_for_update=True)
            if row is None:
                row = ResultRow(pipeline_id=pipeline.id, run=run, actor_id=actor_id)
                session.add(row)
            if row.targets is None:
                # First what is seen, then what is read: what comes between is read or seen again, never lost.
                seen = session.get(PendingRow, (pipeline.id, actor_id))
                row.seen_version, row.seen_tokens = (None, 0) if seen is None else (seen.version, seen.tokens)
                row.targets = marks.targets(session, pipeline, actor_id)
            if row.state != "succeeded":
                row.state, row.end_time = "running", None
                row.error, row.error_status, row.retryable = None, None, False
                row.start_time = row.start_time or aware(now)
                owner.start_time = owner.start_time or now
            session.flush()
            return result_record(row, usage_by_actor(session, pipeline.id, run, actor_id).get(actor_id, ()))

    def news(self, pipeline: Pipeline, actor_id: str, targets: Mapping[str, int]) -> list[SessionNews]:
        """Return what is unread up to the targets, sessions by the time of their first unread item."""
        if not targets:
            return []
        with self._database.read() as session:
            unread = (
                marks.with_marks(ItemRow, pipeline=pipeline, actor_id=actor_id)
                .where(
                    col(ItemRow.position) > func.coalesce(col(MarkRow.distilled), 0),
                    col(ItemRow.position) <= max(targets.values()),
                )
                .order_by(col(ItemRow.session_id), col(ItemRow.position))
            )
            items: dict[str, list[Item]] = {}
            for row in session.scalars(unread):
                if row.position <= targets.get(row.session_id, 0):
                    items.setdefault(row.session_id, []).append(item_record(row))
            sessions = session.scalars(
                select(SessionRow).where(
                    col(SessionRow.store) == pipeline.session_store, col(SessionRow.actor_id) == actor_id
                )
            )
            found = [
                SessionNews(
                    session=session_record(row),
                    items=tuple(items[row.id]),
                    before=_before(session, row, items[row.id][0].position),
                )
                for row in sessions
                if row.id in items
            ]
        return sorted(found, key=lambda news: (news.items[0].said_at, news.session.id))

    def entries(self, pipeline: Pipeline, actor_id: str) -> list[Entry]:
        """Return the actor's entries that are not bound to a session, by path."""
        with self._database.read() as session:
            rows = session.scalars(
                select(EntryRow).where(
                    col(EntryRow.store) == pipeline.memory_store,
                    col(EntryRow.actor_id) == actor_id,
                    col(EntryRow.session_id) == "",
                )
            ).all()
        return sorted(map(entry_record, rows), key=lambda entry: entry.path)

    def ties(self, pipeline: Pipeline, actor_id: str) -> dict[str, list[tuple[str, str]]]:
        """Return entry id to (line, fact id) of the actor's tied lines."""
        found: dict[str, list[tuple[str, str]]] = {}
        with self._database.read() as session:
            for entry, line, fact in tied_lines(session, pipeline.memory_store, actor_id):
                found.setdefault(entry.id, []).append((line, fact.id))
        return found

    def tied_facts(self, pipeline: Pipeline, actor_id: str) -> dict[str, Fact]:
        """Return the facts that lines of the actor's entries rest on, by id, whichever pipeline made them."""
        with self._database.read() as session:
            found = tied_lines(session, pipeline.memory_store, actor_id)
            return {fact.id: fact_record(fact) for _, _, fact in found}

    def tombstones(self, pipeline: Pipeline, actor_id: str) -> list[Tombstone]:
        """Return what was removed by hand: facts from these spans are not distilled again."""
        with self._database.read() as session:
            rows = session.scalars(
                select(TombstoneRow)
                .where(col(TombstoneRow.store) == pipeline.memory_store, col(TombstoneRow.actor_id) == actor_id)
                .order_by(col(TombstoneRow.item_hash), col(TombstoneRow.start), col(TombstoneRow.end))
            ).all()
        return [Tombstone(item_hash=row.item_hash, start=row.start, end=row.end) for row in rows]

    def outdated(self, pipeline: Pipeline, actor_id: str) -> list[Span]:
        """Return where facts were said that are superseded, and nothing that is current."""
        with self._database.read() as session:
            rows = session.execute(
                select(col(FactRow.item_hash), col(FactRow.start), col(FactRow.end), col(FactRow.state))
                .where(
                    col(FactRow.store) == pipeline.memory_store,
                    col(FactRow.actor_id) == actor_id,
                    col(FactRow.state).in_(["superseded", "merged", "duplicate"]),
                )
                .order_by(col(FactRow.id))
            ).all()
        spans = [(Span(item_hash=row[0], start=row[1], end=row[2]), row[3]) for row in rows]
        current = [span for span, state in spans if state != "superseded"]
        return [
            span
            for span, state in spans
            if state == "superseded" and not any(one.meets(span.item_hash, span.start, span.end) for one in current)
        ]

    def unmerged(self, pipeline: Pipeline, actor_id: str) -> list[Fact]:
        """Return the facts of this pipeline in state `new`, by the time they were said."""
        with self._database.read() as session:
            rows = session.scalars(
                select(FactRow)
                .where(
                    col(FactRow.store) == pipeline.memory_store,
                    col(FactRow.pipeline_id) == pipeline.id,
                    col(FactRow.actor_id) == actor_id,
                    col(FactRow.state) == "new",
                )
                .order_by(
                    col(FactRow.observed_at),
                    col(FactRow.session_id),
                    col(FactRow.position),
                    col(FactRow.start),
                    col(FactRow.id),
                )
            ).all()
        return [fact_record(row) for row in rows]

    def stage_done(self, pipeline: Pipeline, run: int, actor_id: str, stages: int) -> None:
        """Note how many stages are done; after merge nothing is left to merge, so the checkpoints follow."""
        with self._database.write() as session:
            row = locked_result(session, pipeline.id, run, actor_id)
            row.stages = max(row.stages, stages)
            if row.stages >= 2:
                marks.check_in(session, pipeline, actor_id)

    def end_actor(
        self,
        pipeline: Pipeline,
        run: int,
        actor_id: str,
        *,
        state: ActorState,
        error: str | None = None,
        error_status: str | None = None,
        retryable: bool = False,
        now: datetime,
    ) -> None:
        """Close an actor's result. Success clears its pending row while the version is still the one seen at begin;
        failure keeps it, counts it once a run, and sets `retry_at` for sensor-started runs.
        """
        with self._database.write() as session:
            row = locked_result(session, pipeline.id, run, actor_id)
            first = row.state != state
            row.state, row.end_time = state, aware(now)
            row.error = None if error is None else clean_text(error)
            row.error_status, row.retryable = error_status, retryable
            if state == "succeeded" and first:
                pending.clear(session, pipeline.id, actor_id, version=row.seen_version, tokens=row.seen_tokens)
                # Calls of pieces that were committed a moment before a crash.
                session.execute(
                    delete(CallRow).where(col(CallRow.pipeline_id) == pipeline.id, col(CallRow.actor_id) == actor_id)
                )
            elif state == "failed" and not row.counted:
                row.counted = True
                pending.count_failures(session, pipeline.id, [actor_id], now=now)

    def end_open(
        self,
        pipeline: Pipeline,
        run: int,
        *,
        batch: int | None = None,
        state: ActorState,
        error: str,
        error_status: str,
        now: datetime,
    ) -> list[str]:
        """Fail or cancel all actors of a run or batch that have not ended, in one transaction; return them."""
        statement = select(ResultRow).where(
            col(ResultRow.pipeline_id) == pipeline.id, col(ResultRow.run) == run, col(ResultRow.state).in_(OPEN)
        )
        if batch is not None:
            statement = statement.where(col(ResultRow.batch) == batch)
        with self._database.write() as session:
            rows = session.scalars(
                statement.order_by(col(ResultRow.batch), col(ResultRow.rank)).with_for_update()
            ).all()
            if state == "failed":
                pending.count_failures(
                    session, pipeline.id, [row.actor_id for row in rows if not row.counted], now=aware(now)
                )
            for row in rows:
                row.state, row.end_time, row.counted = state, aware(now), row.counted or state == "failed"
                row.error, row.error_status, row.retryable = clean_text(error), error_status, True
        return [row.actor_id for row in rows]


def _before(session: Session, row: SessionRow, position: int) -> tuple[Item, ...]:
    """Return the last items before a position, copies of a fork among them."""
    if position == 1:
        return ()
    rows = session.scalars(
        select(ItemRow)
        .where(col(ItemRow.store) == row.store, col(ItemRow.session_id) == row.id, col(ItemRow.position) < position)
        .order_by(col(ItemRow.position).desc())
        .limit(BEFORE)
    ).all()
    return tuple(item_record(item) for item in reversed(rows))
