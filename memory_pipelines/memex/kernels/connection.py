"""The host's end of one worker, from its first message to its end."""

import asyncio
import signal
import socket
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from memory_pipelines.errors import KernelDiedError, KernelUnavailableError, ToolError
from memory_pipelines.memex.kernels.base import Limits
from memory_pipelines.memex.kernels.messages import Call, Done, Failed, Message, Ready, decode, understand
from memory_pipelines.memex.kernels.wire import CHUNK, FrameError, Frames, pack
from memory_pipelines.memex.tools import Tool

START_SECONDS = 30.0
"""How long a worker may take to say that it is ready, on a busy machine."""
CUT_NOTE_CHARS = 200
"""What a worker adds to an output that it cut."""


class Body(Protocol):
    """What a worker runs in: a process, or a thread."""

    def kill(self) -> None:
        """End it as hard as it can be ended, at once."""
        ...

    async def ended(self) -> str:
        """Wait for its end and say how it ended."""
        ...


def in_words(code: int, cpu_seconds: int) -> str:
    """Say how a process ended.

    Args:
        code: its exit code; negative for a signal.
        cpu_seconds: what it was allowed.
    """
    if code >= 0:
        return f"its process ended with exit code {code}"
    if -code == signal.SIGXCPU:
        return f"it used more than {cpu_seconds} s of CPU time"
    return f"its process was ended by {signal.Signals(-code).name}"


class Connection:
    """Sends frames to a worker, answers its calls, and ends it when it breaks the rules or dies."""

    def __init__(self, body: Body, link: socket.socket, limits: Limits) -> None:
        """Take over a started worker; `open` must follow.

        Args:
            body: what the worker runs in.
            link: the host's end of the pair.
            limits: what the worker is held to.
        """
        self.ready: Ready | None = None
        self.why: str | None = None  # how it ended; None while it lives
        self._body = body
        self._link = link
        self._limits = limits
        self._tools: dict[str, dict[str, Tool]] = {}  # by namespace and name
        self._runs: dict[int, asyncio.Future[Done]] = {}
        self._ran = 0
        self._calls: dict[int, asyncio.Task[Any]] = {}
        self._outside = _Stopwatch()
        self._started: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        """Wait until the worker is ready.

        Raises:
            KernelUnavailableError: it did not start; says why.
        """
        reader, self._writer = await asyncio.open_connection(sock=self._link)
        self._reading = asyncio.create_task(self._read(reader))
        try:
            self.ready = await asyncio.wait_for(asyncio.shield(self._started), START_SECONDS)
        except (TimeoutError, KernelDiedError) as error:
            await self.close()
            raise KernelUnavailableError(f"the kernel did not start: {error or 'no sign of life'}") from error
        except asyncio.CancelledError:
            await self.close()
            raise

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message, unless the worker has ended.

        Args:
            message: see `Worker`.

        Raises:
            FrameError: larger than the limit.
        """
        data = pack(message, self._limits.frame_bytes)
        if self.why is None and not self._writer.is_closing():
            self._writer.write(data)

    def allow(self, namespace: str, tools: Mapping[str, Tool]) -> None:
        """Let the code of a namespace call these tools, and no others.

        Args:
            namespace: whose code.
            tools: by name.
        """
        self._tools[namespace] = dict(tools)

    async def run(self, namespace: str, code: str, seconds: float) -> Done:
        """Run a block.

        Args:
            namespace: where.
            code: the block.
            seconds: its deadline, which the worker keeps; after the grace the worker is killed.

        Returns:
            What the worker said of it.

        Raises:
            KernelDiedError: the worker ended before the block did.
            MemoryPipelinesError: what a tool raised that no code of an agent can mend, such as a spent budget.
        """
        if self.why is not None:
            raise KernelDiedError(self.why)
        loop = asyncio.get_running_loop()
        self._ran += 1
        number = self._ran
        done = self._runs[number] = loop.create_future()
        try:
            self.send({"type": "run", "run": number, "namespace": namespace, "code": code, "seconds": seconds})
            begun, outside = loop.time(), self._outside.seconds(loop.time())
            left = seconds + self._limits.grace_seconds
            while left > 0 and not done.done():
                await asyncio.wait([done], timeout=left)
                now = loop.time()
                # Waiting for tools is not the block's time, as in the worker's own clock.
                own = (now - begun) - (self._outside.seconds(now) - outside)
                left = seconds + self._limits.grace_seconds - own
            if not done.done():
                self._end(f"a block ran longer than {seconds:g} s and did not stop when told to")
            return await done
        except asyncio.CancelledError:
            self.send({"type": "cancel", "run": number})
            raise
        finally:
            self._runs.pop(number, None)

    async def close(self) -> None:
        """End the worker and wait for its end."""
        self._end("closed")
        await self._reading
        self._writer.close()
        await self._body.ended()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        frames = Frames(self._limits.frame_bytes, decode)
        why = None
        try:
            while data := await reader.read(CHUNK):
                for frame in frames.feed(data):
                    self._take(understand(frame))
        except FrameError as error:
            why = f"it sent {error}"
        except ConnectionError:
            pass
        if why is not None:
            self._end(why)
        self._body.kill()
        ended = await self._body.ended()
        self._end(why or ended)
        died = KernelDiedError(self.why or ended)
        for future in (self._started, *self._runs.values()):
            if not future.done():
                future.set_exception(died)
                future.exception()  # looked at: nobody may be waiting any more
        calls = list(self._calls.values())
        for task in calls:
            task.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    def _end(self, why: str) -> None:
        if self.why is None:
            self.why = why
            self._body.kill()

    def _take(self, message: Message) -> None:
        if isinstance(message, Ready):
            if self._started.done():
                raise FrameError("a second start")
            self._started.set_result(message)
        elif isinstance(message, Failed):
            self._end(message.why)
        elif isinstance(message, Done):
            if len(message.output) > self._limits.output_chars + CUT_NOTE_CHARS:
                raise FrameError(f"an output of {len(message.output):,} characters")
            run = self._runs.get(message.run)
            if run is not None and not run.done():
                run.set_result(message)
        else:
            tool = self._tools.get(message.namespace, {}).get(message.tool)
            if tool is None:
                raise FrameError(f"a call of {message.tool[:60]!r}, which it has not")
            if message.id in self._calls or len(self._calls) >= self._limits.pending_calls:
                raise FrameError(f"more than {self._limits.pending_calls} calls at once, or one twice")
            self._outside.enter(asyncio.get_running_loop().time())
            task = self._calls[message.id] = asyncio.create_task(tool.call(message.arguments))
            task.add_done_callback(partial(self._answer, message, tool))

    def _answer(self, call: Call, tool: Tool, task: asyncio.Task[Any]) -> None:
        del self._calls[call.id]
        self._outside.leave(asyncio.get_running_loop().time())
        answer: dict[str, Any] = {"type": "return", "id": call.id, "ok": False, "value": f"{tool.name}: cancelled"}
        if not task.cancelled():
            error = task.exception()
            if error is None:
                answer.update(ok=True, value=task.result())
            else:
                answer.update(value=error.message if isinstance(error, ToolError) else f"{tool.name}: {error}")
                if not isinstance(error, ToolError):
                    self._raise(error)
        try:
            self.send(answer)
        except FrameError as error:
            self.send({**answer, "ok": False, "value": f"{tool.name}: the result is too large, ask for less: {error}"})

    def _raise(self, error: BaseException) -> None:
        """Give an error that no code of an agent can mend to whoever waits for a block."""
        for run in self._runs.values():
            if not run.done():
                run.set_exception(error)


class _Stopwatch:
    """Seconds during which at least one tool call was under way."""

    def __init__(self) -> None:
        self._inside = 0
        self._since = 0.0
        self._sum = 0.0

    def enter(self, now: float) -> None:
        if not self._inside:
            self._since = now
        self._inside += 1

    def leave(self, now: float) -> None:
        self._inside -= 1
        if not self._inside:
            self._sum += now - self._since

    def seconds(self, now: float) -> float:
        return self._sum + (now - self._since if self._inside else 0.0)
