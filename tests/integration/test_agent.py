"""Agents over real kernels with a scripted model."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from memory_pipelines.errors import (
    BadOutputError,
    BudgetExceededError,
    GatewayFinalError,
    InvalidInputError,
    RateLimitedError,
    RefusedError,
    UnavailableError,
)
from memory_pipelines.gateway.base import Request, Response, Usage
from memory_pipelines.memex import Agent, Budget, Trajectory
from memory_pipelines.testing import ScriptedGateway

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


class Fact(BaseModel):
    text: str
    said: datetime


@dataclass
class Item:
    position: int
    text: str


@pytest.fixture(params=["inprocess", "pool", "subprocess"])
def kernel(request: pytest.FixtureRequest) -> str:
    return request.param


def py(code: str) -> str:
    return f"```python\n{code}\n```"


def agent(gateway: ScriptedGateway, **options: Any) -> Agent[Any]:
    return Agent(**{"model": "scripted", "gateway": gateway, "kernel": "inprocess", "clock": lambda: AT, **options})


def run(made: Agent[Any], task: str = "Do it.", **options: Any) -> Any:
    return asyncio.run(made.run(task, **options))


def last_user(gateway: ScriptedGateway) -> str:
    return gateway.requests[-1].messages[-1].content


class TestCode:
    def test_blocks_share_variables_and_submit_gives_a_typed_value(self, kernel: str) -> None:
        gateway = ScriptedGateway(
            [
                "I look first.\n" + py("total = sum(item.position for item in items)\ntotal"),
                py("submit([{'text': items[0].text, 'said': '2026-01-02T00:00:00Z'}] * total)"),
            ]
        )

        outcome = run(
            agent(gateway, kernel=kernel, result=list[Fact]),
            scope={"items": [Item(1, "likes tea"), Item(2, "has a dog")]},
        )

        assert outcome.value == [Fact(text="likes tea", said=datetime(2026, 1, 2, tzinfo=UTC))] * 3
        assert "[observation]\n3" in last_user(gateway)
        assert outcome.usage.calls == 2
        assert outcome.usage == outcome.trajectory.usage

    def test_the_model_is_told_names_and_sizes_and_nothing_of_the_contents(self, kernel: str) -> None:
        gateway = ScriptedGateway([py("submit(len(items))")])

        run(agent(gateway, kernel=kernel), scope={"items": [Item(1, "likes tea")], "note": "private"})

        sent = "".join(message.content for message in gateway.requests[0].messages)
        assert "- items: list of Item(position, text), 1 item" in sent
        assert "- note: str, 7 characters" in sent
        assert "tea" not in sent
        assert "private" not in sent

    def test_tools_are_called_and_their_calls_recorded(self, kernel: str) -> None:
        async def search(query: str) -> list[str]:
            """Find lines."""
            return [f"{query} 1", f"{query} 2"]

        def double(number: int) -> int:
            """Double it."""
            return number * 2

        gateway = ScriptedGateway([py("rows = await search('tea')\nsubmit([rows, await double(number=4)])")])

        outcome = run(agent(gateway, kernel=kernel, tools=[search, double]))

        assert outcome.value == [["tea 1", "tea 2"], 8]
        assert [(call.name, call.args, call.error) for call in outcome.trajectory.tool_calls] == [
            ("search", {"query": "tea"}, None),
            ("double", {"number": 4}, None),
        ]
        assert "async def search(query: str) -> list[str]" in gateway.requests[0].messages[0].content

    def test_an_error_goes_back_and_is_mended(self, kernel: str) -> None:
        gateway = ScriptedGateway([py("x = 1\nx + missing"), py("submit(x)")])

        assert run(agent(gateway, kernel=kernel, result=int)).value == 1
        assert "NameError" in last_user(gateway)

    def test_a_tool_error_goes_back_and_is_mended(self, kernel: str) -> None:
        def half(number: int) -> int:
            """Halve it."""
            return number // 2

        gateway = ScriptedGateway([py("await half('much')"), py("submit(await half(8))")])

        outcome = run(agent(gateway, kernel=kernel, tools=[half], result=int))

        assert outcome.value == 4
        assert "number: " in last_user(gateway)
        assert "number: " in (outcome.trajectory.tool_calls[0].error or "")

    def test_a_value_of_the_wrong_type_goes_back_with_its_path_and_is_mended(self, kernel: str) -> None:
        fact = "{'text': 'a', 'said': '2026-01-02T00:00:00Z'}"
        gateway = ScriptedGateway([py("submit([{'text': 1}])"), py(f"submit([{fact}])")])

        outcome = run(agent(gateway, kernel=kernel, result=list[Fact]))

        assert [one.text for one in outcome.value] == ["a"]
        assert "said" in last_user(gateway)
        assert [event.ok for event in outcome.trajectory.events if event.kind == "submit"] == [False, True]

    def test_the_host_checks_what_a_schema_cannot_say(self, kernel: str) -> None:
        gateway = ScriptedGateway([py("submit({'text': 'a', 'said': 'soon'})")] * 2)

        with pytest.raises(BadOutputError) as raised:
            run(agent(gateway, kernel=kernel, result=Fact, budget=Budget(turns=2)))

        assert raised.value.reason == "type"
        assert "said" in last_user(gateway)

    def test_blocks_of_one_answer_stop_at_the_first_error(self) -> None:
        gateway = ScriptedGateway(
            [f"{py('a = 1')}\n{py('b = a / 0')}\n{py('submit(a)')}", py("submit([a, 'b' in globals()])")]
        )

        assert run(agent(gateway)).value == [1, False]
        told = last_user(gateway)
        assert "[observation of block 1]" in told
        assert "ZeroDivisionError" in told
        assert "[block 3 not run]" in told

    def test_a_submit_in_a_block_that_failed_does_not_count(self) -> None:
        code = "import asyncio\nasync def late():\n    submit(1)\ntry:\n    submit(1)\nfinally:\n    1 / 0"
        gateway = ScriptedGateway([py(code), py("submit(2)")])

        assert run(agent(gateway, result=int)).value == 2

    def test_history_only_grows(self) -> None:
        gateway = ScriptedGateway([py("1"), py("2"), py("submit(3)")])

        run(agent(gateway))

        first, second, third = (request.messages for request in gateway.requests)
        assert second[: len(first)] == first
        assert third[: len(second)] == second

    def test_an_imitated_observation_is_dropped_and_the_real_one_shown(self) -> None:
        gateway = ScriptedGateway([py("40 + 2") + "\n\nObservation: 41\nSo it is 41.", py("submit(42)")])

        assert run(agent(gateway)).value == 42
        sent = [message.content for message in gateway.requests[-1].messages]
        assert not any("41" in content for content in sent)
        assert "looked like an observation" in sent[-1]

    def test_the_last_turn_is_announced(self) -> None:
        gateway = ScriptedGateway([py("1"), py("2"), py("submit(3)")])

        run(agent(gateway, budget=Budget(turns=3)))

        assert "[last turn: submit now]" in last_user(gateway)
        assert "last turn" not in gateway.requests[1].messages[-1].content

    def test_no_block_is_reminded_once_then_an_error(self) -> None:
        gateway = ScriptedGateway(["The answer is 4."] * 3)

        with pytest.raises(BadOutputError) as raised:
            run(agent(gateway, result=int))

        assert raised.value.reason == "malformed"
        assert gateway.calls == 2
        assert "```python" in last_user(gateway)

    def test_text_said_twice_is_the_result_where_text_is_wanted(self) -> None:
        gateway = ScriptedGateway(["It is 'four'.", "It is 'four'."])

        assert run(agent(gateway, result=str)).value == "It is 'four'."

    def test_a_forgotten_submit_ends_with_the_turns(self) -> None:
        gateway = ScriptedGateway([py("x = 1")] * 3)

        with pytest.raises(BudgetExceededError) as raised:
            run(agent(gateway, budget=Budget(turns=3)))

        assert (raised.value.budget, raised.value.limit, raised.value.spent) == ("turns", 3, 3)
        assert raised.value.usage["calls"] == 3

    def test_the_kernel_may_die_and_the_work_goes_on(self) -> None:
        gateway = ScriptedGateway([py("x = 1"), py("import os\nos._exit(3)"), py("submit([x, *items])")])

        outcome = run(agent(gateway, kernel="subprocess"), scope={"items": [1, 2]})

        assert outcome.value == [1, 1, 2]
        assert "rebuilt by running earlier blocks again" in last_user(gateway)


class TestBoundAnswers:
    SCHEMA = TypeAdapter(list[Fact]).json_schema()
    ANSWER = '[{"text": "likes \\"tea\\"\\n{}", "said": "2026-01-02T00:00:00Z"}]'
    VALUE = (Fact(text='likes "tea"\n{}', said=datetime(2026, 1, 2, tzinfo=UTC)),)

    def bound(self, gateway: ScriptedGateway, **options: Any) -> Agent[Any]:
        return agent(gateway, **{"answer_schema": self.SCHEMA, "result": list[Fact], **options})

    @pytest.mark.parametrize(
        "dress",
        [
            "{}",
            "```json\n{}\n```",
            "```\n{}\n```",
            "Here you are:\n\n{}\n\nAnything else?",
            "<think>What did they [say]?\n</think>\n\n{}",
            "```python\nsubmit({})\n```",
        ],
    )
    def test_every_dress_ends_in_the_same_value(self, dress: str) -> None:
        gateway = ScriptedGateway([dress.replace("{}", self.ANSWER, 1)])

        outcome = run(self.bound(gateway))

        assert outcome.value == list(self.VALUE)
        assert gateway.requests[0].answer_schema == self.SCHEMA
        assert len(outcome.trajectory.blocks) == 1

    def test_a_nearly_valid_answer_is_mended_and_marked_so(self) -> None:
        gateway = ScriptedGateway(["[{'text': 'a', 'said': '2026-01-02T00:00:00Z',},]"])

        outcome = run(self.bound(gateway))

        assert [fact.text for fact in outcome.value] == ["a"]
        assert outcome.trajectory.blocks[0].origin == "repaired"

    @pytest.mark.parametrize(
        ("text", "finish", "reason"),
        [
            (ANSWER[:-2], "length", "truncated"),
            (ANSWER[:-1], "length", "truncated"),
            ("[{'text': 'a'},]", "length", "truncated"),
            ("", "stop", "empty"),
            ("Nothing to say.", "stop", "malformed"),
            ("[" + '{"text": "likes tea"}, ' * 50, "length", "repetition"),
            ('[{"text": "a"}]', "stop", "type"),
            ('{"text": "a"}', "stop", "type"),
        ],
    )
    def test_what_cannot_be_used_is_asked_for_again_then_an_error(self, text: str, finish: Any, reason: str) -> None:
        bad = Response(text=text, finish=finish, usage=Usage(calls=1, prompt_tokens=7, completion_tokens=3, cost=0.5))
        gateway = ScriptedGateway([bad] * 2)

        with pytest.raises(BadOutputError) as raised:
            run(self.bound(gateway, budget=Budget(turns=2)))

        assert raised.value.reason == reason
        assert raised.value.usage == {
            "calls": 2,
            "prompt_tokens": 14,
            "completion_tokens": 6,
            "cost": 1.0,
            "seconds": 0.0,
        }
        assert "likes" not in str(raised.value)

    @pytest.mark.parametrize("bad", [ANSWER[:-2], "", "No.", '[{"text": "a"}]', "[{'text': 'a'"])
    def test_a_better_second_answer_is_taken(self, bad: str) -> None:
        gateway = ScriptedGateway([bad, self.ANSWER])

        assert run(self.bound(gateway)).value == list(self.VALUE)
        assert len(gateway.requests[1].messages) == 4

    def test_the_model_is_told_what_is_wrong_and_not_of_the_block_that_the_host_wrote(self) -> None:
        gateway = ScriptedGateway(['[{"text": "a"}]', self.ANSWER])

        run(self.bound(gateway))

        assert "said: " in last_user(gateway)
        assert "submit(" not in last_user(gateway)

    def test_a_loop_is_not_sent_back_in_full(self) -> None:
        loop = Response(text="[" + '{"text": "likes tea"}, ' * 500, finish="length")
        gateway = ScriptedGateway([loop, self.ANSWER])

        run(self.bound(gateway))

        assert sum(len(message.content) for message in gateway.requests[1].messages[2:]) < 1_000

    @pytest.mark.parametrize("answer", [Response(text="", finish="refusal"), "I'm sorry, but I can't help with that."])
    def test_a_refusal_ends_it_at_once(self, answer: Any) -> None:
        gateway = ScriptedGateway([answer])

        with pytest.raises(RefusedError) as raised:
            run(self.bound(gateway))

        assert gateway.calls == 1
        assert raised.value.usage["calls"] == 1

    def test_rules_may_answer_in_code_that_calls_tools_and_sees_the_scope(self, kernel: str) -> None:
        def candidates() -> list[Fact]:
            """Find facts by rules."""
            return list(self.VALUE)

        gateway = ScriptedGateway([py("facts = await candidates()\nsubmit(facts[: len(items)])")])

        outcome = run(self.bound(gateway, kernel=kernel, tools=[candidates]), scope={"items": [1]})

        assert outcome.value == list(self.VALUE)

    def test_the_prompt_speaks_of_json_and_not_of_code(self) -> None:
        gateway = ScriptedGateway([self.ANSWER])

        run(self.bound(gateway, instructions="Extract facts."), scope={"items": [1]})

        system, task = (message.content for message in gateway.requests[0].messages)
        assert system.startswith("Extract facts.")
        assert "submit" not in system
        assert task == "Do it."


class TestBounds:
    def test_tokens_of_all_calls_count(self) -> None:
        used = Response(text=py("1"), usage=Usage(calls=1, prompt_tokens=60, completion_tokens=10))
        gateway = ScriptedGateway([used] * 9)

        with pytest.raises(BudgetExceededError) as raised:
            run(agent(gateway, budget=Budget(tokens=100)))

        assert (raised.value.budget, raised.value.limit, raised.value.spent) == ("tokens", 100, 140)
        assert gateway.calls == 2

    def test_money_counts(self) -> None:
        gateway = ScriptedGateway([Response(text=py("1"), usage=Usage(calls=1, cost=0.2))] * 9)

        with pytest.raises(BudgetExceededError) as raised:
            run(agent(gateway, budget=Budget(cost=0.5)))

        assert raised.value.budget == "cost"
        assert gateway.calls == 3

    def test_the_end_of_a_budget_is_announced(self) -> None:
        used = Usage(calls=1, prompt_tokens=85)
        gateway = ScriptedGateway([Response(text=py("1"), usage=used), py("submit(1)")])

        run(agent(gateway, budget=Budget(tokens=100)))

        assert "[tokens nearly used up: submit soon]" in last_user(gateway)

    def test_a_model_that_never_answers_ends_with_the_time(self, kernel: str) -> None:
        async def never(request: Request) -> Response:
            await asyncio.Event().wait()
            raise AssertionError

        with pytest.raises(BudgetExceededError) as raised:
            run(agent(ScriptedGateway(never), kernel=kernel, budget=Budget(seconds=0.6)))

        assert raised.value.budget == "seconds"
        assert raised.value.spent >= 0.6

    @pytest.mark.parametrize("error", [RateLimitedError("slow down", retry_after=3.0), GatewayFinalError("bad key")])
    def test_errors_of_the_gateway_pass_as_they_are_with_what_was_spent(self, error: Exception) -> None:
        gateway = ScriptedGateway([Response(text=py("1"), usage=Usage(calls=1, prompt_tokens=5)), error])

        with pytest.raises(type(error)) as raised:
            run(agent(gateway))

        assert raised.value is error
        assert raised.value.usage["prompt_tokens"] == 5


class TestTrajectory:
    def test_the_file_says_what_happened(self, kernel: str, tmp_path: Path) -> None:
        path = tmp_path / "t.jsonl"
        gateway = ScriptedGateway(["Hm.", py("print('a')\n1 / 0"), py("submit(len(items))")])

        outcome = run(
            agent(gateway, kernel=kernel, result=int, purpose="distill", trajectory=path), scope={"items": [1]}
        )

        loaded = Trajectory.load(path)
        assert loaded.events == outcome.trajectory.events
        assert [event.kind for event in loaded.events] == [
            "header",
            *("llm_request", "llm_response", "feedback"),
            *("llm_request", "llm_response", "block", "observation"),
            *("llm_request", "llm_response", "block", "observation", "submit"),
            "end",
        ]
        header = loaded.header
        assert header is not None
        assert (header.at, header.purpose, header.kernel, header.scope) == (AT, "distill", kernel, ("items",))
        assert header.isolation
        assert loaded.outputs[0].output.startswith("a")
        assert "ZeroDivisionError" in (loaded.outputs[0].error or "")
        assert [turn.text for turn in loaded.turns] == [answer.text for answer in _responses(loaded)]
        assert loaded.usage == outcome.usage

    def test_an_error_is_the_end_of_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "t.jsonl"

        with pytest.raises(RefusedError):
            run(agent(ScriptedGateway([Response(text="", finish="refusal")]), trajectory=path))

        failed, end = Trajectory.load(path).events[-2:]
        assert (failed.kind, failed.error, failed.status) == ("error", "RefusedError", "DATA_LOSS")
        assert (end.kind, end.ok, end.usage.calls) == ("end", False, 1)

    def test_secrets_do_not_reach_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "t.jsonl"

        def echo(text: str) -> str:
            """Say it again."""
            return text

        gateway = ScriptedGateway([py("print(await echo('hunter2'))\nsubmit('hunter2')")])

        outcome = run(
            agent(gateway, tools=[echo], trajectory=path, redact=lambda text: text.replace("hunter2", "[redacted]"))
        )

        assert outcome.value == "hunter2"
        assert "hunter2" not in path.read_text()
        assert len(Trajectory.load(path).grep(r"\[redacted\]")) == 5

    def test_a_place_that_cannot_be_written_costs_no_call(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        gateway = ScriptedGateway([])

        with pytest.raises(UnavailableError):
            run(agent(gateway, trajectory=tmp_path / "file" / "t.jsonl"))

        assert gateway.calls == 0


class TestCancellation:
    def test_it_ends_the_kernel_and_is_passed_on(self, kernel: str, tmp_path: Path) -> None:
        path = tmp_path / "t.jsonl"
        asked = asyncio.Event()
        pids: list[int] = []

        def pid(number: int) -> int:
            """Tell the host."""
            pids.append(number)
            return number

        async def answer(request: Request) -> str:
            if len(request.messages) == 2:
                return py("import os\nawait pid(os.getpid())")
            asked.set()
            await asyncio.Event().wait()
            return ""

        async def main() -> None:
            task = asyncio.create_task(
                agent(ScriptedGateway(answer), kernel=kernel, tools=[pid], trajectory=path).run("Do it.")
            )
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())

        if kernel != "inprocess":
            assert pids
            assert not Path(f"/proc/{pids[0]}").exists()
        failed, end = Trajectory.load(path).events[-2:]
        assert (failed.kind, failed.error) == ("error", "CancelledError")
        assert (end.kind, end.usage.calls) == ("end", 1)

    def test_it_ends_a_block_that_is_running(self, kernel: str) -> None:
        started = asyncio.Event()

        async def wait() -> None:
            """Wait for the host."""
            started.set()
            await asyncio.Event().wait()

        async def main() -> None:
            made = agent(ScriptedGateway([py("await wait()")]), kernel=kernel, tools=[wait])
            task = asyncio.create_task(made.run("Do it."))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(asyncio.wait_for(main(), timeout=20))


class TestWrongUse:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"action_space": "json"}, "known: memex, tools"),
            ({"action_channel": "voice"}, "known: auto, tool, text"),
            ({"action_space": "tools", "action_channel": "text"}, "is for code; leave it out"),
            ({"action_space": "tools", "answer_schema": {"type": "object"}}, "leave answer_schema out"),
            ({"action_channel": "tool", "answer_schema": {"type": "object"}}, "leave answer_schema out"),
            ({"kernel": "docker"}, "inprocess"),
            ({"result": Callable[[], int]}, "no JSON form"),
            ({"tools": [print]}, "tool"),
        ],
    )
    def test_it_is_one_clear_error(self, options: dict[str, Any], words: str) -> None:
        gateway = ScriptedGateway([])

        with pytest.raises(InvalidInputError, match=words):
            run(agent(gateway, **options))

        assert gateway.calls == 0

    @pytest.mark.parametrize("name", ["submit", "two words", "print"])
    def test_names_of_the_kernel_are_not_for_variables(self, name: str) -> None:
        with pytest.raises(InvalidInputError, match="no variable can be called"):
            run(agent(ScriptedGateway([])), scope={name: 1})

    def test_what_cannot_enter_the_kernel_is_said(self, kernel: str) -> None:
        with pytest.raises(InvalidInputError):
            run(agent(ScriptedGateway([]), kernel=kernel), scope={"x": object()})

    def test_a_misspelt_budget_is_refused(self) -> None:
        with pytest.raises(ValueError, match="turn"):
            Budget(turn=3)  # type: ignore[call-arg]


def test_an_agent_may_run_several_tasks_at_once() -> None:
    async def answer(request: Request) -> str:
        return py(f"submit({request.messages[1].content!r})")

    async def main() -> list[str]:
        made: Agent[str] = agent(ScriptedGateway(answer), result=str)
        return [outcome.value for outcome in await asyncio.gather(*(made.run(f"task {n}") for n in range(5)))]

    assert asyncio.run(main()) == [f"task {n}" for n in range(5)]


def _responses(trajectory: Trajectory) -> list[Any]:
    return [event for event in trajectory.events if event.kind == "llm_response"]
