"""What every contestant of `kernel.py` shares: the measures, taken alike of all, and the way to answer for them.

A contestant is a script that runs in the Python its kernel is installed in. It reads one request a line, such as
`{"measure": "block", "times": 20}`, and answers with one line: lists of seconds or bytes by the name of the figure.
Standard library only.
"""

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

SETTLE_SECONDS = 0.05
"""Before each start, so that a pool has filled up and what was closed is gone."""
AT_ONCE = 8
"""Rollouts under way at the same time."""
ITERATIONS = 100_000

Figures = dict[str, list[float]]


class Kernel(Protocol):
    """A kernel as the measures need it."""

    async def process(self) -> int | None:
        """Return the process that it has for itself; None when it shares ours."""
        ...

    async def run(self, code: str) -> Any:
        """Run one block and return the value of its last expression, or that value as text."""
        ...

    async def give_tool(self) -> None:
        """Let its code call `lookup(n)`, a function of the host that returns n + 1."""
        ...


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """One kind of kernel, and how it is spoken to."""

    opened: Callable[[], AbstractAsyncContextManager[Kernel]]  # ready for a block when entered
    call: str | None  # how its code calls the tool, with {} for the argument; None when it has no tools of the host
    packages: tuple[str, ...]  # whose versions belong beside its figures
    around: Callable[[], AbstractAsyncContextManager[Any]] | None = None  # what is started once for all kernels
    notes: dict[str, str] = field(default_factory=dict)  # what to know of a figure, by its name


async def start(contestant: Contestant, times: int) -> Figures:
    """From asking for a kernel until it can run a block, and until it has run one."""
    ready, ran = [], []
    for _ in range(times):
        await asyncio.sleep(SETTLE_SECONDS)
        asked = time.perf_counter()
        async with contestant.opened() as kernel:
            ready.append(time.perf_counter() - asked)
            await kernel.run("x = 1")
            ran.append(time.perf_counter() - asked)
    return {"start": ready, "start and first block": ran}


async def block(contestant: Contestant, times: int) -> Figures:
    """From sending a small block until its observation is here."""
    async with contestant.opened() as kernel:
        await kernel.run("x = 1")
        return {"block": [await _timed(kernel, "x = 1") for _ in range(times)]}


async def tool(contestant: Contestant, times: int) -> Figures:
    """A call of a tool from inside a block: one of many in a loop, and a block that makes one call."""
    if contestant.call is None:
        return {}
    async with contestant.opened() as kernel:
        await kernel.give_tool()
        one = contestant.call.format("1")
        assert str(await kernel.run(one)) == "2"
        many = f"for n in range({times}):\n    {contestant.call.format('n')}"
        looped = [await _timed(kernel, many) / times]
        return {"tool call": looped, "block with a tool call": [await _timed(kernel, one) for _ in range(times)]}


async def loop(contestant: Contestant, times: int) -> Figures:
    """A block that counts to a hundred thousand."""
    code = f"total = 0\nfor n in range({ITERATIONS}):\n    total += n\ntotal"
    async with contestant.opened() as kernel:
        assert str(await kernel.run(code)) == str(ITERATIONS * (ITERATIONS - 1) // 2)
        return {"loop": [await _timed(kernel, code) for _ in range(times)]}


async def rollouts(contestant: Contestant, times: int) -> Figures:
    """Seconds that a short rollout takes of the machine: a fresh kernel, three blocks, one tool call."""
    call = contestant.call
    places = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with places, contestant.opened() as kernel:
            if call is not None:
                await kernel.give_tool()
            await kernel.run("x = 1")
            await kernel.run(f"y = {call.format('x') if call else '2'}")
            assert str(await kernel.run("x + y")) == "3"

    await asyncio.sleep(SETTLE_SECONDS)
    begun, spent = time.perf_counter(), _cpu_seconds()
    await asyncio.gather(*(one() for _ in range(times)))
    took = time.perf_counter() - begun
    return {"rollout": [took / times], "CPU of a rollout": [(_cpu_seconds() - spent) / times]}


async def memory(contestant: Contestant, times: int) -> Figures:
    """Bytes of each of several idle kernels, after its first block: its own, and with its share of what is common."""
    async with AsyncExitStack() as stack:
        kernels = [await stack.enter_async_context(contestant.opened()) for _ in range(times)]
        for kernel in kernels:
            await kernel.run("x = 1")
        processes = [await kernel.process() for kernel in kernels]
        sizes = [_sizes(process) for process in processes if process is not None]
    if not sizes or None in sizes:
        return {}
    known = [size for size in sizes if size is not None]
    return {
        "memory": [size["Private_Clean"] + size["Private_Dirty"] for size in known],
        "memory with its share": [size["Pss"] for size in known],
    }


MEASURES = {measure.__name__: measure for measure in (start, block, tool, loop, rollouts, memory)}


def answer(contestant: Contestant) -> None:
    """Answer requests until there are no more.

    Args:
        contestant: the kernel to measure.
    """
    asyncio.run(_answer(contestant))


async def _answer(contestant: Contestant) -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # processes of a kernel may print; the answers stay apart
    print(json.dumps({"versions": {name: version(name) for name in contestant.packages}, "notes": contestant.notes}),
          file=out, flush=True)  # fmt: skip
    async with AsyncExitStack() as stack:
        if contestant.around is not None:
            await stack.enter_async_context(contestant.around())
        for line in iter(sys.stdin.readline, ""):
            asked = json.loads(line)
            gc.collect()
            figures = await MEASURES[asked["measure"]](contestant, asked["times"])
            print(json.dumps(figures), file=out, flush=True)


async def _timed(kernel: Kernel, code: str) -> float:
    begun = time.perf_counter()
    await kernel.run(code)
    return time.perf_counter() - begun


def _sizes(process: int) -> dict[str, int] | None:
    """Sizes of a process in bytes; None where the system does not tell, as of a confined one to an ordinary user."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return None
    return {name: int(size.split()[0]) << 10 for name, size in (line.split(":") for line in lines)}


def _cpu_seconds() -> float:
    """Return what this process and all that it started have used, also those that ended and were waited for."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended just now
        parents[int(folder.name)] = int(fields[1])
        ticks[int(folder.name)] = sum(map(int, fields[11:15]))
    family = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(ticks.get(process, 0) for process in family) / os.sysconf("SC_CLK_TCK")
