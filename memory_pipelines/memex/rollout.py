"""The loop: ask the model, run its code in the kernel, show it what happened, until a value is submitted."""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json, to_jsonable_python

from memory_pipelines.errors import BadOutputError, BudgetExceededError, RefusedError, ToolError
from memory_pipelines.gateway.base import Gateway, Message, Request
from memory_pipelines.memex.answers import Answer, Problem, read_answer
from memory_pipelines.memex.budget import Meter
from memory_pipelines.memex.events import (
    Block,
    Event,
    Feedback,
    LlmRequest,
    LlmResponse,
    Observed,
    Submitted,
    ToolCalled,
)
from memory_pipelines.memex.kernels.base import MAIN, Kernel, Observation
from memory_pipelines.memex.prompt import feedback, observation_text, refused_submit, shortened, task_message
from memory_pipelines.memex.tools import Tool, complaints
from memory_pipelines.text import clean_text

_PATIENCE = 3
"""How many unreadable answers in a row end a rollout; its turns may end it before."""

_REMINDERS = 1
"""How often in a row a model that should write code is reminded to do so."""

_REFUSED = "SubmitError: "
"""How a kernel begins the error of a value that does not fit; lines of `path: message` follow."""

_SAID: Mapping[str, str] = {
    "malformed": "they hold nothing that can be run",
    "truncated": "they are cut off at the length limit",
    "empty": "they are empty",
    "repetition": "they repeat themselves up to the length limit",
    "type": "the submitted value is not of the result's type",
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What stays the same for all tasks of an agent."""

    model: str
    gateway: Gateway
    purpose: str
    system: str  # the system prompt
    tools: tuple[Tool, ...]
    adapter: TypeAdapter[Any]  # the authority on submitted values
    result_schema: Mapping[str, Any] | None  # for quick feedback in the kernel; None for any value
    text_result: bool  # whether plain text may stand for the result
    answer_schema: Mapping[str, Any] | None  # binds the model's answers to JSON
    max_tokens: int  # of one answer
    temperature: float

    @property
    def bound(self) -> bool:
        """Whether answers should be JSON."""
        return self.answer_schema is not None


class Rollout:
    """One task on its way through the loop."""

    def __init__(self, plan: Plan, *, kernel: Kernel, meter: Meter, record: Callable[[Event], None]) -> None:
        """Join the parts.

        Args:
            plan: what the agent is.
            kernel: open, used by nobody else.
            meter: counts what is spent.
            record: takes events.
        """
        self._plan = plan
        self._kernel = kernel
        self._meter = meter
        self._record = record
        self._messages: list[Message] = []
        self._unreadable = 0  # answers in a row that held nothing to run
        self._bad: BadOutputError | None = None  # what was wrong with the last turn, if its output was

    async def run(self, task: str, scope: Mapping[str, Any]) -> Any:
        """Work on the task until a value of the result's type is submitted.

        Args:
            task: in words.
            scope: variables that the kernel starts with.

        Returns:
            The value, checked and converted by the result's type.

        Raises:
            BadOutputError: the model's output could not be used, several times; `reason` says how.
            RefusedError: the model refused.
            BudgetExceededError: a bound was reached.
        """
        await self._kernel.put(scope)
        watched = [_WatchedTool.of(tool, self._called) for tool in self._plan.tools]
        await self._kernel.expose(watched, result=self._plan.result_schema)
        # Bound answers cannot look at the scope: it is there for the code of rules that answer in the model's place.
        shown: Mapping[str, Any] = {} if self._plan.bound else scope
        self._messages = [
            Message(role="system", content=clean_text(self._plan.system)),
            Message(role="user", content=clean_text(task_message(task, shown, notice=self._notice()))),
        ]
        while True:
            answer = await self._ask()
            if answer.refused:
                raise RefusedError("the model refused the work", turns=self._meter.turns)
            if not answer.blocks:
                answer = self._reminded(answer)
            if not answer.blocks:
                continue
            done, value = await self._run_blocks(answer)
            if done:
                return value

    async def _ask(self) -> Answer:
        plan, turn = self._plan, self._begin_turn()
        self._record(LlmRequest(turn=turn, messages=len(self._messages), prefix=_hash(self._messages)))
        response = await plan.gateway.complete(
            Request(
                purpose=plan.purpose,
                model=plan.model,
                messages=tuple(self._messages),
                answer_schema=None if plan.answer_schema is None else dict(plan.answer_schema),
                max_tokens=plan.max_tokens,
                temperature=plan.temperature,
            )
        )
        self._meter.add(response.usage)
        text = clean_text(response.text)
        self._record(
            LlmResponse(turn=turn, text=text, finish=response.finish, usage=response.usage, model=response.model)
        )
        return read_answer(text, response.finish, bound=plan.bound, fits=self._fits)

    def _begin_turn(self) -> int:
        try:
            self._meter.begin_turn()
        except BudgetExceededError as error:
            if self._bad is not None and error.facts["budget"] == "turns":
                raise self._bad from error
            raise
        return self._meter.turns

    def _reminded(self, answer: Answer) -> Answer:
        """Tell the model that its answer cannot be used, or give up on it, or take the text for the result."""
        problem: Problem = answer.problem or "malformed"
        self._unreadable += 1
        self._bad = self._bad_output(problem)
        wordy = problem == "malformed" and not self._plan.bound
        if self._unreadable >= (_REMINDERS + 1 if wordy else _PATIENCE):
            if self._plan.text_result and wordy:
                return Answer(answer.kept, blocks=(f"submit({answer.kept!r})",), origin="wrapped")
            raise self._bad
        text = feedback(problem, bound=self._plan.bound)
        self._record(Feedback(turn=self._meter.turns, reason=problem, text=text))
        self._tell(shortened(answer.kept), [text])
        return answer

    async def _run_blocks(self, answer: Answer) -> tuple[bool, Any]:
        """Run the blocks of an answer up to the first error or submit.

        Returns:
            Whether the work is done, and the result.
        """
        self._unreadable, self._bad = 0, None
        told: list[str] = []
        for number, code in enumerate(answer.blocks, start=1):
            seen = await self._run_block(number, code, answer)
            refused: str | None = None  # `path: message` lines
            if seen.submitted and seen.error is None:
                try:
                    value = self._plan.adapter.validate_json(to_json(seen.value))
                except ValidationError as error:
                    refused = complaints(error)
                else:
                    self._submitted(seen.value)
                    return True, value
            elif seen.error is not None and _REFUSED in seen.error:
                refused = seen.error.partition(_REFUSED)[2].partition("\n")[2]
            if refused is not None:
                self._submitted(seen.value, refused)
            told += self._shown(seen, refused, answer, number)
            if seen.error is None and refused is None:
                continue
            told += [f"[block {later} not run]" for later in range(number + 1, len(answer.blocks) + 1)]
            break
        if answer.cut:
            told.append("[your last block was cut off and not run]")
        if answer.imitated:
            told.append("[what you wrote after your block looked like an observation and was dropped]")
        self._tell(answer.kept, told)
        return False, None

    async def _run_block(self, number: int, code: str, answer: Answer) -> Observation:
        turn = self._meter.turns
        self._record(Block(turn=turn, number=number, namespace=MAIN, code=code, origin=answer.origin))
        seen = await self._kernel.run(code)
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

    def _shown(self, seen: Observation, refused: str | None, answer: Answer, number: int) -> list[str]:
        """What the model is told of one block; of a block that the host wrote it is told only what was wrong."""
        bound = self._plan.bound
        if answer.origin != "model" and refused is not None:
            return [refused_submit(refused, bound=bound)]
        if answer.origin != "model" and seen.error is not None:
            self._bad = self._bad_output("malformed")  # the value itself could not be written as Python
            return [feedback("malformed", bound=bound)]
        shown = [observation_text(seen, number=number, blocks=len(answer.blocks))]
        if refused is not None and seen.error is None:
            shown.append(refused_submit(refused, bound=bound))
        return shown

    def _submitted(self, value: Any, refused: str | None = None) -> None:
        errors = () if refused is None else tuple(refused.split("\n"))
        if refused is not None:
            self._bad = self._bad_output("type", errors=list(errors))
        self._record(Submitted(turn=self._meter.turns, ok=refused is None, value=value, errors=errors))

    def _tell(self, kept: str, told: list[str]) -> None:
        notice = self._notice()
        text = "\n\n".join([*told, notice] if notice else told)
        self._messages += [Message(role="assistant", content=kept), Message(role="user", content=text)]

    def _notice(self) -> str | None:
        return None if self._plan.bound else self._meter.notice()  # a bound answer always submits

    def _bad_output(self, reason: str, **facts: Any) -> BadOutputError:
        turns = self._meter.turns
        return BadOutputError(
            f"the model's answers cannot be used: {_SAID[reason]} ({reason}, answer {turns} of "
            f"{self._meter.budget.turns}). Nothing was changed; try a stronger model or a smaller piece of work.",
            reason=reason,
            turns=turns,
            **facts,
        )

    def _fits(self, value: object) -> bool:
        try:
            self._plan.adapter.validate_json(to_json(value))
        except ValidationError:
            return False
        return True

    def _called(self, name: str, arguments: Mapping[str, object], error: str | None, milliseconds: float) -> None:
        args = to_jsonable_python(dict(arguments), fallback=str)
        self._record(
            ToolCalled(turn=self._meter.turns, name=name, args=args, error=error, milliseconds=round(milliseconds, 3))
        )


@dataclass(frozen=True, kw_only=True)
class _WatchedTool(Tool):
    """A tool that reports its calls."""

    called: Callable[[str, Mapping[str, object], str | None, float], None]

    @classmethod
    def of(cls, tool: Tool, called: Callable[[str, Mapping[str, object], str | None, float], None]) -> "_WatchedTool":
        return cls(**{field.name: getattr(tool, field.name) for field in fields(Tool)}, called=called)

    async def call(self, arguments: Mapping[str, object]) -> Any:
        started = time.perf_counter()
        error: str | None = None
        try:
            return await super().call(arguments)
        except ToolError as raised:
            error = raised.message
            raise
        finally:
            self.called(self.name, arguments, error, (time.perf_counter() - started) * 1000)


def _hash(messages: list[Message]) -> str:
    return hashlib.sha256(to_json(messages)).hexdigest()[:16]
