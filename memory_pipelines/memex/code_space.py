"""The action space `memex`: the model's code runs in a kernel, whether it comes as fenced text or as a native call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memory_pipelines.errors import RefusedError
from memory_pipelines.gateway.base import Response, ToolCall
from memory_pipelines.memex.answers import Answer, Origin, read_answer
from memory_pipelines.memex.budget import Meter
from memory_pipelines.memex.calls import PYTHON, NativeCall, read_calls
from memory_pipelines.memex.events import Block, Event, Observed
from memory_pipelines.memex.kernels.base import MAIN, Kernel, Observation, Spawn, Subagent
from memory_pipelines.memex.looking import Looking, look
from memory_pipelines.memex.prompt import (
    feedback,
    observation_text,
    python_tool,
    rebound_text,
    refused_submit,
    spawned_message,
    task_message,
    unread_submit,
)
from memory_pipelines.memex.rollout import Plan, Rollout

MARK = "[cut; variables remain]"
"""What stands for an old observation when room was needed."""

_REFUSED = "SubmitError: "
"""How a kernel begins the error of a value that does not fit; lines of `path: message` follow."""


@dataclass(frozen=True)
class _Step:
    """One block of an answer."""

    code: str
    call: ToolCall | None = None  # that brought it, None for fenced text
    problem: str | None = None  # why it cannot be run


class CodeRollout(Rollout):
    """A rollout whose model writes blocks of Python."""

    def __init__(
        self,
        plan: Plan,
        *,
        kernel: Kernel,
        meter: Meter,
        record: Callable[[Event], None],
        namespace: str = MAIN,
        spawn: Spawn | None = None,
    ) -> None:
        """Join the parts.

        Args:
            plan: what the agent is.
            kernel: open, used by this agent and its subagents only.
            meter: counts what is spent.
            record: takes events.
            namespace: of the kernel, in which the code runs.
            spawn: starts subagents; None: there are none.
        """
        native = [python_tool()] if plan.form == "call" else []
        super().__init__(plan, meter=meter, record=record, native=native, mark=MARK)
        self._kernel = kernel
        self._namespace = namespace
        self._spawn = spawn
        self.submitted: Any = None  # the accepted value in JSON form
        self._looking = Looking({}, [])
        self._warned = False  # a value that rests on nothing is refused once

    async def run(self, task: str, scope: Mapping[str, Any]) -> Any:
        """Work until a value is submitted; see `Rollout.run`. The scope becomes variables of the kernel."""
        plan = self._plan
        await self._kernel.put(scope, namespace=self._namespace)
        await self._expose()
        # Bound answers cannot look at the scope: it is there for the code of rules that answer in the model's place.
        shown: Mapping[str, Any] = {} if plan.bound else scope
        text, whole = look(shown, plan.look_tokens) if plan.look_tokens else ("", False)
        self._looking = Looking(shown, [tool.name for tool in plan.tools])
        self._looking.looked = self._looking.looked or whole
        self._begin(task_message(task, shown, look=text, notice=self._notice()))
        return await self._loop()

    async def run_spawned(self, asked: Subagent) -> Any:
        """Work as a subagent until a value is submitted; see `Rollout.run`. The kernel has its scope already.

        Args:
            asked: what the code that started it said.
        """
        await self._expose()
        self._looking = Looking(dict.fromkeys(asked.scope), [tool.name for tool in self._plan.tools])
        self._begin(spawned_message(asked.task, asked.scope, result=asked.result, notice=self._notice()))
        return await self._loop()

    async def _expose(self) -> None:
        await self._kernel.expose(
            self._watched(), result=self._plan.result_schema, spawn=self._spawn, namespace=self._namespace
        )

    async def _loop(self) -> Any:
        while True:
            answer, steps = self._read(await self._ask())
            if answer.refused:
                raise RefusedError("the model refused the work", turns=self._meter.turns)
            if not steps:
                if not self._remind(answer.problem or "malformed", answer.kept):
                    continue
                code = f"submit({answer.kept!r})"
                answer, steps = Answer(answer.kept, blocks=(code,), origin="wrapped"), (_Step(code),)
            done, value = await self._run_steps(answer, steps)
            if done:
                return value

    def _read(self, response: Response) -> tuple[Answer, tuple[_Step, ...]]:
        answer = read_answer(response.text, response.finish, bound=self._plan.bound, fits=self._fits)
        truncated = response.finish == "length"
        calls = read_calls(response.tool_calls, turn=self._meter.turns, truncated=truncated)
        if calls and response.finish != "refusal":
            return Answer(answer.kept), tuple(map(self._step, calls))
        return answer, tuple(_Step(block) for block in answer.blocks)

    def _step(self, native: NativeCall) -> _Step:
        name, code = native.call.name, native.arguments.get("code")
        problem = native.problem
        if problem is None and name != PYTHON:
            problem = f"{name!r} cannot be called like this: call `{PYTHON}` with code, such as `await {name}(...)`"
            if name == "submit":
                problem = f"call `{PYTHON}` with the code `submit(value)`"
        elif problem is None and not isinstance(code, str):
            problem = f"{PYTHON} takes one argument, `code`: a text"
        return _Step(code if isinstance(code, str) else "", native.call, problem)

    async def _run_steps(self, answer: Answer, steps: tuple[_Step, ...]) -> tuple[bool, Any]:
        """Run the blocks of an answer up to the first error or submit.

        Returns:
            Whether the work is done, and the result.
        """
        self._usable(any_part=any(step.problem is None for step in steps))
        told: list[str] = []  # a text a step
        failed = False
        for number, step in enumerate(steps, start=1):
            if failed:
                told.append(f"[block {number} not run]")
                continue
            if step.problem is not None:
                told.append(f"[error]\n{step.problem}")
                failed = True
                continue
            assigned = self._looking.saw(step.code)
            seen = await self._run_block(number, step.code, answer.origin)
            accepted, value, refused = self._result(seen)
            if accepted:
                return True, value
            shown = self._shown(seen, refused, answer, number, len(steps))
            if refused is None and seen.submitted and seen.error is None:
                shown.append(unread_submit(self._looking.line()))
                failed = True
            if assigned:
                shown.append(rebound_text(assigned))
            told.append("\n\n".join(shown))
            failed = failed or seen.error is not None or refused is not None
        self._tell(answer, told, [step.call for step in steps if step.call is not None])
        return False, None

    def _result(self, seen: Observation) -> tuple[bool, Any, str | None]:
        """What a block submitted.

        Returns:
            Whether that ends the work, the result, and why the value does not fit: `path: message` lines.
        """
        if seen.submitted and seen.error is None:
            value, refused = self._checked(seen.value)
            if refused is None and self._rests_on_nothing():
                self._warned = True
                self._submitted(seen.value, "nothing in scope was looked at", sound=True)
                return False, None, None
            self._submitted(seen.value, refused)
            self.submitted = seen.value
            return refused is None, value, refused
        if seen.error is not None and _REFUSED in seen.error:
            refused = seen.error.partition(_REFUSED)[2].partition("\n")[2]
            self._submitted(seen.value, refused)
            return False, None, refused
        return False, None, None

    def _rests_on_nothing(self) -> bool:
        """Whether a value is to be refused, once, because nothing was looked at; never where no turn is left."""
        return not (self._looking.looked or self._warned or self._meter.used_up)

    async def _run_block(self, number: int, code: str, origin: Origin) -> Observation:
        turn = self._meter.turns
        self._record(Block(turn=turn, number=number, namespace=self._namespace, code=code, origin=origin))
        seen = await self._kernel.run(code, namespace=self._namespace)
        self._record(
            Observed(
                turn=turn,
                number=number,
                output=seen.output,
                cut=seen.cut,
                error=seen.error,
                state=seen.state,
                milliseconds=seen.milliseconds,
            )
        )
        return seen

    def _shown(self, seen: Observation, refused: str | None, answer: Answer, number: int, blocks: int) -> list[str]:
        """What the model is told of one block; of a block that the host wrote it is told only what was wrong."""
        form = self._plan.form
        if answer.origin != "model" and refused is not None:
            return [refused_submit(refused, form=form)]
        if answer.origin != "model" and seen.error is not None:
            self._bad = self._bad_output("malformed")  # the value itself could not be written as Python
            return [feedback("malformed", form=form)]
        shown = [observation_text(seen, number=number, blocks=blocks)]
        if refused is not None and seen.error is None:
            shown.append(refused_submit(refused, form=form))
        return shown

    def _tell(self, answer: Answer, told: list[str], calls: list[ToolCall]) -> None:
        if answer.cut:
            told.append("[your last block was cut off and not run]")
        if answer.imitated:
            told.append("[what you wrote after your block looked like an observation and was dropped]")
        if calls:
            told[-1] = self._with_notice(told[-1])
        else:
            told = [self._with_notice("\n\n".join(told))]
        self._history.observe(answer.kept, told, calls)

    def _fits(self, value: object) -> bool:
        return self._checked(value)[1] is None
