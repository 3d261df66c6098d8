"""Brings one actor of a run through the stages, committing piece by piece."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime

from memory_pipelines.errors import (
    CancelledRunError,
    ContextTooLongError,
    GatewayError,
    GatewayFinalError,
    MemoryPipelinesError,
    SetAsideError,
)
from memory_pipelines.gateway.base import Gateway, Message, Request
from memory_pipelines.memex import open_kernel
from memory_pipelines.records import STAGES, ActorResult, Pipeline, Run, Stage
from memory_pipelines.runner.distilling import distill_actor
from memory_pipelines.runner.merging import maintain_actor, merge_actor
from memory_pipelines.runner.work import ActorWork, RunnerOptions, beside
from memory_pipelines.stores.base import Stores

SAME_ERRORS = 5
"""After so many identical final errors of the provider a run stops: the next 100,000 actors would fail alike."""


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
        """Start a kernel and ask the model once before any actor, so that what fails all of them fails the run at once.

        Raises:
            KernelUnavailableError: kernels cannot start here; says why.
            GatewayError: as the provider answered.
        """
        options = self._options
        async with open_kernel(options.kernel, limits=options.limits, isolation=options.isolation):
            pass
        model = run.model or self.model_of(pipeline)
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
        work = ActorWork(
            pipeline=pipeline,
            run=run,
            actor_id=actor_id,
            model=run.model or self.model_of(pipeline),  # as the run's row says, whoever asked for it
            targets=begun.targets,
            progress=self._progress,
            gateway=self._gateway,
            options=self._options,
            clock=self._clock,
        )
        for number, stage in enumerate(STAGES[: STAGES.index(through) + 1], start=1):
            if begun.stages >= number:
                continue
            try:
                await self._do(stage, work)
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

    async def _do(self, stage: Stage, work: ActorWork) -> None:
        match stage:
            case "distill":
                aside = await distill_actor(work)
                if aside is not None:
                    self._aside[work.pipeline.id, work.run.number, work.actor_id] = aside
            case "merge":
                await merge_actor(work)
            case "maintain":
                await maintain_actor(work)

    def _stop_when_hopeless(self, pipeline: Pipeline, run: Run) -> None:
        for (pipeline_id, number, message), times in self._final_errors.items():
            if (pipeline_id, number) == (pipeline.id, run.number) and times >= SAME_ERRORS:
                raise GatewayError(f"not tried: {times} actors of this run failed alike before it: {message}")
