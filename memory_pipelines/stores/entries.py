"""Writing entries: every write makes a revision, whoever writes."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from sqlalchemy import select
from sqlalchemy.orm import Session
from sqlmodel import col

from memory_pipelines.records import Entry, Revision, SourceType
from memory_pipelines.stores.tables import EntryRow, RevisionRow


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Who writes, when and why."""

    author: str
    now: datetime
    pipeline_id: str | None = None
    run: int | None = None
    stage: str | None = None


def entry_record(row: EntryRow) -> Entry:
    """Return a row as a record."""
    return Entry(
        store=row.store,
        id=row.id,
        actor_id=row.actor_id,
        session_id=row.session_id or None,
        path=row.path,
        content=row.content,
        description=row.description,
        source_type=cast("SourceType", row.source_type),
        version=row.version,
        create_time=row.create_time,
        update_time=row.update_time,
    )


def revision_record(row: RevisionRow) -> Revision:
    """Return a row as a record."""
    return Revision.model_validate(row.model_dump(exclude={"store"}))


def find(session: Session, store: str, actor_id: str, path: str, *, session_id: str = "") -> EntryRow | None:
    """Return the entry at a path of an actor."""
    return session.scalars(
        select(EntryRow).where(
            col(EntryRow.store) == store,
            col(EntryRow.actor_id) == actor_id,
            col(EntryRow.session_id) == session_id,
            col(EntryRow.path) == path,
        )
    ).one_or_none()


def create(
    session: Session,
    store: str,
    *,
    actor_id: str,
    path: str,
    content: str,
    description: str,
    source_type: SourceType,
    writer: Writer,
    session_id: str = "",
    reason: str = "",
) -> EntryRow:
    """Insert an entry of which the path is known to be free."""
    row = EntryRow(
        store=store,
        id=uuid.uuid4().hex,
        actor_id=actor_id,
        session_id=session_id,
        path=path,
        content=content,
        description=description,
        source_type=source_type,
        version=1,
        create_time=writer.now,
        update_time=writer.now,
    )
    session.add(row)
    session.flush()
    _revise(session, row, "create", row.version, writer, reason)
    return row


def update(
    session: Session, row: EntryRow, *, content: str, description: str, writer: Writer, reason: str = ""
) -> bool:
    """Write a locked entry; False when it says that already."""
    if (row.content, row.description) == (content, description):
        return False
    row.content, row.description = content, description
    row.version += 1
    row.update_time = writer.now
    _revise(session, row, "update", row.version, writer, reason)
    return True


def remove(session: Session, row: EntryRow, *, writer: Writer, reason: str = "") -> None:
    """Delete a locked entry with its ties."""
    _revise(session, row, "delete", row.version + 1, writer, reason)
    session.delete(row)
    session.flush()


def _revise(
    session: Session,
    row: EntryRow,
    action: Literal["create", "update", "delete"],
    version: int,
    writer: Writer,
    reason: str,
) -> None:
    session.add(
        RevisionRow(
            store=row.store,
            entry_id=row.id,
            version=version,
            actor_id=row.actor_id,
            path=row.path,
            action=action,
            content=row.content,
            description=row.description,
            pipeline_id=writer.pipeline_id,
            run=writer.run,
            stage=writer.stage,
            reason=reason,
            author=writer.author,
            time=writer.now,
        )
    )
