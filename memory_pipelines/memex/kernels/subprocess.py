"""The kernel that is a process of its own."""

import asyncio
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from memory_pipelines.errors import KernelUnavailableError
from memory_pipelines.memex.kernels.connection import Body, in_words
from memory_pipelines.memex.kernels.walled import WalledKernel, command, import_paths

BOOT = Path(__file__).with_name("boot.py")


class SubprocessKernel(WalledKernel):
    """Runs blocks in a fresh Python behind the wall: see `confine.py`. A process that ends is replaced."""

    name: ClassVar[str] = "subprocess"

    async def launch(self) -> tuple[Body, socket.socket]:
        """Start the process with its end of a socket pair as the only open file."""
        if not hasattr(os, "killpg"):
            raise KernelUnavailableError("the subprocess kernel needs a POSIX system", platform=sys.platform)
        ours, theirs = socket.socketpair()
        bounds = self.bounds()
        bounds["confine"]["parent"] = os.getpid()
        given = {
            "connection": theirs.fileno(),
            "paths": import_paths(),
            "prepare": {"isolation": self.wanted, "lacking": self.lacking},
            **bounds,
        }
        try:
            process = await asyncio.create_subprocess_exec(
                *command(BOOT, given),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise KernelUnavailableError(f"{sys.executable} cannot be started: {error}") from error
        finally:
            theirs.close()
        return _Process(process, self.limits.cpu_seconds), ours


class _Process:
    """The process of a worker and the group it leads."""

    def __init__(self, process: asyncio.subprocess.Process, cpu_seconds: int) -> None:
        self._process = process
        self._cpu_seconds = cpu_seconds
        self._over = False

    def kill(self) -> None:
        if self._over:
            return  # its number may be another process's by now
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def ended(self) -> str:
        code = await self._process.wait()
        self._over = True
        return in_words(code, self._cpu_seconds)
