"""The pool of pydantic-monty as a contestant: `with_monty.py reused`, or `fresh` for a process for each session."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from answering import AT_ONCE, Contestant, answer
from pydantic_monty import AsyncMonty, AsyncMontySession


async def lookup(n: int) -> int:
    return n + 1


class Kernel:
    def __init__(self, session: AsyncMontySession) -> None:
        self._session = session
        self._functions: dict[str, Any] = {}

    async def process(self) -> int | None:
        return self._session.worker_pid

    async def run(self, code: str) -> Any:
        return await self._session.feed_run(code, external_lookup=self._functions)

    async def give_tool(self) -> None:
        self._functions = {"lookup": lookup}


def contestant(mode: str) -> Contestant:
    """Return its pool as a contestant."""
    pools: list[AsyncMonty] = []

    @asynccontextmanager
    async def around() -> AsyncIterator[None]:
        once = 1 if mode == "fresh" else None
        async with AsyncMonty(min_processes=2, max_processes=2 * AT_ONCE, max_checkouts_per_worker=once) as pool:
            pools.append(pool)
            yield

    @asynccontextmanager
    async def opened() -> AsyncIterator[Kernel]:
        async with pools[0].checkout() as session:
            yield Kernel(session)

    reused = "processes serve one session after another" if mode == "reused" else "a process for each session"
    return Contestant(
        opened=opened,
        call="await lookup({})",
        packages=("pydantic-monty",),
        around=around,
        notes={"start": reused, "rollout": reused, "loop": "an interpreter of its own, of a part of Python"},
    )


if __name__ == "__main__":
    answer(contestant(sys.argv[1]))
