"""Subagents: parts of a work that run beside it, in the same kernel, on the same objects."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from memory_pipelines.errors import CancelledRunError, MemoryPipelinesError, ToolError
from memory_pipelines.memex.budget import Meter
from memory_pipelines.memex.checking import by_schema
from memory_pipelines.memex.code_space import CodeRollout
from memory_pipelines.memex.events import Header, Spawned
from memory_pipelines.memex.kernels.base import Kernel, Spawn, Subagent
from memory_pipelines.memex.recorder import Recorder, closing
from memory_pipelines.memex.rollout import Plan
from memory_pipelines.text import clean_text


class Subagents(BaseModel):
    """Bounds of the subagents of one rollout. Their calls, tokens and cost count in the rollout's own budget too."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    depth: int = Field(default=1, gt=0)  # 1: those of the agent itself may have none of their own
    live: int = Field(default=8, gt=0)  # at work at once, at each depth; others wait for their turn
    total: int = Field(default=64, gt=0)  # in the whole rollout
    turns: int = Field(default=15, gt=0)  # answers of the model for each


class Spawner:
    """Starts the subagents of one rollout and counts them."""

    def __init__(
        self, bounds: Subagents, plan: Plan, *, kernel: Kernel, header: Callable[[str, tuple[str, ...]], Header]
    ) -> None:
        """Begin without subagents.

        Args:
            bounds: what the model may have of them.
            plan: of the agent; subagents have its tools and its system prompt, byte for byte.
            kernel: all of them run in it.
            header: makes the first event of a trajectory, of a task and the names in its scope.
        """
        self._bounds = bounds
        self._plan = plan
        self._kernel = kernel
        self._header = header
        self._started = 0
        self._turns = [asyncio.Semaphore(bounds.live) for _ in range(bounds.depth)]  # by depth: none waits for its own

    def of(self, parent: str, *, meter: Meter, recorder: Recorder) -> Spawn:
        """What starts the subagents of one agent.

        Args:
            parent: its id, empty for the agent of the rollout.
            meter: of its budget.
            recorder: of its trajectory.
        """

        async def spawn(asked: Subagent) -> Any:
            depth = parent.count(".") + 1 if parent else 0
            if depth >= self._bounds.depth:
                raise ToolError("subagents may start none of their own here: do this part of the work yourself")
            if self._started >= self._bounds.total:
                raise ToolError(
                    f"{self._started} subagents were started, as many as may be: do the rest of the work yourself"
                )
            self._started += 1
            child = f"{parent}.{self._started}" if parent else str(self._started)
            try:
                async with self._turns[depth]:
                    return await self._run(child, asked, meter=meter, recorder=recorder)
            except CancelledRunError:
                raise
            except MemoryPipelinesError as error:
                raise ToolError(f"subagent {child} gave no result: {error.message}", subagent=child) from error
            finally:
                await self._kernel.forget(asked.namespace)

        return spawn

    async def _run(self, child: str, asked: Subagent, *, meter: Meter, recorder: Recorder) -> Any:
        task, names = clean_text(asked.task), tuple(asked.scope)
        recorder.add(Spawned(turn=meter.turns, child=child, task=task, scope=names))
        plan = replace(
            self._plan,
            check=by_schema(asked.result),
            result_schema=asked.result,
            text_result=asked.result == {"type": "string"},
        )
        own = meter.child(turns=self._bounds.turns)
        with recorder.child(child) as record, closing(record, own):
            record.add(self._header(task, names))
            rollout = CodeRollout(
                plan,
                kernel=self._kernel,
                meter=own,
                record=record.add,
                namespace=asked.namespace,
                spawn=self.of(child, meter=own, recorder=record),
            )
            await rollout.run_spawned(asked)
            return rollout.submitted
