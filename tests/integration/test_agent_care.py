"""What an agent is kept from and told: results that rest on nothing, names taken away, contexts that are full."""

import asyncio
from typing import Any

import pytest

from memory_pipelines.errors import BadOutputError, ContextTooLongError
from memory_pipelines.gateway.base import Request, Response, Usage
from memory_pipelines.memex import Agent, Budget, Outcome
from memory_pipelines.testing import Answer, ScriptedGateway, calling


def py(code: str) -> str:
    return f"```python\n{code}\n```"


def agent(gateway: ScriptedGateway, **options: Any) -> Agent[Any]:
    return Agent(**{"model": "scripted", "gateway": gateway, "kernel": "inprocess", **options})


def run(made: Agent[Any], **options: Any) -> Outcome[Any]:
    return asyncio.run(made.run("Do it.", **options))


def told(gateway: ScriptedGateway, request: int = -1) -> str:
    return gateway.requests[request].messages[-1].content


SCOPE = {"reports": ["a", "b", "c", "d"]}


class TestNoWork:
    def test_a_value_that_rests_on_nothing_is_refused_once_with_the_line_to_write(self) -> None:
        gateway = ScriptedGateway([py("submit(7)"), py("submit(8)")])

        outcome = run(agent(gateway, result=int), scope=SCOPE)

        assert outcome.value == 8
        assert "Look first, for example by `print(reports[:3])`" in told(gateway)
        submits = [event for event in outcome.trajectory.events if event.kind == "submit"]
        assert [(event.ok, event.value) for event in submits] == [(False, 7), (True, 8)]

    @pytest.mark.parametrize(
        "answers",
        [
            [py("print(reports[:3])"), py("submit(7)")],
            [py("for one in reports:\n    pass\nsubmit(7)")],
            [py("await count()"), py("submit(7)")],
            [py("sorted(globals())"), py("submit(7)")],
        ],
    )
    def test_reading_or_calling_a_tool_is_work(self, answers: list[Answer]) -> None:
        def count() -> int:
            """Count."""
            return 7

        gateway = ScriptedGateway(answers)

        assert run(agent(gateway, tools=[count]), scope=SCOPE).value == 7
        assert gateway.calls == len(answers)

    @pytest.mark.parametrize("code", ["reports = [1]\nsubmit(7)", "'reports'\nsubmit(7)", "# reports\nsubmit(7)"])
    def test_a_name_that_is_only_written_or_said_is_no_work(self, code: str) -> None:
        gateway = ScriptedGateway([py(code), py("submit(8)")])

        assert run(agent(gateway), scope=SCOPE).value == 8

    def test_nothing_is_refused_without_scope(self) -> None:
        assert run(agent(ScriptedGateway([py("submit(7)")]))).value == 7

    def test_nothing_is_refused_on_the_last_turn(self) -> None:
        assert run(agent(ScriptedGateway([py("submit(7)")]), budget=Budget(turns=1)), scope=SCOPE).value == 7

    def test_nothing_is_refused_of_bound_answers(self) -> None:
        made = agent(ScriptedGateway(["7"]), answer_schema={"type": "integer"}, result=int)

        assert run(made, scope=SCOPE).value == 7

    def test_a_wrong_type_is_told_first(self) -> None:
        gateway = ScriptedGateway([py("submit('x')")] * 2)

        with pytest.raises(BadOutputError) as raised:
            run(agent(gateway, result=int, budget=Budget(turns=2)), scope=SCOPE)

        assert raised.value.reason == "type"

    def test_native_calls_are_told_in_their_own_message(self) -> None:
        gateway = ScriptedGateway(
            [calling(("python", {"code": "submit(7)"})), calling(("python", {"code": "submit(len(reports))"}))]
        )

        assert run(agent(gateway, action_channel="tool"), scope=SCOPE).value == 4
        assert gateway.requests[-1].messages[-1].role == "tool"
        assert "print(reports[:3])" in told(gateway)


class TestNamesTakenAway:
    def test_assigning_to_a_given_name_is_told(self) -> None:
        gateway = ScriptedGateway([py("reports = reports[:1]"), py("other = 1"), py("submit(reports)")])

        assert run(agent(gateway), scope=SCOPE).value == ["a"]
        assert "[this block assigned to reports, which you were given" in told(gateway, 1)
        assert "assigned" not in told(gateway, 2)


class TestFirstLook:
    def test_contents_are_shown_within_what_they_may_cost(self) -> None:
        gateway = ScriptedGateway([py("submit(len(reports))")])

        run(agent(gateway, look_tokens=40), scope={"reports": [f"report {n}" for n in range(500)]})

        task = told(gateway, 0)
        assert "- reports: list of str, 500 items" in task
        look = task.partition("A first look, cut short:\n")[2]
        assert look.startswith("- reports = ['report 0', 'report 1',")
        assert "more]" in look
        assert len(look) <= 160

    def test_what_was_seen_whole_need_not_be_read(self) -> None:
        gateway = ScriptedGateway([py("submit(4)")])

        assert run(agent(gateway, look_tokens=100), scope=SCOPE).value == 4
        assert "- reports = ['a', 'b', 'c', 'd']" in told(gateway, 0)

    def test_by_default_nothing_is_shown(self) -> None:
        gateway = ScriptedGateway([py("submit(len(secret))")])

        run(agent(gateway), scope={"secret": "hunter2"})

        assert "hunter2" not in told(gateway, 0)


class TestFullContexts:
    def long(self, *last: Answer) -> list[Answer]:
        """Four observations of 600 tokens each, then the end."""
        return [*(py(f"x{n} = {n}\nprint('{n}' * 2_400)") for n in range(4)), *last]

    def test_old_observations_are_cut_and_nothing_else(self) -> None:
        gateway = ScriptedGateway(self.long(py("submit(x0 + x3)")), context_tokens=3_200)

        assert run(agent(gateway, max_tokens=200)).value == 3
        first, fourth, end = (gateway.requests[number].messages for number in (0, 3, 4))
        assert "0" * 2_400 in fourth[3].content
        assert end[:2] == first
        assert [message.content for message in end[3:9:2]] == ["[cut; variables remain]"] * 3
        assert [message.content for message in end[2::2]] == [message.content for message in [*fourth, *end[8:]][2::2]]
        assert "3" * 2_400 in end[9].content

    def test_what_was_cut_stays_as_it_is(self) -> None:
        answers = [py(f"print('{n}' * 2_400)") for n in range(9)]
        gateway = ScriptedGateway([*answers, py("submit(1)")], context_tokens=3_600)

        run(agent(gateway, max_tokens=200))

        changed = [
            next_one.messages[: len(one.messages)] != one.messages
            for one, next_one in zip(gateway.requests, gateway.requests[1:], strict=False)
        ]
        assert any(changed)
        assert not all(changed[3:])

    def test_plenty_of_room_cuts_nothing(self) -> None:
        gateway = ScriptedGateway(self.long(py("submit(1)")), context_tokens=100_000)

        run(agent(gateway))

        assert "[cut" not in "".join(message.content for message in gateway.requests[-1].messages)

    def test_what_the_provider_counted_wins_over_a_lower_estimate(self) -> None:
        used = [Response(text=py("print('a' * 99)"), usage=Usage(calls=1, prompt_tokens=n)) for n in (900, 950, 3_300)]
        gateway = ScriptedGateway([*used, py("submit(1)")], context_tokens=3_600)

        run(agent(gateway, max_tokens=200))

        assert gateway.requests[2].messages[3].content.endswith("a" * 99)
        assert gateway.requests[3].messages[3].content == "[cut; variables remain]"

    def test_a_context_smaller_than_it_was_said_to_be_is_tried_once_more(self) -> None:
        def answer(request: Request) -> Answer:
            if sum(len(message.content) for message in request.messages) > 10_000:
                return ContextTooLongError("too long")
            turn = sum(message.role == "assistant" for message in request.messages)
            return py(f"print('{turn}' * 2_400)") if turn < 4 else py("submit(1)")

        gateway = ScriptedGateway(answer, context_tokens=100_000)

        outcome = run(agent(gateway))

        assert outcome.value == 1
        assert "[cut; variables remain]" in [message.content for message in gateway.requests[-1].messages]
        assert len(outcome.trajectory.turns) == 5

    def test_a_task_that_is_too_long_by_itself_is_the_providers_error(self) -> None:
        with pytest.raises(ContextTooLongError):
            run(agent(ScriptedGateway([ContextTooLongError("too long")])))

    def test_results_of_native_calls_are_cut_too(self) -> None:
        def long(digit: str) -> str:
            """Say much."""
            return digit * 2_400

        calls: list[Answer] = [calling(("long", {"digit": str(n)}), ("long", {"digit": "x"})) for n in range(3)]
        gateway = ScriptedGateway([*calls, calling(("submit", {"value": 1}))], context_tokens=3_600)

        run(agent(gateway, action_space="tools", tools=[long], max_tokens=200))

        messages = gateway.requests[-1].messages
        assert [message.content for message in messages if message.role == "tool"] == [
            *["[cut]"] * 4,
            "2" * 2_400,
            "x" * 2_400,
        ]
