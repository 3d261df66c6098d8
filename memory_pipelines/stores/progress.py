"""The port of what a run reads and commits. `base` gives it out with the other ports."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from memory_pipelines.records import (
    ActorResult,
    ActorState,
    Batch,
    Change,
    Entry,
    Fact,
    FactState,
    Json,
    Pipeline,
    Run,
    SessionNews,
    Span,
    StageUsage,
    Tombstone,
    Window,
)


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

    def outdated(self, pipeline: Pipeline, actor_id: str) -> list[Span]:
        """Return where facts were said that are superseded, and nothing that is current."""
        ...

    def discard(self, pipeline: Pipeline, actor_id: str, *, basis: str) -> int:
        """Discard facts not yet merged that rest on another basis, and take the `distilled` marks back to the
        checkpoints of the sessions concerned; return how many were discarded.
        """
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
        every session that has no `new` facts left; all or nothing. ConflictError when an entry changed meanwhile.
        """
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
        failure keeps it, counts it, and sets `retry_at` for sensor-started runs.
        """
        ...

    def end_open(
        self,
        pipeline: Pipeline,
        run: int,
        *,
        batch: int | None = None,
        state: ActorState,
        error: str,
        error_status: str,
        now: datetime,
    ) -> list[str]:
        """Fail or cancel, as retryable, all actors of a run or of one of its batches that have not ended, in one
        transaction; return them by place in their batches.
        """
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
