"""After a kernel's death its variables are rebuilt by running the earlier blocks again, and no call is made twice."""

import asyncio
import random
from collections.abc import Callable

import pytest
from kernel_cases import BUILT_IN, FACT, KILLABLE, OWN_PROCESS, SOCKET, on, outputs

from memory_pipelines.errors import ToolError
from memory_pipelines.memex.kernels.base import Kernel
from memory_pipelines.memex.tools import tool_of

DIE = (
    f"link = {SOCKET}\nlink.setblocking(True)\nlink.sendall(b'\\xff\\xff\\xff\\xff')\n"
    "import asyncio\nawait asyncio.sleep(60)"
)
"""Ends any kernel, the one without a process too: the host takes no frame of that size."""


@pytest.fixture(params=BUILT_IN)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


class Counter:
    """Tools that count their calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.gate = asyncio.Event()

    def add(self, a: int, b: int) -> int:
        self.calls.append(f"{a}+{b}")
        return a + b

    def refuse(self) -> None:
        self.calls.append("refuse")
        raise ToolError("not today")

    async def slow(self, text: str) -> str:
        self.calls.append(text)
        await self.gate.wait()
        return text.upper()

    async def expose(self, kernel: Kernel) -> None:
        await kernel.expose([tool_of(self.add), tool_of(self.refuse), tool_of(self.slow)])


def test_variables_functions_and_what_no_copy_could_hold_are_there_again(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        counter = Counter()
        await counter.expose(kernel)
        await kernel.put({"fact": FACT})
        await outputs(
            kernel,
            "import threading\nlock = threading.Lock()\ntotal = await add(1, 2)",
            "def count():\n    n = 0\n    while True:\n        n += 1\n        yield n\nc = count()\nnext(c)",
            "fact.kind = 'habit'\ntotal += await add(total, 10)\ntotal",
            "next(c)",
        )
        assert counter.calls == ["1+2", "3+10"]

        seen = await kernel.run(f"total = 0\nnext(c)\n{DIE}")
        assert seen.state == "restored"
        assert "they are as they were before it" in (seen.error or "")
        assert await outputs(kernel, "total, next(c), fact.kind, lock.acquire(False)") == ["(16, 3, 'habit', True)"]
        assert counter.calls == ["1+2", "3+10"]

    on(name, test)


def test_blocks_that_failed_fail_again_and_count(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        counter = Counter()
        await counter.expose(kernel)
        first = await kernel.run("x = 5\nawait refuse()")
        assert first.error is not None
        assert "not today" in first.error
        await kernel.run("y = x / 0")
        seen = await kernel.run(DIE)
        assert seen.state == "restored"
        assert await outputs(kernel, "x") == ["5"]
        assert counter.calls == ["refuse"]

    on(name, test)


def test_a_second_death_is_survived_too(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        counter = Counter()
        await counter.expose(kernel)
        await kernel.run("xs = [await add(1, 1)]")
        assert (await kernel.run(DIE)).state == "restored"
        await kernel.run("xs.append(await add(2, 2))")
        assert (await kernel.run(DIE)).state == "restored"
        assert await outputs(kernel, "xs") == ["[2, 4]"]
        assert counter.calls == ["1+1", "2+2"]

    on(name, test)


def test_every_namespace_is_told_once_and_finds_its_own_variables(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await kernel.run("x = 'here'")
        await kernel.run("x = 'there'", namespace="other")
        assert (await kernel.run(DIE)).state == "restored"
        there = await kernel.run("x", namespace="other")
        assert (there.output, there.state) == ("'there'", "restored")
        assert (await kernel.run("x", namespace="other")).state == "kept"
        here = await kernel.run("x")
        assert (here.output, here.state) == ("'here'", "kept")
        assert (await kernel.run("1", namespace="new")).state == "kept"

    on(name, test)


def test_what_was_put_between_blocks_comes_between_them_again(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await kernel.put({"n": 1})
        await kernel.run("seen = [n]")
        await kernel.put({"n": 2})
        await kernel.run("seen.append(n)")
        assert (await kernel.run(DIE)).state == "restored"
        assert await outputs(kernel, "seen, n") == ["([1, 2], 2)"]

    on(name, test)


def test_a_call_that_is_under_way_is_made_once_and_answers_the_new_kernel(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        counter = Counter()
        await counter.expose(kernel)
        await kernel.run("later = slow('tea')")
        assert (await kernel.run(DIE)).state == "restored"
        counter.gate.set()
        assert await outputs(kernel, "await later") == ["'TEA'"]
        assert counter.calls == ["tea"]

    on(name, test)


def test_a_call_that_was_answered_while_no_kernel_lived_is_not_lost(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        counter = Counter()
        await counter.expose(kernel)
        await kernel.run("later = slow('tea')")
        dying = asyncio.create_task(kernel.run(DIE))
        await asyncio.sleep(0)
        counter.gate.set()
        assert (await dying).state == "restored"
        assert await outputs(kernel, "await later") == ["'TEA'"]
        assert counter.calls == ["tea"]

    on(name, test)


def test_calls_of_the_block_that_ended_the_kernel_end_with_it(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        counter = Counter()
        await counter.expose(kernel)
        seen = await kernel.run(f"later = slow('tea')\n{DIE}")
        assert seen.state == "restored"
        assert "NameError" in ((await kernel.run("later")).error or "")
        assert await outputs(kernel, "await add(1, 1)") == ["2"]

    on(name, test)


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ("import random\nprint(random.random())", "showed something else than the first time"),
        ("import time\nawait add(1, time.time_ns())", "took longer than before"),
    ],
)
def test_what_comes_out_differently_is_lost_and_the_reason_is_told(name: str, block: str, why: str) -> None:
    async def test(kernel: Kernel) -> None:
        counter = Counter()
        await counter.expose(kernel)
        await kernel.put({"given": 7})
        await kernel.run("x = 1")
        await kernel.run(block)
        seen = await kernel.run(DIE)
        assert seen.state == "lost"
        assert why in (seen.error or "")
        assert "NameError" in ((await kernel.run("x")).error or "")
        assert await outputs(kernel, "given, await add(1, 1)") == ["(7, 2)"]
        assert (await kernel.run(DIE)).state == "restored"  # from here on

    random.seed(1)
    on(name, test)


@pytest.mark.parametrize("name", KILLABLE)
def test_a_block_that_was_stopped_in_the_middle_cannot_be_had_again(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        stopped = await kernel.run("x = 0\nwhile True:\n    x += 1", seconds=0.05)
        assert stopped.state == "kept"
        seen = await kernel.run(DIE)
        assert seen.state == "lost"
        assert "a block was stopped in the middle" in (seen.error or "")

    on(name, test)


def test_a_block_that_swallows_its_stop_cannot_be_had_again_either(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        block = "x = 0\ntry:\n    while True:\n        x += 1\nexcept BaseException:\n    pass"
        assert (await kernel.run(block, seconds=0.05)).state == "kept"
        assert (await kernel.run(DIE)).state == "lost"

    on(name, test)


def test_work_of_many_seconds_is_not_done_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_pipelines.memex.kernels.journal.REPLAY_SECONDS", 0.0)

    async def test(kernel: Kernel) -> None:
        await kernel.run("x = 1")
        seen = await kernel.run(DIE)
        assert seen.state == "lost"
        assert "would take them again" in (seen.error or "")

    on(name, test)


@pytest.mark.parametrize("name", OWN_PROCESS)
def test_a_trap_that_earlier_blocks_left_does_not_end_the_kernel_for_ever(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await kernel.run("import asyncio, os\ntrap = asyncio.get_running_loop().call_later(0.1, os._exit, 0)")
        states = [(await kernel.run("await asyncio.sleep(30)")).state for _ in range(4)]
        assert states == ["restored", "restored", "restored", "lost"]
        assert await outputs(kernel, "1") == ["1"]

    on(name, test)


@pytest.mark.parametrize("name", OWN_PROCESS)
def test_the_parts_of_a_gathering_are_answered_in_the_order_of_the_first_time(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        release: dict[str, asyncio.Event] = {key: asyncio.Event() for key in "abc"}
        calls: list[str] = []

        async def fetch(key: str) -> str:
            calls.append(key)
            await release[key].wait()
            return key

        await kernel.expose([tool_of(fetch)])
        running = asyncio.create_task(
            kernel.run(
                "import asyncio\norder = []\n"
                "async def one(key):\n    order.append(await fetch(key))\n"
                "await asyncio.gather(*(one(key) for key in 'abc'))\norder"
            )
        )
        for key in "cab":
            while len(calls) < 3:
                await asyncio.sleep(0)
            release[key].set()
            await _until(lambda: len(calls) == 3)
            await asyncio.sleep(0.02)
        assert (await running).output == "['c', 'a', 'b']"
        assert (await kernel.run(DIE)).state == "restored"
        assert await outputs(kernel, "order") == ["['c', 'a', 'b']"]
        assert sorted(calls) == ["a", "b", "c"]

    on(name, test)


async def _until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0)
