"""The host's end of one worker, from its first message to its end."""

import asyncio
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from memory_pipelines.errors import KernelDiedError, KernelUnavailableError
from memory_pipelines.memex.kernels.base import Limits
from memory_pipelines.memex.kernels.deadlines import OwnSeconds
from memory_pipelines.memex.kernels.messages import Call, Done, Failed, Message, Ready, decode, understand
from memory_pipelines.memex.kernels.wire import CARRIED, CHUNK, UNREAD, FrameError, Frames, pack

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


class UnreadError(FrameError):
    """The code has to read answers before it gets more."""


class Connection:
    """Sends frames to a worker, hands its calls on, and ends it when it breaks the rules or dies."""

    def __init__(self, body: Body, link: socket.socket, limits: Limits, calls: Callable[[Call], None]) -> None:
        """Take over a started worker; `open` must follow.

        Args:
            body: what the worker runs in.
            link: the host's end of the pair.
            limits: what the worker is held to.
            calls: takes the calls of the code, each of which is to be answered by `answer`; raises FrameError for
                one that no worker of ours makes.
        """
        self.ready: Ready | None = None
        self.why: str | None = None  # how it ended; None while it lives
        self.calls = calls
        self._on_end: list[Callable[[], None]] = []
        self._body = body
        self._link = link
        self._limits = limits
        self._runs: dict[int, asyncio.Future[Done]] = {}
        self._allowed: dict[int, float] = {}  # seconds, by run
        self._running: set[int] = set()  # blocks whose end the worker has not told, also those nobody waits for
        self._carried: dict[int, int] = {}  # bytes of the messages of calls under way, by call
        self._loop = asyncio.get_running_loop()
        self._own = OwnSeconds(self._loop.time())
        self._started: asyncio.Future[Ready] = self._loop.create_future()

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

    def begin(self, run: int, namespace: str, code: str, seconds: float) -> None:
        """Start a block; `finish` must follow.

        Args:
            run: a number that no other block of this worker has.
            namespace: where.
            code: the block.
            seconds: its deadline, which the worker keeps; after the grace the worker is killed.

        Raises:
            KernelDiedError: the worker ended before.
            FrameError: the block is too large.
        """
        if self.why is not None:
            raise KernelDiedError(self.why)
        self.send({"type": "run", "run": run, "namespace": namespace, "code": code, "seconds": seconds})
        self._runs[run] = self._loop.create_future()
        self._allowed[run] = seconds
        self._running.add(run)
        self._own.begin(run, self._loop.time())

    async def finish(self, run: int) -> tuple[Done, float]:
        """Wait for the end of a block.

        Args:
            run: as it was begun.

        Returns:
            What the worker said of it, and the seconds that were its own: without those in which it waited for tools.

        Raises:
            KernelDiedError: the worker ended before the block did.
            MemoryPipelinesError: what `fail` gave.
        """
        done, seconds = self._runs[run], self._allowed[run]
        try:
            while not done.done():
                left = seconds + self._limits.grace_seconds - self._own.of(run, self._loop.time())
                if left <= 0:
                    self._end(f"a block ran longer than {seconds:g} s and did not stop when told to")
                    break
                await asyncio.wait([done], timeout=left)
            answer = await done
            return answer, self._own.of(run, self._loop.time())
        except asyncio.CancelledError:
            self.send({"type": "cancel", "run": run})
            raise
        finally:
            del self._runs[run], self._allowed[run]
            self._own.end(run, self._loop.time())

    def answer(self, call: Call, value: Any, *, ok: bool) -> None:
        """Give the code what it waits for.

        Args:
            call: which is answered.
            value: the result in JSON form, or why there is none.
            ok: which of both.

        Raises:
            FrameError: larger than the limit; the call is still open.
            UnreadError: too much waits to be read already; the call is still open.
        """
        unread = self._writer.transport.get_write_buffer_size() // self._limits.frame_bytes
        if unread > UNREAD:
            self._end("its code does not read the answers of its calls")
        elif unread == UNREAD and ok:
            raise UnreadError("too many results wait to be read; await some calls first")
        self._carried.pop(call.id, None)
        self.send({"type": "return", "id": call.id, "ok": ok, "value": value})
        self._own.leave(call.run, self._loop.time())

    def fail(self, error: BaseException) -> None:
        """Give an error that no code of an agent can mend to whoever waits for a block."""
        for run in self._runs.values():
            if not run.done():
                run.set_exception(error)

    def on_end(self, told: Callable[[], None]) -> None:
        """Call this once when the worker has ended."""
        self._on_end.append(told)

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
                    self._take(understand(frame), frames.size)
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

    def _end(self, why: str) -> None:
        if self.why is None:
            self.why = why
            self._body.kill()
            for told in self._on_end:
                told()

    def _take(self, message: Message, size: int) -> None:
        if isinstance(message, Ready):
            if self._started.done():
                raise FrameError("a second start")
            self._started.set_result(message)
        elif isinstance(message, Failed):
            self._end(message.why)
        elif isinstance(message, Done):
            if len(message.output) > self._limits.output_chars + CUT_NOTE_CHARS:
                raise FrameError(f"an output of {len(message.output):,} characters")
            if message.run not in self._running:
                raise FrameError(f"the end of block {message.run}, which does not run")
            self._running.remove(message.run)
            run = self._runs.get(message.run)
            if run is not None and not run.done():
                run.set_result(message)
        else:
            if sum(self._carried.values()) + size > CARRIED * self._limits.frame_bytes:
                raise FrameError(
                    f"calls at once with more than {CARRIED * self._limits.frame_bytes:,} bytes of arguments"
                )
            self._carried[message.id] = size
            self._own.enter(message.run, self._loop.time())
            self.calls(message)
