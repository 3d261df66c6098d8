"""The stage distill of one actor: piece by piece, each with its facts in one transaction.

A piece is one window for a small model, and several in a row for a strong one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory_pipelines.errors import ContextTooLongError, SetAsideError, StageError
from memory_pipelines.guards.grounding import ground
from memory_pipelines.records import Entry, Fact, Window
from memory_pipelines.runner.pieces import (
    Known,
    basis_of,
    facts_of,
    hash_items,
    redact_entries,
    redact_news,
    redact_window,
)
from memory_pipelines.runner.work import ActorWork, beside
from memory_pipelines.stages import distill, windows
from memory_pipelines.stages.effort import STRETCH
from memory_pipelines.stages.scope import spans

FAILED_RUNS = 3
"""After failing in so many runs a window is set aside, so that later conversation goes on."""


async def distill_actor(work: ActorWork) -> SetAsideError | None:
    """Read what is new of an actor's conversations, up to the run's targets.

    Args:
        work: whose, and with what.

    Returns:
        The error of the last window that was set aside, None when there was none.

    Raises:
        StageError: a window failed; those before it are committed.
    """
    progress, pipeline, actor_id = work.progress, work.pipeline, work.actor_id
    basis = basis_of(work.model, pipeline.policy.instructions, distill.PROMPT_VERSION)
    await beside(progress.discard, pipeline, actor_id, basis=basis)
    news = await beside(progress.news, pipeline, actor_id, work.targets)
    settings = work.settings()
    plan = windows.plan(
        redact_news(news),
        pipeline_id=pipeline.id,
        actor_id=actor_id,
        budget_tokens=min(work.options.window_tokens, settings.context_tokens // 3),
        profile=settings.profile,
    )
    if not plan:
        return None
    known = Known(
        basis=basis,
        hashes=hash_items(news),
        buried=await beside(progress.tombstones, pipeline, actor_id),
        outdated=await beside(progress.outdated, pipeline, actor_id),
    )
    reading = _Reading(work, known, redact_entries(await beside(progress.entries, pipeline, actor_id)))
    most = STRETCH if settings.profile == "strong" else 1
    aside: SetAsideError | None = None
    for stretch in windows.stretches(plan, most=most):
        aside = await reading.read_all(stretch) or aside
    return aside


@dataclass(frozen=True)
class _Reading:
    work: ActorWork
    known: Known
    entries: Sequence[Entry]

    async def read_all(self, stretch: Sequence[Window]) -> SetAsideError | None:
        """Read windows in one go; where that fails, one by one, so that what is bad in one is not held against all."""
        if len(stretch) > 1:
            try:
                await self.read(stretch)
            except (StageError, ContextTooLongError):
                await self.work.forget("distill")
            else:
                return None
        aside: SetAsideError | None = None
        for window in stretch:
            try:
                await self.read([window])
            except (StageError, ContextTooLongError) as error:
                aside = await self.failed(window, error)
        return aside

    async def read(self, stretch: Sequence[Window]) -> None:
        """Read windows as one piece of work, and commit it."""
        work, window = self.work, redact_window(windows.join(stretch))
        facts: list[Fact] = []
        dropped: Mapping[str, int] = {}
        if distill.needs_model(window):
            found = await distill.distill(
                window,
                entries=self.entries,
                desk=work.desk("distill"),
                settings=work.settings(),
                parts=spans(stretch),
            )
            grounded = ground(found.candidates, window)
            facts, gone = facts_of(grounded.facts, window, work=work, known=self.known)
            dropped = Counter(grounded.dropped) + Counter(gone)
        await beside(
            work.progress.commit_window,
            work.pipeline,
            work.run.number,
            work.actor_id,
            window,
            facts,
            dropped=dict(dropped),
            now=work.clock(),
        )
        await work.forget("distill")

    async def failed(self, window: Window, error: StageError | ContextTooLongError) -> SetAsideError:
        """Raise the error again, unless the window has failed so often that later conversation must not wait for it."""
        work, now = self.work, self.work.clock()
        times = await beside(
            work.progress.fail_window,
            work.pipeline,
            work.run.number,
            work.actor_id,
            window,
            error=error.message,
            now=now,
        )
        await work.forget("distill")
        if times < FAILED_RUNS:
            raise error
        await beside(work.progress.set_aside, work.pipeline, work.actor_id, window, now=now)
        return SetAsideError(
            f"a window failed in {times} runs and is set aside, because: {error.message}; later conversation goes on."
            " Use `pipeline retry` or `pipeline skip`",
            window=window.id,
        )
