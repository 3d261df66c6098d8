"""The calls of a kernel's code: each is made once, whichever worker waits for its answer."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memory_pipelines.errors import ToolError
from memory_pipelines.memex.kernels.base import Limits, Spawn, Subagent
from memory_pipelines.memex.kernels.connection import Connection, UnreadError
from memory_pipelines.memex.kernels.journal import Journal, Made
from memory_pipelines.memex.kernels.messages import Call
from memory_pipelines.memex.kernels.namespace import SPAWN
from memory_pipelines.memex.kernels.wire import FrameError
from memory_pipelines.memex.tools import Tool


class _Asked(BaseModel):
    """What the code says of a subagent that it wants."""

    model_config = ConfigDict(extra="forbid", strict=True)

    task: str = Field(min_length=1)
    scope: dict[str, str]  # names, and what the values are
    result: dict[str, Any] | None


class Calls:
    """Makes the calls of one kernel and answers them."""

    def __init__(self, limits: Limits, journal: Journal) -> None:
        """Begin without calls.

        Args:
            limits: of the kernel.
            journal: is told the answers.
        """
        self.journal = journal
        self._limits = limits
        self._connection: Connection | None = None
        self._tools: dict[str, dict[str, Tool]] = {}  # by namespace and name
        self._spawns: dict[str, Spawn] = {}  # by namespace
        self._made: list[Made] = []  # under way
        self.spawned: set[str] = set()  # namespaces of subagents

    @property
    def waiting(self) -> list[Made]:
        """The calls under way."""
        return list(self._made)

    def serve(self, connection: Connection) -> None:
        """Take the calls that come over this connection, and answer over it."""
        self._connection = connection
        connection.calls = self._take
        for made in self._made:
            if made.answer is not None:  # it came while no worker was there
                self._send(made)

    def allow(self, namespace: str, tools: Mapping[str, Tool], spawn: Spawn | None) -> None:
        """Let the code of a namespace call these tools, and no others.

        Args:
            namespace: whose code.
            tools: by name.
            spawn: starts its subagents; None: it may have none.
        """
        self._tools[namespace] = dict(tools)
        self._spawns.pop(namespace, None)
        if spawn is not None:
            self._spawns[namespace] = spawn

    def cancel(self, runs: set[int] | None = None) -> list[asyncio.Task[Any]]:
        """End the calls of these blocks, or all.

        Returns:
            What is to be waited for until they have ended.
        """
        ended = [made for made in self._made if runs is None or made.call.run in runs]
        self._made = [made for made in self._made if made not in ended]
        tasks = [made.task for made in ended if made.task is not None]
        for task in tasks:
            task.cancel()
        return tasks

    def _take(self, call: Call) -> None:
        if len(self._made) >= self._limits.pending_calls or any(made.call.id == call.id for made in self._made):
            raise FrameError(f"more than {self._limits.pending_calls} calls at once, or one twice")
        made = Made(call)
        spawn, tool = self._spawns.get(call.namespace), self._tools.get(call.namespace, {}).get(call.tool)
        if call.tool == SPAWN and spawn is not None:
            work = spawn(self._share(made))
        elif tool is not None:
            work = tool.call(call.arguments)
        else:
            raise FrameError(f"a call of {call.tool[:60]!r}, which it has not")
        self._made.append(made)
        made.task = asyncio.ensure_future(work)
        made.task.add_done_callback(partial(self._answer, made))

    def _share(self, made: Made) -> Subagent:
        """Give a subagent a namespace with the objects that came along with the call."""
        try:
            asked = _Asked.model_validate(made.call.arguments)
        except ValidationError as error:
            raise FrameError(f"a subagent that does not fit: {error.errors()[0]['msg']}") from error
        namespace = f"{made.call.namespace}.{len(self.spawned) + 1}"
        self.spawned.add(namespace)
        if self._connection is not None:
            self._connection.send({"type": "share", "call": made.call.id, "namespace": namespace})
        self.journal.shared(made, namespace)
        return Subagent(namespace=namespace, task=asked.task, scope=asked.scope, result=asked.result)

    def _answer(self, made: Made, task: asyncio.Task[Any]) -> None:
        if made not in self._made:
            return  # nobody waits for it any more
        name = made.call.tool
        if task.cancelled():
            made.answer = False, f"{name}: cancelled"
        elif (error := task.exception()) is None:
            made.answer = True, task.result()
        elif isinstance(error, ToolError):
            made.answer = False, error.message
        else:
            made.answer = False, f"{name}: {error}"
            if self._connection is not None:
                self._connection.fail(error)
        self._send(made)

    def _send(self, made: Made) -> None:
        """Send an answer, and keep it; while no worker lives it is kept for the next."""
        connection = self._connection
        if connection is None or connection.why is not None or made.answer is None:
            return
        ok, value = made.answer
        try:
            connection.answer(made.call, value, ok=ok)
        except FrameError as error:
            why = error if isinstance(error, UnreadError) else f"the result is too large, ask for less: {error}"
            made.answer = False, f"{made.call.tool}: {why}"
            connection.answer(made.call, made.answer[1], ok=False)
        self._made.remove(made)
        self.journal.answered(made)
