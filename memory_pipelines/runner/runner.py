"""Brings one actor of a run through the stages, committing piece by piece."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from memory_pipelines.errors import (
    CancelledRunError,
    ConflictError,
    ContextTooLongError,
    GatewayError,
    GatewayFinalError,
    MemoryPipelinesError,
    SetAsideError,
    StageError,
)
from memory_pipelines.gateway.base import Gateway, Message, Request
from memory_pipelines.guards.changes import check
from memory_pipelines.guards.grounding import ground
from memory_pipelines.memex import Budget, Limits
from memory_pipelines.records import (
    STAGES,
    ActorResult,
    Change,
    Entry,
    Fact,
    FactState,
    Pipeline,
    Run,
    Span,
    Stage,
    Tombstone,
    Window,
)
from memory_pipelines.runner.desk import RolloutDesk
from memory_pipelines.runner.journal import JournalGateway, trajectory_path
from memory_pipelines.runner.pieces import (
    basis_of,
    facts_of,
    hash_items,
    redact_entries,
    redact_news,
    redact_window,
    restore_lines,
)
from memory_pipelines.stages import distill, maintain, merge, windows
from memory_pipelines.stages.base import StageSettings
from memory_pipelines.stores.base import Stores

P = ParamSpec("P")
T = TypeVar("T")

MERGE_FACTS = 24
"""Facts in one merge: bounded, so that a prompt does not grow with the history."""

MERGE_ATTEMPTS = 4
"""How often a piece is made anew when somebody else wrote to the entries meanwhile."""

FAILED_RUNS = 3
"""After failing in so many runs a window is set aside, so that later conversation goes on."""

SAME_ERRORS = 5
"""After so many identical final errors of the provider a run stops: the next 100,000 actors would fail alike."""


@dataclass(frozen=True, kw_only=True)
class RunnerOptions:
    """What the runner takes from the settings."""

    home: Path  # trajectories go below it
    default_model: str
    kernel: str
    window_tokens: int
    context_tokens: int | None = None  # None: as the gateway knows the model
    profile: str | None = None  # None: as the gateway knows the model
    trajectories: bool = True
    limits: Limits = field(default_factory=Limits)
    budget: Budget = field(default_factory=Budget)


async def beside(function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Run a synchronous store method beside the event loop, so that no model call waits for the database."""
    return await asyncio.to_thread(function, *args, **named)


class Runner:
    """Does the work of runs. One per process; safe for many actors at once in one event loop."""

    def __init__(
        self, stores: Stores, gateway: Gateway, *, options: RunnerOptions, clock: Callable[[], datetime]
    ) -> None:
        """Plug the runner together; nothing is started.

        Args:
            stores: where everything is read and committed.
            gateway: shared by all actors.
            options: from the settings.
            clock: the time now, aware.
        """
        self._progress = stores.progress
        self._gateway = gateway
        self._options = options
        self._clock = clock
        self._final_errors: Counter[tuple[str, int, str]] = Counter()
        self._aside: dict[tuple[str, int, str], SetAsideError] = {}

    def model_of(self, pipeline: Pipeline) -> str:
        """Return the model a run of this pipeline uses."""
        return pipeline.policy.model or self._options.default_model

    async def preflight(self, pipeline: Pipeline, run: Run) -> None:
        """Ask the model once before any actor, so that a revoked key fails a run in one call.

        Raises:
            GatewayError: as the provider answered.
        """
        model = self.model_of(pipeline)
        words = (Message(role="user", content="Answer with the word ok."),)
        await self._gateway.complete(Request(purpose="preflight", model=model, messages=words, max_tokens=16))
        self._final_errors = Counter({key: n for key, n in self._final_errors.items() if key[1] != run.number})

    async def advance(self, pipeline: Pipeline, run: Run, actor_id: str, through: Stage) -> ActorResult:
        """Bring an actor up to and including a stage; stages it has done in this run are skipped.

        Every piece of work is one transaction: whatever ends this early leaves the finished pieces.

        Args:
            pipeline: as it is now.
            run: the run that pays.
            actor_id: whose memory.
            through: the last stage to do.

        Raises:
            MemoryPipelinesError: the actor's piece of work failed; `retryable` says whether trying again may help.
        """
        begun = await beside(self._progress.begin, pipeline, run.number, actor_id, now=self._clock())
        self._stop_when_hopeless(pipeline, run)
        work: dict[str, Callable[[Pipeline, Run, str, ActorResult], Coroutine[Any, Any, None]]] = {
            "distill": self._distill,
            "merge": self._merge,
            "maintain": self._maintain,
        }
        for number, stage in enumerate(STAGES[: STAGES.index(through) + 1], start=1):
            if begun.stages >= number:
                continue
            try:
                await work[stage](pipeline, run, actor_id, begun)
            except GatewayFinalError as error:
                if isinstance(error, ContextTooLongError):
                    raise  # says something of this actor's conversation, nothing of the provider
                self._final_errors[pipeline.id, run.number, error.message] += 1
                raise
            await beside(self._progress.stage_done, pipeline, run.number, actor_id, number)
        aside = self._aside.pop((pipeline.id, run.number, actor_id), None) if through == STAGES[-1] else None
        if aside is not None:
            raise aside
        return await beside(self._progress.begin, pipeline, run.number, actor_id, now=self._clock())

    def end(self, pipeline: Pipeline, run: Run, actor_id: str, error: MemoryPipelinesError | None) -> None:
        """Close an actor's result in a run: succeeded without an error, else failed or cancelled."""
        if error is None:
            self._progress.end_actor(pipeline, run.number, actor_id, state="succeeded", now=self._clock())
            return
        self._progress.end_actor(
            pipeline,
            run.number,
            actor_id,
            state="cancelled" if isinstance(error, CancelledRunError) else "failed",
            error=error.message,
            error_status=error.status,
            retryable=error.retryable,
            now=self._clock(),
        )

    # Distill

    async def _distill(self, pipeline: Pipeline, run: Run, actor_id: str, begun: ActorResult) -> None:
        basis = basis_of(self.model_of(pipeline), pipeline.policy.instructions, distill.PROMPT_VERSION)
        await beside(self._progress.discard, pipeline, actor_id, basis=basis)
        news = await beside(self._progress.news, pipeline, actor_id, begun.targets)
        budget = min(self._options.window_tokens, self._settings(pipeline).context_tokens // 3)
        plan = windows.plan(
            redact_news(news),
            pipeline_id=pipeline.id,
            actor_id=actor_id,
            budget_tokens=budget,
            profile=self._settings(pipeline).profile,
        )
        if not plan:
            return
        buried = await beside(self._progress.tombstones, pipeline, actor_id)
        outdated = await beside(self._progress.outdated, pipeline, actor_id)
        entries = redact_entries(await beside(self._progress.entries, pipeline, actor_id))
        hashes = hash_items(news)
        for window in map(redact_window, plan):
            try:
                await self._distill_window(pipeline, run, actor_id, window, entries, basis, hashes, buried, outdated)
            except (StageError, ContextTooLongError) as error:
                await self._window_failed(pipeline, run, actor_id, window, error)

    async def _window_failed(
        self, pipeline: Pipeline, run: Run, actor_id: str, window: Window, error: MemoryPipelinesError
    ) -> None:
        """Raise the error again, unless the window has failed so often that later conversation must not wait for it."""
        number, now = run.number, self._clock()
        times = await beside(
            self._progress.fail_window, pipeline, number, actor_id, window, error=error.message, now=now
        )
        await beside(self._progress.forget_calls, pipeline, actor_id, "distill")
        if times < FAILED_RUNS:
            raise error
        await beside(self._progress.set_aside, pipeline, actor_id, window, now=now)
        self._aside[pipeline.id, number, actor_id] = SetAsideError(
            f"a window failed in {times} runs and is set aside, because: {error.message}; later conversation goes on."
            " Use `pipeline retry` or `pipeline skip`",
            window=window.id,
        )

    async def _distill_window(
        self,
        pipeline: Pipeline,
        run: Run,
        actor_id: str,
        window: Window,
        entries: Sequence[Entry],
        basis: str,
        hashes: Mapping[str, str],
        buried: Sequence[Tombstone],
        outdated: Sequence[Span],
    ) -> None:
        facts: list[Fact] = []
        dropped: Mapping[str, int] = {}
        if distill.needs_model(window):
            found = await distill.distill(
                window,
                entries=entries,
                desk=self._desk(pipeline, run, actor_id, "distill"),
                settings=self._settings(pipeline),
            )
            grounded = ground(found.candidates, window)
            facts, gone = facts_of(
                grounded.facts,
                window,
                pipeline=pipeline,
                run=run.number,
                actor_id=actor_id,
                model=self.model_of(pipeline),
                basis=basis,
                hashes=hashes,
                buried=buried,
                outdated=outdated,
            )
            dropped = Counter(grounded.dropped) + Counter(gone)
        await beside(
            self._progress.commit_window,
            pipeline,
            run.number,
            actor_id,
            window,
            facts,
            dropped=dict(dropped),
            now=self._clock(),
        )
        await beside(self._progress.forget_calls, pipeline, actor_id, "distill")

    # Merge

    async def _merge(self, pipeline: Pipeline, run: Run, actor_id: str, begun: ActorResult) -> None:
        del begun
        while True:
            facts = (await beside(self._progress.unmerged, pipeline, actor_id))[:MERGE_FACTS]
            await self._again_on_conflict(lambda: self._merge_facts(pipeline, run, actor_id, facts))  # noqa: B023
            if not facts:
                return

    async def _merge_facts(self, pipeline: Pipeline, run: Run, actor_id: str, facts: Sequence[Fact]) -> None:
        changes: Sequence[Change] = ()
        settled: Mapping[str, FactState] = {}
        dropped: Mapping[str, int] = {}
        if facts:
            originals = await beside(self._progress.entries, pipeline, actor_id)
            entries = redact_entries(originals)
            ties = await beside(self._progress.ties, pipeline, actor_id)
            earlier = await beside(self._progress.tied_facts, pipeline, actor_id)
            merged = await merge.merge(
                facts,
                entries,
                ties=ties,
                earlier=earlier,
                desk=self._desk(pipeline, run, actor_id, "merge"),
                settings=self._settings(pipeline),
            )
            checked = check(merged.changes, entries, facts, stage="merge")
            self._refuse_mass_change(checked.proposal)
            changes = restore_lines(checked.changes, originals)
            # Every fact of the set is settled, whatever the stage forgot: else the same set would come again for ever.
            settled = {**{fact.id: "skipped" for fact in facts}, **checked.settle(merged.settled)}
            dropped = checked.dropped
        await beside(
            self._progress.commit_merge,
            pipeline,
            run.number,
            actor_id,
            changes,
            settled,
            dropped=dict(dropped),
            now=self._clock(),
        )
        await beside(self._progress.forget_calls, pipeline, actor_id, "merge")

    # Maintain

    async def _maintain(self, pipeline: Pipeline, run: Run, actor_id: str, begun: ActorResult) -> None:
        del begun
        await self._again_on_conflict(lambda: self._maintain_entries(pipeline, run, actor_id))

    async def _maintain_entries(self, pipeline: Pipeline, run: Run, actor_id: str) -> None:
        originals = await beside(self._progress.entries, pipeline, actor_id)
        entries = redact_entries(originals)
        ties = await beside(self._progress.ties, pipeline, actor_id)
        changes = await maintain.maintain(
            entries, ties=ties, desk=self._desk(pipeline, run, actor_id, "maintain"), settings=self._settings(pipeline)
        )
        if changes:
            checked = check(changes, entries, (), stage="maintain")
            self._refuse_mass_change(checked.proposal)
            await beside(
                self._progress.commit_maintain,
                pipeline,
                run.number,
                actor_id,
                restore_lines(checked.changes, originals),
                now=self._clock(),
            )
        await beside(self._progress.forget_calls, pipeline, actor_id, "maintain")

    # Shared

    async def _again_on_conflict(self, piece: Callable[[], Coroutine[Any, Any, None]]) -> None:
        for attempt in range(1, MERGE_ATTEMPTS + 1):
            try:
                return await piece()
            except ConflictError:
                if attempt == MERGE_ATTEMPTS:
                    raise
        return None

    @staticmethod
    def _refuse_mass_change(reason: str | None) -> None:
        if reason is not None:
            raise StageError(f"refused before anything was written: {reason}")

    def _stop_when_hopeless(self, pipeline: Pipeline, run: Run) -> None:
        for (pipeline_id, number, message), times in self._final_errors.items():
            if (pipeline_id, number) == (pipeline.id, run.number) and times >= SAME_ERRORS:
                raise GatewayError(f"not tried: {times} actors of this run failed alike before it: {message}")

    def _settings(self, pipeline: Pipeline) -> StageSettings:
        info = self._gateway.describe(self.model_of(pipeline))
        return StageSettings.model_validate(
            {
                "profile": self._options.profile or info.profile,
                "context_tokens": self._options.context_tokens or info.context_tokens,
                "instructions": pipeline.policy.instructions,
                "max_entry_chars": pipeline.policy.max_entry_chars,
                "now": self._clock(),
            }
        )

    def _desk(self, pipeline: Pipeline, run: Run, actor_id: str, stage: str) -> RolloutDesk:
        gateway = JournalGateway(
            self._gateway,
            self._progress,
            pipeline=pipeline,
            run=run,
            actor_id=actor_id,
            stage=stage,
            clock=self._clock,
        )
        options = self._options
        return RolloutDesk(
            gateway=gateway,
            model=self.model_of(pipeline),
            kernel=options.kernel,
            limits=options.limits,
            budget=options.budget,
            trajectory=(lambda: trajectory_path(options.home, pipeline.id, run.number, actor_id, stage))
            if options.trajectories
            else None,
        )
