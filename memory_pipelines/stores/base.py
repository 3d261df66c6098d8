"""Ports of the stores, all synchronous. Callers are `service` (people) and `runner` (runs); implementations are SQL.

Every method is one short transaction. Text is cleaned (`text.clean_text`) and identifiers are checked on the way in.
All raise StoreUnavailableError when the database is away, locked for too long, or full.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from memory_pipelines.records import (
    ActorResult,
    Entry,
    Fact,
    ImportedSession,
    Item,
    MemoryStore,
    NewItem,
    Pending,
    Pipeline,
    Policy,
    Revision,
    Run,
    RunKind,
    RunState,
    RunSummary,
    SearchHit,
    Session,
    SessionStore,
)
from memory_pipelines.stores.progress import Progress

__all__ = ["MemoryStores", "Page", "Pipelines", "Progress", "SessionStores", "Stores"]


class Page(BaseModel):
    """Which part of a list is wanted."""

    model_config = ConfigDict(frozen=True)

    size: int = 50
    token: str | None = None  # from the previous answer


class SessionStores(Protocol):
    """Conversations."""

    def create_store(
        self,
        store: str,
        *,
        description: str = "",
        metadata: Mapping[str, str] | None = None,
        creator: str,
        now: datetime,
    ) -> SessionStore: ...
    def get_store(self, store: str) -> SessionStore: ...
    def list_stores(self, page: Page) -> tuple[list[SessionStore], str | None]: ...
    def delete_store(self, store: str) -> None:
        """Delete a store with its sessions and items; AbortedError while a pipeline reads it. Entries stay."""
        ...

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
        """Append in order, atomically, marking the actor pending for every pipeline on the store.

        `actor_id` creates the session when it does not exist; a session of another actor is an InvalidInputError,
        an unknown session without `actor_id` a NotFoundError.
        """
        ...

    def add_imported(self, store: str, sessions: Sequence[ImportedSession], *, now: datetime) -> list[int]:
        """Append what of imported sessions is not stored yet, in one transaction; return how many items of each were
        new. When one of them cannot be stored those before it are, none after it, and the error is about it.

        The stored items and the imported ones are compared in order by content hash and time, so that importing twice
        adds nothing and importing a longer history adds its tail.
        """
        ...

    def get_session(self, store: str, session_id: str) -> Session: ...
    def list_sessions(
        self, store: str, page: Page, *, actor_id: str | None = None
    ) -> tuple[list[Session], str | None]: ...
    def list_items(self, store: str, session_id: str, page: Page) -> tuple[list[Item], str | None]: ...
    def pop_item(self, store: str, session_id: str) -> Item | None:
        """Take the last item out of a session and return it, None when there is none."""
        ...

    def clear_items(self, store: str, session_id: str) -> int:
        """Take all items out of a session; return how many. Appended again unchanged they get their places back."""
        ...

    def delete_session(self, store: str, session_id: str) -> None: ...
    def counts(self, store: str) -> dict[str, int]:
        """Return the numbers of `actors`, `sessions` and `items`."""
        ...


class MemoryStores(Protocol):
    """Entries and their past."""

    def create_store(self, store: str, *, description: str = "", creator: str, now: datetime) -> MemoryStore: ...
    def get_store(self, store: str) -> MemoryStore: ...
    def list_stores(self, page: Page) -> tuple[list[MemoryStore], str | None]: ...
    def delete_store(self, store: str) -> None: ...
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
        ...

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
        ...

    def delete_entry(self, store: str, entry_id: str, *, author: str, now: datetime) -> None: ...
    def get_entry(self, store: str, entry_id: str) -> Entry: ...
    def list_entries(
        self,
        store: str,
        page: Page,
        *,
        actor_id: str | None = None,
        path_prefix: str | None = None,
        path: str | None = None,
        session_id: str | None = None,
    ) -> tuple[list[Entry], str | None]: ...
    def search(
        self, store: str, *, actor_id: str, query: str, limit: int = 10, path_prefix: str | None = None
    ) -> list[SearchHit]:
        """Rank the actor's entries by words (BM25), in any script."""
        ...

    def actors(self, store: str) -> list[str]: ...
    def history(self, store: str, entry_id: str) -> list[Revision]: ...
    def facts_of(self, store: str, *, actor_id: str, entry_id: str | None = None) -> list[tuple[str, Fact]]:
        """Return (line, fact) for every tied line."""
        ...


class Pipelines(Protocol):
    """Pipelines and their runs, as people see them."""

    def create(
        self,
        pipeline: str,
        *,
        session_store: str,
        memory_store: str,
        display_name: str = "",
        policy: Policy,
        creator: str,
        now: datetime,
    ) -> Pipeline:
        """Create, and mark every actor of the session store pending; AlreadyExistsError for a pair that has one."""
        ...

    def get(self, pipeline: str) -> Pipeline: ...
    def list_all(self) -> list[Pipeline]:
        """Return all, by id, also deleted ones whose run is in flight (with `delete_time`)."""
        ...

    def update(
        self, pipeline: str, *, display_name: str | None = None, policy: Policy | None, now: datetime
    ) -> Pipeline: ...
    def delete(self, pipeline: str, *, now: datetime) -> None:
        """Delete with marks and pending work; entries, facts and tombstones stay; a run in flight finishes first."""
        ...

    def ask(
        self,
        pipeline: str,
        *,
        asked_by: str,
        model: str,
        kind: RunKind = "asked",
        launch: bool = True,
        actors: Sequence[str] | None = None,
        now: datetime,
    ) -> Run:
        """Insert a RUNNING run; RunInFlightError naming the run when one of kind `asked` is in flight.

        A run in flight whose every batch has an expired lease, or that ended, is closed first.
        """
        ...

    def get_run(self, pipeline: str, number: int) -> Run: ...
    def list_runs(self, pipeline: str, page: Page) -> tuple[list[Run], str | None]: ...
    def open_runs(self) -> list[Run]:
        """Return all RUNNING runs of all pipelines, oldest first."""
        ...

    def cancel(self, pipeline: str, number: int, *, now: datetime) -> Run:
        """Ask a run to stop; one that nobody has begun is CANCELLED at once."""
        ...

    def close(self, pipeline: str, number: int, *, state: RunState, error: str | None, now: datetime) -> Run:
        """End a run; ending an ended one changes nothing."""
        ...

    def close_over(self, pipeline: str | None = None, *, now: datetime) -> list[Run]:
        """Close runs in flight that nobody works on any more: leases run out, or every actor ended.

        Called by whoever looks at runs: each tick, `get` and `run`. Returns them as closed.
        """
        ...

    def summary(self, pipeline: str, number: int) -> RunSummary: ...
    def results(self, pipeline: str, number: int, *, batch: int | None = None) -> list[ActorResult]:
        """Return what a run did for each actor, or for those of one of its batches."""
        ...

    def states(self, pipeline: str, number: int) -> dict[str, int]:
        """Return how many actors of a run are in each state."""
        ...

    def pending(self, pipeline: str) -> list[Pending]: ...
    def rewind(
        self, pipeline: str, *, actors: Sequence[str] | None, made_by: str | None = None, now: datetime
    ) -> list[str]:
        """Take the marks of actors back to the beginning; returns the actors concerned.

        `actors` None: all with sessions. `made_by`: only those of whom some facts were found by this model.
        """
        ...

    def decide_windows(
        self,
        pipeline: str,
        actor_id: str,
        *,
        verdict: Literal["retry", "skip"],
        session_id: str | None = None,
        now: datetime,
    ) -> int:
        """Have an actor's windows that were set aside read again, or leave them out for good; returns how many."""
        ...

    def seen_orchestrator(self, now: datetime | None = None) -> datetime | None:
        """Record (with `now`) or return when an orchestrator last looked for work."""
        ...


class Stores(Protocol):
    """All stores of one database."""

    @property
    def sessions(self) -> SessionStores: ...
    @property
    def memories(self) -> MemoryStores: ...
    @property
    def pipelines(self) -> Pipelines: ...
    @property
    def progress(self) -> Progress: ...
    def close(self) -> None: ...
