"""Facts, and the ties between them and the lines of entries."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import cast

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session
from sqlmodel import col

from memory_pipelines.records import Fact, FactKind, FactState, Source
from memory_pipelines.stores.database import chunks, insert_new
from memory_pipelines.stores.hashes import lines_of
from memory_pipelines.stores.tables import EntryRow, FactRow, TieRow, TombstoneRow


def fact_record(row: FactRow) -> Fact:
    """Return a row as a record."""
    return Fact(
        id=row.id,
        actor_id=row.actor_id,
        text=row.text,
        kind=cast("FactKind", row.kind),
        quote=row.quote,
        topic=row.topic,
        source=Source(
            session_store=row.session_store,
            session_id=row.session_id,
            item_id=row.item_id,
            position=row.position,
            item_hash=row.item_hash,
            start=row.start,
            end=row.end,
        ),
        observed_at=row.observed_at,
        pipeline_id=row.pipeline_id,
        run=row.run,
        window_id=row.window_id,
        model=row.model,
        basis=row.basis,
        state=cast("FactState", row.state),
    )


def fact_columns(fact: Fact, store: str, *, item_hash: str) -> dict[str, object]:
    """Return the columns of a fact."""
    return {
        "store": store,
        **fact.model_dump(exclude={"source"}),
        **fact.source.model_dump(),
        "item_hash": fact.source.item_hash or item_hash,
    }


def tied_lines(
    session: Session, store: str, actor_id: str, *, entry_id: str | None = None
) -> list[tuple[EntryRow, str, FactRow]]:
    """Return entry, line and fact of every tie of an actor's entries, by path and in the order of lines."""
    statement = (
        select(EntryRow, col(TieRow.line), FactRow)
        .join(TieRow, (col(TieRow.store) == col(EntryRow.store)) & (col(TieRow.entry_id) == col(EntryRow.id)))
        .join(FactRow, (col(FactRow.store) == col(TieRow.store)) & (col(FactRow.id) == col(TieRow.fact_id)))
        .where(col(EntryRow.store) == store, col(EntryRow.actor_id) == actor_id)
    )
    if entry_id is not None:
        statement = statement.where(col(EntryRow.id) == entry_id)
    lines: dict[str, dict[str, str]] = {}
    found: list[tuple[tuple[str, str, int, datetime, str], tuple[EntryRow, str, FactRow]]] = []
    for entry, digest, fact in session.execute(statement).all():
        known = lines.setdefault(entry.id, lines_of(entry.content))
        if digest in known:
            order = (entry.path, entry.id, list(known).index(digest), fact.observed_at, fact.id)
            found.append((order, (entry, known[digest], fact)))
    return [tie for _, tie in sorted(found, key=lambda one: one[0])]


def ties_of(session: Session, store: str, entry_ids: Iterable[str]) -> dict[str, dict[str, set[str]]]:
    """Return entry id to line hash to the ids of its facts."""
    found: dict[str, dict[str, set[str]]] = {}
    for part in chunks(entry_ids):
        statement = select(TieRow).where(col(TieRow.store) == store, col(TieRow.entry_id).in_(part))
        for tie in session.scalars(statement):
            found.setdefault(tie.entry_id, {}).setdefault(tie.line, set()).add(tie.fact_id)
    return found


def tie(session: Session, store: str, entry_id: str, ties: Mapping[str, Iterable[str]]) -> None:
    """Tie lines, by hash, to facts."""
    rows = [
        {"store": store, "entry_id": entry_id, "line": line, "fact_id": fact_id}
        for line, facts in ties.items()
        for fact_id in sorted(set(facts))
    ]
    insert_new(session, TieRow, rows)


def untie(session: Session, store: str, entry_id: str, lines: Iterable[str]) -> None:
    """Take the ties of lines away; the facts stay."""
    for part in chunks(lines):
        session.execute(
            delete(TieRow).where(
                col(TieRow.store) == store, col(TieRow.entry_id) == entry_id, col(TieRow.line).in_(part)
            )
        )


def bury(session: Session, entry: EntryRow, lines: Iterable[str], *, author: str, now: datetime) -> None:
    """Retract the facts of lines that a person or agent removed, and remember where they were said, not what.

    Args:
        session: a writing transaction.
        entry: that loses the lines.
        lines: their hashes.
        author: who removed them.
        now: when.
    """
    gone = set(lines)
    ties = ties_of(session, entry.store, [entry.id]).get(entry.id, {})
    facts = sorted({fact for line in gone for fact in ties.get(line, ())})
    for part in chunks(facts):
        chosen = (col(FactRow.store) == entry.store) & col(FactRow.id).in_(part)
        graves = [
            {
                "store": entry.store,
                "actor_id": entry.actor_id,
                "item_hash": fact.item_hash,
                "start": fact.start,
                "end": fact.end,
                "author": author,
                "time": now,
            }
            for fact in session.scalars(select(FactRow).where(chosen))
        ]
        insert_new(session, TombstoneRow, graves)
        session.execute(update(FactRow).where(chosen).values(state="retracted"))
    if facts:
        untie(session, entry.store, entry.id, gone)
