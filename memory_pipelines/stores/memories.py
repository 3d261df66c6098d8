"""Memory as people and agents use it, on SQL."""

from datetime import datetime

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session
from sqlmodel import col

from memory_pipelines.errors import AbortedError, AlreadyExistsError, InvalidInputError, NotFoundError
from memory_pipelines.names import MEMORY_STORE, PIPELINE, check_identifier, check_path, entry_name
from memory_pipelines.records import Entry, Fact, MemoryStore, Revision, SearchHit, aware
from memory_pipelines.stores import entries, pending
from memory_pipelines.stores.base import Page
from memory_pipelines.stores.database import Database
from memory_pipelines.stores.entries import Writer, entry_record, revision_record
from memory_pipelines.stores.evidence import bury, fact_record, tied_lines
from memory_pipelines.stores.hashes import lines_of
from memory_pipelines.stores.paging import after, paged
from memory_pipelines.stores.search import rank
from memory_pipelines.stores.tables import EntryRow, MemoryStoreRow, PipelineRow, RevisionRow
from memory_pipelines.text import clean_text

MAX_HITS = 100
"""Entries that one search returns at most."""


class SqlMemoryStores:
    """Implements stores.base.MemoryStores."""

    def __init__(self, database: Database) -> None:
        """Keep the way to the database."""
        self._database = database

    def create_store(self, store: str, *, description: str = "", creator: str, now: datetime) -> MemoryStore:
        """Create a memory store; AlreadyExistsError when there is one of this id."""
        row = MemoryStoreRow(
            id=MEMORY_STORE.parse(store),
            description=clean_text(description),
            creator=clean_text(creator),
            create_time=aware(now),
            update_time=now,
        )
        with self._database.write() as session:
            if session.get(MemoryStoreRow, row.id) is not None:
                raise AlreadyExistsError(f"{MEMORY_STORE.format(row.id)} exists", store=row.id)
            session.add(row)
        return _store_record(row)

    def get_store(self, store: str) -> MemoryStore:
        """Return a memory store, or raise NotFoundError."""
        with self._database.read() as session:
            return _store_record(_store(session, store))

    def list_stores(self, page: Page) -> tuple[list[MemoryStore], str | None]:
        """Return memory stores by id."""
        key = after(page, [str])
        statement = select(MemoryStoreRow).order_by(col(MemoryStoreRow.id)).limit(page.size + 1)
        if key:
            statement = statement.where(col(MemoryStoreRow.id) > key[0])
        with self._database.read() as session:
            rows, token = paged(session.scalars(statement).all(), page, lambda row: [row.id])
        return [_store_record(row) for row in rows], token

    def delete_store(self, store: str) -> None:
        """Delete a store with all entries, facts and revisions; AbortedError while a pipeline writes to it."""
        with self._database.write() as session:
            row = _store(session, store)
            writer = session.scalars(
                select(PipelineRow).where(col(PipelineRow.memory_store) == row.id).limit(1)
            ).one_or_none()
            if writer is not None:
                raise AbortedError(
                    f"{MEMORY_STORE.format(row.id)} is written by {PIPELINE.format(writer.id)}; delete that first",
                    pipeline=writer.id,
                )
            session.delete(row)

    def create_entry(
        self,
        store: str,
        *,
        actor_id: str,
        path: str,
        content: str,
        description: str = "",
        session_id: str | None = None,
        author: str,
        now: datetime,
    ) -> Entry:
        """Create exclusively on (actor, session or none, path), as AGENT; AlreadyExistsError otherwise."""
        check_identifier(actor_id, "an actor")
        if session_id is not None:
            check_identifier(session_id, "a session")
        check_path(clean_text(path))
        bound = session_id or ""
        with self._database.write() as session:
            identity = _store(session, store, lock=True).id
            there = entries.find(session, identity, actor_id, clean_text(path), session_id=bound)
            if there is not None:
                raise AlreadyExistsError(
                    f"{entry_name(identity, there.id)} is at {path} of actor {actor_id!r} already; update it instead",
                    entry=there.id,
                    path=path,
                )
            row = entries.create(
                session,
                identity,
                actor_id=actor_id,
                path=clean_text(path),
                content=clean_text(content),
                description=clean_text(description),
                source_type="AGENT",
                session_id=bound,
                writer=Writer(author=author, now=aware(now)),
            )
            self._written(session, row, now)
        return entry_record(row)

    def update_entry(
        self,
        store: str,
        entry_id: str,
        *,
        content: str | None = None,
        description: str | None = None,
        author: str,
        now: datetime,
    ) -> Entry:
        """Write as a person or agent: lines that go retract their facts and leave tombstones."""
        with self._database.write() as session:
            row = _entry(session, store, entry_id, lock=True)
            old = lines_of(row.content)
            changed = entries.update(
                session,
                row,
                content=row.content if content is None else clean_text(content),
                description=row.description if description is None else clean_text(description),
                writer=Writer(author=author, now=aware(now)),
            )
            if changed:
                bury(session, row, old.keys() - lines_of(row.content).keys(), author=author, now=now)
                self._written(session, row, now)
        return entry_record(row)

    def delete_entry(self, store: str, entry_id: str, *, author: str, now: datetime) -> None:
        """Delete as a person or agent: its facts are retracted and leave tombstones."""
        with self._database.write() as session:
            row = _entry(session, store, entry_id, lock=True)
            bury(session, row, lines_of(row.content), author=author, now=aware(now))
            self._written(session, row, now)
            entries.remove(session, row, writer=Writer(author=author, now=now))

    def get_entry(self, store: str, entry_id: str) -> Entry:
        """Return an entry, or raise NotFoundError."""
        with self._database.read() as session:
            return entry_record(_entry(session, store, entry_id))

    def list_entries(
        self,
        store: str,
        page: Page,
        *,
        actor_id: str | None = None,
        path_prefix: str | None = None,
        path: str | None = None,
        session_id: str | None = None,
    ) -> tuple[list[Entry], str | None]:
        """Return entries by actor and path; an exact `path` is found in every session, whatever `session_id` says."""
        key = after(page, [str, str, str])
        actor, where, identity = col(EntryRow.actor_id), col(EntryRow.path), col(EntryRow.id)
        statement = select(EntryRow).order_by(actor, where, identity).limit(page.size + 1)
        if actor_id is not None:
            statement = statement.where(actor == actor_id)
        if path_prefix:
            statement = statement.where(func.substr(where, 1, len(path_prefix)) == path_prefix)
        if path is not None:
            statement = statement.where(where == path)
        elif session_id is not None:
            statement = statement.where(col(EntryRow.session_id) == session_id)
        if key:
            further = or_(where > key[1], and_(where == key[1], identity > key[2]))
            statement = statement.where(or_(actor > key[0], and_(actor == key[0], further)))
        with self._database.read() as session:
            statement = statement.where(col(EntryRow.store) == _store(session, store).id)
            rows, token = paged(session.scalars(statement).all(), page, lambda row: [row.actor_id, row.path, row.id])
        return [entry_record(row) for row in rows], token

    def search(
        self, store: str, *, actor_id: str, query: str, limit: int = 10, path_prefix: str | None = None
    ) -> list[SearchHit]:
        """Rank the actor's entries by words (BM25), in any script."""
        if not 1 <= limit <= MAX_HITS:
            raise InvalidInputError(f"{limit} hits cannot be asked for; allowed are 1 to {MAX_HITS}", limit=limit)
        with self._database.read() as session:
            rows = session.scalars(
                select(EntryRow)
                .where(col(EntryRow.store) == _store(session, store).id, col(EntryRow.actor_id) == actor_id)
                .order_by(col(EntryRow.path), col(EntryRow.id))
            ).all()
        kept = [row for row in rows if row.path.startswith(path_prefix or "")]
        ranked = rank(query, [f"{row.path}\n{row.description}\n{row.content}" for row in kept])
        return [SearchHit(entry=entry_record(kept[index]), score=score) for index, score in ranked[:limit]]

    def actors(self, store: str) -> list[str]:
        """Return the actors with entries."""
        with self._database.read() as session:
            identity = _store(session, store).id
            statement = select(col(EntryRow.actor_id)).where(col(EntryRow.store) == identity).distinct()
            return sorted(session.scalars(statement))

    def history(self, store: str, entry_id: str) -> list[Revision]:
        """Return the revisions of an entry, also of a deleted one, oldest first."""
        with self._database.read() as session:
            identity = _store(session, store).id
            rows = session.scalars(
                select(RevisionRow)
                .where(col(RevisionRow.store) == identity, col(RevisionRow.entry_id) == entry_id)
                .order_by(col(RevisionRow.version))
            ).all()
        if not rows:
            raise NotFoundError(f"{entry_name(identity, entry_id)} does not exist and never did", entry=entry_id)
        return [revision_record(row) for row in rows]

    def facts_of(self, store: str, *, actor_id: str, entry_id: str | None = None) -> list[tuple[str, Fact]]:
        """Return (line, fact) for every tied line, by path and in the order of lines."""
        with self._database.read() as session:
            identity = _store(session, store).id
            if entry_id is not None:
                _entry(session, store, entry_id)
            found = tied_lines(session, identity, actor_id, entry_id=entry_id)
            return [(line, fact_record(fact)) for _, line, fact in found]

    @staticmethod
    def _written(session: Session, row: EntryRow, now: datetime) -> None:
        if not row.session_id:  # entries bound to a session are never maintained
            pending.mark_write(session, row.store, row.actor_id, now=now)


def _store(session: Session, store: str, *, lock: bool = False) -> MemoryStoreRow:
    identity = MEMORY_STORE.parse(store)
    row = session.get(MemoryStoreRow, identity, with_for_update=lock)
    if row is None:
        raise NotFoundError(f"{MEMORY_STORE.format(identity)} does not exist; create it first", store=identity)
    return row


def _entry(session: Session, store: str, entry_id: str, *, lock: bool = False) -> EntryRow:
    identity = _store(session, store).id
    row = session.get(EntryRow, (identity, entry_id), with_for_update=lock)
    if row is None:
        raise NotFoundError(f"{entry_name(identity, entry_id)} does not exist", entry=entry_id)
    return row


def _store_record(row: MemoryStoreRow) -> MemoryStore:
    return MemoryStore(
        id=row.id,
        description=row.description,
        creator=row.creator,
        create_time=row.create_time,
        update_time=row.update_time,
    )
