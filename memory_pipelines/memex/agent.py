"""An agent that works by writing Python: give it a model, tools and the type of its result, and run tasks."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from memory_pipelines.errors import InvalidInputError, MemoryPipelinesError, UnavailableError
from memory_pipelines.gateway.base import Gateway, Usage
from memory_pipelines.memex.budget import Budget, Meter
from memory_pipelines.memex.events import End, Failed, Header
from memory_pipelines.memex.kernels.base import Kernel, Limits
from memory_pipelines.memex.kernels.namespace import OWN_NAMES
from memory_pipelines.memex.kernels.opening import open_kernel
from memory_pipelines.memex.prompt import json_prompt, system_prompt
from memory_pipelines.memex.rollout import Plan, Rollout
from memory_pipelines.memex.tools import Tool, schema_of, tool_of
from memory_pipelines.memex.trajectory import Recorder, Trajectory

ACTION_SPACES = ("memex",)
"""How an agent may act. `tools`, by native tool calls, is not there yet."""

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Outcome(Generic[ResultT]):
    """What came of a task."""

    value: ResultT  # of the result's type
    usage: Usage  # of all calls
    trajectory: Trajectory


class Agent(Generic[ResultT]):
    """Works on tasks by writing blocks of Python that run in a kernel, and ends each by submitting a value.

    An agent keeps nothing between tasks and may run several at once: every task has a kernel of its own.

    With `answer_schema` the model answers in JSON instead, bound by the schema, and the host writes the block around
    its answer; that suits small models. Code in such an answer is run all the same.

    Example:
        agent = Agent(model="openai/gpt-5", gateway=gateway, tools=[search], result=list[str])
        outcome = await agent.run("Which reports are late?", scope={"reports": reports})
    """

    def __init__(
        self,
        *,
        model: str,
        gateway: Gateway,
        tools: Sequence[Tool | Callable[..., Any]] = (),
        action_space: str = "memex",
        kernel: str = "subprocess",
        isolation: str | None = None,
        result: type[ResultT] | None = None,
        instructions: str = "",
        answer_schema: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        budget: Budget | None = None,
        purpose: str = "agent",
        max_tokens: int = 2048,
        temperature: float = 0.0,
        trajectory: Path | str | None = None,
        redact: Callable[[str], str] | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Keep the parts; nothing is started.

        Args:
            model: as the gateway names it.
            gateway: asks models; stays open, its owner closes it.
            tools: what the code may call: typed functions, sync or async, or tools made of them.
            action_space: how the model acts; only "memex" until native tool calls are supported.
            kernel: the kind of kernel, as `open_kernel` takes it.
            isolation: `strict` or `best_effort`, as `open_kernel` takes it; None for what the kernel has.
            result: the type that submitted values are checked against and turned into; None takes any JSON value.
            instructions: of the agent's owner, part of the system prompt.
            answer_schema: JSON schema that binds the model's answers.
            limits: of the kernel.
            budget: of each task.
            purpose: what the calls are for, in logs and accounts; rules in place of a model answer by it.
            max_tokens: of one answer.
            temperature: of the model.
            trajectory: a file for the events of a task; the next task of this agent replaces it.
            redact: passed over everything that goes into the trajectory.
            clock: says what time it is, with a time zone; dates the trajectory.

        Raises:
            InvalidInputError: something cannot be used; says what is allowed.
        """
        if action_space not in ACTION_SPACES:
            raise InvalidInputError(
                f"unknown action_space {action_space!r}; supported so far: {', '.join(ACTION_SPACES)}",
                action_space=action_space,
            )
        made = tuple(tool if isinstance(tool, Tool) else tool_of(tool) for tool in tools)
        _check_names([tool.name for tool in made], what="tool")
        kind: Any = Any if result is None else result
        schema = schema_of(kind, mode="validation")
        self._kernel = kernel
        self._isolation = isolation
        self._limits = limits or Limits()
        self._budget = budget or Budget()
        self._trajectory = trajectory
        self._redact = redact
        self._clock = clock or _utc_now
        self._plan = Plan(
            model=model,
            gateway=gateway,
            purpose=purpose,
            system=json_prompt(answer_schema, instructions=instructions)
            if answer_schema is not None
            else system_prompt(made, result=schema, instructions=instructions, output_chars=self._limits.output_chars),
            tools=made,
            adapter=TypeAdapter(kind),
            result_schema=None if result is None else schema,
            text_result=result is str,
            answer_schema=answer_schema,
            max_tokens=max_tokens,
            temperature=temperature,
        )

    async def run(self, task: str, *, scope: Mapping[str, Any] | None = None) -> Outcome[ResultT]:
        """Work on a task in a new kernel until a value is submitted.

        Args:
            task: in words.
            scope: variables that the code starts with: JSON values, pydantic models, dataclasses. The model is told
                their names, types and sizes, never what they hold.

        Returns:
            The value, what it cost and what happened.

        Raises:
            InvalidInputError: the scope cannot enter a kernel.
            BadOutputError: the model's output could not be used; `reason` is malformed, truncated, empty, type or
                repetition.
            RefusedError: the model refused.
            BudgetExceededError: a bound of the budget was reached; `budget` names it, `limit` and `spent` say how far.
            GatewayError: from the gateway, as it is.
            KernelError: the kernel could not be started or died for good.
            UnavailableError: the trajectory cannot be written.

        Every error of ours carries `usage`, a dict of numbers: what was spent until then.
        """
        variables = dict(scope or {})
        _check_names(list(variables), what="variable")
        meter = Meter(self._budget, clock=time.monotonic)
        with Recorder(self._trajectory, redact=self._redact) as recorder:
            try:
                value = await self._work(task, variables, meter, recorder)
                recorder.add(_end(meter, ok=True))
            except BaseException as error:
                # The boundary: whatever leaves, cancellation too, is written down with what it has cost, and goes on.
                if isinstance(error, MemoryPipelinesError):
                    error.facts["usage"] = meter.usage.model_dump()
                _record_failure(recorder, error, meter)
                raise
            return Outcome(value=value, usage=meter.usage, trajectory=recorder.trajectory)

    def _opened(self) -> AbstractAsyncContextManager[Kernel]:
        return open_kernel(self._kernel, limits=self._limits, isolation=self._isolation)

    async def _work(self, task: str, scope: dict[str, Any], meter: Meter, recorder: Recorder) -> Any:
        deadline = asyncio.timeout(self._budget.seconds)
        try:
            async with deadline, self._opened() as kernel:
                recorder.add(
                    Header(
                        at=self._clock(),
                        model=self._plan.model,
                        purpose=self._plan.purpose,
                        action_space="memex",
                        kernel=self._kernel,
                        isolation=dict(kernel.isolation),
                        tools=tuple(tool.name for tool in self._plan.tools),
                        scope=tuple(scope),
                    )
                )
                rollout = Rollout(self._plan, kernel=kernel, meter=meter, record=recorder.add)
                return await rollout.run(task, scope)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise meter.exceeded("seconds") from error


def _check_names(names: Sequence[str], *, what: str) -> None:
    for name in names:
        if not name.isidentifier() or name in OWN_NAMES:
            raise InvalidInputError(
                f"no {what} can be called {name!r}: give it the name of a Python variable, except "
                f"those of the kernel: {', '.join(OWN_NAMES)}",
                name=name,
            )
        if names.count(name) > 1:
            raise InvalidInputError(f"two {what}s are called {name!r}; give one another name", name=name)


def _record_failure(recorder: Recorder, error: BaseException, meter: Meter) -> None:
    ours = isinstance(error, MemoryPipelinesError)
    try:
        recorder.add(Failed(error=type(error).__name__, status=error.status if ours else "", message=str(error)))
        recorder.add(_end(meter, ok=False))
    except UnavailableError as unwritten:
        error.add_note(f"its trajectory is not complete: {unwritten}")


def _end(meter: Meter, *, ok: bool) -> End:
    return End(ok=ok, turns=meter.turns, usage=meter.usage, seconds=round(meter.seconds, 3))


def _utc_now() -> datetime:
    return datetime.now(UTC)
