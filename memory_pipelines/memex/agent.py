"""An agent: give it a model, tools and the type of its result, and run tasks."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.gateway.base import Gateway, ModelInfo, Usage
from memory_pipelines.memex.budget import Budget, Meter
from memory_pipelines.memex.checking import by_type
from memory_pipelines.memex.code_space import CodeRollout
from memory_pipelines.memex.events import Header
from memory_pipelines.memex.frames import expected
from memory_pipelines.memex.kernels.base import Limits
from memory_pipelines.memex.kernels.namespace import OWN_NAMES
from memory_pipelines.memex.kernels.opening import open_kernel
from memory_pipelines.memex.prompt import json_prompt, system_prompt, tools_prompt
from memory_pipelines.memex.recorder import Recorder, closing
from memory_pipelines.memex.rollout import Plan
from memory_pipelines.memex.subagents import Spawner, Subagents
from memory_pipelines.memex.tool_space import ToolRollout
from memory_pipelines.memex.tools import Tool, schema_of, tool_of
from memory_pipelines.memex.trajectory import Trajectory
from memory_pipelines.memex.views import viewed
from memory_pipelines.text import clean_text

ACTION_SPACES = ("memex", "tools")
"""How an agent may act: by code in a kernel, or by native tool calls."""

ACTION_CHANNELS = ("auto", "tool", "text")
"""How code may travel: as a native tool call or as fenced text; `auto` takes what the model is known for."""

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

    With `action_space="tools"` the same agent has no kernel: the model calls the tools itself, several at once, and
    `submit` is one of them. What is in scope is then written into the task, whole.

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
        action_channel: str = "auto",
        kernel: str = "pool",
        isolation: str | None = None,
        result: type[ResultT] | None = None,
        instructions: str = "",
        answer_schema: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        budget: Budget | None = None,
        subagents: Subagents | None = None,
        purpose: str = "agent",
        max_tokens: int = 2048,
        temperature: float = 0.0,
        look_tokens: int = 0,
        scope_tokens: int | None = None,
        trajectory: Path | str | None = None,
        redact: Callable[[str], str] | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Keep the parts; nothing is started.

        Args:
            model: as the gateway names it.
            gateway: asks models; stays open, its owner closes it.
            tools: what the code may call: typed functions, sync or async, or tools made of them.
            action_space: how the model acts: "memex" by code, "tools" by native tool calls.
            action_channel: how code travels: "tool" as a native call of `python`, "text" in fences; "auto" takes
                "tool" where the gateway knows that the model calls tools natively.
            kernel: the kind of kernel, as `open_kernel` takes it.
            isolation: `strict` or `best_effort`, as `open_kernel` takes it; None for what the kernel has.
            result: the type that submitted values are checked against and turned into; None takes any JSON value.
            instructions: of the agent's owner, part of the system prompt.
            answer_schema: JSON schema that binds the model's answers.
            limits: of the kernel.
            budget: of each task, with its subagents.
            subagents: lets the code start some by `spawn_agent`, within these bounds; they run in the same kernel.
                Without a kernel (`tools`, or bound answers) there are none.
            purpose: what the calls are for, in logs and accounts; rules in place of a model answer by it.
            max_tokens: of one answer.
            temperature: of the model.
            look_tokens: what a first look at the scope may cost in the first message; 0 shows names, types and sizes.
            scope_tokens: what the scope may cost as text where there is no kernel; default half of the model's
                context. A larger one is refused, never cut.
            trajectory: a file for the events of a task; the next task of this agent replaces it.
            redact: passed over everything that goes into the trajectory.
            clock: says what time it is, with a time zone; dates the trajectory.

        Raises:
            InvalidInputError: something cannot be used; says what is allowed.
        """
        _check_actions(action_space, action_channel, bound=answer_schema is not None)
        made = tuple(tool if isinstance(tool, Tool) else tool_of(tool) for tool in tools)
        _check_names([tool.name for tool in made], what="tool")
        kind: Any = Any if result is None else result
        schema = schema_of(kind, mode="validation")
        self._instructions = instructions
        self._space = action_space
        self._channel = action_channel
        self._scope_tokens = scope_tokens
        self._kernel = kernel
        self._isolation = isolation
        self._limits = limits or Limits()
        self._budget = budget or Budget()
        self._subagents = None if answer_schema is not None else subagents
        self._trajectory = trajectory
        self._redact = redact
        self._clock = clock or _utc_now
        self._plan = Plan(
            model=model,
            gateway=gateway,
            purpose=purpose,
            system="" if answer_schema is None else json_prompt(answer_schema, instructions=instructions),
            form="json",
            tools=made,
            check=by_type(kind),
            result_schema=None if result is None else schema,
            text_result=result is str,
            answer_schema=answer_schema,
            max_tokens=max_tokens,
            temperature=temperature,
            output_chars=self._limits.output_chars,
            look_tokens=look_tokens,
        )
        self._schema = schema
        self._planned: Plan | None = None  # with what depends on the model; it is asked about at the first task

    async def run(
        self, task: str, *, scope: Mapping[str, Any] | None = None, trajectory: Path | str | None = None
    ) -> Outcome[ResultT]:
        """Work on a task in a new kernel until a value is submitted.

        Args:
            task: in words.
            scope: variables that the code starts with: JSON values, pydantic models, dataclasses. The model is told
                their names, types and sizes, not what they hold unless `look_tokens` says so. In the action space
                `tools` all of it becomes text of the task. Trajectories may be among them.
            trajectory: a file for the events of this task, in place of the agent's.

        Returns:
            The value, what it cost and what happened.

        Raises:
            InvalidInputError: the scope cannot enter a kernel, or is too long to be text.
            BadOutputError: the model's output could not be used; `reason` is malformed, truncated, empty, type or
                repetition.
            RefusedError: the model refused.
            BudgetExceededError: a bound of the budget was reached; `budget` names it, `limit` and `spent` say how far.
            GatewayError: from the gateway, as it is.
            KernelError: the kernel could not be started or died for good.
            UnavailableError: the trajectory cannot be written.

        Every error of ours carries `usage`, a dict of numbers: what was spent until then.
        """
        variables: dict[str, Any] = viewed(dict(scope or {}))
        _check_names(list(variables), what="variable")
        meter = Meter(self._budget, clock=time.monotonic)
        with Recorder(trajectory or self._trajectory, redact=self._redact) as recorder:
            with closing(recorder, meter):
                value = await self._work(task, variables, meter, recorder)
            return Outcome(value=value, usage=meter.usage, trajectory=recorder.trajectory)

    async def _work(self, task: str, scope: dict[str, Any], meter: Meter, recorder: Recorder) -> Any:
        deadline = asyncio.timeout(self._budget.seconds)
        try:
            async with deadline:
                plan = await self._plan_for_model()
                if self._space == "tools":
                    recorder.add(self._header(task, tuple(scope), kernel="none", isolation={}))
                    return await ToolRollout(plan, meter=meter, record=recorder.add).run(task, scope)
                frames = expected(scope.values(), (tool.returns for tool in plan.tools))
                async with open_kernel(
                    self._kernel, limits=self._limits, isolation=self._isolation, frames=frames
                ) as kernel:

                    def header(task: str, names: tuple[str, ...]) -> Header:
                        return self._header(task, names, kernel=self._kernel, isolation=kernel.isolation)

                    recorder.add(header(task, tuple(scope)))
                    spawn = None
                    if self._subagents is not None:
                        spawner = Spawner(self._subagents, plan, kernel=kernel, header=header)
                        spawn = spawner.of("", meter=meter, recorder=recorder)
                    rollout = CodeRollout(plan, kernel=kernel, meter=meter, record=recorder.add, spawn=spawn)
                    return await rollout.run(task, scope)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise meter.exceeded("seconds") from error

    async def _plan_for_model(self) -> Plan:
        """The plan, with what depends on the model: how it is spoken to, and what its context holds."""
        if self._plan.answer_schema is not None:
            return self._plan
        if self._planned is None:
            # Beside the loop: a gateway may load a library of some seconds for this.
            info = await asyncio.to_thread(self._plan.gateway.describe, self._plan.model)
            self._planned = self._plan_with(info)
        return self._planned

    def _plan_with(self, info: ModelInfo) -> Plan:
        plan = self._plan
        scope_tokens = info.context_tokens // 2 if self._scope_tokens is None else self._scope_tokens
        if self._space == "tools":
            system = tools_prompt(instructions=self._instructions, output_chars=plan.output_chars)
            form = "tools"
        else:
            native = info.tool_calls if self._channel == "auto" else self._channel == "tool"
            form = "call" if native else "code"
            system = system_prompt(
                plan.tools,
                result=self._schema,
                instructions=self._instructions,
                output_chars=plan.output_chars,
                channel="tool" if native else "text",
                subagents=self._subagents is not None,
            )
        return replace(plan, system=system, form=form, context_tokens=info.context_tokens, scope_tokens=scope_tokens)

    def _header(self, task: str, scope: tuple[str, ...], *, kernel: str, isolation: Mapping[str, Any]) -> Header:
        return Header(
            at=self._clock(),
            model=self._plan.model,
            purpose=self._plan.purpose,
            action_space=self._space,
            kernel=kernel,
            isolation=dict(isolation),
            tools=tuple(tool.name for tool in self._plan.tools),
            scope=scope,
            task=clean_text(task),
        )


def _check_actions(space: str, channel: str, *, bound: bool) -> None:
    if space not in ACTION_SPACES:
        raise InvalidInputError(
            f"unknown action_space {space!r}; known: {', '.join(ACTION_SPACES)}", action_space=space
        )
    if channel not in ACTION_CHANNELS:
        raise InvalidInputError(
            f"unknown action_channel {channel!r}; known: {', '.join(ACTION_CHANNELS)}", action_channel=channel
        )
    if space == "tools" and channel == "text":
        raise InvalidInputError(
            "action_space='tools' calls tools natively: action_channel='text' is for code; leave it out",
            action_channel=channel,
        )
    if bound and (space == "tools" or channel == "tool"):
        raise InvalidInputError(
            f"answer_schema binds answers to JSON without calls, so action_space={space!r} with "
            f"action_channel={channel!r} cannot be had; leave answer_schema out, or the others",
            action_space=space,
            action_channel=channel,
        )


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


def _utc_now() -> datetime:
    return datetime.now(UTC)
