"""The worker: namespaces in one event loop that run blocks of code and call tools of the host over frames.

It runs the same way in a thread of the host (`inprocess`) and in a process of its own (`subprocess`). It imports the
standard library, its own parts beside it, and pydantic when first needed; nothing of the host.
"""

import ast
import asyncio
import builtins
import inspect
import io
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import CodeType, FrameType
from typing import Any, Protocol

from memory_pipelines.memex.kernels.capture import Output, shown, told
from memory_pipelines.memex.kernels.clock import REPEAT_SECONDS, BlockTimeoutError, IdleSelector
from memory_pipelines.memex.kernels.home import Home, current
from memory_pipelines.memex.kernels.leaving import CannotLeaveError
from memory_pipelines.memex.kernels.namespace import Block, Namespace, Pending, SubmittedSignal
from memory_pipelines.memex.kernels.objects import Schema
from memory_pipelines.memex.kernels.steps import Steps
from memory_pipelines.memex.kernels.wire import CHUNK, FrameError, Frames, pack

# Noted when this is imported, by a fork server before it forks: each copy touches a page of all that is loaded.
PRISTINE = dict(builtins.__dict__)
"""What builtins are before any code of a block has run."""
LOADED = dict(sys.modules)
"""The modules that a worker's process has at its start."""


class Clock(Protocol):
    """Interrupts code that never yields."""

    def start(self, seconds: float) -> None:
        """Look in so many seconds, and repeatedly after that."""
        ...

    def stop(self) -> None:
        """Look no more."""
        ...


class Worker:
    """Serves one connection to the host until it closes."""

    def __init__(
        self,
        connection: socket.socket,
        clock: Callable[[Callable[[FrameType | None], bool]], Clock],
        *,
        output_chars: int,
        frame_bytes: int,
        pending_calls: int,
    ) -> None:
        """Prepare; call `serve` in the thread that shall run the code.

        Args:
            connection: to the host.
            clock: makes the clock, in the serving thread.
            output_chars: of one observation.
            frame_bytes: of one message, both ways.
            pending_calls: tool calls under way at once.
        """
        self.connection = connection
        self._make_clock = clock
        self._output_chars = output_chars
        self._frame_bytes = frame_bytes
        self._namespaces: dict[str, Namespace] = {}
        self._sources: dict[str, str] = {}  # code by file name, for errors and to know whose frame is whose
        self._blocks: dict[int, Block] = {}
        self._last: Block | None = None
        self.home = Home(self._send, last=lambda: self._last, frame_bytes=frame_bytes, pending_calls=pending_calls)
        self._computed = 0.0  # by all blocks together
        self._busy = False  # a frame is being written: an interruption now would tear it
        self._stdout: io.TextIOBase | None = None  # set in a process of its own
        self._builtins = builtins.__dict__

    def take_process(self, stdout: io.TextIOBase) -> None:
        """Treat the process as the worker's own: after each block its builtins and streams are put right.

        Args:
            stdout: what standard output and error are.
        """
        self._stdout = sys.stdout = sys.stderr = stdout

    def serve(self, ready: dict[str, Any]) -> None:
        """Run until the host closes the connection.

        Args:
            ready: the first message.
        """
        self._clock = self._make_clock(self._overdue)
        self._loop = asyncio.SelectorEventLoop(IdleSelector(lambda: self._loop.time(), self._idle))
        self._loop.set_exception_handler(_ignore)
        asyncio.set_event_loop(self._loop)
        try:
            reading = self._loop.create_task(self._read(ready))
            while not reading.done():
                # Code may stop the loop, or raise SystemExit or the deadline's exception through it.
                with suppress(RuntimeError, KeyboardInterrupt, SystemExit, BlockTimeoutError):
                    self._loop.run_until_complete(reading)
        finally:
            self._clock.stop()
            self.connection.close()
            asyncio.set_event_loop(None)
            self._loop.close()

    async def _read(self, ready: dict[str, Any]) -> None:
        self._send(pack(ready, self._frame_bytes))
        frames = Frames(1 << 32)
        self.connection.setblocking(False)
        while True:
            try:
                data = await self._loop.sock_recv(self.connection, CHUNK)
            except asyncio.CancelledError:
                continue  # code cancelled every task it could find
            except OSError:
                return
            if not data:
                break
            for frame in frames.feed(data):
                self._take(frame)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=REPEAT_SECONDS)

    def _take(self, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        if kind == "return":
            self.home.answered(frame["id"], frame["value"], ok=frame["ok"])
        elif kind == "run":
            self._start(frame)
        elif kind == "cancel":
            block = self._blocks.get(frame["run"])
            if block is not None and block.task is not None:
                block.stopped = "cancelled"
                block.task.cancel()
        elif kind == "put":
            namespace = self._namespace(frame["namespace"])
            namespace.types.learn(frame["types"])
            for name, packed in frame["values"].items():
                namespace.variables[name] = _placed(namespace, packed["value"], packed["places"])
        elif kind == "expose":
            namespace = self._namespace(frame["namespace"])
            namespace.types.learn(frame["types"])
            namespace.expose(frame["tools"], frame["result"], spawn=frame["spawn"])
        elif kind == "share":
            self._namespace(frame["namespace"]).variables.update(self.home.parcel(frame["call"]))
        elif kind == "forget":
            self._namespaces.pop(frame["namespace"], None)

    def _namespace(self, name: str) -> Namespace:
        if name not in self._namespaces:
            self._namespaces[name] = Namespace(name, self, self._output_chars)
        return self._namespaces[name]

    def _start(self, frame: dict[str, Any]) -> None:
        namespace = self._namespace(frame["namespace"])
        deadline = self._loop.time() + frame["seconds"]
        block = Block(frame["run"], namespace, Output(self._output_chars), deadline)
        block.excused = self._computed
        self._blocks[block.run] = self._last = block
        running = self._run(block, frame["code"], frame["seconds"])
        block.task = self._loop.create_task(Steps(running, self._loop.time, partial(self._stepped, block)))

    async def _run(self, block: Block, code: str, seconds: float) -> None:
        current.set(block)
        started = self._loop.time()
        self._loop.call_at(block.deadline, self._cancel_overdue, block)
        self._clock.start(min(one.deadline for one in self._blocks.values()) - started)
        error: str | None = None
        late = "" if not block.namespace.late.total else block.namespace.late.close()[0]
        if late:
            block.namespace.late = Output(self._output_chars)
            block.write(f"[printed by a task after its block]\n{late}\n")
        try:
            await self._execute(block, code)
        except SubmittedSignal:
            pass
        except (BlockTimeoutError, asyncio.CancelledError) as stop:
            if isinstance(stop, BlockTimeoutError) or block.stopped == "deadline":
                stop = BlockTimeoutError(f"the block ran longer than {seconds:g} s").with_traceback(stop.__traceback__)
            error = self.told(stop)
        except SystemExit as stop:
            error = f"{self.told(stop)}\nexit ends only the block; `submit` ends the work"
        except BaseException as raised:
            error = self.told(raised)
        finally:
            self._repair()
        for name in block.namespace.restore():
            block.write(f"\n[`{name}` is the kernel's again: use another name for a variable]\n")
        block.done = True
        del self._blocks[block.run]
        if not self._blocks:
            self._clock.stop()
        self._finish(block, error, started)

    async def _execute(self, block: Block, code: str) -> None:
        name = f"<block {block.run}>"
        self._sources[name] = code
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        parts = [_compiled(tree, name, "exec")]
        if isinstance(last, ast.Expr):
            parts.append(_compiled(ast.Expression(last.value), name, "eval"))
        block.namespace.prepare(parts)
        value: Any = None
        for part in parts:
            value = await self._evaluate(part, block.namespace)
        if isinstance(value, Pending) or inspect.iscoroutine(value):
            try:
                value = await value  # a last line that lacks its await can only mean this
            finally:
                self._repair()
        if value is not None:
            block.namespace.variables["_"] = value
            block.write(shown(value))

    async def _evaluate(self, part: CodeType, namespace: Namespace) -> Any:
        try:
            value = eval(part, namespace.variables)
            if part.co_flags & inspect.CO_COROUTINE:
                value = await value
            return value
        finally:
            self._repair()

    def _repair(self) -> None:
        """Put builtins right before any other step, since code may have deleted them; so no builtin is used here."""
        if self._stdout is not None:
            self._builtins.update(PRISTINE)
            if "builtins" not in sys.modules or "sys" not in sys.modules:
                sys.modules.update(LOADED)
            sys.stdout = sys.stderr = self._stdout

    def _finish(self, block: Block, error: str | None, started: float) -> None:
        output, cut = block.output.close()
        submitted = bool(block.submitted) and error is None
        done = {
            "type": "done",
            "run": block.run,
            "output": output,
            "cut": cut,
            "error": error,
            "submitted": submitted,
            "value": block.submitted[0] if submitted else None,
            "interrupted": block.stopped is not None,
            "milliseconds": round((self._loop.time() - started) * 1e3, 3),
        }
        try:
            data = pack(done, self._frame_bytes)
        except FrameError as too_large:
            done.update(output="", error=f"the observation is too large: {too_large}", submitted=False, value=None)
            data = pack(done, self._frame_bytes)
        self._send(data)

    def write(self, text: str) -> None:
        """Take printed text for the block that is running, or that ran last."""
        block = current.get() or self._last
        if block is not None:
            block.write(text)

    def told(self, error: BaseException) -> str:
        """Return an error as the model needs it, with the lines of blocks that it passed."""
        return told(error, self._sources)

    def submit(self, value: Any) -> None:
        """Note the value that ends the block that is running.

        Args:
            value: in JSON form.

        Raises:
            CannotLeaveError: too large.
        """
        try:
            pack({"value": value}, self._frame_bytes // 2)  # the observation carries output and error beside it
        except FrameError as error:
            raise CannotLeaveError(f"value: too large: {error}") from None
        block = current.get() or self._last
        if block is not None:
            block.submitted = [value]

    def _send(self, data: bytes) -> None:
        self._busy = True
        try:
            self.connection.setblocking(True)
            self.connection.sendall(data)
        finally:
            with suppress(OSError):
                self.connection.setblocking(False)
            self._busy = False

    def _stepped(self, block: Block, seconds: float) -> None:
        block.computed += seconds
        self._computed += seconds

    def _idle(self, seconds: float) -> None:
        """Give every block the time that was not its own: in which others computed, or nobody while it waited."""
        for block in self._blocks.values():
            of_others = self._computed - block.computed
            block.deadline += of_others - block.excused + (seconds if block.waiting else 0.0)
            block.excused = of_others

    def _overdue(self, frame: FrameType | None) -> bool:
        if self._busy:
            return False
        while frame is not None and frame.f_code.co_filename not in self._sources:
            frame = frame.f_back
        if frame is None:
            return False
        now = self._loop.time()
        block = current.get()  # not known to a clock that looks from another thread
        candidates = list(self._blocks.values()) if block is None else [block]
        late = [one for one in candidates if one.deadline <= now and not one.done]
        for one in late:
            one.stopped = one.stopped or "deadline"  # also where the code swallows what is raised
        return bool(late)

    def _cancel_overdue(self, block: Block) -> None:
        if block.done or block.task is None:
            return
        again = block.deadline
        if block.deadline <= self._loop.time():
            block.stopped = "deadline"
            block.task.cancel()
            again = self._loop.time() + REPEAT_SECONDS  # the code may have swallowed it
        self._loop.call_at(again, self._cancel_overdue, block)


def _ignore(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What a block left behind and nobody awaited is no error of the loop."""


def _compiled(tree: ast.Module | ast.Expression, name: str, mode: str) -> CodeType:
    return compile(tree, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _placed(namespace: Namespace, value: Any, places: list[tuple[list[str | int], Schema]]) -> Any:
    """Put objects where the host said that they were; innermost ones come first."""
    root = [value]
    for path, schema in places:
        holder: Any = root
        steps: list[str | int] = [0, *path]
        for step in steps[:-1]:
            holder = holder[step]
        holder[steps[-1]] = namespace.types.rebuild(schema, holder[steps[-1]])
    return root[0]
