"""One argument between action spaces: the same agent by code, by code as a native call, and by native tool calls."""

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from memory_pipelines.errors import (
    BadOutputError,
    BudgetExceededError,
    InvalidInputError,
    RefusedError,
)
from memory_pipelines.gateway.base import Message, Response, ToolCall
from memory_pipelines.memex import Agent, Budget, Limits, Outcome
from memory_pipelines.testing import ScriptedGateway, calling


class Total(BaseModel):
    city: str
    cents: int


@dataclass
class Order:
    city: str
    cents: int


ORDERS = [Order("Graz", 700), Order("Wien", 150), Order("Graz", 25)]


async def price(city: str, cents: int) -> int:
    """Add the city's tax, in cents."""
    return cents + {"Graz": 10, "Wien": 20}[city]


def rate(city: str) -> str:
    """Say a city's rate."""
    return f"rate of {city}"


def py(code: str) -> str:
    return f"```python\n{code}\n```"


def block(code: str, text: str = "") -> Response:
    return calling(("python", {"code": code}), text=text)


def agent(gateway: ScriptedGateway, **options: Any) -> Agent[Any]:
    return Agent(**{"model": "scripted", "gateway": gateway, "kernel": "inprocess", **options})


def run(made: Agent[Any], task: str = "Do it.", **options: Any) -> Outcome[Any]:
    return asyncio.run(made.run(task, **options))


def last(gateway: ScriptedGateway, number: int = 1) -> list[Message]:
    return list(gateway.requests[-1].messages[-number:])


def kinds(outcome: Outcome[Any]) -> list[str]:
    return [event.kind for event in outcome.trajectory.events]


class TestOneArgument:
    CODE = (
        "graz = [order for order in orders if order.city == 'Graz']\n"
        "cents = await price('Graz', sum(order.cents for order in graz))\ncents"
    )
    SUBMIT = "submit({'city': 'Graz', 'cents': cents})"
    SCRIPTS = (
        ({"action_channel": "text"}, [py(CODE), py(SUBMIT)]),
        ({"action_channel": "tool"}, [block(CODE), block(SUBMIT)]),
        (
            {"action_space": "tools"},
            [
                calling(("price", {"city": "Graz", "cents": 725})),
                calling(("submit", {"city": "Graz", "cents": 735})),
            ],
        ),
    )

    @pytest.mark.parametrize("kernel", ["inprocess", "subprocess"])
    @pytest.mark.parametrize(("options", "answers"), SCRIPTS)
    def test_the_same_agent_gives_the_same_value_and_events(self, options: Any, answers: Any, kernel: str) -> None:
        gateway = ScriptedGateway(answers)

        outcome = run(agent(gateway, kernel=kernel, tools=[price], result=Total, **options), scope={"orders": ORDERS})

        assert outcome.value == Total(city="Graz", cents=735)
        assert [(one.name, one.args) for one in outcome.trajectory.tool_calls] == [
            ("price", {"city": "Graz", "cents": 725})
        ]
        assert [event.ok for event in outcome.trajectory.events if event.kind == "submit"] == [True]
        assert outcome.trajectory.outputs[0].output == "735"
        header = outcome.trajectory.header
        assert header is not None
        assert header.action_space == options.get("action_space", "memex")
        assert header.scope == ("orders",)
        first, second = (request.messages for request in gateway.requests)
        assert second[: len(first)] == first

    def test_no_kernel_is_opened_for_native_calls(self) -> None:
        gateway = ScriptedGateway([calling(("submit", {"value": 4}))])

        outcome = run(agent(gateway, kernel="no such kernel", action_space="tools", result=int))

        assert outcome.value == 4
        header = outcome.trajectory.header
        assert header is not None
        assert (header.kernel, header.isolation) == ("none", {})


class TestToolSpace:
    def tools(self, gateway: ScriptedGateway, **options: Any) -> Agent[Any]:
        return agent(gateway, action_space="tools", **options)

    def test_the_model_gets_schemas_and_submit_is_one_of_them(self) -> None:
        gateway = ScriptedGateway([calling(("submit", {"city": "Graz", "cents": 1}))])

        run(self.tools(gateway, tools=[price], result=Total, instructions="Count twice."))

        offered = [tool["function"] for tool in gateway.requests[0].tools]
        assert [tool["name"] for tool in offered] == ["price", "submit"]
        assert offered[0]["description"] == "Add the city's tax, in cents."
        assert offered[0]["parameters"]["properties"] == {"city": {"type": "string"}, "cents": {"type": "integer"}}
        assert offered[1]["parameters"]["properties"] == {"city": {"type": "string"}, "cents": {"type": "integer"}}
        system = gateway.requests[0].messages[0].content
        assert system.endswith("Count twice.")
        assert "kernel" not in system

    @pytest.mark.parametrize("given", [{"value": [1, 2]}, '{"value": [1,\n2]}'])
    def test_a_result_that_is_no_object_is_given_as_value(self, given: Any) -> None:
        gateway = ScriptedGateway([calling(("submit", given))])

        assert run(self.tools(gateway, result=list[int])).value == [1, 2]
        parameters = gateway.requests[0].tools[0]["function"]["parameters"]
        assert parameters["properties"] == {"value": {"type": "array", "items": {"type": "integer"}}}
        assert parameters["required"] == ["value"]

    @pytest.mark.parametrize("given", [{"city": "Graz", "cents": 1}, {"value": {"city": "Graz", "cents": 1}}])
    def test_an_object_may_be_given_by_its_fields_or_as_value(self, given: Any) -> None:
        assert run(self.tools(ScriptedGateway([calling(("submit", given))]), result=Total)).value.cents == 1
        assert run(self.tools(ScriptedGateway([calling(("submit", given))]), result=dict[str, Any] | Total)).value

    def test_calls_of_one_answer_run_at_the_same_time_and_are_shown_in_order(self) -> None:
        arrived = asyncio.Semaphore(0)

        async def meet(name: str) -> str:
            """Wait until both are there."""
            arrived.release()
            while arrived._value < 2:
                await asyncio.sleep(0)
            return f"met {name}"

        gateway = ScriptedGateway(
            [calling(("meet", {"name": "a"}), ("meet", {"name": "b"})), calling(("submit", {"value": 1}))]
        )

        run(self.tools(gateway, tools=[meet], budget=Budget(seconds=20)))

        said, *told = last(gateway, 3)
        assert [call.id for call in said.tool_calls] == ["c1", "c2"]
        assert [(one.role, one.tool_call_id, one.content) for one in told] == [
            ("tool", "c1", "met a"),
            ("tool", "c2", "met b"),
        ]

    def test_arguments_are_checked_by_the_host_and_errors_told(self) -> None:
        def fail() -> int:
            """Fail."""
            raise LookupError("no such row")

        gateway = ScriptedGateway(
            [
                calling(
                    ("price", {"city": "Graz", "cents": "many"}),
                    ("fail", {}),
                    ("guess", {"a": 1}),
                    ("rate", '{"city": "Gr'),
                    ("rate", {"city": "Graz"}),
                ),
                calling(("submit", {"value": 1})),
            ]
        )

        outcome = run(self.tools(gateway, tools=[price, rate, fail]))

        assert outcome.value == 1
        checked, failed, unknown, malformed, good = (message.content for message in last(gateway, 5))
        assert checked.startswith("[error]\nprice: arguments do not fit\ncents: ")
        assert failed == "[error]\nfail: LookupError: no such row"
        assert unknown == "[error]\nthere is no tool 'guess'; call one of price, rate, fail, submit"
        assert malformed == '[error]\nthe arguments are not a JSON object: {"city": "Gr'
        assert good == "rate of Graz"
        said = last(gateway, 6)[0]
        assert [call.arguments for call in said.tool_calls][2:4] == ['{"a": 1}', "{}"]
        assert [bool(one.error) for one in outcome.trajectory.outputs] == [True, True, True, True, False]
        assert {one.name for one in outcome.trajectory.tool_calls} == {"price", "fail", "guess", "rate"}

    def test_a_value_of_the_wrong_type_goes_back_with_its_path(self) -> None:
        gateway = ScriptedGateway(
            [calling(("submit", {"city": "Graz"})), calling(("submit", {"city": "Graz", "cents": 2}))]
        )

        outcome = run(self.tools(gateway, result=Total))

        assert outcome.value.cents == 2
        assert "cents: Field required" in last(gateway)[0].content
        assert [event.ok for event in outcome.trajectory.events if event.kind == "submit"] == [False, True]

    def test_a_submit_beside_a_call_that_failed_does_not_count(self) -> None:
        both = calling(("submit", {"value": 1}), ("price", {"city": "Rom", "cents": 1}))
        gateway = ScriptedGateway([both, calling(("submit", {"value": 2}))])

        assert run(self.tools(gateway, tools=[price], result=int)).value == 2
        assert "another call of the same answer failed" in last(gateway, 2)[0].content
        assert "KeyError" in last(gateway)[0].content

    def test_a_submit_beside_a_call_that_worked_ends_it(self) -> None:
        gateway = ScriptedGateway([calling(("submit", {"value": 1}), ("price", {"city": "Graz", "cents": 1}))])

        outcome = run(self.tools(gateway, tools=[price], result=int))

        assert (outcome.value, len(outcome.trajectory.tool_calls)) == (1, 1)

    def test_long_results_are_cut_in_the_middle(self) -> None:
        def long() -> str:
            """Say much."""
            return "a" * 900 + "z" * 900

        gateway = ScriptedGateway([calling(("long", {})), calling(("submit", {"value": 1}))])

        outcome = run(self.tools(gateway, tools=[long], limits=Limits(output_chars=100)))

        note = "\n... [1,700 of 1,800 characters cut: ask for less] ...\n"
        assert last(gateway)[0].content == "a" * 75 + note + "z" * 25
        assert outcome.trajectory.outputs[0].cut == 1_700

    def test_an_error_that_no_model_can_mend_passes(self) -> None:
        def broke() -> int:
            """Spend."""
            raise BudgetExceededError("the run has used its budget", limit=1, spent=1)

        gateway = ScriptedGateway([calling(("broke", {}), ("rate", {"city": "Graz"}))])

        with pytest.raises(BudgetExceededError, match="the run has used"):
            run(self.tools(gateway, tools=[broke, rate]))

    def test_no_call_is_reminded_once_then_an_error(self) -> None:
        gateway = ScriptedGateway(["It is 4."] * 3)

        with pytest.raises(BadOutputError) as raised:
            run(self.tools(gateway, result=int))

        assert (raised.value.reason, gateway.calls) == ("malformed", 2)
        assert "Call a tool" in last(gateway)[0].content

    def test_calls_that_are_never_readable_are_an_error(self) -> None:
        gateway = ScriptedGateway([calling(("submit", "{"))] * 9)

        with pytest.raises(BadOutputError) as raised:
            run(self.tools(gateway, result=int))

        assert (raised.value.reason, gateway.calls) == ("malformed", 3)

    def test_text_said_twice_is_the_result_where_text_is_wanted(self) -> None:
        assert run(self.tools(ScriptedGateway(["It's four."] * 2), result=str)).value == "It's four."

    @pytest.mark.parametrize("answer", [Response(text="", finish="refusal"), "I'm sorry, but I can't help with that."])
    def test_a_refusal_ends_it(self, answer: Any) -> None:
        with pytest.raises(RefusedError):
            run(self.tools(ScriptedGateway([answer])))

    def test_the_last_turn_is_announced_with_the_last_result(self) -> None:
        gateway = ScriptedGateway(
            [calling(("rate", {"city": "A"}), ("rate", {"city": "B"})), calling(("submit", {"value": 1}))]
        )

        run(self.tools(gateway, tools=[rate], budget=Budget(turns=2)))

        assert [one.content for one in last(gateway, 2)] == ["rate of A", "rate of B\n\n[last turn: submit now]"]


class TestScopeAsText:
    def test_all_of_it_is_in_the_task(self) -> None:
        gateway = ScriptedGateway([calling(("submit", {"value": 1}))])
        day = datetime(2026, 1, 2, tzinfo=UTC)

        run(agent(gateway, action_space="tools"), "Sum up.", scope={"orders": ORDERS, "note": "two\nlines", "day": day})

        task = gateway.requests[0].messages[1].content
        assert task.startswith("Sum up.\n\nWhat you are given:\n\n")
        line = json.dumps([{"city": one.city, "cents": one.cents} for one in ORDERS])
        assert f'<value name="orders" type="list of Order(city, cents), 3 items">\n{line}\n</value>' in task
        assert '<value name="note" type="str, 9 characters">\ntwo\nlines\n</value>' in task
        assert "2026-01-02T00:00:00Z" in task

    @pytest.mark.parametrize(
        ("options", "allowed"), [({}, "4,096 are allowed"), ({"scope_tokens": 100}, "100 are allowed")]
    )
    def test_what_is_too_long_is_refused_before_any_call(self, options: Any, allowed: str) -> None:
        gateway = ScriptedGateway([], context_tokens=8192)

        with pytest.raises(InvalidInputError, match=allowed) as raised:
            run(agent(gateway, action_space="tools", **options), scope={"text": "word" * 5_000, "n": 1})

        assert "text 5,000, n 1" in raised.value.message
        assert gateway.calls == 0

    def test_what_has_no_form_as_text_is_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="thing: a object has no JSON form"):
            run(agent(ScriptedGateway([]), action_space="tools"), scope={"thing": object()})


class TestCodeChannel:
    @pytest.mark.parametrize(
        ("channel", "known", "native"),
        [("auto", True, True), ("auto", False, False), ("tool", False, True), ("text", True, False)],
    )
    def test_auto_takes_what_the_model_is_known_for(self, channel: str, known: bool, native: bool) -> None:
        gateway = ScriptedGateway([block("submit(1)") if native else py("submit(1)")], tool_calls=known)

        assert run(agent(gateway, action_channel=channel)).value == 1
        request = gateway.requests[0]
        assert [tool["function"]["name"] for tool in request.tools] == (["python"] if native else [])
        assert ("call `python` with one block" in request.messages[0].content) is native
        assert ("```python" in request.messages[0].content) is not native

    def test_bound_answers_stay_as_they_are(self) -> None:
        gateway = ScriptedGateway(["[1]"], tool_calls=True)

        assert run(agent(gateway, answer_schema={"type": "array"}, result=list[int])).value == [1]
        assert gateway.requests[0].tools == ()

    def test_observations_answer_their_calls(self) -> None:
        twice = calling(("python", {"code": "x = 20\nx"}), ("python", {"code": "x + 1"}), text="First I count.")
        gateway = ScriptedGateway([twice, block("submit(x + 2)")])

        outcome = run(agent(gateway, action_channel="tool"))

        assert outcome.value == 22
        said, one, two = last(gateway, 3)
        assert said.content == "First I count."
        assert [call.id for call in said.tool_calls] == ["c1", "c2"]
        assert (one.role, one.tool_call_id, one.content) == ("tool", "c1", "[observation of block 1]\n20")
        assert (two.role, two.tool_call_id, two.content) == ("tool", "c2", "[observation of block 2]\n21")
        assert [piece.code for piece in outcome.trajectory.blocks] == ["x = 20\nx", "x + 1", "submit(x + 2)"]

    def test_calls_after_an_error_are_answered_too(self) -> None:
        gateway = ScriptedGateway(
            [calling(("python", {"code": "1 / 0"}), ("python", {"code": "y = 1"})), block("submit('y' in globals())")]
        )

        assert run(agent(gateway, action_channel="tool")).value is False
        assert "ZeroDivisionError" in last(gateway, 2)[0].content
        assert last(gateway)[0].content == "[block 2 not run]"

    @pytest.mark.parametrize(
        ("call", "told"),
        [
            (("python", '{"code": "x = 1'), 'the arguments are not a JSON object: {"code": "x = 1'),
            (("python", {"kode": "x"}), "python takes one argument, `code`: a text"),
            (("rate", {"city": "Graz"}), "such as `await rate(...)`"),
            (("submit", {"value": 1}), "call `python` with the code `submit(value)`"),
        ],
    )
    def test_a_call_that_cannot_be_run_is_told(self, call: Any, told: str) -> None:
        gateway = ScriptedGateway([calling(call), block("submit(1)")])

        assert run(agent(gateway, action_channel="tool", tools=[rate])).value == 1
        assert told in last(gateway)[0].content
        assert json.loads(last(gateway, 2)[0].tool_calls[0].arguments) in ({}, call[1])

    def test_a_call_cut_off_at_the_length_limit_is_not_run(self) -> None:
        cut = Response(
            text="", finish="length", tool_calls=(ToolCall(id="c1", name="python", arguments='{"code": "submit('),)
        )
        gateway = ScriptedGateway([cut, block("submit(1)")])

        assert run(agent(gateway, action_channel="tool")).value == 1
        assert "cut off at the length limit" in last(gateway)[0].content

    @pytest.mark.parametrize("text", ["x = 1\nsubmit(x)", '{"code": "x = 1\nsubmit(x)"}', '"submit(1)"'])
    def test_code_in_another_dress_is_run(self, text: str) -> None:
        assert run(agent(ScriptedGateway([calling(("python", text))]), action_channel="tool")).value == 1

    @pytest.mark.parametrize("options", [{"action_space": "tools", "tools": [rate]}, {"action_channel": "tool"}])
    def test_half_characters_fail_nowhere(self, options: Any) -> None:
        half = "a\\ud800b"
        if "tools" in options:
            answers = [calling(("rate", f'{{"city": "{half}"}}')), calling(("submit", f'{{"value": "{half}"}}'))]
        else:
            codes = (f"'{half}'", f"submit('{half}')")
            answers = [calling(("python", f'{{"code": "{code}"}}')) for code in codes]
        gateway = ScriptedGateway(answers)

        assert run(agent(gateway, result=str, **options)).value == "a\ufffdb"
        assert "a\ufffdb" in last(gateway)[0].content
        assert json.loads(gateway.requests[-1].model_dump_json())

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
    def test_what_is_no_json_is_no_value(self, number: str) -> None:
        gateway = ScriptedGateway([calling(("submit", f'{{"value": {number}}}')), calling(("submit", {"value": 1.5}))])

        assert run(agent(gateway, action_space="tools", result=float)).value == 1.5

    def test_fenced_code_is_taken_all_the_same(self) -> None:
        gateway = ScriptedGateway([py("x = 1"), block("submit(x)")])

        assert run(agent(gateway, action_channel="tool")).value == 1
        assert last(gateway)[0].role == "user"

    def test_words_alone_are_reminded_of_the_call(self) -> None:
        gateway = ScriptedGateway(["Let me see.", block("submit(1)")])

        assert run(agent(gateway, action_channel="tool")).value == 1
        assert "Call `python`" in last(gateway)[0].content

    def test_calls_without_ids_get_some(self) -> None:
        call = ToolCall(id="", name="python", arguments='{"code": "1"}')
        gateway = ScriptedGateway([Response(text="", tool_calls=(call, call)), block("submit(1)")])

        run(agent(gateway, action_channel="tool"))

        said, one, two = last(gateway, 3)
        assert [call.id for call in said.tool_calls] == ["call_1_1", "call_1_2"]
        assert [one.tool_call_id, two.tool_call_id] == ["call_1_1", "call_1_2"]
