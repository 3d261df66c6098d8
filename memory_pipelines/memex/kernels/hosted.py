"""The host's part of every kernel that runs `worker.py`: what is put and exposed, and a fresh worker after a loss."""

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from memory_pipelines.errors import InvalidInputError, KernelDiedError
from memory_pipelines.memex.kernels.base import MAIN, Limits, Observation
from memory_pipelines.memex.kernels.connection import Body, Connection
from memory_pipelines.memex.kernels.isolation import wanted, warn_where_open
from memory_pipelines.memex.kernels.namespace import OWN_NAMES
from memory_pipelines.memex.kernels.packing import Packer
from memory_pipelines.memex.kernels.spelling import identifier
from memory_pipelines.memex.kernels.wire import FrameError
from memory_pipelines.memex.shapes import Schema, parameter_names
from memory_pipelines.memex.stubs import whole_stub
from memory_pipelines.memex.tools import Tool


class _Given:
    """What the host put into one namespace; a fresh worker gets it again."""

    def __init__(self) -> None:
        self.packer = Packer()
        self.values: dict[str, Any] = {}  # packed, by name
        self.tools: dict[str, Tool] = {}
        self.shown: list[dict[str, Any]] = []  # the tools as the worker needs them
        self.result: Schema | None = None
        self.lock = asyncio.Lock()  # one block at a time
        self.lives_in: Connection | None = None  # the worker that has its variables; None before the first


class HostedKernel(ABC):
    """A kernel around a worker. Subclasses say what the worker runs in."""

    can_kill: ClassVar[bool]
    """Whether a block that never yields can be ended whatever it does."""
    own_process: ClassVar[bool]
    """Whether the code runs in a process without our environment and memory."""

    def __init__(self, *, limits: Limits | None = None, isolation: str | None = None) -> None:
        """Prepare; `start` starts it, `close` must follow.

        Args:
            limits: its bounds, else the defaults.
            isolation: `strict` or `best_effort`; None for what this kind of kernel has.

        Raises:
            InvalidInputError: no such isolation.
            KernelUnavailableError: this kind of kernel cannot have it here.
        """
        self.limits = limits or Limits()
        self.wanted = self.isolation_for(isolation)
        self._given: dict[str, _Given] = {}
        self._connection: Connection | None = None
        self._starting = asyncio.Lock()
        self._closed = False

    @staticmethod
    def isolation_for(isolation: str | None) -> str:
        """Return the isolation that is kept when this is asked for; see `__init__`."""
        return wanted(isolation)

    @abstractmethod
    async def launch(self) -> tuple[Body, socket.socket]:
        """Start what a worker runs in.

        Returns:
            It, and the host's end of its connection.

        Raises:
            KernelUnavailableError: this kind of kernel cannot start here.
        """

    def bounds(self) -> dict[str, dict[str, Any]]:
        """Return what a worker is held to: `worker` by itself, `confine` by the system."""
        limits = self.limits
        return {
            "worker": {
                "output_chars": limits.output_chars,
                "frame_bytes": limits.frame_bytes,
                "pending_calls": limits.pending_calls,
            },
            "confine": {"memory_bytes": limits.memory_bytes, "cpu_seconds": limits.cpu_seconds},
        }

    @property
    @abstractmethod
    def isolation(self) -> Mapping[str, Any]:
        """What isolates this kernel, for the head of every trajectory."""

    async def start(self) -> None:
        """Start the first worker.

        Raises:
            KernelUnavailableError: it did not start; says why.
        """
        await self._connected()

    async def put(self, scope: Mapping[str, Any], *, namespace: str = MAIN) -> None:
        """Set variables; see `Kernel.put`."""
        given = self._of(namespace)
        for name in scope:
            if identifier(name) != name or name in OWN_NAMES or name in given.tools:
                raise InvalidInputError(
                    f"a variable cannot be called {name!r}: it must be a Python identifier and no name of the kernel",
                    name=name,
                )
        values = {name: given.packer.pack(value, name) for name, value in scope.items()}
        before = dict(given.values)
        given.values.update(values)
        try:
            connection = await self._connected()
            connection.send(self._put_message(namespace, values))
        except FrameError as error:
            given.values = before
            raise InvalidInputError(
                f"{', '.join(scope)}: too large for the kernel: {error}. Give less, or raise Limits.frame_bytes."
            ) from error
        given.lives_in = given.lives_in or connection

    async def expose(
        self, tools: Sequence[Tool], *, result: Mapping[str, Any] | None = None, namespace: str = MAIN
    ) -> None:
        """Make tools callable and `submit` check values; see `Kernel.expose`. Replaces what was exposed before."""
        given = self._of(namespace)
        names = [tool.name for tool in tools]
        taken = {*OWN_NAMES, *given.values}
        wrong = [name for name in names if name in taken or identifier(name) != name or names.count(name) > 1]
        if wrong:
            raise InvalidInputError(
                f"tools cannot be called {', '.join(sorted(set(wrong)))}: names of tools are Python identifiers, "
                f"different from each other and from {', '.join(sorted(taken))}",
                names=wrong,
            )
        shelf = given.packer.shelf
        given.tools = {tool.name: tool for tool in tools}
        given.shown = [
            {
                "name": tool.name,
                "doc": whole_stub(shelf, tool),
                "parameters": parameter_names(tool.parameters),
                "returns": None if tool.returns is None else shelf.add(tool.returns, f"{tool.name}_result"),
            }
            for tool in tools
        ]
        given.result = None if result is None else shelf.add(result, "Result")
        connection = await self._connected()
        connection.allow(namespace, given.tools)
        connection.send(self._expose_message(namespace))

    async def run(self, code: str, *, namespace: str = MAIN, seconds: float | None = None) -> Observation:
        """Run one block; see `Kernel.run`. After a loss a fresh worker has what was put and exposed."""
        given = self._of(namespace)
        async with given.lock:
            connection = await self._connected()
            lost = given.lives_in not in (None, connection)
            given.lives_in = connection
            try:
                done = await connection.run(namespace, code, seconds or self.limits.block_seconds)
            except KernelDiedError as error:
                if self._closed:
                    raise
                given.lives_in = await self._connected()
                return Observation(
                    error=f"the kernel ended and its variables are lost: {error.message}. "
                    "What was given at the start is there again.",
                    state="lost",
                )
            except FrameError as error:
                return Observation(error=f"the block is too large: {error}")
        return Observation(
            output=done.output,
            cut=done.cut,
            error=done.error,
            state="lost" if lost else "kept",
            submitted=done.submitted,
            value=done.value,
            milliseconds=done.milliseconds,
        )

    async def close(self) -> None:
        """End the kernel and everything it started; safe to call twice."""
        self._closed = True
        if self._connection is not None:
            await self._connection.close()

    def _of(self, namespace: str) -> _Given:
        return self._given.setdefault(namespace, _Given())

    async def _connected(self) -> Connection:
        async with self._starting:
            if self._closed:
                raise KernelDiedError("the kernel is closed")
            if self._connection is None or self._connection.why is not None:
                if self._connection is not None:
                    await self._connection.close()
                body, link = await self.launch()
                fresh = Connection(body, link, self.limits)
                await fresh.open()
                self._connection = fresh
                if self.own_process and fresh.ready:
                    warn_where_open(fresh.ready.confined)
                for namespace, given in self._given.items():
                    fresh.allow(namespace, given.tools)
                    fresh.send(self._expose_message(namespace))
                    fresh.send(self._put_message(namespace, given.values))
            return self._connection

    def _put_message(self, namespace: str, values: Mapping[str, Any]) -> dict[str, Any]:
        types = self._of(namespace).packer.shelf.types
        return {"type": "put", "namespace": namespace, "types": types, "values": dict(values)}

    def _expose_message(self, namespace: str) -> dict[str, Any]:
        given = self._of(namespace)
        return {
            "type": "expose",
            "namespace": namespace,
            "types": given.packer.shelf.types,
            "tools": given.shown,
            "result": given.result,
        }
