"""The kernel that is a thread of the calling process."""

import asyncio
import os
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from memory_pipelines.errors import KernelUnavailableError
from memory_pipelines.memex.kernels.clock import ThreadClock
from memory_pipelines.memex.kernels.connection import Body
from memory_pipelines.memex.kernels.hosted import HostedKernel
from memory_pipelines.memex.kernels.worker import Worker


class InProcessKernel(HostedKernel):
    """Runs blocks in a thread with an event loop of its own; for tests, and for code that is trusted.

    It isolates nothing: the code has the rights, files and environment of the process. Limits on memory and CPU time
    do not hold. A block that computes in Python is interrupted at its deadline; one inside a call of a C function
    cannot be: its thread is left behind and a fresh one takes its place. Only `print` is captured, not what is written
    to `sys.stdout` directly, which belongs to the process.
    """

    can_kill: ClassVar[bool] = False
    own_process: ClassVar[bool] = False

    @staticmethod
    def isolation_for(isolation: str | None) -> str:
        """Return `none`, or refuse."""
        if isolation is not None:
            raise KernelUnavailableError(
                f"the kernel 'inprocess' isolates nothing, so isolation={isolation!r} cannot be had; take 'pool' or "
                "'subprocess', or leave isolation out for code that you trust",
                isolation=isolation,
            )
        return "none"

    @property
    def isolation(self) -> Mapping[str, Any]:
        """Nothing isolates this kernel."""
        return {"kernel": "inprocess", "process": False, "isolation": self.wanted}

    async def launch(self) -> tuple[Body, socket.socket]:
        """Start the thread with its end of a socket pair."""
        ours, theirs = socket.socketpair()
        worker = Worker(
            theirs,
            ThreadClock,
            output_chars=self.limits.output_chars,
            frame_bytes=self.limits.frame_bytes,
            pending_calls=self.limits.pending_calls,
        )
        ready: dict[str, Any] = {"type": "ready", "pid": os.getpid(), "confined": {}}
        thread = threading.Thread(target=worker.serve, args=(ready,), daemon=True, name="kernel")
        thread.start()
        return _Thread(thread, ours, self.limits.grace_seconds), ours


class _Thread:
    """The thread of a worker."""

    def __init__(self, thread: threading.Thread, link: socket.socket, grace_seconds: float) -> None:
        self._thread = thread
        self._link = link
        self._grace_seconds = grace_seconds

    def kill(self) -> None:
        # The worker ends when it reads the end of the stream, as soon as its block yields.
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)

    async def ended(self) -> str:
        await asyncio.to_thread(self._thread.join, self._grace_seconds)
        return "its thread is left behind, still running" if self._thread.is_alive() else "its thread ended"
