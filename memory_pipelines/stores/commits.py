"""What a run commits of one actor's work, one transaction a piece."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session
from sqlmodel import col

from memory_pipelines.errors import ConflictError
from memory_pipelines.names import PIPELINE
from memory_pipelines.records import STAGES, Change, Fact, FactState, Pipeline, Stage, Window, aware
from memory_pipelines.stores import marks
from memory_pipelines.stores.changes import ChangeSet
from memory_pipelines.stores.database import Database, chunks, upsert
from memory_pipelines.stores.entries import Writer
from memory_pipelines.stores.evidence import fact_columns
from memory_pipelines.stores.results import locked_result, note_dropped
from memory_pipelines.stores.tables import FactRow, ItemRow, MarkRow, ResultRow, SessionRow, WindowRow
from memory_pipelines.text import clean_text

LOST = "source deleted"
"""Why a fact is dropped whose item is gone, or was never the actor's."""

GONE = ("retracted", "rejected", "discarded")
"""States of facts that somebody took away: nothing new may rest on them."""


class SqlCommits:
    """The part of stores.base.Progress that moves marks, facts and entries."""

    def __init__(self, database: Database) -> None:
        """Keep the way to the database."""
        self._database = database

    def discard(self, pipeline: Pipeline, actor_id: str, *, basis: str) -> int:
        """Discard facts not yet merged that rest on another basis, and take the `distilled` marks back to the
        checkpoints of the sessions concerned, with all facts that are read again; return how many were discarded.
        """
        with self._database.write() as session:
            mine = (
                col(FactRow.store) == pipeline.memory_store,
                col(FactRow.pipeline_id) == pipeline.id,
                col(FactRow.actor_id) == actor_id,
                col(FactRow.state) == "new",
            )
            stale = select(col(FactRow.session_id)).where(*mine, col(FactRow.basis) != basis).distinct()
            again = set(session.scalars(stale))
            if not again:
                return 0
            discarded = 0
            for part in chunks(sorted(again)):
                for fact in session.scalars(select(FactRow).where(*mine, col(FactRow.session_id).in_(part))).all():
                    fact.state = "discarded"
                    discarded += 1
                session.execute(
                    update(MarkRow)
                    .where(col(MarkRow.pipeline_id) == pipeline.id, col(MarkRow.session_id).in_(part))
                    .values(distilled=MarkRow.table().c.checkpoint)
                    .execution_options(synchronize_session=False)
                )
            for window in session.scalars(
                select(WindowRow).where(
                    col(WindowRow.pipeline_id) == pipeline.id,
                    col(WindowRow.actor_id) == actor_id,
                    col(WindowRow.state) == "done",
                )
            ):
                if again & {segment["session_id"] for segment in window.segments}:
                    session.delete(window)
            return discarded

    def commit_window(
        self,
        pipeline: Pipeline,
        run: int,
        actor_id: str,
        window: Window,
        facts: Sequence[Fact],
        *,
        dropped: Mapping[str, int],
        now: datetime,
    ) -> None:
        """Insert the window's facts and move the `distilled` marks to its end; doing it twice changes nothing."""
        with self._database.write() as session:
            result = locked_result(session, pipeline.id, run, actor_id)
            row = _window(session, pipeline, actor_id, window, now=now)
            if row.state == "done":
                return
            row.state, row.error, row.update_time = "done", None, aware(now)
            hashes = _item_hashes(session, pipeline, actor_id, facts)
            kept = [fact for fact in facts if (fact.source.session_id, fact.source.item_id) in hashes]
            if kept:
                _insert_facts(
                    session,
                    [
                        fact_columns(
                            _clean(fact),
                            pipeline.memory_store,
                            item_hash=hashes[fact.source.session_id, fact.source.item_id],
                        )
                        for fact in kept
                    ],
                )
            _passed(result, marks.advance(session, pipeline, actor_id, window.segments))
            result.facts += len(kept)
            note_dropped(result, {**dropped, LOST: dropped.get(LOST, 0) + len(facts) - len(kept)})

    def fail_window(
        self, pipeline: Pipeline, run: int, actor_id: str, window: Window, *, error: str, now: datetime
    ) -> int:
        """Note that a window failed; return in how many runs it did."""
        with self._database.write() as session:
            row = _window(session, pipeline, actor_id, window, now=now)
            if run not in row.failed_runs:
                row.failed_runs = [*row.failed_runs, run]
            row.error, row.update_time = clean_text(error), aware(now)
            return len(row.failed_runs)

    def set_aside(self, pipeline: Pipeline, actor_id: str, window: Window, *, now: datetime) -> None:
        """Move the `distilled` marks past a window that failed too often; it stays visible until retried or skipped."""
        with self._database.write() as session:
            row = _window(session, pipeline, actor_id, window, now=now)
            row.state, row.update_time = "set_aside", aware(now)
            marks.advance(session, pipeline, actor_id, window.segments)

    def commit_merge(
        self,
        pipeline: Pipeline,
        run: int,
        actor_id: str,
        changes: Sequence[Change],
        settled: Mapping[str, FactState],
        *,
        dropped: Mapping[str, int],
        now: datetime,
    ) -> None:
        """Apply changes by compare and swap, write revisions and ties, settle the facts, and move the checkpoint of
        every session that has no `new` facts left; all or nothing.

        ConflictError when an entry or a fact changed meanwhile. Committing what is committed changes nothing.
        """
        with self._database.write() as session:
            result = locked_result(session, pipeline.id, run, actor_id)
            facts: list[FactRow] = []
            for part in chunks(settled):
                facts += session.scalars(
                    select(FactRow)
                    .where(
                        col(FactRow.store) == pipeline.memory_store,
                        col(FactRow.actor_id) == actor_id,
                        col(FactRow.id).in_(part),
                    )
                    .with_for_update()
                )
            if settled and len(facts) == len(settled) and all(fact.state == settled[fact.id] for fact in facts):
                return
            gone = set(settled) - {fact.id for fact in facts if fact.state not in GONE}
            if gone:
                raise ConflictError(
                    f"{len(gone)} facts were removed or settled meanwhile; read them again", facts=sorted(gone)[:5]
                )
            _apply(session, pipeline, run, actor_id, changes, result, stage="merge", now=now)
            for fact in facts:
                fact.state = settled[fact.id]
            note_dropped(result, dropped)
            marks.check_in(session, pipeline, actor_id)

    def commit_maintain(
        self, pipeline: Pipeline, run: int, actor_id: str, changes: Sequence[Change], *, now: datetime
    ) -> None:
        """Apply changes as `commit_merge` does; ties of lines that moved to another entry move with them."""
        with self._database.write() as session:
            result = locked_result(session, pipeline.id, run, actor_id)
            _apply(session, pipeline, run, actor_id, changes, result, stage="maintain", now=now)


def _apply(
    session: Session,
    pipeline: Pipeline,
    run: int,
    actor_id: str,
    changes: Sequence[Change],
    result: ResultRow,
    *,
    stage: Stage,
    now: datetime,
) -> None:
    assert stage in STAGES
    writer = Writer(author=PIPELINE.format(pipeline.id), now=aware(now), pipeline_id=pipeline.id, run=run, stage=stage)
    done = ChangeSet(session, pipeline.memory_store, actor_id, writer).apply(changes)
    result.created += done["created"]
    result.updated += done["updated"]
    result.deleted += done["deleted"]


def _window(session: Session, pipeline: Pipeline, actor_id: str, window: Window, *, now: datetime) -> WindowRow:
    row = session.get(WindowRow, (pipeline.id, window.id), with_for_update=True)
    if row is None:
        row = WindowRow(
            pipeline_id=pipeline.id,
            id=window.id,
            actor_id=actor_id,
            segments=[segment.model_dump() for segment in window.segments],
            state="failed",
            failed_runs=[],
            update_time=aware(now),
        )
        session.add(row)
    return row


def _clean(fact: Fact) -> Fact:
    words = {"text": clean_text(fact.text), "quote": clean_text(fact.quote), "topic": clean_text(fact.topic)}
    return fact.model_copy(update={**words, "state": "new"})


def _item_hashes(
    session: Session, pipeline: Pipeline, actor_id: str, facts: Sequence[Fact]
) -> dict[tuple[str, str], str]:
    """Return (session, item) to the item's hash for the facts' sources that exist and are the actor's own."""
    found: dict[tuple[str, str], str] = {}
    for part in chunks(facts):
        rows = session.execute(
            select(col(ItemRow.session_id), col(ItemRow.id), col(ItemRow.hash))
            .join(
                SessionRow,
                (col(SessionRow.store) == col(ItemRow.store)) & (col(SessionRow.id) == col(ItemRow.session_id)),
            )
            .where(
                col(ItemRow.store) == pipeline.session_store,
                col(SessionRow.actor_id) == actor_id,
                col(ItemRow.session_id).in_({fact.source.session_id for fact in part}),
                col(ItemRow.id).in_({fact.source.item_id for fact in part}),
            )
        )
        found.update({(row[0], row[1]): row[2] for row in rows})
    return found


def _insert_facts(session: Session, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert facts; one that was discarded and is found again is new again, any other stays as it is."""
    statement = upsert(session, FactRow)
    table = FactRow.table().c
    session.execute(
        statement.on_conflict_do_update(
            index_elements=["store", "id"],
            set_={"state": statement.excluded.state, "run": statement.excluded.run},
            where=table.state == "discarded",
        ),
        [dict(row) for row in rows],
    )


def _passed(result: ResultRow, items: Mapping[str, int]) -> None:
    result.items += sum(items.values())
    result.read = sorted({*result.read, *items})
