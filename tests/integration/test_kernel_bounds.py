"""What the host holds for a kernel stays bounded, whatever its code sends, and however little it reads."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from memory_pipelines.memex.kernels.base import Limits, Observation
from memory_pipelines.memex.kernels.opening import open_kernel
from memory_pipelines.memex.kernels.pool import PoolKernel
from memory_pipelines.memex.tools import tool_of

FRAME = 1 << 16
FORGED = """
import gc, json, struct
link = next(one for one in gc.get_objects() if type(one).__name__ == 'Worker').connection
link.setblocking(True)
def send(**message):
    body = json.dumps(message).encode()
    link.sendall(struct.pack('<I', len(body)) + body)
def call(number, **arguments):
    send(type='call', id=number, run=1, namespace='main', tool='tell', arguments=arguments)
def done(run):
    send(type='done', run=run, output='', cut=0, error=None, submitted=False, value=None, interrupted=False,
         milliseconds=0.0)
"""


def seen_of(code: str, *tools: Callable[..., Any], after: str = "1 + 1") -> tuple[Observation, Observation, list[int]]:
    """Run code in a kernel with small messages; return what was seen, and what waited to be read at each call."""

    async def test() -> tuple[Observation, Observation, list[int]]:
        async with open_kernel("pool", limits=Limits(frame_bytes=FRAME, grace_seconds=0.5)) as kernel:
            assert isinstance(kernel, PoolKernel)
            waiting: list[int] = [0]
            connection = kernel._connection

            def watched(function: Callable[..., Any]) -> Callable[..., Any]:
                async def tell(text: str = "") -> Any:
                    """Tell."""
                    assert connection is not None
                    waiting.append(connection._writer.transport.get_write_buffer_size())
                    return await function()

                return tell

            await kernel.expose([tool_of(watched(one)) for one in tools])
            return await kernel.run(code, seconds=20), await kernel.run(after, seconds=5), waiting

    return asyncio.run(test())


async def much() -> str:
    return "x" * 60_000


async def never() -> None:
    await asyncio.Event().wait()


def test_answers_that_nobody_reads_end_the_kernel() -> None:
    seen, after, waiting = seen_of(f"{FORGED}for number in range(100, 10**6): call(number)", much)

    assert "its code does not read the answers of its calls" in (seen.error or "")
    assert (seen.state, after.output) == ("restored", "2")
    # Sixteen of the largest messages, the one that passed that mark, and refusals up to the next mark.
    assert 16 * FRAME < max(waiting) <= 18 * FRAME


def test_honest_code_is_told_before_that() -> None:
    code = """
import time
calls = [tell() for _ in range(40)]
time.sleep(0.5)  # holds up the loop that would read
answers = []
for one in calls:
    try:
        answers.append(len(await one))
    except ToolError as error:
        answers.append(str(error))
len(answers), answers[0], answers[-1]
"""
    seen, after, _ = seen_of(code, much)

    assert seen.output == "(40, 60000, 'tell: too many results wait to be read; await some calls first')"
    assert (after.output, after.state) == ("2", "kept")


def test_calls_under_way_carry_only_so_much() -> None:
    # Four of the largest messages at once: of arguments with 40,000 characters six fit in 262,144 bytes.
    forged, after, waiting = seen_of(f"{FORGED}for number in range(100, 200): call(number, text='x' * 40_000)", never)
    assert "calls at once with more than 262,144 bytes of arguments" in (forged.error or "")
    assert (forged.state, after.output, len(waiting) - 1) == ("restored", "2", 6)

    honest, after, waiting = seen_of(
        "calls = []\nwhile True: calls.append(tell('x' * 40_000))", never, after="len(calls)"
    )
    assert "ToolError: tell: the arguments of calls under way are too large together" in (honest.error or "")
    assert (honest.state, after.output, len(waiting) - 1) == ("kept", "6", 6)


def test_room_is_free_again_after_an_answer() -> None:
    seen, _, waiting = seen_of("for _ in range(30): await tell('x' * 40_000)\n'done'", much)

    assert (seen.output, len(waiting) - 1) == ("'done'", 30)


@pytest.mark.parametrize("run", [0, 2, 77, -1])
def test_the_end_of_a_block_that_does_not_run_ends_the_kernel(run: int) -> None:
    seen, after, _ = seen_of(f"{FORGED}done({run})\nimport time\ntime.sleep(5)", much)

    assert f"it sent the end of block {run}, which does not run" in (seen.error or "")
    assert (seen.state, after.output) == ("restored", "2")


def test_a_cancelled_block_may_still_tell_its_end() -> None:
    async def test() -> None:
        async with open_kernel("pool", limits=Limits(frame_bytes=FRAME)) as kernel:
            running = asyncio.create_task(kernel.run("import asyncio\nx = 1\nawait asyncio.sleep(60)"))
            assert (await kernel.run("1", namespace="other")).output == "1"  # a block that was sent after it has ended
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            for _ in range(3):
                seen = await kernel.run("x")
                assert (seen.output, seen.state) == ("1", "kept")

    asyncio.run(test())
