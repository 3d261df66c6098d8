"""Our own kernels as contestants: `ours.py pool`, `fork`, `fork with pandas`, `subprocess` or `inprocess`."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from answering import Contestant, answer

from memory_pipelines.memex.kernels import base, forking
from memory_pipelines.memex.kernels.opening import open_kernel
from memory_pipelines.memex.tools import tool_of


async def lookup(n: int) -> int:
    """Return the next number."""
    return n + 1


LOOKUP = tool_of(lookup)


class Kernel:
    def __init__(self, kernel: base.Kernel) -> None:
        self._kernel = kernel

    async def process(self) -> int | None:
        number = int(await self.run("import os\nos.getpid()"))
        return None if number == os.getpid() else number

    async def run(self, code: str) -> str:
        seen = await self._kernel.run(code)
        assert seen.error is None, seen.error
        return seen.output

    async def give_tool(self) -> None:
        await self._kernel.expose([LOOKUP])


def contestant(name: str) -> Contestant:
    """Return one of our kernels as a contestant."""
    if name.startswith("fork"):
        forking.WARM = 0  # each is forked when it is asked for
    kind = "pool" if name.startswith("fork") else name
    frames = name == "fork with pandas"

    @asynccontextmanager
    async def opened() -> AsyncIterator[Kernel]:
        async with open_kernel(kind, frames=frames) as kernel:
            yield Kernel(kernel)

    @asynccontextmanager
    async def around() -> AsyncIterator[None]:
        async with open_kernel(kind, frames=frames):
            pass  # the first one starts the fork server
        yield

    return Contestant(opened=opened, call="await lookup({})", packages=("memory-pipelines", "pydantic"), around=around)


if __name__ == "__main__":
    answer(contestant(sys.argv[1]))
