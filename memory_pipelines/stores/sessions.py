"""Conversations on SQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session as Transaction
from sqlmodel import col

from memory_pipelines.errors import AbortedError, AlreadyExistsError, InvalidInputError
from memory_pipelines.names import PIPELINE, SESSION_STORE
from memory_pipelines.records import ImportedSession, Item, NewItem, Session, SessionStore, aware
from memory_pipelines.stores import again, incoming
from memory_pipelines.stores.appending import Inbox, add_imported, find_session, find_store, open_sessions
from memory_pipelines.stores.base import Page
from memory_pipelines.stores.database import Database, chunks, insert_new
from memory_pipelines.stores.paging import after, paged
from memory_pipelines.stores.tables import (
    ItemRow,
    PipelineRow,
    PoppedRow,
    SessionRow,
    SessionStoreRow,
)
from memory_pipelines.text import clean_text


class SqlSessionStores:
    """Implements stores.base.SessionStores."""

    def __init__(self, database: Database) -> None:
        """Keep the way to the database."""
        self._database = database

    def create_store(
        self,
        store: str,
        *,
        description: str = "",
        metadata: Mapping[str, str] | None = None,
        creator: str,
        now: datetime,
    ) -> SessionStore:
        """Create a session store; AlreadyExistsError when there is one of this id."""
        row = SessionStoreRow(
            id=SESSION_STORE.parse(store),
            description=clean_text(description),
            labels=incoming.labels(metadata),
            creator=clean_text(creator),
            create_time=aware(now),
            update_time=now,
        )
        with self._database.write() as transaction:
            if transaction.get(SessionStoreRow, row.id) is not None:
                raise AlreadyExistsError(f"{SESSION_STORE.format(row.id)} exists", store=row.id)
            transaction.add(row)
        return store_record(row)

    def get_store(self, store: str) -> SessionStore:
        """Return a session store, or raise NotFoundError."""
        with self._database.read() as transaction:
            return store_record(find_store(transaction, store))

    def list_stores(self, page: Page) -> tuple[list[SessionStore], str | None]:
        """Return session stores by id."""
        key = after(page, [str])
        statement = select(SessionStoreRow).order_by(col(SessionStoreRow.id)).limit(page.size + 1)
        if key:
            statement = statement.where(col(SessionStoreRow.id) > key[0])
        with self._database.read() as transaction:
            rows, token = paged(transaction.scalars(statement).all(), page, lambda row: [row.id])
        return [store_record(row) for row in rows], token

    def delete_store(self, store: str) -> None:
        """Delete a store with its sessions and items; AbortedError while a pipeline reads it."""
        with self._database.write() as transaction:
            row = find_store(transaction, store)
            reader = transaction.scalars(
                select(PipelineRow).where(col(PipelineRow.session_store) == row.id).limit(1)
            ).one_or_none()
            if reader is not None:
                raise AbortedError(
                    f"{SESSION_STORE.format(row.id)} is read by {PIPELINE.format(reader.id)}; delete that first",
                    pipeline=reader.id,
                )
            transaction.delete(row)

    def append(
        self,
        store: str,
        session_id: str,
        items: Sequence[NewItem],
        *,
        actor_id: str | None = None,
        metadata: Mapping[str, str] | None = None,
        now: datetime,
    ) -> list[Item]:
        """Append in order; `metadata` is that of a session which this call creates."""
        with self._database.write() as transaction:
            if actor_id is None:
                row = find_session(transaction, store, session_id, lock=True)
            else:
                given = ImportedSession.model_construct(  # not validated: what cannot be kept is refused further on
                    session_id=session_id, actor_id=actor_id, metadata=dict(metadata or {})
                )
                row = open_sessions(transaction, find_store(transaction, store).id, [given], now=now)[session_id]
            inbox = Inbox(transaction, row.store, now=now)
            placed = inbox.add(row, items)
            inbox.write()
        return [one.item(session_id) for one in placed]

    def add_imported(self, store: str, sessions: Sequence[ImportedSession], *, now: datetime) -> list[int]:
        """Append what of imported sessions is not stored yet, together; return how many items of each were new."""
        try:
            with self._database.write() as transaction:
                return add_imported(transaction, find_store(transaction, store).id, sessions, now=now)
        except InvalidInputError:
            if len(sessions) == 1:
                raise
        # One of them cannot be stored: those before it are, and it is the one that is complained of.
        half = len(sessions) // 2
        first = self.add_imported(store, sessions[:half], now=now)
        return first + self.add_imported(store, sessions[half:], now=now)

    def get_session(self, store: str, session_id: str) -> Session:
        """Return a session, or raise NotFoundError."""
        with self._database.read() as transaction:
            return session_record(find_session(transaction, store, session_id))

    def list_sessions(self, store: str, page: Page, *, actor_id: str | None = None) -> tuple[list[Session], str | None]:
        """Return sessions, the last created first."""
        key = after(page, [datetime, str])
        created, identity = col(SessionRow.create_time), col(SessionRow.id)
        statement = select(SessionRow).order_by(created.desc(), identity).limit(page.size + 1)
        if actor_id is not None:
            statement = statement.where(col(SessionRow.actor_id) == actor_id)
        if key:
            statement = statement.where(or_(created < key[0], and_(created == key[0], identity > key[1])))
        with self._database.read() as transaction:
            statement = statement.where(col(SessionRow.store) == find_store(transaction, store).id)
            rows, token = paged(transaction.scalars(statement).all(), page, lambda row: [row.create_time, row.id])
        return [session_record(row) for row in rows], token

    def list_items(self, store: str, session_id: str, page: Page) -> tuple[list[Item], str | None]:
        """Return items by position."""
        key = after(page, [int])
        statement = select(ItemRow).order_by(col(ItemRow.position)).limit(page.size + 1)
        if key:
            statement = statement.where(col(ItemRow.position) > key[0])
        with self._database.read() as transaction:
            row = find_session(transaction, store, session_id)
            statement = statement.where(col(ItemRow.store) == row.store, col(ItemRow.session_id) == row.id)
            rows, token = paged(transaction.scalars(statement).all(), page, lambda item: [item.position])
        return [item_record(row) for row in rows], token

    def clear_items(self, store: str, session_id: str) -> int:
        """Take all items out of a session; return how many. Appended again unchanged they get their places back."""
        return len(self._pop(store, session_id, None))

    def pop_item(self, store: str, session_id: str) -> Item | None:
        """Take the last item out of a session and return it, None when there is none."""
        popped = self._pop(store, session_id, 1)
        return popped[0] if popped else None

    def delete_session(self, store: str, session_id: str) -> None:
        """Delete a session with its items and the marks on it; memory made from it stays."""
        with self._database.write() as transaction:
            row = find_session(transaction, store, session_id)
            again.forget(transaction, row)
            transaction.delete(row)

    def counts(self, store: str) -> dict[str, int]:
        """Return the numbers of `actors`, `sessions` and `items`."""
        with self._database.read() as transaction:
            identity = find_store(transaction, store).id
            actors, sessions = transaction.execute(
                select(func.count(col(SessionRow.actor_id).distinct()), func.count()).where(
                    col(SessionRow.store) == identity
                )
            ).one()
            items = transaction.scalar(select(func.count()).select_from(ItemRow).where(col(ItemRow.store) == identity))
        return {"actors": actors, "sessions": sessions, "items": items or 0}

    def _pop(self, store: str, session_id: str, number: int | None) -> list[Item]:
        with self._database.write() as transaction:
            row = find_session(transaction, store, session_id, lock=True)
            rows = transaction.scalars(
                select(ItemRow)
                .where(col(ItemRow.store) == row.store, col(ItemRow.session_id) == row.id)
                .order_by(col(ItemRow.position).desc())
                .limit(number)
            ).all()
            kept = PoppedRow.model_fields.keys()
            insert_new(transaction, PoppedRow, [{name: getattr(item, name) for name in kept} for item in rows])
            for item in rows:
                row.tokens -= item.tokens
                transaction.delete(item)
            return [item_record(item) for item in rows]


def unknown_actors(transaction: Transaction, store: str, actors: Sequence[str]) -> list[str]:
    """Return which of the given actors have no session in a store."""
    known: set[str] = set()
    for part in chunks(actors):
        mine = (col(SessionRow.store) == store, col(SessionRow.actor_id).in_(part))
        known |= set(transaction.scalars(select(col(SessionRow.actor_id)).where(*mine).distinct()))
    return [actor for actor in actors if actor not in known]


def store_record(row: SessionStoreRow) -> SessionStore:
    """Return a row as a record."""
    return SessionStore(
        id=row.id,
        description=row.description,
        metadata=row.labels,
        creator=row.creator,
        create_time=row.create_time,
        update_time=row.update_time,
    )


def session_record(row: SessionRow) -> Session:
    """Return a row as a record."""
    return Session(
        store=row.store,
        id=row.id,
        actor_id=row.actor_id,
        parent_id=row.parent_id,
        root_id=row.root_id,
        metadata=row.labels,
        create_time=row.create_time,
        update_time=row.update_time,
        last_activity_time=row.last_activity_time,
    )


def item_record(row: ItemRow) -> Item:
    """Return a row as a record."""
    return Item(
        session_id=row.session_id,
        id=row.id,
        position=row.position,
        data=row.data,
        said_at=row.said_at,
        create_time=row.create_time,
        context=row.context,
    )
