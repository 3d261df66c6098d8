"""Ports of the stores. Callers are `service` (people) and `runner` (runs); implementations are SQL, all calls synchronous.

Every method is one short transaction. Text is cleaned (`text.clean_text`) and identifiers are checked on the way in.
All raise StoreUnavailableError when the database is away, locked for too long, or full.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from memory_pipelines.records import (
    ActorResult,
    ActorState,
    Batch,
    Change,
    Entry,
    Fact,
    FactState,
    ImportedSession,
    Item,
    Json,
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
    SessionNews,
    SessionStore,
    StageUsage,
    Tombstone,
    Window,
)


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

    def add_imported(self, store: str, session: ImportedSession, *, now: datetime) -> int:
        """Append what of an imported session is not stored yet; return how many items were new.

        The stored items and the imported ones are compared in order by content hash and time, so that importing twice
        adds nothing and importing a longer history adds its tail.
        """
        ...

    def get_session(self, store: str, session_id: str) -> Session: ...
    def list_sessions(
        self, store: str, page: Page, *, actor_id: str | None = None
    ) -> tuple[list[Session], str | None]: ...
    def list_items(self, store: str, session_id: str, page: Page) -> tuple[list[Item], str | None]: ...
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

    def summary(self, pipeline: str, number: int) -> RunSummary: ...
    def results(self, pipeline: str, number: int) -> list[ActorResult]: ...
    def pending(self, pipeline: str) -> list[Pending]: ...
    def seen_orchestrator(self, now: datetime | None = None) -> datetime | None:
        """Record (with `now`) or return when an orchestrator last looked for work."""
        ...


class Progress(Protocol):
    """What a run reads and commits, one piece of work a transaction. Only `runner` and the orchestration call it."""

    # Batches and claims

    def cut(self, run: Run, *, now: datetime) -> list[Batch]:
        """Cut the run's actors into batches, most pending tokens first, once: asked again it returns the same.

        Actors are those of the run, else all pending ones. An actor with more tokens than an average batch is alone.
        """
        ...

    def add_batch(self, run: Run, actors: Sequence[str], *, now: datetime) -> Batch:
        """Add a batch to a run that people started (kind `person`), its actors becoming results of the run."""
        ...

    def batch(self, pipeline: str, run: int, number: int) -> Batch: ...
    def claim(self, batch: Batch, *, holder: str, now: datetime, lease_seconds: float) -> dict[str, str]:
        """Claim the batch's actors for a Dagster run; return those that a living other holder has, with that holder."""
        ...

    def beat(self, holder: str, *, now: datetime, lease_seconds: float) -> bool:
        """Renew the lease; False when the run was asked to cancel."""
        ...

    def release(self, holder: str) -> None: ...
    def lease_of(self, holder: str) -> datetime | None:
        """Return until when a holder's lease runs, None when it holds nothing."""
        ...

    # One actor

    def begin(self, pipeline: Pipeline, run: int, actor_id: str, *, now: datetime) -> ActorResult:
        """Start or go on with an actor: pins the target positions the first time, returns its progress."""
        ...

    def news(self, pipeline: Pipeline, actor_id: str, targets: Mapping[str, int]) -> list[SessionNews]:
        """Return what is unread up to the targets, sessions by the time of their first unread item."""
        ...

    def entries(self, pipeline: Pipeline, actor_id: str) -> list[Entry]:
        """Return the actor's entries that are not bound to a session, by path."""
        ...

    def ties(self, pipeline: Pipeline, actor_id: str) -> dict[str, list[tuple[str, str]]]:
        """Return entry id to (line, fact id) of the actor's tied lines."""
        ...

    def tied_facts(self, pipeline: Pipeline, actor_id: str) -> dict[str, Fact]:
        """Return the facts that lines of the actor's entries rest on, by id, whichever pipeline made them."""
        ...

    def tombstones(self, pipeline: Pipeline, actor_id: str) -> list[Tombstone]:
        """Return what was removed by hand: facts from these spans are not distilled again."""
        ...

    def discard(self, pipeline: Pipeline, actor_id: str, *, basis: str) -> int:
        """Discard facts not yet merged that rest on another basis, and take the `distilled` marks back to the
        checkpoints of the sessions concerned; return how many were discarded."""
        ...

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
        ...

    def fail_window(
        self, pipeline: Pipeline, run: int, actor_id: str, window: Window, *, error: str, now: datetime
    ) -> int:
        """Note that a window failed; return in how many runs it did."""
        ...

    def set_aside(self, pipeline: Pipeline, actor_id: str, window: Window, *, now: datetime) -> None:
        """Move the `distilled` marks past a window that failed too often; it stays visible until retried or skipped."""
        ...

    def unmerged(self, pipeline: Pipeline, actor_id: str) -> list[Fact]:
        """Return the facts of this pipeline in state `new`, by the time they were said."""
        ...

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
        every session that has no `new` facts left; all or nothing. ConflictError when an entry changed meanwhile."""
        ...

    def commit_maintain(
        self, pipeline: Pipeline, run: int, actor_id: str, changes: Sequence[Change], *, now: datetime
    ) -> None:
        """Apply changes as `commit_merge` does; ties of lines that moved to another entry move with them."""
        ...

    def stage_done(self, pipeline: Pipeline, run: int, actor_id: str, stages: int) -> None: ...
    def end_actor(
        self,
        pipeline: Pipeline,
        run: int,
        actor_id: str,
        *,
        state: ActorState,
        error: str | None = None,
        error_status: str | None = None,
        retryable: bool = False,
        now: datetime,
    ) -> None:
        """Close an actor's result. Success clears its pending row while the version is still the one seen at begin;
        failure keeps it, counts it, and sets `retry_at` for sensor-started runs."""
        ...

    # The journal of calls: what was paid for is not paid again after a crash

    def recall(self, pipeline: Pipeline, actor_id: str, key: str) -> Json | None: ...
    def record_call(
        self,
        pipeline: Pipeline,
        run: int,
        actor_id: str,
        *,
        stage: str,
        key: str,
        response: Json,
        usage: StageUsage,
        now: datetime,
    ) -> None:
        """Keep a finished call and add its usage to the actor's, in one transaction."""
        ...

    def forget_calls(self, pipeline: Pipeline, actor_id: str, stage: str) -> None:
        """Drop the journal of a stage's piece of work, after its commit or its final failure."""
        ...

    def spent(self, pipeline: str, run: int) -> StageUsage:
        """Return what the run has cost so far."""
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
