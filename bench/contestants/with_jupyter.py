"""jupyter_client with ipykernel as a contestant."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from answering import Contestant, answer
from jupyter_client import AsyncKernelManager


class Kernel:
    def __init__(self, client: Any, process: int | None) -> None:
        self._client = client
        self._process = process

    async def process(self) -> int | None:
        return self._process

    async def run(self, code: str) -> str | None:
        shown: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            if message["msg_type"] == "execute_result":
                shown.append(message["content"]["data"]["text/plain"])

        answered = await self._client.execute_interactive(code, store_history=False, output_hook=hear)
        assert answered["content"]["status"] == "ok", answered["content"]
        return shown[0] if shown else None

    async def give_tool(self) -> None:
        raise AssertionError("it has none")


@asynccontextmanager
async def opened() -> AsyncIterator[Kernel]:
    manager = AsyncKernelManager()
    await manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready()
        yield Kernel(client, getattr(manager.provisioner, "pid", None))
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    answer(
        Contestant(
            opened=opened,
            call=None,
            packages=("jupyter_client", "ipykernel"),
            notes={
                "tool call": "code in it cannot call functions of the host",
                "block with a tool call": "code in it cannot call functions of the host",
                "rollout": "three blocks without a tool call",
            },
        )
    )
