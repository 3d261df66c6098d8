"""Where the stages' rollouts are done: model, kernel, journal, trajectory and budget of one actor and stage."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_pipelines.errors import BadOutputError, BudgetExceededError
from memory_pipelines.gateway.base import Gateway
from memory_pipelines.memex import Agent, Budget, Limits, Tool
from memory_pipelines.redaction import redact
from memory_pipelines.stages.base import Effort

_ANSWER_TOKENS = 2048  # of one answer, where the work does not say


@dataclass(frozen=True, kw_only=True)
class RolloutDesk:
    """Implements the stages' Desk over MemEx agents."""

    gateway: Gateway  # booked on one actor and stage
    model: str
    kernel: str
    isolation: str | None
    limits: Limits
    budget: Budget
    trajectory: Callable[[], Path] | None  # a fresh path for each rollout, None to keep none

    async def ask(
        self,
        *,
        purpose: str,
        task: str,
        result: Any,
        scope: Mapping[str, Any] | None = None,
        tools: Sequence[Tool] = (),
        answer_schema: Mapping[str, Any] | None = None,
        effort: Effort | None = None,
    ) -> Any:
        """Run one rollout; see stages.base.Desk."""
        agent: Agent[Any] = Agent(
            model=self.model,
            tools=tools,
            kernel=self.kernel,
            isolation=self.isolation,
            result=result,
            gateway=self.gateway,
            limits=self.limits,
            budget=self._budget_for(effort),
            max_tokens=effort.answer_tokens if effort else _ANSWER_TOKENS,
            look_tokens=effort.look_tokens if effort else 0,
            purpose=purpose,
            answer_schema=answer_schema,
            trajectory=self.trajectory() if self.trajectory else None,
            redact=redact,
        )
        try:
            outcome = await agent.run(task, scope=scope)
        except BudgetExceededError as error:
            # A rollout's own budget ran out: this piece of work failed, while the run's budget has room.
            if "budget" not in error.facts:
                raise
            raise BadOutputError(f"no usable answer: {error.message}", reason="budget", **error.facts) from error
        return outcome.value

    def _budget_for(self, effort: Effort | None) -> Budget:
        """The narrower of what the work may take and what the desk allows."""
        own = self.budget
        if effort is None:
            return own
        tokens = effort.tokens if own.tokens is None else min(own.tokens, effort.tokens)
        return own.model_copy(update={"turns": min(own.turns, effort.turns), "tokens": tokens})
