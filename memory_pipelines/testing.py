"""Public doubles for tests of code that asks models: no network, no waiting, the same every time."""

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from memory_pipelines.errors import GatewayFinalError
from memory_pipelines.gateway.base import ModelInfo, Request, Response, ToolCall, Usage

Answer = str | Response | Exception
"""What a script says: a text, a whole response, or an error to raise."""


class ScriptedGateway:
    r"""A gateway that answers from a script and remembers what it was asked.

    An answer is a text, a whole `Response`, or an exception to raise. Where an answer has no usage of its own it is
    counted: four characters a token, of messages, calls and the schemas of tools.

    Example:
        gateway = ScriptedGateway(["```python\nsubmit(4)\n```"])
        outcome = await Agent(model="scripted", gateway=gateway, kernel="inprocess", result=int).run("2 + 2?")
        assert gateway.calls == 1
    """

    def __init__(
        self,
        answers: Sequence[Answer] | Callable[[Request], Answer | Awaitable[Answer]],
        *,
        context_tokens: int = 8192,
        profile: Literal["small", "strong"] = "small",
        tool_calls: bool = False,
    ) -> None:
        """Keep the script.

        Args:
            answers: one for each call, in order; or a function of the request, sync or async.
            context_tokens: what `describe` says of every model.
            profile: what `describe` says of every model.
            tool_calls: what `describe` says of every model: whether it calls tools natively.
        """
        self._answer = answers if callable(answers) else _in_turn(answers)
        self._context_tokens = context_tokens
        self._profile: Literal["small", "strong"] = profile
        self._tool_calls = tool_calls
        self.requests: list[Request] = []
        self.closed = False

    @property
    def calls(self) -> int:
        """How often it was asked."""
        return len(self.requests)

    async def complete(self, request: Request) -> Response:
        """Give the next answer.

        Args:
            request: kept in `requests`.

        Returns:
            The answer of the script.

        Raises:
            GatewayFinalError: the script has no further answer, or the gateway is closed.
            Exception: what the script says.
        """
        if self.closed:
            raise GatewayFinalError("the scripted gateway is closed")
        self.requests.append(request)
        given = self._answer(request)
        answer = await given if inspect.isawaitable(given) else given
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, str):
            answer = Response(text=answer, model=request.model)
        if "usage" in answer.model_fields_set:
            return answer
        sent = [text for message in request.messages for text in (message.content, *_called(message.tool_calls))]
        sent += [json.dumps(tool) for tool in request.tools]
        usage = Usage(
            calls=1,
            prompt_tokens=_tokens("".join(sent)),
            completion_tokens=_tokens("".join([answer.text, *_called(answer.tool_calls)])),
        )
        return answer.model_copy(update={"usage": usage})

    def describe(self, model: str) -> ModelInfo:
        """Say of every model what the script was made with."""
        return ModelInfo(
            name=model, context_tokens=self._context_tokens, profile=self._profile, tool_calls=self._tool_calls
        )

    async def close(self) -> None:
        """End it; further calls are errors."""
        self.closed = True


def calling(*calls: tuple[str, object], text: str = "") -> Response:
    """Make an answer that calls tools natively.

    Args:
        calls: name and arguments of each: a dict, or a text that stands for what a model wrote, maybe malformed.
        text: what the model says beside.

    Returns:
        The answer; the ids of its calls are `c1`, `c2` and so on.

    Example:
        ScriptedGateway([calling(("search", {"query": "tea"})), calling(("submit", {"value": 4}))])
    """
    made = tuple(
        ToolCall(id=f"c{number}", name=name, arguments=given if isinstance(given, str) else json.dumps(given))
        for number, (name, given) in enumerate(calls, start=1)
    )
    return Response(text=text, finish="tool_calls", tool_calls=made)


def _in_turn(answers: Sequence[Answer]) -> Callable[[Request], Answer]:
    left = list(answers)

    def answer(request: Request) -> Answer:
        if not left:
            raise GatewayFinalError(
                f"the script has {len(answers)} answers and was asked once more, for {request.purpose!r}; add an answer"
            )
        return left.pop(0)

    return answer


def _called(calls: Sequence[ToolCall]) -> list[str]:
    return [call.name + call.arguments for call in calls]


def _tokens(text: str) -> int:
    return -(-len(text) // 4)
