"""Conversations on SQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import and_, delete, func, insert, or_, select
from sqlalchemy.orm import Session as Transaction
from sqlmodel import col

from memory_pipelines.errors import AbortedError, AlreadyExistsError, InvalidInputError, NotFoundError
from memory_pipelines.names import PIPELINE, SESSION_STORE, session_name
from memory_pipelines.records import ImportedSession, Item, NewItem, Session, SessionStore, aware
from memory_pipelines.stores import again, incoming, pending
from memory_pipelines.stores.base import Page
from memory_pipelines.stores.database import Database, chunks, insert_new
from memory_pipelines.stores.hashes import item_hash
from memory_pipelines.stores.paging import after, paged
from memory_pipelines.stores.positions import arrange, reconcile
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
            return store_record(_store(transaction, store))

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
            row = _store(transaction, store)
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
            row = _open(transaction, store, session_id, actor_id=actor_id, metadata=metadata, parent_id=None, now=now)
            return _append(transaction, row, items, now=now)

    def add_imported(self, store: str, session: ImportedSession, *, now: datetime) -> int:
        """Append what of an imported session is not stored yet; return how many items were new."""
        with self._database.write() as transaction:
            row = _open(
                transaction,
                store,
                session.session_id,
                actor_id=session.actor_id,
                metadata=session.metadata,
                parent_id=session.parent_id,
                now=now,
            )
            stored = transaction.execute(
                select(col(ItemRow.hash), col(ItemRow.said_at))
                .where(col(ItemRow.store) == row.store, col(ItemRow.session_id) == row.id)
                .order_by(col(ItemRow.position))
            ).all()
            hashes = [item_hash(incoming.item_data(item.data)) for item in session.items] if stored else []
            times = [item.said_at for item in session.items]
            new = reconcile([(one[0], one[1]) for one in stored], list(zip(hashes, times, strict=False)))
            tail = [session.items[index] for index in new] if stored else list(session.items)
            return len(_append(transaction, row, tail, now=now))

    def get_session(self, store: str, session_id: str) -> Session:
        """Return a session, or raise NotFoundError."""
        with self._database.read() as transaction:
            return session_record(_session(transaction, store, session_id))

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
            statement = statement.where(col(SessionRow.store) == _store(transaction, store).id)
            rows, token = paged(transaction.scalars(statement).all(), page, lambda row: [row.create_time, row.id])
        return [session_record(row) for row in rows], token

    def list_items(self, store: str, session_id: str, page: Page) -> tuple[list[Item], str | None]:
        """Return items by position."""
        key = after(page, [int])
        statement = select(ItemRow).order_by(col(ItemRow.position)).limit(page.size + 1)
        if key:
            statement = statement.where(col(ItemRow.position) > key[0])
        with self._database.read() as transaction:
            row = _session(transaction, store, session_id)
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
            row = _session(transaction, store, session_id)
            again.forget(transaction, row)
            transaction.delete(row)

    def counts(self, store: str) -> dict[str, int]:
        """Return the numbers of `actors`, `sessions` and `items`."""
        with self._database.read() as transaction:
            identity = _store(transaction, store).id
            actors, sessions = transaction.execute(
                select(func.count(col(SessionRow.actor_id).distinct()), func.count()).where(
                    col(SessionRow.store) == identity
                )
            ).one()
            items = transaction.scalar(select(func.count()).select_from(ItemRow).where(col(ItemRow.store) == identity))
        return {"actors": actors, "sessions": sessions, "items": items or 0}

    def _pop(self, store: str, session_id: str, number: int | None) -> list[Item]:
        with self._database.write() as transaction:
            row = _session(transaction, store, session_id, lock=True)
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


def _store(transaction: Transaction, store: str) -> SessionStoreRow:
    identity = SESSION_STORE.parse(store)
    row = transaction.get(SessionStoreRow, identity)
    if row is None:
        raise NotFoundError(f"{SESSION_STORE.format(identity)} does not exist; create it first", store=identity)
    return row


def _session(transaction: Transaction, store: str, session_id: str, *, lock: bool = False) -> SessionRow:
    identity = _store(transaction, store).id
    row = transaction.get(SessionRow, (identity, session_id), with_for_update=lock)
    if row is None:
        raise NotFoundError(f"{session_name(identity, session_id)} does not exist", session=session_id)
    return row


def _open(
    transaction: Transaction,
    store: str,
    session_id: str,
    *,
    actor_id: str | None,
    metadata: Mapping[str, str] | None,
    parent_id: str | None,
    now: datetime,
) -> SessionRow:
    """Return the session, locked, creating it for an actor that is given."""
    if actor_id is None:
        return _session(transaction, store, session_id, lock=True)
    identity = _store(transaction, store).id
    incoming.identifier(session_id, "a session")
    incoming.identifier(actor_id, "an actor")
    if parent_id is not None:
        incoming.identifier(parent_id, "a parent session")
    row = transaction.get(SessionRow, (identity, session_id), with_for_update=True)
    if row is None:
        parent = transaction.get(SessionRow, (identity, parent_id)) if parent_id else None
        if parent is not None:
            _same_actor(parent, actor_id)
        values = {
            "store": identity,
            "id": session_id,
            "actor_id": actor_id,
            "parent_id": parent_id,
            "root_id": parent.root_id if parent is not None else parent_id or session_id,
            "labels": incoming.labels(metadata),
            "last_position": 0,
            "tokens": 0,
            "create_time": aware(now),
            "update_time": now,
            "last_activity_time": now,
        }
        # Two who create it at once both go on with the one row.
        insert_new(transaction, SessionRow, [values])
        row = transaction.get_one(SessionRow, (identity, session_id), with_for_update=True)
    _same_actor(row, actor_id)
    return row


def _same_actor(row: SessionRow, actor_id: str) -> None:
    if row.actor_id != actor_id:
        raise InvalidInputError(
            f"{session_name(row.store, row.id)} is a conversation of actor {row.actor_id!r}, not of {actor_id!r};"
            " a session has one actor: use another session id",
            session=row.id,
            actor=row.actor_id,
            given=actor_id,
        )


def _append(transaction: Transaction, row: SessionRow, items: Sequence[NewItem], *, now: datetime) -> list[Item]:
    if not items:
        return []
    last = transaction.scalar(
        select(func.max(col(ItemRow.position))).where(
            col(ItemRow.store) == row.store, col(ItemRow.session_id) == row.id
        )
    )
    gone = transaction.scalars(
        select(PoppedRow)
        .where(
            col(PoppedRow.store) == row.store,
            col(PoppedRow.session_id) == row.id,
            col(PoppedRow.position) > (last or 0),
        )
        .order_by(col(PoppedRow.position))
    ).all()
    placed = arrange(items, gone, last_position=row.last_position, now=now)
    rows = [{"store": row.store, "session_id": row.id, **one.columns} for one in placed]
    transaction.execute(insert(ItemRow.table()), rows)
    row.last_position = max(row.last_position, placed[-1].position)
    row.tokens += sum(one.tokens for one in placed)
    row.update_time = now
    said = max(one.said_at for one in placed)
    first = row.last_activity_time if last else said  # an empty session has only the time of its making
    row.last_activity_time = max(first, said)
    if gone:
        # Whatever stood before the new last item can never come back.
        transaction.execute(
            delete(PoppedRow).where(
                col(PoppedRow.store) == row.store,
                col(PoppedRow.session_id) == row.id,
                col(PoppedRow.position) <= placed[-1].position,
            )
        )
    fresh = [one for one in placed if not one.returned]
    if fresh:
        tokens, latest = sum(one.tokens for one in fresh), max(one.said_at for one in fresh)
        pending.mark_append(transaction, row.store, row.actor_id, tokens=tokens, last_said_at=latest, now=now)
    return [one.item(row.id) for one in placed]


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
