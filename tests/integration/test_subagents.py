"""Subagents over real kernels: parts of a work beside it, on the same objects, within bounds that the host keeps."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory_pipelines.errors import BudgetExceededError
from memory_pipelines.gateway.base import Request
from memory_pipelines.memex import Agent, Budget, Limits, Subagents, Trajectory
from memory_pipelines.memex.events import Failed, Header
from memory_pipelines.testing import ScriptedGateway

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
LEAD = "Do all of it."


@pytest.fixture(params=["inprocess", "pool", "subprocess"])
def kernel(request: pytest.FixtureRequest) -> str:
    return request.param


def py(code: str) -> str:
    return f"```python\n{code}\n```"


def task_of(request: Request) -> str:
    return request.messages[1].content


def by_task(**scripts: list[str]) -> ScriptedGateway:
    """A model that answers each agent by its own script; which one it is says the first word of the task."""

    def answer(request: Request) -> str:
        turn = sum(message.role == "assistant" for message in request.messages)
        return py(scripts[task_of(request).split()[0].strip(".")][turn])

    return ScriptedGateway(answer)


def agent(gateway: ScriptedGateway, **options: Any) -> Agent[Any]:
    given: dict[str, Any] = {
        "model": "scripted",
        "gateway": gateway,
        "kernel": "inprocess",
        "clock": lambda: AT,
        "subagents": Subagents(),
        **options,
    }
    return Agent(**given)


def run(made: Agent[Any], task: str = LEAD, **options: Any) -> Any:
    return asyncio.run(made.run(task, **options))


def last_user(gateway: ScriptedGateway, first: str) -> str:
    return [request for request in gateway.requests if task_of(request).startswith(first)][-1].messages[-1].content


class TestWork:
    def test_a_subagent_gives_a_typed_value_and_shares_the_object_itself(self, kernel: str) -> None:
        gateway = by_task(
            Do=[
                "rows = [{'n': 1}, {'n': 2}]\n"
                "total = await spawn_agent('Sum the rows.', scope={'rows': rows}, result=int)\n"
                "submit([total, rows])"
            ],
            Sum=["rows.append({'n': 4})\nprint(len(rows))", "submit(sum(row['n'] for row in rows))"],
        )

        outcome = run(agent(gateway, kernel=kernel))

        assert outcome.value == [7, [{"n": 1}, {"n": 2}, {"n": 4}]]
        assert "- rows: list of dict, 2 items" in task_of(gateway.requests[1])
        assert "def submit(value: int)" in task_of(gateway.requests[1])

    def test_a_value_comes_back_as_an_object_of_the_type_that_the_code_defined(self, kernel: str) -> None:
        gateway = by_task(
            Do=[
                "from dataclasses import dataclass\n@dataclass\nclass Rate:\n    segment: str\n    value: float",
                "rates = await spawn_agent('Rate them.', result=list[Rate])\n"
                "submit([type(rates[0]) is Rate, rates[0].value])",
            ],
            Rate=["submit([{'segment': 'free', 'value': 'high'}])", "submit([{'segment': 'free', 'value': 0.25}])"],
        )

        outcome = run(agent(gateway, kernel=kernel))

        assert outcome.value == [True, 0.25]
        assert "[0].value: Input should be a valid number" in last_user(gateway, "Rate")

    def test_they_work_side_by_side_with_variables_of_their_own(self, kernel: str) -> None:
        meeting: list[str] = []
        both = asyncio.Event()

        async def meet(who: str) -> int:
            """Wait until two are here."""
            meeting.append(who)
            if len(meeting) == 2:
                both.set()
            await both.wait()
            return len(meeting)

        part = ["name = {!r}\nx = await meet(name)", "submit(f'{{name}} {{x}}')"]
        gateway = by_task(
            Do=[
                "import asyncio\nname = 'lead'",
                "parts = [spawn_agent(f'{one} it.') for one in ('First', 'Second')]\nprint('started')",
                "submit([name, *await asyncio.gather(*parts)])",
            ],
            First=[part[0].format("a"), part[1].format()],
            Second=[part[0].format("b"), part[1].format()],
        )

        outcome = run(agent(gateway, kernel=kernel, tools=[meet]))

        assert outcome.value == ["lead", "a 2", "b 2"]

    def test_the_agent_and_its_subagents_share_the_system_prompt_byte_for_byte(self) -> None:
        gateway = by_task(Do=["submit(await spawn_agent('Help me.', result=str))"], Help=["submit('yes')"])

        run(agent(gateway, result=str))

        first, second = (request.messages[0].content for request in gateway.requests)
        assert first == second
        assert "async def spawn_agent(" in first

    def test_without_leave_there_are_none_and_nothing_is_said_of_them(self) -> None:
        gateway = by_task(Do=["await spawn_agent('Help me.')", "submit(1)"])

        run(agent(gateway, subagents=None))

        assert "spawn_agent" not in gateway.requests[0].messages[0].content
        assert "NameError: name 'spawn_agent' is not defined" in last_user(gateway, "Do")

    def test_one_that_looked_at_nothing_of_its_scope_is_told_so(self) -> None:
        gateway = by_task(
            Do=["rows = [1, 2]\nsubmit(await spawn_agent('Count them.', scope={'rows': rows}, result=int))"],
            Count=["submit(3)", "submit(len(rows))"],
        )

        assert run(agent(gateway)).value == 2
        assert "for example by `print(rows)`" in last_user(gateway, "Count")

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            ("spawn_agent('')", "takes the task as text"),
            ("spawn_agent(3)", "takes the task as text, got int"),
            ("spawn_agent('x', scope=[1])", "takes scope as a dict of names and objects"),
            ("spawn_agent('x', scope={'submit': 1})", "an object cannot be called 'submit'"),
            ("spawn_agent('x', scope={'a b': 1})", "an object cannot be called 'a b'"),
            ("spawn_agent('x', result=3)", "has no JSON form"),
        ],
    )
    def test_a_wrong_call_says_what_is_wrong_and_starts_nothing(self, call: str, said: str) -> None:
        gateway = by_task(Do=[f"await {call}", "submit(1)"])

        outcome = run(agent(gateway))

        assert said in last_user(gateway, "Do")
        assert len(outcome.trajectory.children) == 0


class TestBounds:
    def test_one_that_fails_is_an_error_of_the_call_and_the_others_go_on(self, kernel: str) -> None:
        gateway = by_task(
            Do=[
                "import asyncio\n"
                "parts = spawn_agent('Loop now.'), spawn_agent('Help me.')\n"
                "found = await asyncio.gather(*parts, return_exceptions=True)\n"
                "submit([type(found[0]).__name__, str(found[0])[:45], found[1]])"
            ],
            Loop=["1", "2", "3"],
            Help=["submit('well')"],
        )

        outcome = run(agent(gateway, kernel=kernel, subagents=Subagents(turns=3)))

        assert outcome.value == ["ToolError", "subagent 1 gave no result: the rollout ended ", "well"]

    def test_depth_and_number_are_kept_by_the_host(self) -> None:
        ask = "try:\n    got = await spawn_agent({!r})\nexcept ToolError as error:\n    got = str(error)\nsubmit(got)"
        gateway = by_task(Do=[ask.format("Outer part.")], Outer=[ask.format("Inner part.")], Inner=["submit('deep')"])
        assert run(agent(gateway)).value.startswith("subagents may start none of their own here")
        assert run(agent(gateway, subagents=Subagents(depth=2))).value == "deep"
        assert (
            "1 subagents were started, as many as may be"
            in run(agent(gateway, subagents=Subagents(depth=2, total=1))).value
        )

    def test_no_more_are_at_work_than_may_be_and_the_others_wait_for_their_turn(self) -> None:
        now: list[int] = [0]
        seen: list[int] = []
        pair = asyncio.Barrier(2)

        async def work() -> None:
            """Be at work, two at a time."""
            now[0] += 1
            seen.append(now[0])
            await pair.wait()
            now[0] -= 1

        gateway = by_task(
            Do=["import asyncio\nsubmit(await asyncio.gather(*(spawn_agent(f'Part {n}.') for n in range(6))))"],
            Part=["await work()\nsubmit(1)"],
        )

        outcome = run(agent(gateway, tools=[work], subagents=Subagents(live=2)))

        assert outcome.value == [1] * 6
        assert max(seen) == 2

    def test_tokens_and_calls_of_subagents_count_in_the_budget_of_the_whole(self) -> None:
        gateway = by_task(
            Do=["a = await spawn_agent('Part one.')\nb = await spawn_agent('Part two.')\nsubmit([a, b])"],
            Part=["x = 1", "submit(x)"],
        )

        outcome = run(agent(gateway))
        assert outcome.value == [1, 1]
        assert outcome.usage.calls == 5
        assert outcome.usage.tokens == sum(
            one.usage.tokens for one in (outcome.trajectory, *map(outcome.trajectory.child, ("1", "2")))
        )

        gateway = by_task(
            Do=["try:\n    await spawn_agent('Part one.')\nexcept ToolError as error:\n    print(error)", "submit(0)"],
            Part=["x = 1", "submit(x)"],
        )
        with pytest.raises(BudgetExceededError, match="2 of 2 calls"):
            run(agent(gateway, budget=Budget(calls=2)))
        assert gateway.calls == 2

    def test_what_is_at_work_when_the_agent_ends_is_cancelled(self, kernel: str) -> None:
        ended: list[str] = []
        begun = asyncio.Event()

        async def wait() -> None:
            """Wait for ever."""
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        async def ready() -> None:
            """Return when the other is waiting."""
            await begun.wait()

        gateway = by_task(Do=["left = spawn_agent('Wait here.')\nawait ready()\nsubmit('done')"], Wait=["await wait()"])

        outcome = run(agent(gateway, kernel=kernel, tools=[wait, ready]))

        assert outcome.value == "done"
        assert ended == ["cancelled"]
        (failed,) = [event for event in outcome.trajectory.child("1").events if isinstance(event, Failed)]
        assert failed.error == "CancelledError"

    def test_a_subagent_that_computes_long_does_not_use_up_the_time_of_its_parent(self, kernel: str) -> None:
        spin = "import time\nend = time.monotonic() + 0.35\nwhile time.monotonic() < end:\n    pass"
        gateway = by_task(Do=["submit(await spawn_agent('Spin twice.'))"], Spin=[spin, spin, "submit('spun')"])

        outcome = run(agent(gateway, kernel=kernel, limits=Limits(block_seconds=0.5, grace_seconds=0.3)))

        assert outcome.value == "spun"
        assert all(seen.error is None for seen in outcome.trajectory.outputs)

    def test_one_that_does_not_end_in_time_is_told_and_its_parent_waits_on(self, kernel: str) -> None:
        gateway = by_task(
            Do=["submit(await spawn_agent('Spin once.'))"], Spin=["while True:\n    pass", "submit('stopped')"]
        )

        outcome = run(agent(gateway, kernel=kernel, limits=Limits(block_seconds=0.2)))

        assert outcome.value == "stopped"
        assert "ran longer than 0.2 s" in last_user(gateway, "Spin")


class TestDeath:
    @pytest.mark.parametrize("kernel", ["pool", "subprocess"])
    def test_a_subagent_that_ends_the_kernel_is_restored_with_what_it_shares(self, kernel: str) -> None:
        gateway = by_task(
            Do=[
                "rows = [1, 2]\nlater = spawn_agent('Break it.', scope={'rows': rows}, result=int)",
                "submit([await later, rows])",
            ],
            Break=[
                "rows.append(3)\ny = len(rows)",
                "import os\nrows.append(99)\nos._exit(1)",
                "rows.append(4)\nsubmit(y + len(rows))",
            ],
        )
        free = asyncio.Event()

        async def answer(request: Request) -> str:
            # The second block of the agent comes when the subagent is through with the worst.
            turn = sum(message.role == "assistant" for message in request.messages)
            if task_of(request).startswith("Do") and turn == 1:
                await free.wait()
            if task_of(request).startswith("Break") and turn == 2:
                free.set()
            scripted: Any = gateway.complete
            return (await scripted(request)).text

        outcome = run(agent(ScriptedGateway(answer), kernel=kernel))

        assert outcome.value == [7, [1, 2, 3, 4]]
        states = [seen.state for seen in outcome.trajectory.child("1").outputs]
        assert states == ["kept", "restored", "kept"]
        assert [seen.state for seen in outcome.trajectory.outputs] == ["kept", "restored"]

    @pytest.mark.parametrize("kernel", ["pool", "subprocess"])
    def test_the_block_that_waits_for_it_dies_with_it_and_is_told(self, kernel: str) -> None:
        gateway = by_task(
            Do=["x = 1", "await spawn_agent('Break it.')", "submit(x)"],
            Break=["import os\nos._exit(1)", "submit(0)"],
        )

        outcome = run(agent(gateway, kernel=kernel))

        assert outcome.value == 1
        assert "exit code 1" in last_user(gateway, "Do")
        assert [seen.state for seen in outcome.trajectory.outputs][:2] == ["kept", "restored"]


class TestRecord:
    def test_each_has_a_trajectory_of_its_own_found_from_that_of_the_agent(self, tmp_path: Path) -> None:
        path = tmp_path / "t.jsonl"
        gateway = by_task(
            Do=["rows = 'x' * 20_000\nsubmit(await spawn_agent('Read it.', scope={'rows': rows}, result=int))"],
            Read=["print(rows[:3])\nsubmit(len(rows))"],
        )

        outcome = run(agent(gateway), trajectory=path)

        for trajectory in (outcome.trajectory, Trajectory.load(path)):
            (spawned,) = trajectory.children
            assert (spawned.turn, spawned.child, spawned.task, spawned.scope) == (1, "1", "Read it.", ("rows",))
            child = trajectory.child("1")
            assert isinstance(child.header, Header)
            assert (child.header.task, child.header.scope, child.value) == ("Read it.", ("rows",), 20_000)
            assert child.turns[0].code == "print(rows[:3])\nsubmit(len(rows))"
        assert sorted(one.name for one in tmp_path.rglob("*.jsonl")) == ["1.jsonl", "t.jsonl"]

        run(agent(by_task(Do=["submit(1)"])), trajectory=path)
        assert sorted(one.name for one in tmp_path.rglob("*.jsonl")) == ["t.jsonl"]

    def test_what_is_redacted_is_redacted_in_subagents_too(self, tmp_path: Path) -> None:
        path = tmp_path / "t.jsonl"
        hide: Callable[[str], str] = lambda text: text.replace("hunter2", "[hidden]")  # noqa: E731 - typed for once
        gateway = by_task(Do=["submit(await spawn_agent('Read it.'))"], Read=["print('hunter2')\nsubmit('hunter2')"])

        run(agent(gateway, redact=hide), trajectory=path)

        written = "".join(one.read_text() for one in tmp_path.rglob("*.jsonl"))
        assert "[hidden]" in written
        assert "hunter2" not in written
