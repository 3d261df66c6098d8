"""The host's part of every kernel that runs `worker.py`: what is put and exposed, and a fresh worker after a loss."""

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from memory_pipelines.errors import InvalidInputError, KernelDiedError
from memory_pipelines.memex.kernels.base import MAIN, Limits, Observation, Spawn, State
from memory_pipelines.memex.kernels.calling import Calls
from memory_pipelines.memex.kernels.connection import Body, Connection
from memory_pipelines.memex.kernels.isolation import wanted, warn_where_open
from memory_pipelines.memex.kernels.journal import DivergedError, Journal
from memory_pipelines.memex.kernels.messages import Call
from memory_pipelines.memex.kernels.namespace import OWN_NAMES
from memory_pipelines.memex.kernels.packing import Packer
from memory_pipelines.memex.kernels.spelling import identifier
from memory_pipelines.memex.kernels.wire import FrameError
from memory_pipelines.memex.shapes import Schema, parameter_names
from memory_pipelines.memex.stubs import whole_stub
from memory_pipelines.memex.tools import Tool


class _Given:
    """What the host put into one namespace."""

    def __init__(self) -> None:
        self.packer = Packer()
        self.values: dict[str, Any] = {}  # packed, by name
        self.tools: dict[str, Tool] = {}
        self.shown: list[dict[str, Any]] = []  # the tools as the worker needs them
        self.result: Schema | None = None
        self.spawn: Spawn | None = None
        self.lock = asyncio.Lock()  # one block at a time
        self.knows = 0  # how many deaths of a worker it was told


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
        self._journal = Journal()
        self._calls = Calls(self.limits, self._journal)
        self._runs = 0  # blocks that were begun
        self._deaths: list[State] = []  # what became of the namespaces at each
        self._why_lost = ""  # at the last death
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
        connection = await self._connected()
        message = self._put_message(namespace, values)
        try:
            connection.send(message)
        except FrameError as error:
            raise InvalidInputError(
                f"{', '.join(scope)}: too large for the kernel: {error}. Give less, or raise Limits.frame_bytes."
            ) from error
        given.values.update(values)
        self._journal.sent(message)

    async def expose(
        self,
        tools: Sequence[Tool],
        *,
        result: Mapping[str, Any] | None = None,
        spawn: Spawn | None = None,
        namespace: str = MAIN,
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
        given.spawn = spawn
        connection = await self._connected()
        self._calls.allow(namespace, given.tools, spawn)
        message = self._expose_message(namespace)
        connection.send(message)
        self._journal.sent(message)

    async def run(self, code: str, *, namespace: str = MAIN, seconds: float | None = None) -> Observation:
        """Run one block; see `Kernel.run`."""
        given = self._of(namespace)
        async with given.lock:
            connection = await self._connected()
            state = self._state_of(given)
            self._runs += 1
            run, allowed = self._runs, seconds or self.limits.block_seconds
            try:
                connection.begin(run, namespace, code, allowed)
                self._journal.begun(run, namespace, code, allowed)
                done, own = await connection.finish(run)
            except KernelDiedError as error:
                if self._closed:
                    raise
                return await self._after_death(given, error)
            except FrameError as error:
                return Observation(error=f"the block is too large: {error}")
            except BaseException:
                # The boundary: cancelled, or an error that ends the work. Where its worker lives, nobody sees the end
                # of this block.
                if connection.why is None:
                    self._journal.broken("a block was given up")
                raise
            self._journal.ended(run, done, own)
        return Observation(
            output=done.output,
            cut=done.cut,
            error=done.error,
            state=state,
            submitted=done.submitted,
            value=done.value,
            milliseconds=done.milliseconds,
        )

    async def forget(self, namespace: str) -> None:
        """End a namespace; see `Kernel.forget`."""
        self._given.pop(namespace, None)
        self._calls.allow(namespace, {}, None)
        message = {"type": "forget", "namespace": namespace}
        if self._connection is not None:
            self._connection.send(message)
            self._journal.sent(message)

    async def close(self) -> None:
        """End the kernel and everything it started; safe to call twice."""
        self._closed = True
        calls = self._calls.cancel()
        if self._connection is not None:
            await self._connection.close()
        await asyncio.gather(*calls, return_exceptions=True)

    def _of(self, namespace: str) -> _Given:
        if namespace not in self._given:
            self._given[namespace] = _Given()
            self._given[namespace].knows = len(self._deaths)
        return self._given[namespace]

    def _state_of(self, given: _Given) -> State:
        """What became of a namespace since it was last told."""
        news = self._deaths[given.knows :]
        given.knows = len(self._deaths)
        return "lost" if "lost" in news else "restored" if news else "kept"

    async def _after_death(self, given: _Given, error: KernelDiedError) -> Observation:
        await self._connected()
        state = self._state_of(given)
        if state == "restored":
            told = (
                f"the kernel ended: {error.message}. What this block did to variables is undone: they are as they "
                "were before it"
            )
        else:
            told = (
                f"the kernel ended and its variables are lost: {error.message}. What was given at the start is there "
                f"again. Nothing more could be had: {self._why_lost}"
            )
        return Observation(error=told, state=state)

    async def _connected(self) -> Connection:
        """The worker that lives; a fresh one, brought to the state of the last, where that has ended."""
        async with self._starting:
            if self._closed:
                raise KernelDiedError("the kernel is closed")
            last = self._connection
            if last is not None and last.why is None:
                return last
            state: State | None = None
            if last is not None:
                await last.close()
                self._calls.cancel(self._journal.drop_open_blocks())
                state = "restored"
            fresh = await self._started()
            try:
                await self._journal.replay(fresh, self._calls.waiting, pending=self.limits.pending_calls)
            except DivergedError as error:
                await fresh.close()
                fresh, state = await self._started(), "lost"
                self._why_lost = str(error)
                self._begin_anew(fresh)
            except BaseException:
                await fresh.close()
                raise
            self._connection = fresh
            self._calls.serve(fresh)
            if state is not None:
                self._deaths.append(state)
            return fresh

    async def _started(self) -> Connection:
        body, link = await self.launch()
        fresh = Connection(body, link, self.limits, _no_call)
        await fresh.open()
        if self.own_process and fresh.ready:
            warn_where_open(fresh.ready.confined)
        return fresh

    def _begin_anew(self, fresh: Connection) -> None:
        """Give a worker what the host gave at the start, and nothing else; subagents end with what they shared."""
        self._journal = self._calls.journal = Journal()
        self._calls.cancel()
        for namespace in self._calls.spawned & self._given.keys():
            del self._given[namespace]
        for namespace in self._given:
            for message in (self._expose_message(namespace), self._put_message(namespace, None)):
                fresh.send(message)
                self._journal.sent(message)

    def _put_message(self, namespace: str, values: Mapping[str, Any] | None) -> dict[str, Any]:
        given = self._of(namespace)
        given_values = given.values if values is None else values
        return {
            "type": "put",
            "namespace": namespace,
            "types": dict(given.packer.shelf.types),
            "values": dict(given_values),
        }

    def _expose_message(self, namespace: str) -> dict[str, Any]:
        given = self._of(namespace)
        return {
            "type": "expose",
            "namespace": namespace,
            "types": dict(given.packer.shelf.types),
            "tools": given.shown,
            "result": given.result,
            "spawn": given.spawn is not None,
        }


def _no_call(call: Call) -> None:
    raise FrameError(f"a call of {call.tool[:60]!r} before its first block")
