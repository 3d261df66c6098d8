"""How kernels hold code to its limits: deadlines, deaths, sizes, and code that breaks the rules."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from kernel_cases import (
    BUILT_IN,
    FACT,
    KILLABLE,
    OWN_PROCESS,
    SOCKET,
    expose_tools,
    on,
    outputs,
)

from memory_pipelines.errors import InvalidInputError, KernelDiedError
from memory_pipelines.memex.kernels.base import Kernel, Observation
from memory_pipelines.memex.kernels.opening import open_kernel
from memory_pipelines.memex.tools import tool_of


@pytest.fixture(params=BUILT_IN)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize(
    "block",
    [
        "while True: pass",
        "import asyncio\nawait asyncio.sleep(60)",
        "import asyncio\nawait asyncio.gather(asyncio.sleep(60), asyncio.sleep(60))",
        "while True:\n    try:\n        1 / 0\n    except Exception: pass",
        "class Slow:\n    def __repr__(self):\n        while True: pass\nSlow()",
    ],
)
def test_a_block_ends_at_its_deadline_and_the_variables_stay(name: str, block: str) -> None:
    async def test(kernel: Kernel) -> None:
        await kernel.run("x = 1")
        seen = await kernel.run(block, seconds=0.1)
        assert "BlockTimeoutError: the block ran longer than 0.1 s" in (seen.error or "")
        assert seen.state == "kept"
        assert await outputs(kernel, "x") == ["1"]

    on(name, test, grace_seconds=10)


def test_waiting_for_tools_is_not_the_time_of_the_block(name: str) -> None:
    async def slow() -> int:
        await asyncio.sleep(0.5)
        return 7

    async def test(kernel: Kernel) -> None:
        await kernel.expose([tool_of(slow)])
        seen = await kernel.run("await slow()", seconds=0.2)
        assert (seen.output, seen.error) == ("7", None)

    on(name, test, grace_seconds=0.1)


def test_a_cancelled_run_stops_the_block(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        begun = asyncio.Event()

        async def wait() -> None:
            begun.set()
            await asyncio.Event().wait()

        await kernel.expose([tool_of(wait)])
        running = asyncio.create_task(kernel.run("x = 1\nawait wait()\nx = 2"))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await outputs(kernel, "x") == ["1"]

    on(name, test)


def test_what_a_task_prints_after_its_block_is_shown_with_the_next(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await kernel.run("import asyncio\nasync def late():\n    await asyncio.sleep(0)\n    print('late')")
        await kernel.run("task = asyncio.create_task(late())")
        assert await outputs(kernel, "1") == ["[printed by a task after its block]\nlate\n1"]

    on(name, test)


@pytest.mark.parametrize("name", KILLABLE)
@pytest.mark.parametrize(
    "block",
    [
        "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass",
        "sum(range(10**12))",  # one call of a C function, which looks at no signal
    ],
)
def test_a_block_that_does_not_stop_is_killed_and_undone_and_that_is_told_once(name: str, block: str) -> None:
    async def test(kernel: Kernel) -> None:
        await expose_tools(kernel)
        await kernel.put({"given": FACT})
        await kernel.run("x = 1")
        seen = await kernel.run(f"x = 2\n{block}", seconds=0.1)
        assert seen.state == "restored"
        assert "a block ran longer than 0.1 s and did not stop" in (seen.error or "")
        assert "What this block did to variables is undone" in (seen.error or "")
        after = await kernel.run("given.text, (await find('a'))[0].text, x")
        assert (after.output, after.error, after.state) == ("('likes tea', 'a', 1)", None, "kept")

    on(name, test, grace_seconds=0.2)


@pytest.mark.parametrize("name", OWN_PROCESS)
@pytest.mark.parametrize(
    ("block", "why"),
    [
        ("import os\nos._exit(7)", "exit code 7"),
        ("import signal\nsignal.raise_signal(signal.SIGSEGV)", "SIGSEGV"),
    ],
)
def test_a_kernel_that_dies_says_why_and_starts_afresh(name: str, block: str, why: str) -> None:
    async def test(kernel: Kernel) -> None:
        seen = await kernel.run(block)
        assert seen.state == "restored"
        assert why in (seen.error or "")
        assert (await kernel.run("1 + 1")).output == "2"

    on(name, test)


@pytest.mark.parametrize("name", OWN_PROCESS)
def test_a_death_between_blocks_is_told_by_the_next_block_of_each_namespace(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await kernel.run("x = 1")
        await kernel.run("x = 1", namespace="other")
        await kernel.run("import asyncio, os\nasyncio.get_running_loop().call_soon(os._exit, 0)")
        # The last block would end a fresh kernel too: so nothing can be had again.
        assert (await kernel.run("1")).state == "lost"
        assert (await kernel.run("1")).state == "kept"
        assert (await kernel.run("1", namespace="other")).state == "lost"
        assert (await kernel.run("1", namespace="other")).state == "kept"
        assert "NameError" in ((await kernel.run("x", namespace="other")).error or "")

    on(name, test)


@pytest.mark.parametrize("name", OWN_PROCESS)
def test_the_process_has_no_environment_no_files_and_its_own_group(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        seen = await outputs(
            kernel,
            "import os\ndict(os.environ), os.getcwd(), os.getpgid(0) == os.getpid()",
            "import stat\n"
            "def kind(fd):\n"
            "    try:\n        mode = os.fstat(fd).st_mode\n"
            "    except OSError:\n        return None\n"
            "    return 'file' if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else None\n"
            "[fd for fd in range(64) if kind(fd)]",
            "import sys\n'memory_pipelines.errors' in sys.modules, any('main' in one for one in sys.argv)",
        )
        assert seen == ["({}, '/', True)", "[]", "(False, False)"]
        assert kernel.isolation["process"] is True

    on(name, test)


@pytest.mark.parametrize("name", OWN_PROCESS)
def test_memory_and_cpu_time_are_limited(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        seen = await kernel.run("x = bytearray(1 << 30)")
        assert seen.error == "block 1, line 1: x = bytearray(1 << 30)\nMemoryError"
        assert seen.state == "kept"
        spun = await kernel.run("while True: pass")
        assert "more than 1 s of CPU time" in (spun.error or "")

    on(name, test, memory_bytes=256 << 20, cpu_seconds=1)


JUNK = {
    "not JSON": b"\x05\x00\x00\x00junk!",
    "too large": b"\xff\xff\xff\xff",
    "not a message": b"\x02\x00\x00\x00{}",
}


def hostile(frame: dict[str, Any]) -> bytes:
    body = json.dumps(frame).encode()
    return len(body).to_bytes(4, "little") + body


CALL = {"type": "call", "id": 901, "run": 1, "namespace": "main", "tool": "find", "arguments": {"text": "x"}}
FORGED = {
    "a tool that it has not": hostile({**CALL, "tool": "delete_everything"}),
    "a tool of another namespace": hostile({**CALL, "namespace": "other"}),
    "one call twice": hostile({**CALL, "tool": "meet", "arguments": {"who": "x"}}) * 2,
    "too many calls": b"".join(
        hostile({**CALL, "id": number, "tool": "meet", "arguments": {"who": "x"}}) for number in range(1, 8)
    ),
    "a subagent where there are none": hostile(
        {**CALL, "tool": "spawn_agent", "arguments": {"task": "x", "scope": {}, "result": None}}
    ),
    "a second start": hostile({"type": "ready", "pid": 1, "confined": {}}),
    "an endless output": hostile(
        {
            "type": "done",
            "run": 1,
            "output": "x" * 20_000,
            "cut": 0,
            "error": None,
            "submitted": False,
            "value": None,
            "interrupted": False,
            "milliseconds": 1,
        }
    ),
}


SAID = {
    "not JSON": "a frame that is not JSON",
    "too large": "a frame of 4,294,967,295 bytes",
    "not a message": "a message that does not fit",
    "a tool that it has not": "a call of 'delete_everything', which it has not",
    "a tool of another namespace": "a call of 'find', which it has not",
    "one call twice": "more than 5 calls at once, or one twice",
    "too many calls": "more than 5 calls at once, or one twice",
    "a second start": "a second start",
    "an endless output": "an output of 20,000 characters",
    "a subagent where there are none": "a call of 'spawn_agent', which it has not",
}


@pytest.mark.parametrize("what", SAID)
def test_a_kernel_that_breaks_the_rules_is_ended_and_the_host_goes_on(name: str, what: str) -> None:
    data, said = {**JUNK, **FORGED}[what], SAID[what]

    async def test(kernel: Kernel) -> None:
        await expose_tools(kernel)
        seen = await kernel.run(
            f"link = {SOCKET}\nlink.setblocking(True)\nlink.sendall({data!r})\nimport asyncio\nawait asyncio.sleep(60)"
        )
        assert seen.state == "restored"
        assert f"the kernel ended: it sent {said}" in (seen.error or "")
        assert await outputs(kernel, "(await find('x'))[0].text") == ["'x'"]

    on(name, test, pending_calls=5)


def test_more_calls_than_allowed_are_refused_inside(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        await expose_tools(kernel)
        seen = await kernel.run("[meet(str(n)) for n in range(9)]")
        assert "5 calls are under way; await some of them first" in (seen.error or "")
        assert seen.state == "kept"

    on(name, test, pending_calls=5)


def test_values_larger_than_a_frame_are_refused_where_they_arise(name: str) -> None:
    def big() -> str:
        return "x" * 200_000

    def take(text: str) -> int:
        return len(text)

    async def test(kernel: Kernel) -> None:
        await kernel.expose([tool_of(big), tool_of(take)])
        for block, said in (
            ("await big()", "big: the result is too large, ask for less"),
            ("await take('x' * 200_000)", "take: the arguments are too large"),
            ("submit('x' * 200_000)", "value: too large"),
            (f"{'x' * 200_000} = 1", "the block is too large"),
        ):
            seen = await kernel.run(block)
            assert said in (seen.error or "")
            assert seen.state == "kept"
        with pytest.raises(InvalidInputError, match="huge: too large for the kernel"):
            await kernel.put({"huge": "x" * 200_000})
        assert await outputs(kernel, "1") == ["1"]

    on(name, test, frame_bytes=100_000)


@pytest.mark.parametrize("name", OWN_PROCESS)
def test_nothing_is_left_running_after_close(name: str) -> None:
    pids: list[int] = []

    async def test(kernel: Kernel) -> None:
        left = "import os, threading\nthreading.Thread(target=threading.Event().wait).start()\n[os.getpid()]"
        pids.extend(json.loads((await outputs(kernel, left))[0]))

    on(name, test)
    assert pids
    assert [pid for pid in pids if running(pid)] == []


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_closed_kernel_says_so(name: str) -> None:
    async def test() -> Observation:
        async with open_kernel(name) as kernel:
            await kernel.close()
            return await kernel.run("1")

    with pytest.raises(KernelDiedError, match="closed"):
        asyncio.run(test())


def test_an_unknown_kernel_lists_the_known_ones() -> None:
    async def test() -> None:
        async with open_kernel("subproces"):
            pass

    with pytest.raises(InvalidInputError, match=r"inprocess, pool, subprocess.*Did you mean 'subprocess'"):
        asyncio.run(test())
