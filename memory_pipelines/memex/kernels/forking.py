"""The host's side of fork servers: one for each process and isolation, with workers that are ready beforehand."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from memory_pipelines.errors import KernelUnavailableError
from memory_pipelines.memex.kernels.boot import ONE_THREAD
from memory_pipelines.memex.kernels.connection import START_SECONDS, in_words
from memory_pipelines.memex.kernels.walled import command
from memory_pipelines.memex.kernels.zygote import MESSAGE_BYTES

ZYGOTE = Path(__file__).with_name("zygote.py")
WARM = 2
"""Workers that wait for a rollout, for each set of bounds."""
REFILL_SECONDS = 0.02
"""After one was taken: so soon that the next rollout finds it, so late that starting it does not slow this one."""
SETS = 4
"""Sets of bounds that have workers waiting; those not asked for longest lose theirs."""
ALLOCATORS = {"MALLOC_ARENA_MAX": "2", **ONE_THREAD}
"""Arenas of 64 MB a thread would use up the address space, and a fork server may have no further threads."""

_Key = tuple[int, str, tuple[str, ...], bool]

_servers: dict[_Key, "ForkServer"] = {}
_starting: defaultdict[_Key, threading.Lock] = defaultdict(threading.Lock)
_refused: dict[_Key, KernelUnavailableError] = {}


class ForkServer:
    """Starts workers by forking a process that has everything loaded."""

    def __init__(self, paths: Sequence[str], isolation: str, lacking: Sequence[str], *, frames: bool) -> None:
        """Start it and wait until it is up.

        Args:
            paths: folders that the workers' imports need.
            isolation: of the workers.
            lacking: parts of the wall that are taken as missing.
            frames: whether to load what data frames need.

        Raises:
            KernelUnavailableError: it did not start; says why.
        """
        self._lock = threading.Lock()
        self._count = 0
        self._ends: dict[int, Future[int | None]] = {}  # exit codes to come; None when the server itself ended
        self._waiting: OrderedDict[str, deque[ForkedWorker]] = OrderedDict()
        self.alive = True
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        given = {
            "control": theirs.fileno(),
            "paths": list(paths),
            "prepare": {"isolation": isolation, "lacking": list(lacking)},
            "frames": frames,
        }
        try:
            self.process = subprocess.Popen(
                command(ZYGOTE, given),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=ALLOCATORS,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            self._control.close()
            raise KernelUnavailableError(f"{sys.executable} cannot be started: {error}") from error
        finally:
            theirs.close()
        self._wait_until_up()
        threading.Thread(target=self._listen, daemon=True, name="fork server").start()

    def take(self, bounds: Mapping[str, Any]) -> "ForkedWorker":
        """Take a worker that serves nobody else; `refill` must follow, once its taker has it.

        Args:
            bounds: `worker` and `confine` as `boot.serve` takes them.

        Raises:
            KernelUnavailableError: the server is gone or does not answer.
        """
        key = json.dumps(bounds, sort_keys=True)
        with self._lock:
            waiting = self._waiting.setdefault(key, deque())
            self._waiting.move_to_end(key)
            taken: ForkedWorker | None = None
            while waiting and taken is None:
                candidate = waiting.popleft()
                if candidate.lives:
                    taken = candidate
                else:
                    candidate.link.close()
            return taken or self._fork(bounds)

    def refill(self, bounds: Mapping[str, Any]) -> None:
        """Have workers started in place of those that were taken; does nothing when the server is gone.

        Args:
            bounds: as `take` had them.
        """
        key = json.dumps(bounds, sort_keys=True)
        with self._lock, contextlib.suppress(KernelUnavailableError):  # which the next that takes one is told
            waiting = self._waiting.setdefault(key, deque())
            while self.alive and len(waiting) < WARM:
                waiting.append(self._fork(bounds))
            while len(self._waiting) > SETS:
                _, unused = self._waiting.popitem(last=False)
                for worker in unused:
                    worker.kill()
                    worker.link.close()

    def kill(self, number: int) -> None:
        """End a worker at once; none of that number is no error."""
        with contextlib.suppress(OSError):
            self._control.send(json.dumps({"do": "kill", "number": number}).encode())

    def _fork(self, bounds: Mapping[str, Any]) -> "ForkedWorker":
        ours, theirs = socket.socketpair()
        self._count += 1
        number = self._count
        end: Future[int | None] = Future()
        self._ends[number] = end
        asked = json.dumps({"do": "fork", "number": number, **bounds}).encode()
        try:
            socket.send_fds(self._control, [asked], [theirs.fileno()])
        except OSError as error:
            ours.close()
            self._ends.pop(number, None)
            self.alive = False
            raise KernelUnavailableError(f"the fork server of the kernels is gone: {error}") from error
        finally:
            theirs.close()
        return ForkedWorker(self, number, ours, end, bounds["confine"]["cpu_seconds"])

    def _wait_until_up(self) -> None:
        self._control.settimeout(START_SECONDS)
        try:
            said: dict[str, Any] = json.loads(self._control.recv(MESSAGE_BYTES) or b"{}")
        except (OSError, ValueError) as error:
            said = {"failed": f"no sign of life: {error}"}
        self._control.settimeout(None)
        if not said.get("up"):
            self.alive = False
            self._control.close()
            self.process.kill()
            code = self.process.wait()
            why = said.get("failed", f"its process ended with exit code {code}")
            raise KernelUnavailableError(f"the kernel did not start: {why}")

    def _listen(self) -> None:
        """Note the ends of workers, in a thread of its own, until the server ends."""
        while True:
            try:
                data = self._control.recv(MESSAGE_BYTES)
            except OSError:
                data = b""
            if not data:
                break
            said = json.loads(data)
            end = self._ends.pop(said["ended"], None)
            if end is not None:
                end.set_result(said["code"])
        self.alive = False
        self.process.wait()
        with self._lock:
            self._control.close()
            for worker in (worker for waiting in self._waiting.values() for worker in waiting):
                worker.link.close()
            self._waiting.clear()
            left, self._ends = list(self._ends.values()), {}
        for end in left:
            end.set_result(None)


class ForkedWorker:
    """The process of one worker, as a connection needs it."""

    def __init__(
        self, server: ForkServer, number: int, link: socket.socket, end: "Future[int | None]", cpu_seconds: int
    ) -> None:
        """Keep what is known of it; the server starts it."""
        self.link = link
        self._server = server
        self._number = number
        self._end = end
        self._cpu_seconds = cpu_seconds

    @property
    def lives(self) -> bool:
        """Whether its end is not known."""
        return not self._end.done()

    def kill(self) -> None:
        """End it at once."""
        if self.lives:
            self._server.kill(self._number)

    async def ended(self) -> str:
        """Wait for its end and say how it ended."""
        code = await asyncio.wrap_future(self._end)
        return "the fork server ended" if code is None else in_words(code, self._cpu_seconds)


def fork_server(
    paths: Sequence[str], isolation: str, lacking: Sequence[str] = (), *, frames: bool = False
) -> ForkServer:
    """Return the fork server of this process, started when there is none; blocks while it starts.

    Args:
        paths: folders that the workers' imports need.
        isolation: of the workers.
        lacking: parts of the wall that are taken as missing.
        frames: whether workers shall have loaded what data frames need. One that did not start with it once is not
            tried again: it only saves time, and each try takes some.

    Raises:
        KernelUnavailableError: it did not start; says why.
    """
    key = _key(isolation, lacking, frames)
    with _starting[key]:
        found = _servers.get(key)
        if found is None or not found.alive:
            if key in _refused:
                raise _refused[key]
            try:
                found = _servers[key] = ForkServer(paths, isolation, lacking, frames=frames)
            except KernelUnavailableError as error:
                if frames:
                    _refused[key] = error
                raise
        return found


def running(isolation: str, lacking: Sequence[str] = (), *, frames: bool = False) -> ForkServer | None:
    """Return the fork server of this process if it is up; see `fork_server`."""
    found = _servers.get(_key(isolation, lacking, frames))
    return found if found is not None and found.alive else None


def _key(isolation: str, lacking: Sequence[str], frames: bool) -> _Key:
    return os.getpid(), isolation, tuple(lacking), frames  # a fork of this process has no part in its servers
