"""Memory stores and entries: list, get, search, render, and what people write themselves."""

from collections.abc import Callable, Iterator
from datetime import datetime

from memory_pipelines.errors import InvalidInputError, NotFoundError
from memory_pipelines.names import MEMORY_STORE, check_identifier, check_path
from memory_pipelines.records import Entry, Fact, MemoryStore, Revision, SearchHit
from memory_pipelines.service.sessions import pages
from memory_pipelines.stores.base import MemoryStores, Page

MAX_CONTENT = 100_000
"""Characters of an entry that a person or agent writes."""


class MemoryService:
    """What people may ask of memory."""

    def __init__(self, stores: MemoryStores, *, clock: Callable[[], datetime]) -> None:
        """Keep the stores and the clock."""
        self._stores = stores
        self._clock = clock

    def create_store(self, store: str, *, description: str = "", creator: str = "local") -> MemoryStore:
        """Create a memory store.

        Args:
            store: its id or full name.
            description: for people.
            creator: principal who owns it.

        Raises:
            AlreadyExistsError: there is one of this id.
            InvalidInputError: the id has not the required form.
        """
        return self._stores.create_store(
            MEMORY_STORE.parse(store), description=description, creator=creator, now=self._clock()
        )

    def get_store(self, store: str) -> MemoryStore:
        """Return a memory store, or raise NotFoundError."""
        return self._stores.get_store(MEMORY_STORE.parse(store))

    def list_stores(self) -> Iterator[MemoryStore]:
        """Yield all memory stores by id."""
        return pages(self._stores.list_stores)

    def delete_store(self, store: str) -> None:
        """Delete a memory store with all entries; AbortedError while a pipeline writes to it."""
        self._stores.delete_store(MEMORY_STORE.parse(store))

    def actors(self, store: str) -> list[str]:
        """Return the actors that have entries."""
        return self._stores.actors(MEMORY_STORE.parse(store))

    def get(self, store: str, *, actor_id: str, path: str) -> Entry:
        """Return the actor's entry at a path, or raise NotFoundError."""
        identifier, path = MEMORY_STORE.parse(store), check_path(path)
        found, _ = self._stores.list_entries(identifier, Page(size=2), actor_id=actor_id, path=path)
        if not found:
            known = ", ".join(entry.path for entry in self.list(store, actor_id=actor_id)) or "none"
            raise NotFoundError(
                f"{store} holds no {path} of actor {actor_id!r}; its entries: {known}", path=path, actor_id=actor_id
            )
        return found[0]

    def search(
        self, store: str, *, actor_id: str, query: str, limit: int = 10, path_prefix: str | None = None
    ) -> list[SearchHit]:
        """Rank the actor's entries by the words of a query.

        Args:
            store: id or full name.
            actor_id: whose entries.
            query: words in any script.
            limit: 1 to 100 entries.
            path_prefix: only entries below it.

        Returns:
            Entries that share a word with the query, best first.
        """
        if not query.strip():
            raise InvalidInputError("the query is empty; give at least one word")
        if not 1 <= limit <= 100:
            raise InvalidInputError(f"limit is {limit}; allowed are 1 to 100", limit=limit)
        identifier = MEMORY_STORE.parse(store)
        self._stores.get_store(identifier)
        return self._stores.search(identifier, actor_id=actor_id, query=query, limit=limit, path_prefix=path_prefix)

    def render(self, store: str, *, actor_id: str, budget_tokens: int = 800, query: str | None = None) -> str:
        """Render what is known of an actor as one block for a prompt.

        Args:
            store: id or full name.
            actor_id: whose memory.
            budget_tokens: upper bound of the block, at about four characters a token.
            query: put entries that match these words first; all others follow by path.

        Returns:
            Markdown: a heading per entry and its lines, whole lines only; what did not fit is counted at the end.
            Empty when nothing is known.
        """
        if budget_tokens < 50:
            raise InvalidInputError(f"budget_tokens is {budget_tokens}; give at least 50", budget_tokens=budget_tokens)
        entries = [entry for entry in self.list(store, actor_id=actor_id) if entry.session_id is None]
        if query:
            rank = {hit.entry.id: -hit.score for hit in self.search(store, actor_id=actor_id, query=query, limit=100)}
            entries.sort(key=lambda entry: (rank.get(entry.id, 0.0), entry.path))
        if not entries:
            return ""
        return _fit(entries, budget_tokens)

    def history(self, store: str, *, actor_id: str, path: str) -> list[Revision]:
        """Return every state of an entry, oldest first."""
        entry = self.get(store, actor_id=actor_id, path=path)
        return self._stores.history(MEMORY_STORE.parse(store), entry.id)

    def sources(self, store: str, *, actor_id: str, path: str | None = None) -> list[tuple[str, Fact]]:
        """Return (line, fact) for the lines of one entry, or of all of an actor's: where each was said."""
        entry_id = self.get(store, actor_id=actor_id, path=path).id if path else None
        return self._stores.facts_of(MEMORY_STORE.parse(store), actor_id=actor_id, entry_id=entry_id)

    def write(
        self, store: str, *, actor_id: str, path: str, content: str, description: str = "", author: str = "local"
    ) -> Entry:
        """Create an entry as a person or agent, or give the one at this path new content.

        Lines that go are remembered as removed: they are not distilled again.
        """
        check_identifier(actor_id, "an actor")
        if len(content) > MAX_CONTENT:
            raise InvalidInputError(
                f"the content has {len(content)} characters; allowed are {MAX_CONTENT}", characters=len(content)
            )
        identifier, path, now = MEMORY_STORE.parse(store), check_path(path), self._clock()
        found, _ = self._stores.list_entries(identifier, Page(size=1), actor_id=actor_id, path=path)
        if found:
            return self._stores.update_entry(
                identifier, found[0].id, content=content, description=description or None, author=author, now=now
            )
        return self._stores.create_entry(
            identifier,
            actor_id=actor_id,
            path=path,
            content=content,
            description=description,
            author=author,
            now=now,
        )

    def delete(self, store: str, *, actor_id: str, path: str, author: str = "local") -> None:
        """Delete an entry; what it said is remembered as removed."""
        entry = self.get(store, actor_id=actor_id, path=path)
        self._stores.delete_entry(MEMORY_STORE.parse(store), entry.id, author=author, now=self._clock())

    def list(
        self, store: str, *, actor_id: str | None = None, path_prefix: str | None = None, path: str | None = None
    ) -> Iterator[Entry]:
        """Yield entries by actor and path."""
        identifier = MEMORY_STORE.parse(store)
        self._stores.get_store(identifier)
        return pages(
            lambda page: self._stores.list_entries(
                identifier, page, actor_id=actor_id, path_prefix=path_prefix, path=path
            )
        )


def _fit(entries: list[Entry], budget_tokens: int) -> str:
    room = budget_tokens * 4 - len("(000 more lines)\n")
    lines: list[str] = []
    left = 0
    for entry in entries:
        heading = f"## {entry.path.removeprefix('/').removesuffix('.md')}"
        body = [line for line in entry.content.splitlines() if line.strip()]
        if left or len(heading) + len(body[0] if body else "") + 2 > room:
            left += len(body)
            continue
        lines.append(heading)
        room -= len(heading) + 1
        for line in body:
            if left or len(line) + 1 > room:
                left += 1
                continue
            lines.append(line)
            room -= len(line) + 1
    if left:
        lines.append(f"({left} more lines)")
    return "\n".join(lines) + "\n"
