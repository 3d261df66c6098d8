"""Session stores, sessions and items, and the import of histories."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from memory_pipelines.errors import InvalidInputError, NotFoundError
from memory_pipelines.names import SESSION_STORE, check_identifier
from memory_pipelines.records import ImportedSession, Item, NewItem, Record, Session, SessionStore
from memory_pipelines.stores.base import Page, SessionStores

T = TypeVar("T")

MAX_ITEMS = 1000
"""Items in one append."""

GROUP_SESSIONS, GROUP_ITEMS = 200, 2000
"""Imported sessions, and items of them, that are stored in one transaction: each costs a flush of the disk, and others
wait for it to end."""


class ImportReport(Record):
    """What an import did."""

    sessions: int = 0  # seen
    actors: int = 0  # seen
    items: int = 0  # seen
    new_items: int = 0  # stored by this import; 0 when everything was there


class SessionService:
    """What people may ask of conversations."""

    def __init__(self, stores: SessionStores, *, clock: Callable[[], datetime]) -> None:
        """Keep the stores and the clock."""
        self._stores = stores
        self._clock = clock

    def create_store(
        self, store: str, *, description: str = "", metadata: Mapping[str, str] | None = None, creator: str = "local"
    ) -> SessionStore:
        """Create a session store.

        Args:
            store: its id or full name.
            description: for people.
            metadata: free labels.
            creator: principal who owns it.

        Raises:
            AlreadyExistsError: there is one of this id.
            InvalidInputError: the id has not the required form.
        """
        return self._stores.create_store(
            SESSION_STORE.parse(store), description=description, metadata=metadata, creator=creator, now=self._clock()
        )

    def get_store(self, store: str) -> SessionStore:
        """Return a session store, or raise NotFoundError."""
        return self._stores.get_store(SESSION_STORE.parse(store))

    def list_stores(self) -> Iterator[SessionStore]:
        """Yield all session stores by id."""
        return pages(self._stores.list_stores)

    def delete_store(self, store: str) -> None:
        """Delete a session store with its conversations; memory stays. AbortedError while a pipeline reads it."""
        self._stores.delete_store(SESSION_STORE.parse(store))

    def counts(self, store: str) -> dict[str, int]:
        """Return the numbers of `actors`, `sessions` and `items` in a store."""
        return self._stores.counts(SESSION_STORE.parse(store))

    def append(
        self,
        store: str,
        session_id: str,
        *,
        items: Sequence[Any],
        actor_id: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> list[Item]:
        """Append items to a session, all or none, in order; creates the session when `actor_id` is given.

        Args:
            store: id or full name of the session store.
            session_id: which session.
            items: NewItem values, or JSON values such as {"role": "user", "content": "..."}.
            actor_id: whose session it is; needed when it does not exist yet.
            metadata: labels of a session that is created by this call.

        Returns:
            The stored items with their ids and positions.

        Raises:
            InvalidInputError: no items, too many, or the session belongs to another actor.
            NotFoundError: the store does not exist, or the session does not and no `actor_id` was given.
        """
        if not 1 <= len(items) <= MAX_ITEMS:
            raise InvalidInputError(f"got {len(items)} items; append 1 to {MAX_ITEMS} at a time", items=len(items))
        if actor_id is not None:
            check_identifier(actor_id, "an actor")
        new = [item if isinstance(item, NewItem) else NewItem(data=item) for item in items]
        return self._stores.append(
            SESSION_STORE.parse(store), session_id, new, actor_id=actor_id, metadata=metadata, now=self._clock()
        )

    def add_imported(
        self,
        store: str,
        sessions: Iterable[ImportedSession],
        *,
        on_session: Callable[[ImportedSession, int], None] | None = None,
    ) -> ImportReport:
        """Store imported sessions, each whole or not at all; what is stored already is not stored again.

        Args:
            store: id or full name of the session store; created when it does not exist.
            sessions: from an importer.
            on_session: called after each with the number of its new items.

        Raises:
            InvalidInputError: a session exists with another actor, or the history cannot be read any further;
                sessions before it are stored.
        """
        identifier = SESSION_STORE.parse(store)
        try:
            self._stores.get_store(identifier)
        except NotFoundError:
            self.create_store(identifier)
        actors, found = set[str](), set[str]()  # a session may come back later in a file
        items = new_items = 0
        for group in _groups(sessions):
            numbers = self._stores.add_imported(identifier, group, now=self._clock())
            for session, new in zip(group, numbers, strict=True):
                actors.add(session.actor_id)
                found.add(session.session_id)
                items, new_items = items + len(session.items), new_items + new
                if on_session:
                    on_session(session, new)
        return ImportReport(sessions=len(found), actors=len(actors), items=items, new_items=new_items)

    def get(self, store: str, session_id: str) -> Session:
        """Return a session, or raise NotFoundError."""
        return self._stores.get_session(SESSION_STORE.parse(store), session_id)

    def items(self, store: str, session_id: str) -> Iterator[Item]:
        """Yield the items of a session in order."""
        identifier = SESSION_STORE.parse(store)
        return pages(lambda page: self._stores.list_items(identifier, session_id, page))

    def delete(self, store: str, session_id: str) -> None:
        """Delete a session with its items."""
        self._stores.delete_session(SESSION_STORE.parse(store), session_id)

    def list(self, store: str, *, actor_id: str | None = None) -> Iterator[Session]:
        """Yield the sessions of a store, the last active first."""
        identifier = SESSION_STORE.parse(store)
        return pages(lambda page: self._stores.list_sessions(identifier, page, actor_id=actor_id))


def _groups(sessions: Iterable[ImportedSession]) -> Iterator[list[ImportedSession]]:
    """Yield sessions in groups of which each is one transaction, those before an error too."""
    group: list[ImportedSession] = []
    items = 0
    try:
        for session in sessions:
            group.append(session)
            items += len(session.items)
            if len(group) >= GROUP_SESSIONS or items >= GROUP_ITEMS:
                yield group
                group, items = [], 0
    except InvalidInputError:
        if group:
            yield group
        raise
    if group:
        yield group


def pages(fetch: Callable[[Page], tuple[Sequence[T], str | None]]) -> Iterator[T]:
    """Yield all things of a paged list."""
    token: str | None = None
    while True:
        found, token = fetch(Page(size=100, token=token))
        yield from found
        if token is None:
            return
