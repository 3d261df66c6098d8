"""The action space `tools`: the model calls the tools itself, natively and several at once; there is no kernel."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from memory_pipelines.errors import InvalidInputError, RefusedError, ToolError
from memory_pipelines.memex.answers import read_answer
from memory_pipelines.memex.budget import Meter
from memory_pipelines.memex.calls import NativeCall, read_calls
from memory_pipelines.memex.events import Event, Observed
from memory_pipelines.memex.frames import fallback
from memory_pipelines.memex.kernels.describing import described
from memory_pipelines.memex.prompt import native_tool, refused_submit
from memory_pipelines.memex.rollout import Plan, Rollout
from memory_pipelines.wording import tokens_of

MARK = "[cut]"
"""What stands for an old result when room was needed."""

SUBMIT = "submit"


@dataclass(frozen=True)
class _Made:
    """What a call came to."""

    text: str
    ok: bool


class ToolRollout(Rollout):
    """A rollout whose model calls tools natively."""

    def __init__(self, plan: Plan, *, meter: Meter, record: Callable[[Event], None]) -> None:
        """Join the parts.

        Args:
            plan: what the agent is.
            meter: counts what is spent.
            record: takes events.
        """
        parameters, self._wrapped = submit_parameters(plan.result_schema)
        native = [native_tool(tool.name, tool.description, tool.parameters) for tool in plan.tools]
        native.append(native_tool(SUBMIT, "Give the result and end the work.", parameters))
        super().__init__(plan, meter=meter, record=record, native=native, mark=MARK)
        self._tools = {tool.name: replace(tool, plain=True) for tool in self._watched()}

    async def run(self, task: str, scope: Mapping[str, Any]) -> Any:
        """Work until a value is submitted; see `Rollout.run`. The scope becomes a part of the task's text."""
        text = given_text(task, scope, tokens=self._plan.scope_tokens)
        self._begin(self._with_notice(text))
        while True:
            response = await self._ask()
            answer = read_answer(response.text, response.finish)
            truncated = response.finish == "length"
            calls = read_calls(response.tool_calls, turn=self._meter.turns, truncated=truncated)
            if response.finish == "refusal" or (answer.refused and not calls):
                raise RefusedError("the model refused the work", turns=self._meter.turns)
            if calls:
                done, value = await self._act(answer.kept, calls)
                if done:
                    return value
            elif self._remind(answer.problem or "malformed", answer.kept):
                value, refused = self._checked(answer.kept)
                self._submitted(answer.kept, refused)
                if refused is None:
                    return value

    async def _act(self, kept: str, calls: Sequence[NativeCall]) -> tuple[bool, Any]:
        """Make the calls of one answer at the same time, then look at what it submits.

        Returns:
            Whether the work is done, and the result.
        """
        self._usable(any_part=any(call.problem is None for call in calls))
        made = await self._make(calls)
        failed = any(not one.ok for one in made.values())
        for number, native in enumerate(calls, start=1):
            if number in made:
                continue
            if failed:
                # As a block that fails after its submit does: the value may rest on what did not happen.
                made[number] = _Made("[error]\nnothing was submitted: another call of the same answer failed", ok=False)
                continue
            value, refused = self._submit(native.arguments)
            if refused is None:
                return True, value
            made[number] = _Made(refused_submit(refused, form=self._plan.form), ok=False)
        told = [made[number].text for number in range(1, len(calls) + 1)]
        told[-1] = self._with_notice(told[-1])
        self._history.observe(kept, told, [native.call for native in calls])
        return False, None

    async def _make(self, calls: Sequence[NativeCall]) -> dict[int, _Made]:
        """Make all calls but those of `submit`; the key is the number of the call in its answer."""
        numbers = [
            number
            for number, native in enumerate(calls, start=1)
            if native.call.name != SUBMIT or native.problem is not None
        ]
        results = await asyncio.gather(
            *(self._call(number, calls[number - 1]) for number in numbers), return_exceptions=True
        )
        made: dict[int, _Made] = {}
        for number, result in zip(numbers, results, strict=True):
            if isinstance(result, BaseException):  # no model can mend it; the other calls have ended meanwhile
                raise result
            made[number] = result
        return made

    async def _call(self, number: int, native: NativeCall) -> _Made:
        name, started = native.call.name, time.perf_counter()
        tool = self._tools.get(name)
        output, error, cut = "", native.problem, 0
        if error is None and tool is None:
            error = f"there is no tool {name!r}; call one of {', '.join([*self._tools, SUBMIT])}"
        if error is not None:
            self._called(name, {}, error, 0.0)
        elif tool is not None:
            try:
                output, cut = shortened(_text(await tool.call(native.arguments)), self._plan.output_chars)
            except ToolError as raised:
                error = raised.message
        milliseconds = round((time.perf_counter() - started) * 1000, 3)
        self._record(
            Observed(
                turn=self._meter.turns,
                number=number,
                output=output,
                cut=cut,
                error=error,
                state="kept",
                milliseconds=milliseconds,
            )
        )
        if error is not None:
            return _Made(f"[error]\n{shortened(error, self._plan.output_chars)[0]}", ok=False)
        return _Made(output or "(nothing)", ok=True)

    def _submit(self, arguments: Mapping[str, Any]) -> tuple[Any, str | None]:
        """The result, or why the value does not fit: `path: message` lines."""
        plain: Any = dict(arguments)
        # Under `value` where the result is no object; models mix the two up, and no value is lost by it.
        inner, bare = plain.get("value"), list(plain) == ["value"]
        first, second = (inner, plain) if self._wrapped and "value" in plain else (plain, inner)
        value, refused = self._checked(first)
        if refused is not None and (self._wrapped or bare):
            other, still = self._checked(second)
            if still is None:
                first, value, refused = second, other, None
        self._submitted(first, refused)
        return value, refused


def submit_parameters(result: Mapping[str, Any] | None) -> tuple[dict[str, Any], bool]:
    """The schema of the arguments of `submit`.

    Args:
        result: JSON schema of the result, None for any value.

    Returns:
        An object schema, and whether it has the result under `value` because the result is no object with fields.
    """
    schema = dict(result or {})
    if schema.get("type") == "object" and schema.get("properties"):
        return schema, False
    shared = {key: schema.pop(key) for key in ("$defs", "definitions") if key in schema}
    return {"type": "object", "properties": {"value": schema}, "required": ["value"], **shared}, True


def given_text(task: str, scope: Mapping[str, Any], *, tokens: int) -> str:
    """The task with all that is in scope, whole: without a kernel there is no other way to it.

    Args:
        task: in words.
        scope: names and values.
        tokens: what the values may cost.

    Returns:
        The text.

    Raises:
        InvalidInputError: a value has no JSON form, or they are too long together.
    """
    if not scope:
        return task.strip()
    texts = {name: _given(name, value) for name, value in scope.items()}
    costs = {name: tokens_of(text) for name, text in texts.items()}
    if sum(costs.values()) > tokens:
        listed = ", ".join(f"{name} {cost:,}" for name, cost in costs.items())
        raise InvalidInputError(
            f"the scope takes about {sum(costs.values()):,} tokens as text and {tokens:,} are allowed ({listed}). "
            "With action_space='tools' there is no kernel to keep it in: give less, put it behind a tool, allow more "
            "by scope_tokens, or use action_space='memex'.",
            tokens=sum(costs.values()),
            limit=tokens,
        )
    parts = [f'<value name="{name}" type="{described(scope[name])}">\n{text}\n</value>' for name, text in texts.items()]
    return "\n\n".join([task.strip(), "What you are given:", *parts])


def shortened(text: str, limit: int) -> tuple[str, int]:
    """A text without its middle.

    Args:
        text: of any length.
        limit: how many characters are kept: three quarters from its beginning, the rest from its end.

    Returns:
        The text with a word about what is missing, and how many characters that are.
    """
    cut = len(text) - limit
    if cut <= 0:
        return text, 0
    tail = limit // 4
    note = f"\n... [{cut:,} of {len(text):,} characters cut: ask for less] ...\n"
    return text[: limit - tail] + note + text[len(text) - tail :], cut


def _given(name: str, value: Any) -> str:
    try:
        return _text(to_jsonable_python(value, fallback=fallback(plain=True)))
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{name}: a {type(value).__name__} has no JSON form, and with action_space='tools' the scope is given as "
            f"text: give plain values, dataclasses or pydantic models ({error})",
            path=name,
        ) from error


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
