"""Asks models through LiteLLM; the only file that imports it, and only when a model is first needed."""

import asyncio
import json
import logging
import os
import random
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from memory_pipelines.errors import GatewayError, GatewayFinalError, GatewayTransientError
from memory_pipelines.gateway.answer_forms import FORMS, OBJECT, SCHEMA, WORDS, as_object, taken_out
from memory_pipelines.gateway.base import Finish, Message, ModelInfo, Request, Response, ToolCall, Usage
from memory_pipelines.gateway.limits import CallLimits, Turnstile, estimate_tokens
from memory_pipelines.gateway.models import describe_model
from memory_pipelines.gateway.patience import Patience, Retrier
from memory_pipelines.gateway.provider_errors import is_refusal, may_be_about_the_schema, translate

_FINISH: Mapping[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
    "refusal": "refusal",
    "safety": "refusal",
}
_LOADING = threading.Lock()


def load_litellm() -> Any:
    """Import LiteLLM so that it fetches nothing, prints nothing and logs no conversation; takes seconds once."""
    with _LOADING:
        # Both are read while it is imported. Without them it asks the network for prices.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        os.environ.setdefault("LITELLM_OFFLINE_MODE", "true")
        # Its types make pydantic warn about a qualifier, also in parts that it loads at the first call.
        warnings.filterwarnings("ignore", message=r".*`ReadOnly` qualifier", category=UserWarning)
        import litellm

        litellm.suppress_debug_info = True
        litellm.turn_off_message_logging = True
        if "LITELLM_LOG" not in os.environ:
            # Its warnings and errors quote requests; what we need of them is in the errors it raises.
            logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
        return litellm


class LiteLLMGateway:
    """Asks any model that LiteLLM knows, within limits, with patience, and with errors turned into ours."""

    def __init__(
        self,
        *,
        limits: CallLimits | None = None,
        patience: Patience | None = None,
        call_seconds: float = 120.0,
        context_tokens: int | None = None,
        api_base: str | None = None,
        api_key: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Keep the settings; nothing is loaded or opened.

        Args:
            limits: on all calls of this gateway; default 16 at once.
            patience: with transient errors; default 4 attempts in 60 seconds.
            call_seconds: until one call is given up.
            context_tokens: wins over what is known of a model.
            api_base: the provider's address; default by LiteLLM's conventions (OPENAI_API_BASE and so on).
            api_key: the provider's key; default by LiteLLM's conventions (OPENAI_API_KEY and so on).
            clock: seconds, never going back.
            sleep: waits that many seconds.
            chance: a number from 0 to 1, for the jitter.
            now: the time, aware, for Retry-After dates.
        """
        self._turnstile = Turnstile(limits or CallLimits(), clock=clock, sleep=sleep)
        self._retrier = Retrier(patience or Patience(), clock=clock, sleep=sleep, chance=chance)
        self._call_seconds = call_seconds
        self._context_tokens = context_tokens
        self._api_base = api_base
        self._api_key = api_key
        self._clock = clock
        self._now = now
        self._forms: dict[str, int] = {}  # model to the first of FORMS that it takes
        self._used = False
        self._closed = False

    async def complete(self, request: Request) -> Response:
        """Ask, waiting for limits and retrying transient errors; see Gateway.complete.

        Args:
            request: what to ask.

        Raises:
            GatewayError: mapped from the provider's error.
        """
        if self._closed:
            raise GatewayFinalError("The gateway is closed; open a new one.", model=request.model, retry_after=None)
        self._used = True
        litellm = await asyncio.to_thread(load_litellm)  # seconds of work that would stop the event loop
        return await self._retrier.call(lambda: self._attempt(litellm, request))

    def describe(self, model: str) -> ModelInfo:
        """Say what is known of a model, without a call."""
        prices = cast("Mapping[str, Mapping[str, object]]", load_litellm().model_cost)
        return describe_model(model, prices, context_tokens=self._context_tokens)

    async def close(self) -> None:
        """Release connections; further calls are errors."""
        self._closed = True
        if self._used:
            await load_litellm().close_litellm_async_clients()

    async def _attempt(self, litellm: Any, request: Request) -> Response:
        if request.answer_schema is None:
            return await self._ask(litellm, request, form=WORDS)
        first = self._forms.get(request.model)
        if first is None:
            first = 0 if _takes_schema(litellm, request.model) else FORMS.index(WORDS)
        doubt: GatewayError | None = None
        for number, form in enumerate(FORMS[first:], start=first):
            try:
                response = await self._ask(litellm, request, form=form, otherwise=doubt)
            except _SchemaInDoubtError as error:
                doubt = doubt or error.error
                continue
            self._forms[request.model] = number  # only now is it known that the form was the reason
            return response
        raise AssertionError("words are always taken")  # pragma: no cover

    async def _ask(
        self, litellm: Any, request: Request, *, form: str, otherwise: GatewayError | None = None
    ) -> Response:
        async with self._turnstile.call(estimate_tokens(request)) as ticket:
            started = self._clock()
            try:
                async with asyncio.timeout(self._call_seconds + 5):  # its own timeout misses stalled connections
                    answer = await litellm.acompletion(**self._arguments(request, form=form))
            except TimeoutError:
                message = f"No answer of {request.model!r} within {self._call_seconds:g} s; it may pass later."
                raise GatewayTransientError(message, model=request.model, retry_after=None) from None
            except Exception as error:  # the boundary to LiteLLM: what is no error of a provider goes on as it is
                if is_refusal(error):
                    seconds = self._clock() - started
                    return Response(
                        text="", finish="refusal", usage=Usage(calls=1, seconds=seconds), model=request.model
                    )
                ours = translate(error, request, now=self._now(), key=self._api_key)
                if ours is None:
                    raise
                if form != WORDS and may_be_about_the_schema(error):
                    raise _SchemaInDoubtError(ours) from None
                # The chain is cut: a provider's error may quote the conversation.
                raise (ours if otherwise is None or ours.retryable else otherwise) from None
            response = read_answer(answer, request, seconds=self._clock() - started)
            ticket.used(response.usage.tokens)
            return response

    def _arguments(self, request: Request, *, form: str) -> dict[str, Any]:
        messages = [_message(message) for message in request.messages]
        arguments: dict[str, Any] = {
            "model": request.model,
            "messages": messages,
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "timeout": self._call_seconds,
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,  # some models take no temperature
        }
        if request.answer_schema is not None:
            wanted = request.answer_schema if form == WORDS else as_object(request.answer_schema)
            if form == SCHEMA:
                schema = {"name": "answer", "schema": wanted, "strict": False}
                arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
            elif form == OBJECT:
                arguments["response_format"] = {"type": "json_object", "schema": wanted}
            if form != SCHEMA:  # in words with the object form too: servers that take it may pass over the schema in it
                described = json.dumps(wanted, ensure_ascii=False)
                messages[-1]["content"] += f"\n\nAnswer with JSON alone, of this JSON schema:\n{described}"
        if request.tools:
            arguments["tools"] = list(request.tools)
        if self._api_base:
            arguments["api_base"] = self._api_base
        if self._api_key:
            arguments["api_key"] = self._api_key
        return arguments


class _SchemaInDoubtError(Exception):
    def __init__(self, error: GatewayError) -> None:
        super().__init__()
        self.error = error


def read_answer(answer: Any, request: Request, *, seconds: float) -> Response:
    """Read what LiteLLM returned.

    Args:
        answer: its ModelResponse.
        request: what was asked.
        seconds: how long it took.

    Raises:
        GatewayTransientError: the answer holds no choice.
    """
    if not getattr(answer, "choices", None):
        message = f"The answer of {request.model!r} is empty; it may pass later."
        raise GatewayTransientError(message, model=request.model, retry_after=None)
    choice = answer.choices[0]
    message = choice.message
    calls = tuple(
        ToolCall(id=call.id or "", name=call.function.name or "", arguments=call.function.arguments or "")
        for call in message.tool_calls or ()
    )
    finish = _FINISH.get(str(choice.finish_reason).lower(), "tool_calls" if calls else "stop")
    if getattr(message, "refusal", None) or _fields(message, "provider_specific_fields").get("refusal"):
        finish = "refusal"
    counted = getattr(answer, "usage", None)
    usage = Usage(
        calls=1,
        prompt_tokens=getattr(counted, "prompt_tokens", None) or 0,
        completion_tokens=getattr(counted, "completion_tokens", None) or 0,
        cost=float(_fields(answer, "_hidden_params").get("response_cost") or 0.0),  # None without a known price
        seconds=max(0.0, seconds),
    )
    text = message.content or ""
    if request.answer_schema is not None:
        text = taken_out(text, request.answer_schema)
    return Response(text=text, finish=finish, tool_calls=calls, usage=usage, model=answer.model or request.model)


def _fields(thing: Any, name: str) -> dict[str, Any]:
    return cast("dict[str, Any]", getattr(thing, name, None) or {})


def _message(message: Message) -> dict[str, Any]:
    form: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        form["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        form["tool_call_id"] = message.tool_call_id
    return form


def _takes_schema(litellm: Any, model: str) -> bool:
    """Whether LiteLLM passes an answer schema on; else it would drop it without a word."""
    try:
        known = litellm.get_supported_openai_params(model=model)
    except ValueError:
        return True
    return known is None or "response_format" in known
