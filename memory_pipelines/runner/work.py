"""One actor's work in a run: who, with what model, kernel and budget, and where it is committed."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from memory_pipelines.errors import ConflictError, StageError
from memory_pipelines.gateway.base import Gateway
from memory_pipelines.memex import Budget, Limits
from memory_pipelines.records import Pipeline, Run, Stage
from memory_pipelines.runner.desk import RolloutDesk
from memory_pipelines.runner.journal import JournalGateway, trajectory_path
from memory_pipelines.stages.base import StageSettings
from memory_pipelines.stores.base import Progress

P = ParamSpec("P")
T = TypeVar("T")

ATTEMPTS = 4
"""How often a piece is made anew when somebody else wrote to the entries meanwhile."""


@dataclass(frozen=True, kw_only=True)
class RunnerOptions:
    """What the runner takes from the settings."""

    home: Path  # trajectories go below it
    default_model: str
    kernel: str
    isolation: str | None = None  # None: what the kernel has
    window_tokens: int
    context_tokens: int | None = None  # None: as the gateway knows the model
    profile: str | None = None  # None: as the gateway knows the model
    trajectories: bool = True
    limits: Limits = field(default_factory=Limits)
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, kw_only=True)
class ActorWork:
    """What the stages of one actor in one run share."""

    pipeline: Pipeline
    run: Run
    actor_id: str
    model: str
    targets: Mapping[str, int]  # session to the last position of this run
    progress: Progress
    gateway: Gateway
    options: RunnerOptions
    clock: Callable[[], datetime]

    def settings(self) -> StageSettings:
        """Return what a stage needs to know of the pipeline and the model."""
        info = self.gateway.describe(self.model)
        return StageSettings.model_validate(
            {
                "profile": self.options.profile or info.profile,
                "context_tokens": self.options.context_tokens or info.context_tokens,
                "instructions": self.pipeline.policy.instructions,
                "max_entry_chars": self.pipeline.policy.max_entry_chars,
                "now": self.clock(),
            }
        )

    def desk(self, stage: Stage) -> RolloutDesk:
        """Return where a stage of this actor has its rollouts done."""
        gateway = JournalGateway(
            self.gateway,
            self.progress,
            pipeline=self.pipeline,
            run=self.run,
            actor_id=self.actor_id,
            stage=stage,
            clock=self.clock,
        )
        options, names = self.options, (self.pipeline.id, self.run.number, self.actor_id, stage)
        return RolloutDesk(
            gateway=gateway,
            model=self.model,
            kernel=options.kernel,
            isolation=options.isolation,
            limits=options.limits,
            budget=options.budget,
            trajectory=(lambda: trajectory_path(options.home, *names)) if options.trajectories else None,
        )

    async def forget(self, stage: Stage) -> None:
        """Drop the journal of a stage's piece of work, after its commit or its final failure."""
        await beside(self.progress.forget_calls, self.pipeline, self.actor_id, stage)


async def beside(function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Run a synchronous store method beside the event loop, so that no model call waits for the database."""
    return await asyncio.to_thread(function, *args, **named)


async def again_on_conflict(piece: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Make a piece of work anew while somebody else writes in between, a few times."""
    for _ in range(ATTEMPTS - 1):
        try:
            return await piece()
        except ConflictError:
            continue
    return await piece()


def refuse_mass_change(reason: str | None) -> None:
    """Fail the piece of work when the guards hold its changes for a person's decision."""
    if reason is not None:
        raise StageError(f"refused before anything was written: {reason}")
