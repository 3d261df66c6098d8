"""The doubles that tests of others rest on."""

import asyncio

import pytest

from memory_pipelines.errors import GatewayFinalError, RateLimitedError
from memory_pipelines.gateway.base import Message, Request, Response, ToolCall, Usage
from memory_pipelines.testing import ScriptedGateway, calling


def request(text: str = "12345") -> Request:
    return Request(purpose="distill", model="m", messages=(Message(role="user", content=text),))


def ask(gateway: ScriptedGateway, *requests: Request) -> list[Response]:
    async def main() -> list[Response]:
        return [await gateway.complete(one) for one in requests]

    return asyncio.run(main())


def test_answers_come_in_order_and_requests_are_kept() -> None:
    gateway = ScriptedGateway(["one", Response(text="two", finish="length")])

    first, second = ask(gateway, request("a"), request("b"))

    assert (first.text, second.text, second.finish) == ("one", "two", "length")
    assert [one.messages[0].content for one in gateway.requests] == ["a", "b"]
    assert gateway.calls == 2


def test_usage_is_four_characters_a_token_rounded_up() -> None:
    (response,) = ask(ScriptedGateway(["123456789"]), request("12345"))

    assert response.usage == Usage(calls=1, prompt_tokens=2, completion_tokens=3)


def test_usage_counts_calls_and_the_schemas_of_tools_too() -> None:
    call = ToolCall(id="c1", name="find", arguments="{}1234567")  # 13 characters
    asked = Request(
        purpose="agent",
        model="m",
        messages=(Message(role="assistant", content="123", tool_calls=(call,)),),
        tools=({"a": "b"},),  # 10 characters
    )

    (response,) = ask(ScriptedGateway([calling(("find", "{}"), text="12")]), asked)

    assert response.usage == Usage(calls=1, prompt_tokens=7, completion_tokens=2)
    assert response.tool_calls[0].name == "find"


def test_a_function_sees_the_request() -> None:
    gateway = ScriptedGateway(lambda asked: asked.purpose)

    assert ask(gateway, request())[0].text == "distill"


def test_a_script_can_fail() -> None:
    with pytest.raises(RateLimitedError):
        ask(ScriptedGateway([RateLimitedError("slow down")]), request())


def test_a_script_that_is_too_short_says_so() -> None:
    gateway = ScriptedGateway(["one"])

    with pytest.raises(GatewayFinalError, match="1 answers"):
        ask(gateway, request(), request())


def test_a_closed_gateway_answers_no_more() -> None:
    gateway = ScriptedGateway(["one"])
    asyncio.run(gateway.close())

    with pytest.raises(GatewayFinalError, match="closed"):
        ask(gateway, request())
    assert gateway.calls == 0


def test_it_describes_every_model_as_it_was_told() -> None:
    info = ScriptedGateway([], context_tokens=500, profile="strong").describe("any")

    assert (info.name, info.context_tokens, info.profile) == ("any", 500, "strong")
