"""The way home for calls of the code: sends them to the host and hands the answers out.

Part of the worker: standard library only.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from memory_pipelines.memex.kernels.namespace import Block, Pending, ToolError
from memory_pipelines.memex.kernels.wire import CARRIED, FrameError, pack

current: ContextVar[Block | None] = ContextVar("block", default=None)
"""The block on whose behalf code runs, also in tasks and threads that it started."""


@dataclass(frozen=True)
class _Open:
    future: asyncio.Future[Any]
    rebuild: Callable[[Any], Any]  # of the answer
    block: Block | None
    size: int  # bytes of the message
    parcel: Mapping[str, Any]  # objects that go with the call, for another namespace


class Home:
    """The calls under way."""

    def __init__(
        self, send: Callable[[bytes], None], *, last: Callable[[], Block | None], frame_bytes: int, pending_calls: int
    ) -> None:
        """Begin without calls.

        Args:
            send: a frame, to the host.
            last: the block that ran last, for code that runs on behalf of none.
            frame_bytes: of one message.
            pending_calls: under way at once.
        """
        self._send = send
        self._last = last
        self._frame_bytes = frame_bytes
        self._pending_calls = pending_calls
        self._open: dict[int, _Open] = {}
        self._called = 0
        self._carried = 0  # bytes of the messages of these calls

    def call(
        self,
        namespace: str,
        tool: str,
        arguments: dict[str, Any],
        rebuild: Callable[[Any], Any],
        parcel: Mapping[str, Any] | None = None,
    ) -> Pending:
        """Send a call.

        Args:
            namespace: who calls.
            tool: its name.
            arguments: in JSON form.
            rebuild: makes objects of the answer.
            parcel: objects that go with it and stay in this process.

        Returns:
            The result to wait for.

        Raises:
            ToolError: too many calls under way, or arguments too large.
        """
        if len(self._open) >= self._pending_calls:
            raise ToolError(f"{tool}: {self._pending_calls} calls are under way; await some of them first")
        self._called += 1
        block = current.get() or self._last()
        frame = {
            "type": "call",
            "id": self._called,
            "run": block.run if block else 0,
            "namespace": namespace,
            "tool": tool,
            "arguments": arguments,
        }
        try:
            data = pack(frame, self._frame_bytes)
        except FrameError as error:
            raise ToolError(f"{tool}: the arguments are too large: {error}") from None
        if self._carried + len(data) > CARRIED * self._frame_bytes:
            raise ToolError(f"{tool}: the arguments of calls under way are too large together; await some first")
        self._carried += len(data)
        future: asyncio.Future[Any] = asyncio.get_event_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())  # looked at: no complaint later
        self._open[self._called] = _Open(future, rebuild, block, len(data), parcel or {})
        if block is not None:
            block.waiting += 1
        self._send(data)
        return Pending(future, tool)

    def parcel(self, call: int) -> Mapping[str, Any]:
        """Return the objects that went with a call."""
        return self._open[call].parcel

    def answered(self, call: int, value: Any, *, ok: bool) -> None:
        """Hand an answer out.

        Args:
            call: its number.
            value: in JSON form, or what went wrong.
            ok: which of both.
        """
        one = self._open.pop(call)
        self._carried -= one.size
        if one.block is not None:
            one.block.waiting -= 1
        if one.future.done():
            return
        try:
            made = one.rebuild(value) if ok else ToolError(value)
        except TypeError as wrong:  # the answer does not fit the type that the code asked for
            made = ToolError(str(wrong))
        if isinstance(made, ToolError):
            one.future.set_exception(made)
        else:
            one.future.set_result(made)
