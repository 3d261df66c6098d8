"""How items come into sessions: live one by one, or imported, many sessions at once."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session as Transaction
from sqlmodel import col

from memory_pipelines.errors import InvalidInputError, NotFoundError
from memory_pipelines.names import SESSION_STORE, check_identifier, session_name
from memory_pipelines.records import ImportedSession, NewItem, aware
from memory_pipelines.stores import incoming, pending
from memory_pipelines.stores.database import chunks, insert_new
from memory_pipelines.stores.hashes import item_hash
from memory_pipelines.stores.pending import News
from memory_pipelines.stores.positions import Placed, arrange, reconcile
from memory_pipelines.stores.tables import ItemRow, PoppedRow, SessionRow, SessionStoreRow


def find_store(transaction: Transaction, store: str) -> SessionStoreRow:
    """Return a session store's row, or raise NotFoundError."""
    identity = SESSION_STORE.parse(store)
    row = transaction.get(SessionStoreRow, identity)
    if row is None:
        raise NotFoundError(f"{SESSION_STORE.format(identity)} does not exist; create it first", store=identity)
    return row


def find_session(transaction: Transaction, store: str, session_id: str, *, lock: bool = False) -> SessionRow:
    """Return a session's row, or raise NotFoundError."""
    identity = find_store(transaction, store).id
    row = transaction.get(SessionRow, (identity, session_id), with_for_update=lock)
    if row is None:
        raise NotFoundError(f"{session_name(identity, session_id)} does not exist", session=session_id)
    return row


def open_sessions(
    transaction: Transaction, store: str, given: Sequence[ImportedSession], *, now: datetime
) -> dict[str, SessionRow]:
    """Return the rows of sessions by id, locked, creating those that do not exist.

    Args:
        transaction: that writes.
        store: id of an existing store.
        given: actor, parent and metadata count; what is stored of a session stays.
        now: when they are created.

    Raises:
        InvalidInputError: an id cannot be kept, or a session or its parent is of another actor.
    """
    for one in given:
        check_identifier(one.session_id, "a session")
        check_identifier(one.actor_id, "an actor")
        if one.parent_id is not None:
            check_identifier(one.parent_id, "a parent session")
    named = {one.session_id for one in given} | {one.parent_id for one in given if one.parent_id}
    rows = _locked(transaction, store, named)
    new: dict[str, SessionRow] = {}
    for one in given:
        if one.session_id not in rows and one.session_id not in new:
            parent = (rows.get(one.parent_id) or new.get(one.parent_id)) if one.parent_id else None
            new[one.session_id] = _made(store, one, parent, now=now)
    if new:
        # Two who create one at once both go on with the one row.
        insert_new(transaction, SessionRow, [row.model_dump() for row in new.values()])
        rows |= _locked(transaction, store, set(new))
    for one in given:
        _same_actor(rows[one.session_id], one.actor_id)
    return rows


def _locked(transaction: Transaction, store: str, session_ids: set[str]) -> dict[str, SessionRow]:
    rows: dict[str, SessionRow] = {}
    for part in chunks(sorted(session_ids)):
        statement = select(SessionRow).where(col(SessionRow.store) == store, col(SessionRow.id).in_(part))
        rows.update({row.id: row for row in transaction.scalars(statement.with_for_update())})
    return rows


def _made(store: str, given: ImportedSession, parent: SessionRow | None, *, now: datetime) -> SessionRow:
    if parent is not None:
        _same_actor(parent, given.actor_id)
    return SessionRow(
        store=store,
        id=given.session_id,
        actor_id=given.actor_id,
        parent_id=given.parent_id,
        root_id=parent.root_id if parent is not None else given.parent_id or given.session_id,
        labels=incoming.labels(given.metadata),
        create_time=aware(now),
        update_time=now,
        last_activity_time=now,
    )


def _same_actor(row: SessionRow, actor_id: str) -> None:
    if row.actor_id != actor_id:
        raise InvalidInputError(
            f"{session_name(row.store, row.id)} is a conversation of actor {row.actor_id!r}, not of {actor_id!r};"
            " a session has one actor: use another session id",
            session=row.id,
            actor=row.actor_id,
            given=actor_id,
        )


class Inbox:
    """Items on their way into sessions of one store: placed session by session, written together."""

    def __init__(self, transaction: Transaction, store: str, *, now: datetime) -> None:
        """Begin with nothing.

        Args:
            transaction: that writes.
            store: id of the store.
            now: when the items come.
        """
        self._transaction = transaction
        self._store = store
        self._now = now
        self._rows: list[dict[str, Any]] = []
        self._news: dict[str, News] = {}

    def add(self, row: SessionRow, items: Sequence[NewItem]) -> list[Placed]:
        """Give items their places at the end of a session, which the transaction has locked."""
        if not items:
            return []
        # A session that never had an item has none, nor any that were popped.
        last = self._last(row) if row.last_position else None
        gone = self._gone(row, last or 0) if row.last_position else ()
        placed = arrange(items, gone, last_position=row.last_position, now=self._now)
        self._rows += [{"store": row.store, "session_id": row.id, **one.columns} for one in placed]
        row.last_position = max(row.last_position, placed[-1].position)
        row.tokens += sum(one.tokens for one in placed)
        row.update_time = self._now
        said = max(one.said_at for one in placed)
        first = row.last_activity_time if last else said  # an empty session has only the time of its making
        row.last_activity_time = max(first, said)
        if gone:
            self._forget(row, placed[-1].position)
        fresh = [one for one in placed if not one.returned]
        if fresh:
            came = News(sum(one.tokens for one in fresh), max(one.said_at for one in fresh))
            known = self._news.get(row.actor_id)
            self._news[row.actor_id] = came if known is None else known + came
        return placed

    def write(self) -> None:
        """Store what was added, and mark the actors pending."""
        if self._rows:
            self._transaction.execute(insert(ItemRow.table()), self._rows)
        pending.mark_append(self._transaction, self._store, self._news, now=self._now)
        self._rows, self._news = [], {}

    def _last(self, row: SessionRow) -> int | None:
        return self._transaction.scalar(
            select(func.max(col(ItemRow.position))).where(
                col(ItemRow.store) == row.store, col(ItemRow.session_id) == row.id
            )
        )

    def _gone(self, row: SessionRow, last: int) -> Sequence[PoppedRow]:
        statement = select(PoppedRow).where(
            col(PoppedRow.store) == row.store, col(PoppedRow.session_id) == row.id, col(PoppedRow.position) > last
        )
        return self._transaction.scalars(statement.order_by(col(PoppedRow.position))).all()

    def _forget(self, row: SessionRow, reached: int) -> None:
        """Forget what was popped before a place: whatever stood there can never come back."""
        self._transaction.execute(
            delete(PoppedRow).where(
                col(PoppedRow.store) == row.store,
                col(PoppedRow.session_id) == row.id,
                col(PoppedRow.position) <= reached,
            )
        )


def add_imported(
    transaction: Transaction, store: str, sessions: Sequence[ImportedSession], *, now: datetime
) -> list[int]:
    """Append what of imported sessions is not stored yet.

    Args:
        transaction: that writes.
        store: id of an existing store.
        sessions: one may come again with further items.
        now: when they come.

    Returns:
        How many items of each were new.

    Raises:
        InvalidInputError: one of them cannot be stored.
    """
    rows = open_sessions(transaction, store, sessions, now=now)
    inbox, held = Inbox(transaction, store, now=now), set[str]()
    numbers: list[int] = []
    for session in sessions:
        row = rows[session.session_id]
        if row.id in held:  # what came before in it is to be seen
            inbox.write()
            held.clear()
        held.add(row.id)
        numbers.append(len(inbox.add(row, _unknown(transaction, row, session.items))))
    inbox.write()
    return numbers


def _unknown(transaction: Transaction, row: SessionRow, items: Sequence[NewItem]) -> Sequence[NewItem]:
    """Return those items of an import that are not stored yet."""
    if not items or not row.last_position:
        return items
    stored = transaction.execute(
        select(col(ItemRow.hash), col(ItemRow.said_at))
        .where(col(ItemRow.store) == row.store, col(ItemRow.session_id) == row.id)
        .order_by(col(ItemRow.position))
    ).all()
    if not stored:
        return items
    known = [(item_hash(incoming.item_data(item.data)), item.said_at) for item in items]
    return [items[index] for index in reconcile([(one[0], one[1]) for one in stored], known)]
