"""Shared by the suites over all kernels: opening one, running blocks, and tools to call."""

import asyncio
import dataclasses
import datetime
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel, Field

from memory_pipelines.memex.kernels.base import Kernel, Limits
from memory_pipelines.memex.kernels.opening import open_kernel
from memory_pipelines.memex.tools import tool_of
from memory_pipelines.registry import KERNELS

JANUARY = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC)
BUILT_IN = ("inprocess", "pool", "subprocess")
KILLABLE = [name for name in BUILT_IN if KERNELS.load(name).can_kill]
OWN_PROCESS = [name for name in BUILT_IN if KERNELS.load(name).own_process]
SOCKET = "submit.__self__._desk.connection"
"""How hostile code reaches the connection to the host."""


class Fact(BaseModel):
    text: str
    at: datetime.datetime
    kind: str = "note"


class Plan(BaseModel):
    facts: list[Fact] = Field(min_length=1)
    title: str | None = None


@dataclasses.dataclass
class Span:
    start: int
    inside: Fact


FACT = Fact(text="likes tea", at=JANUARY)


def on(name: str, test: Callable[[Kernel], Awaitable[None]], **limits: Any) -> None:
    async def opened() -> None:
        async with open_kernel(name, limits=Limits(**limits)) as kernel:
            await test(kernel)

    asyncio.run(opened())


async def expose_tools(kernel: Kernel) -> list[str]:
    """Expose `meet`, `find` and `fail`; gives the list of what was called."""
    called: list[str] = []
    both = asyncio.Barrier(2)

    async def meet(who: str) -> str:
        """Return when two are here."""
        called.append(who)
        await both.wait()
        return who

    def find(text: str, top: int = 1) -> list[Fact]:
        """Find facts."""
        called.append(text)
        return [Fact(text=text, at=JANUARY)] * top

    def fail() -> None:
        raise ValueError("no such entry")

    await kernel.expose([tool_of(meet), tool_of(find), tool_of(fail)])
    return called


async def outputs(kernel: Kernel, *blocks: str) -> list[str]:
    """Run blocks that must succeed."""
    seen: list[str] = []
    for block in blocks:
        observation = await kernel.run(block)
        assert observation.error is None, observation.error
        seen.append(observation.output)
    return seen
