"""What every rollout does, however the agent acts: ask the model, count, record, remind, check what is submitted."""

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pydantic_core import to_json, to_jsonable_python

from memory_pipelines.errors import BadOutputError, BudgetExceededError, ContextTooLongError, ToolError
from memory_pipelines.gateway.base import Gateway, Request, Response, ToolCall
from memory_pipelines.memex.answers import Problem
from memory_pipelines.memex.budget import Meter
from memory_pipelines.memex.checking import Judge
from memory_pipelines.memex.events import Event, Feedback, LlmRequest, LlmResponse, Submitted, ToolCalled, recordable
from memory_pipelines.memex.history import History
from memory_pipelines.memex.prompt import Form, feedback, shortened
from memory_pipelines.memex.tools import Tool
from memory_pipelines.text import clean_text
from memory_pipelines.wording import tokens_of

_PATIENCE = 3
"""How many unreadable answers in a row end a rollout; its turns may end it before."""

_REMINDERS = 1
"""How often in a row a model that should act is reminded to do so."""

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
    form: Form  # what an answer should be
    tools: tuple[Tool, ...]
    check: Judge  # the authority on submitted values
    result_schema: Mapping[str, Any] | None  # for quick feedback to the model; None for any value
    text_result: bool  # whether plain text may stand for the result
    answer_schema: Mapping[str, Any] | None  # binds the model's answers to JSON
    max_tokens: int  # of one answer
    temperature: float
    output_chars: int  # of one observation
    context_tokens: int | None = None  # what the model takes; None: nothing is ever cut from the conversation
    look_tokens: int = 0  # what a first look at the scope may cost
    scope_tokens: int = 0  # what the scope may cost as text, where there is no kernel

    @property
    def bound(self) -> bool:
        """Whether answers should be JSON."""
        return self.form == "json"


class Rollout(ABC):
    """One task on its way through the loop. Subclasses say how an answer becomes action."""

    def __init__(
        self,
        plan: Plan,
        *,
        meter: Meter,
        record: Callable[[Event], None],
        native: Sequence[dict[str, Any]] = (),
        mark: str,
    ) -> None:
        """Join the parts.

        Args:
            plan: what the agent is.
            meter: counts what is spent.
            record: takes events.
            native: tools that are offered to the model natively.
            mark: stands for an old observation that was cut.
        """
        self._plan = plan
        self._meter = meter
        self._record = record
        self._native = tuple(native)
        self._mark = mark
        self._history = History("", "", mark=mark, context_tokens=None, answer_tokens=0)
        self._unreadable = 0  # answers in a row that held nothing to run
        self._bad: BadOutputError | None = None  # what was wrong with the last turn, if its output was

    @abstractmethod
    async def run(self, task: str, scope: Mapping[str, Any]) -> Any:
        """Work on the task until a value of the result's type is submitted.

        Args:
            task: in words.
            scope: values that the task is about.

        Returns:
            The value, checked and converted by the result's type.

        Raises:
            InvalidInputError: the scope cannot be given to the model's work.
            BadOutputError: the model's output could not be used, several times; `reason` says how.
            RefusedError: the model refused.
            BudgetExceededError: a bound was reached.
        """

    def _begin(self, task: str) -> None:
        """Begin the conversation by the system prompt and the text of the task."""
        tools = tokens_of(json.dumps(self._native)) if self._native else 0
        self._history = History(
            clean_text(self._plan.system),
            clean_text(task),
            mark=self._mark,
            context_tokens=self._plan.context_tokens,
            answer_tokens=self._plan.max_tokens + tools,
        )

    async def _ask(self) -> Response:
        turn = self._begin_turn()
        self._history.fit()
        messages = self._history.messages
        prefix = hashlib.sha256(to_json(messages)).hexdigest()[:16]
        self._record(LlmRequest(turn=turn, messages=len(messages), prefix=prefix))
        try:
            response = await self._complete()
        except ContextTooLongError:
            # The context is smaller than it was said to be, or its tokens are shorter.
            if self._plan.context_tokens is None or not self._history.cut():
                raise
            response = await self._complete()
        self._meter.add(response.usage)
        self._history.measured(response.usage)
        text = clean_text(response.text)
        calls = tuple(
            ToolCall(id=call.id, name=clean_text(call.name), arguments=clean_text(call.arguments))
            for call in (response.tool_calls if self._native else ())
        )
        self._record(
            LlmResponse(
                turn=turn,
                text=text,
                tool_calls=calls,
                finish=response.finish,
                usage=response.usage,
                model=response.model,
            )
        )
        return response.model_copy(update={"text": text, "tool_calls": calls})

    async def _complete(self) -> Response:
        plan = self._plan
        return await plan.gateway.complete(
            Request(
                purpose=plan.purpose,
                model=plan.model,
                messages=tuple(self._history.messages),
                answer_schema=None if plan.answer_schema is None else dict(plan.answer_schema),
                tools=self._native,
                max_tokens=plan.max_tokens,
                temperature=plan.temperature,
            )
        )

    def _begin_turn(self) -> int:
        try:
            self._meter.begin_turn()
        except BudgetExceededError as error:
            if self._bad is not None and error.facts["budget"] == "turns":
                raise self._bad from error
            raise
        return self._meter.turns

    def _remind(self, problem: Problem, kept: str) -> bool:
        """Tell the model that its answer cannot be used, or give up on it.

        Args:
            problem: what is wrong with the answer.
            kept: the answer for the history.

        Returns:
            Whether the text of the answer is to be taken for the result instead.

        Raises:
            BadOutputError: patience is at an end.
        """
        wordy = problem == "malformed" and not self._plan.bound
        if self._tire(problem, patience=_REMINDERS + 1 if wordy else _PATIENCE):
            if self._plan.text_result and wordy:
                return True
            raise self._bad_output(problem)
        text = feedback(problem, form=self._plan.form)
        self._record(Feedback(turn=self._meter.turns, reason=problem, text=text))
        self._history.tell(shortened(kept), self._with_notice(text))
        return False

    def _tire(self, problem: Problem, *, patience: int = _PATIENCE) -> bool:
        """Count an answer that holds nothing to run; true when it is one too many."""
        self._unreadable += 1
        self._bad = self._bad_output(problem)
        return self._unreadable >= patience

    def _usable(self, *, any_part: bool) -> None:
        """Begin anew to count bad answers, or be out of patience with calls of which none can be made.

        Args:
            any_part: whether anything of this answer can be run.

        Raises:
            BadOutputError: patience is at an end.
        """
        if any_part:
            self._unreadable, self._bad = 0, None
        elif self._tire("malformed"):
            raise self._bad_output("malformed")

    def _checked(self, value: Any) -> tuple[Any, str | None]:
        """A submitted value as the result's type has it, or `path: message` lines that say why it is not."""
        return self._plan.check(value)

    def _submitted(self, value: Any, refused: str | None = None, *, sound: bool = False) -> None:
        """Record a submit and why it was refused; `sound` for a value that is not itself wrong."""
        errors = () if refused is None else tuple(refused.split("\n"))
        if refused is not None and not sound:
            self._bad = self._bad_output("type", errors=list(errors))
        self._record(Submitted(turn=self._meter.turns, ok=refused is None, value=value, errors=errors))

    def _with_notice(self, text: str) -> str:
        notice = self._notice()
        return f"{text}\n\n{notice}" if notice else text

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

    def _watched(self) -> list[Tool]:
        """The tools, each of which reports its calls."""
        return [_WatchedTool.of(tool, self._called) for tool in self._plan.tools]

    def _called(
        self, name: str, arguments: Mapping[str, object], error: str | None, milliseconds: float, result: object = None
    ) -> None:
        args = to_jsonable_python(dict(arguments), fallback=str)
        self._record(
            ToolCalled(
                turn=self._meter.turns,
                name=name,
                args=args,
                result=recordable(result),
                error=error,
                milliseconds=round(milliseconds, 3),
            )
        )


@dataclass(frozen=True, kw_only=True)
class _WatchedTool(Tool):
    """A tool that reports its calls."""

    called: Callable[[str, Mapping[str, object], str | None, float, object], None]

    @classmethod
    def of(
        cls, tool: Tool, called: Callable[[str, Mapping[str, object], str | None, float, object], None]
    ) -> "_WatchedTool":
        return cls(**{field.name: getattr(tool, field.name) for field in fields(Tool)}, called=called)

    async def call(self, arguments: Mapping[str, object]) -> Any:
        started = time.perf_counter()
        error: str | None = None
        result: Any = None
        try:
            result = await super().call(arguments)
            return result
        except ToolError as raised:
            error = raised.message
            raise
        finally:
            self.called(self.name, arguments, error, (time.perf_counter() - started) * 1000, result)
