"""The gateway against LiteLLM itself; the provider is a small server on the loopback interface."""

import asyncio
import gc
import inspect
import json
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from memory_pipelines.errors import (
    ContextTooLongError,
    GatewayError,
    GatewayFinalError,
    GatewayTransientError,
    RateLimitedError,
)
from memory_pipelines.gateway.base import Message, Request, Response, ToolCall
from memory_pipelines.gateway.litellm_gateway import LiteLLMGateway, load_litellm
from memory_pipelines.gateway.models import describe_model
from memory_pipelines.gateway.patience import Patience
from memory_pipelines.gateway.provider_errors import is_refusal, may_be_about_the_schema, retry_after, translate
from memory_pipelines.memex import Agent

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
CONVERSATION = "Ana moved to Lisbon in spring and prefers metric units."
KEY = "key-of-the-test-42"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.fixture(scope="module", autouse=True)
def reached() -> list[str]:
    """Load LiteLLM before the tests; returns what it tried to reach meanwhile.

    A warning about another test's leftovers, raised by the garbage collector in the middle of the import, would break
    it for good, so there is no collection until it is done.
    """
    tried: list[str] = []

    def refuse(*args: Any, **_: Any) -> Any:
        tried.append(str(args[-1] if isinstance(args[-1], tuple) else args[0]))
        raise OSError("no network")

    gc.collect()
    gc.disable()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        load_litellm()
    gc.enable()
    return tried


def test_loading_litellm_reaches_for_nothing(reached: list[str]) -> None:
    assert reached == []


def request(**given: Any) -> Request:
    values: dict[str, Any] = {"purpose": "agent", "model": "openai/gpt-4.1", "max_tokens": 50}
    return Request(messages=(Message(role="user", content=CONVERSATION),), **(values | given))


def answer(content: str | None = "hi", *, finish: str = "stop", **message: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4.1-2025",
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
        ],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500},
    }


class Provider:
    """Gives prepared answers in order and keeps what it was asked."""

    def __init__(self, *outcomes: tuple[int, dict[str, Any]] | Callable[[], Any], headers: dict[str, str]) -> None:
        self.outcomes = list(outcomes)
        self.headers = headers
        self.asked: list[dict[str, Any]] = []
        self.authorization: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head)}
        self.asked.append(json.loads(await reader.readexactly(int(fields["content-length"]))))
        self.authorization.append(fields.get("authorization", ""))
        status, body = self.outcomes.pop(0)
        data = json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} X", "content-type: application/json", f"content-length: {len(data)}"]
        lines += ["connection: close", *(f"{name}: {value}" for name, value in self.headers.items())]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        await writer.drain()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def gateway(
    *outcomes: tuple[int, dict[str, Any]], slept: list[float] | None = None, headers: dict[str, str] | None = None
) -> AsyncIterator[tuple[LiteLLMGateway, Provider]]:
    provider = Provider(*outcomes, headers=headers or {})
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    waits: list[float] = [] if slept is None else slept

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    opened = LiteLLMGateway(
        patience=Patience(attempts=3),
        call_seconds=20,
        api_base=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1",
        api_key=KEY,
        sleep=sleep,
        chance=lambda: 1.0,
        now=lambda: NOW,
    )
    try:
        yield opened, provider
    finally:
        await opened.close()
        server.close()
        await server.wait_closed()


def ask(*outcomes: tuple[int, dict[str, Any]], **given: Any) -> tuple[Response, Provider]:
    async def main() -> tuple[Response, Provider]:
        async with gateway(*outcomes) as (opened, provider):
            return await opened.complete(request(**given)), provider

    return asyncio.run(main())


def fail(*outcomes: tuple[int, dict[str, Any]], headers: dict[str, str] | None = None, **given: Any) -> GatewayError:
    async def main() -> GatewayError:
        async with gateway(*outcomes, headers=headers) as (opened, _):
            with pytest.raises(GatewayError) as caught:
                await opened.complete(request(**given))
            return caught.value

    return asyncio.run(main())


def error(message: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "x", "code": code}}


def test_an_answer_comes_with_its_usage_and_cost() -> None:
    response, provider = ask((200, answer("hello")))

    assert (response.text, response.finish, response.model) == ("hello", "stop", "gpt-4.1-2025")
    assert (response.usage.calls, response.usage.prompt_tokens, response.usage.completion_tokens) == (1, 1000, 500)
    # 1000 tokens at $2 and 500 at $8 a million.
    assert response.usage.cost == pytest.approx(0.006)
    assert response.usage.seconds > 0
    (asked,) = provider.asked
    assert asked["model"] == "gpt-4.1"
    assert asked["messages"] == [{"role": "user", "content": CONVERSATION}]
    assert (asked["temperature"], asked["max_tokens"]) == (0.0, 50)
    assert provider.authorization == [f"Bearer {KEY}"]


def test_an_unknown_model_costs_nothing() -> None:
    response, _ = ask((200, answer() | {"model": "qwen"}), model="openai/our-own-qwen")

    assert response.usage.cost == 0.0
    assert response.usage.tokens == 1500


@pytest.mark.parametrize(
    ("given", "finish"),
    [
        (answer("x", finish="length"), "length"),
        (answer("", finish="content_filter"), "refusal"),
        (answer(None, refusal="I will not."), "refusal"),
        (answer(None), "stop"),
    ],
)
def test_the_end_of_an_answer_is_told(given: dict[str, Any], finish: str) -> None:
    response, _ = ask((200, given))

    assert response.finish == finish
    assert isinstance(response.text, str)


def test_native_tool_calls_go_both_ways() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1'}}
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
    past = (
        Message(role="user", content="add"),
        Message(role="assistant", content="", tool_calls=(ToolCall(id="c0", name="add", arguments="{}"),)),
        Message(role="tool", content="3", tool_call_id="c0"),
    )

    async def main() -> tuple[Response, dict[str, Any]]:
        async with gateway((200, answer(None, finish="tool_calls", tool_calls=[call]))) as (opened, provider):
            asked = Request(purpose="agent", model="openai/gpt-4.1", messages=past, tools=(tool,))
            return await opened.complete(asked), provider.asked[0]

    response, asked = asyncio.run(main())
    assert response.finish == "tool_calls"
    assert response.tool_calls == (ToolCall(id="c1", name="add", arguments='{"a": 1'),)
    assert asked["tools"] == [tool]
    assert asked["messages"][1]["tool_calls"][0]["id"] == "c0"
    assert asked["messages"][2]["tool_call_id"] == "c0"


def test_an_agent_of_native_calls_speaks_the_providers_form() -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def call(name: str, number: int, arguments: str) -> dict[str, Any]:
        return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}

    both = [call("add", 1, '{"a": 1, "b": 2}'), call("add", 2, '{"a": 1')]
    end = [call("submit", 3, '{"value": 3}')]

    async def main() -> tuple[Any, list[dict[str, Any]]]:
        answers = [(200, answer(None, finish="tool_calls", tool_calls=calls)) for calls in (both, end)]
        async with gateway(*answers) as (opened, provider):
            agent = Agent(model="openai/gpt-4.1", gateway=opened, tools=[add], action_space="tools", result=int)
            return (await agent.run("1 + 2?")).value, provider.asked

    value, (first, second) = asyncio.run(main())

    assert value == 3
    assert [tool["function"]["name"] for tool in first["tools"]] == ["add", "submit"]
    said, good, bad = second["messages"][2:]
    assert [one["function"]["arguments"] for one in said["tool_calls"]] == ['{"a": 1, "b": 2}', "{}"]
    assert (good["role"], good["tool_call_id"], good["content"]) == ("tool", "c1", "3")
    assert (bad["tool_call_id"], bad["content"]) == ("c2", '[error]\nthe arguments are not a JSON object: {"a": 1')


def test_an_answer_schema_binds_the_answer() -> None:
    _, provider = ask((200, answer('{"a": 1}')), answer_schema=SCHEMA)

    sent = provider.asked[0]["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["schema"] == SCHEMA
    assert sent["json_schema"]["strict"] is False


def asked_with_schema(*outcomes: tuple[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """Ask twice with a schema; return all that the provider was asked."""

    async def main() -> list[dict[str, Any]]:
        async with gateway(*outcomes) as (opened, provider):
            await opened.complete(request(answer_schema=SCHEMA))
            await opened.complete(request(answer_schema=SCHEMA))
            return provider.asked

    return asyncio.run(main())


LIST = {"type": "array", "items": {"type": "integer"}}


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ('{"answer": [1, 2]}', "[1, 2]"),
        ("[1, 2]", "[1, 2]"),
        ('{"answer": [1, 2', '{"answer": [1, 2'),
        ('{"other": [1]}', '{"other": [1]}'),
    ],
)
def test_a_list_travels_in_an_object(said: str, text: str) -> None:
    response, provider = ask((200, answer(said)), answer_schema=LIST)

    sent = provider.asked[0]["response_format"]["json_schema"]["schema"]
    assert sent["type"] == "object"
    assert sent["required"] == ["answer"]
    assert sent["properties"]["answer"] == LIST
    assert response.text == text


NO_SCHEMA = error("response_format of type json_schema is not supported")
NO_FORMAT = error("response_format is not supported")


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_server_that_does_not_know_the_form_is_given_the_older_one_and_remembered(status: int) -> None:
    first, second, third = asked_with_schema((status, NO_SCHEMA), (200, answer("{}")), (200, answer("{}")))

    assert first["response_format"]["type"] == "json_schema"
    for older in (second, third):
        assert older["response_format"] == {"type": "json_object", "schema": SCHEMA}
        assert json.dumps(SCHEMA) in older["messages"][-1]["content"]


def test_a_server_that_takes_no_form_is_asked_in_words_and_remembered() -> None:
    refused = (400, NO_FORMAT)
    *_, third, fourth = asked_with_schema(refused, refused, (200, answer("{}")), (200, answer("{}")))

    for plain in (third, fourth):
        assert "response_format" not in plain
        assert json.dumps(SCHEMA) in plain["messages"][-1]["content"]


def test_a_bad_request_that_is_not_about_the_schema_stays_one() -> None:
    async def main() -> list[dict[str, Any]]:
        bad = (400, error("max_tokens is too large"))
        async with gateway(bad, bad, bad, (200, answer("{}"))) as (opened, provider):
            with pytest.raises(GatewayFinalError, match="max_tokens is too large"):
                await opened.complete(request(answer_schema=SCHEMA))
            await opened.complete(request(answer_schema=SCHEMA))
            return provider.asked

    assert asyncio.run(main())[3]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (401, error("Incorrect API key provided"), GatewayFinalError, False),
        (403, error("not allowed"), GatewayFinalError, False),
        (404, error("The model `gpt-4.1` does not exist"), GatewayFinalError, False),
        (400, error("bad value"), GatewayFinalError, False),
        (422, error("bad value"), GatewayFinalError, False),
        (400, error("This model's maximum context length is 8192 tokens"), ContextTooLongError, False),
        (429, error("You exceeded your current quota", "insufficient_quota"), GatewayFinalError, False),
    ],
)
def test_final_answers_are_final(status: int, body: dict[str, Any], kind: type[GatewayError], retryable: bool) -> None:
    failure = fail((status, body))

    assert type(failure) is kind
    assert failure.retryable is retryable
    assert (failure.model, failure.attempts) == ("openai/gpt-4.1", 1)


@pytest.mark.parametrize("status", [408, 500, 502, 503, 529])
def test_passing_troubles_are_tried_again(status: int) -> None:
    async def main() -> tuple[Response, list[float]]:
        slept: list[float] = []
        away = (status, error("try later"))
        async with gateway(away, away, (200, answer("at last")), slept=slept) as (opened, _):
            return await opened.complete(request()), slept

    response, slept = asyncio.run(main())
    assert response.text == "at last"
    assert slept == [1.0, 2.0]


@pytest.mark.parametrize("value", ["7", format_datetime(datetime(2026, 5, 1, 12, 0, 7, tzinfo=UTC), usegmt=True)])
def test_retry_after_is_honoured(value: str) -> None:
    async def main() -> list[float]:
        slept: list[float] = []
        limited = (429, error("slow down"))
        async with gateway(limited, (200, answer()), slept=slept, headers={"Retry-After": value}) as (opened, _):
            await opened.complete(request())
            return slept

    assert asyncio.run(main()) == [7.0]


def test_a_rate_limit_beyond_patience_says_when() -> None:
    failure = fail((429, error("slow down")), headers={"Retry-After": "3600"})

    assert type(failure) is RateLimitedError
    assert (failure.retry_after, failure.attempts) == (3600.0, 1)


def test_nobody_listening_is_transient() -> None:
    async def sleep(_: float) -> None:
        return

    async def main() -> None:
        closed = LiteLLMGateway(
            api_base="http://127.0.0.1:9/v1", api_key=KEY, sleep=sleep, patience=Patience(attempts=2)
        )
        with pytest.raises(GatewayTransientError) as caught:
            await closed.complete(request())
        assert caught.value.attempts == 2
        await closed.close()

    asyncio.run(main())


def test_a_missing_key_is_final_and_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    async def main() -> None:
        keyless = LiteLLMGateway()
        with pytest.raises(GatewayFinalError, match="OPENAI_API_KEY"):
            await keyless.complete(request())
        await keyless.close()

    asyncio.run(main())


def test_an_unknown_provider_is_final_and_says_how_models_are_written() -> None:
    assert "openai/gpt-5" in fail(model="no-such-model").message


def test_errors_and_logs_hold_neither_key_nor_conversation(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    failure = fail((400, error(f"cannot read {CONVERSATION!r} with {KEY}")))
    other = fail((401, error(f"Incorrect API key provided: {KEY}")))

    for text in (str(failure), repr(failure.facts), str(other), caplog.text):
        assert "Lisbon" not in text
        assert KEY not in text
    assert failure.__suppress_context__
    assert "Incorrect API key provided" in other.message


@asynccontextmanager
async def silence(**given: Any) -> AsyncIterator[tuple[LiteLLMGateway, asyncio.Event]]:
    """A provider that takes a call and never answers; the event says that it was called."""
    called, gone = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set()
        await reader.read()  # until the client goes away
        writer.close()
        await writer.wait_closed()
        gone.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    opened = LiteLLMGateway(api_base=f"http://127.0.0.1:{port}/v1", api_key=KEY, patience=Patience(attempts=1), **given)
    try:
        yield opened, called
    finally:
        await opened.close()
        async with asyncio.timeout(10):
            await gone.wait()
        server.close()
        await server.wait_closed()


def test_cancelling_stops_the_call() -> None:
    async def main() -> None:
        async with silence() as (opened, called):
            call = asyncio.create_task(opened.complete(request()))
            async with asyncio.timeout(10):
                await called.wait()
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call

    asyncio.run(main())


def test_no_answer_in_time_is_transient() -> None:
    async def main() -> None:
        async with silence(call_seconds=0.2) as (opened, _):
            with pytest.raises(GatewayTransientError):
                await opened.complete(request())

    asyncio.run(main())


def test_a_closed_gateway_is_an_error_and_another_still_works() -> None:
    async def main() -> str:
        async with gateway((200, answer("one"))) as (first, _):
            await first.complete(request())
        with pytest.raises(GatewayFinalError, match="closed"):
            await first.complete(request())
        async with gateway((200, answer("two"))) as (second, _):
            return (await second.complete(request())).text

    assert asyncio.run(main()) == "two"


def exceptions() -> list[type[Exception]]:
    litellm = load_litellm()
    found = {kind for _, kind in inspect.getmembers(litellm.exceptions, inspect.isclass) if issubclass(kind, Exception)}
    assert len(found) > 20
    return sorted(found, key=lambda kind: kind.__name__)


def made(kind: type[Exception]) -> Exception:
    """Build an exception of any class with whatever its constructor demands."""
    response = httpx.Response(400, request=httpx.Request("POST", "https://example.com"))
    ready: dict[str, Any] = {"response": response, "status_code": 400, "failures": [], "request_data": {}}
    ready |= {"current_cost": 1.0, "max_budget": 1.0}
    parameters = inspect.signature(kind.__init__).parameters.values()
    needed = [p for p in parameters if p.name != "self" and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return kind(**{p.name: ready.get(p.name, "x") for p in needed if p.default is p.empty})


def test_every_exception_of_litellm_is_mapped() -> None:
    unmapped = []
    for kind in exceptions():
        error = made(kind)
        if not is_refusal(error) and translate(error, request(), now=NOW) is None:
            unmapped.append(kind.__name__)

    assert unmapped == []


@pytest.mark.parametrize(
    ("names", "retryable"),
    [
        (["Timeout", "APIConnectionError", "RateLimitError", "ServiceUnavailableError", "InternalServerError"], True),
        (["BadGatewayError", "APIResponseValidationError", "JSONSchemaValidationError", "OpenAIError"], True),
        (["AuthenticationError", "NotFoundError", "BadRequestError", "PermissionDeniedError"], False),
        (
            ["ContextWindowExceededError", "UnsupportedParamsError", "PaymentRequiredError", "BudgetExceededError"],
            False,
        ),
    ],
)
def test_retrying_is_for_what_passes(names: list[str], retryable: bool) -> None:
    by_name = {kind.__name__: kind for kind in exceptions()}
    for name in names:
        ours = translate(made(by_name[name]), request(), now=NOW)
        assert ours is not None
        assert (name, ours.retryable) == (name, retryable)


def test_a_safety_system_is_a_refusal_not_a_failure() -> None:
    by_name = {kind.__name__: kind for kind in exceptions()}

    assert is_refusal(made(by_name["ContentPolicyViolationError"]))
    assert not may_be_about_the_schema(made(by_name["ContentPolicyViolationError"]))
    response, _ = ask((400, error("flagged by our safety system", "content_policy_violation")))
    assert response.finish == "refusal"


def test_what_is_no_error_of_a_provider_is_left_alone() -> None:
    assert translate(KeyError("x"), request(), now=NOW) is None
    assert translate(asyncio.CancelledError(), request(), now=NOW) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Fri, 01 May 2026 12:01:00 GMT"}, 60.0),
        ({"retry-after": "Fri, 01 May 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=NOW) == seconds


PRICES = {
    "gpt-x": {"max_input_tokens": 100_000, "input_cost_per_token": 1e-6, "litellm_provider": "openai"},
    "local/free": {"max_input_tokens": 4096, "input_cost_per_token": 0, "litellm_provider": "local"},
}


@pytest.mark.parametrize(
    ("model", "context", "priced"),
    [
        ("openai/gpt-x", 100_000, True),
        ("gpt-x", 100_000, True),
        ("ollama/gpt-x", 8192, False),
        ("?", 8192, False),
        ("local/free", 4096, False),
    ],
)
def test_the_table_of_models_is_read_by_provider(model: str, context: int, priced: bool) -> None:
    info = describe_model(model, PRICES)

    assert (info.name, info.context_tokens, info.priced) == (model, context, priced)
    assert describe_model(model, PRICES, context_tokens=2048).context_tokens == 2048


@pytest.mark.parametrize(
    ("model", "profile"),
    [
        ("anthropic/claude-sonnet-4-5", "strong"),
        ("bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0", "strong"),
        ("openai/gpt-5", "strong"),
        ("gpt-4.1", "strong"),
        ("o3", "strong"),
        ("gemini/gemini-2.5-pro", "strong"),
        ("openai/gpt-5-nano", "small"),
        ("openai/gpt-3.5-turbo", "small"),
        ("openai/qwen2.5-coder-1.5b", "small"),
        ("ollama/llama3.1", "small"),
        ("groq/deepseek-r1-distill-llama-70b", "small"),
        ("offline", "small"),
    ],
)
def test_only_known_families_are_strong(model: str, profile: str) -> None:
    assert describe_model(model, {}).profile == profile


def test_the_real_table_knows_a_well_known_model() -> None:
    info = LiteLLMGateway().describe("openai/gpt-4.1")

    assert info.context_tokens > 1_000_000
    assert (info.profile, info.priced, info.tool_calls) == ("strong", True, True)


def test_native_tool_calls_are_only_expected_where_the_table_says_so() -> None:
    table = {"gpt-x": {"supports_function_calling": True, "litellm_provider": "openai"}, "gpt-y": {}}

    assert [describe_model(name, table).tool_calls for name in ("gpt-x", "openai/gpt-x", "gpt-y", "?", "offline")] == [
        True,
        True,
        False,
        False,
        False,
    ]
