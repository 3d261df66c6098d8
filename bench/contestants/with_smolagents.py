"""The LocalPythonExecutor of smolagents as a contestant: an interpreter inside the calling process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from answering import Contestant, answer
from smolagents.local_python_executor import LocalPythonExecutor


def lookup(n: int) -> int:
    return n + 1


class Kernel:
    def __init__(self) -> None:
        self._executor = LocalPythonExecutor(additional_authorized_imports=[])
        self._executor.send_tools({})

    async def process(self) -> int | None:
        return None

    async def run(self, code: str) -> Any:
        return self._executor(code).output

    async def give_tool(self) -> None:
        self._executor.send_tools({"lookup": lookup})  # type: ignore[dict-item]


@asynccontextmanager
async def opened() -> AsyncIterator[Kernel]:
    yield Kernel()


if __name__ == "__main__":
    answer(
        Contestant(
            opened=opened,
            call="lookup({})",
            packages=("smolagents",),
            notes={
                "start": "inside the calling process, isolates nothing",
                "memory": "has no process of its own",
                "memory with its share": "has no process of its own",
                "tool call": "a call inside the process",
            },
        )
    )
