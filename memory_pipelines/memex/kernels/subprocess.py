"""The kernel that is a process of its own."""

import asyncio
import importlib
import importlib.util
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from memory_pipelines.errors import KernelUnavailableError
from memory_pipelines.memex.kernels.connection import Body, in_words
from memory_pipelines.memex.kernels.hosted import HostedKernel

BOOT = Path(__file__).with_name("boot.py")
PARTS_OF_PYDANTIC = ("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection")
FRAMES = ("numpy", "pandas", "pyarrow")


class SubprocessKernel(HostedKernel):
    """Runs blocks in a fresh Python behind the wall: see `confine.py`. A process that ends is replaced."""

    can_kill: ClassVar[bool] = True
    own_process: ClassVar[bool] = True
    lacking: ClassVar[tuple[str, ...]] = ()
    """Parts of the wall that are taken as missing, to try what happens then."""

    @property
    def isolation(self) -> Mapping[str, Any]:
        """What isolates this kernel, as its process reported it."""
        ready = self._connection.ready if self._connection else None
        return {"kernel": "subprocess", "process": True, "environment": "empty", **(ready.confined if ready else {})}

    async def launch(self) -> tuple[Body, socket.socket]:
        """Start the process with its end of a socket pair as the only open file."""
        if not hasattr(os, "killpg"):
            raise KernelUnavailableError("the subprocess kernel needs a POSIX system", platform=sys.platform)
        ours, theirs = socket.socketpair()
        bounds = self.bounds()
        bounds["confine"]["parent"] = os.getpid()
        given = {
            "connection": theirs.fileno(),
            "paths": paths_of_pydantic(),
            "prepare": {"isolation": self.wanted, "lacking": self.lacking},
            **bounds,
        }
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-I", "-S", "-B", "-X", "utf8", str(BOOT), json.dumps(given)),
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


@cache
def paths_of_pydantic() -> list[str]:
    """Return where a worker finds pydantic, and pandas if it is installed; nothing else of our own path."""
    files = (importlib.import_module(name).__file__ for name in PARTS_OF_PYDANTIC)
    places = (Path(file) for file in files if file)
    needed = [place.parents[1] if place.stem == "__init__" else place.parent for place in places]
    specs = (importlib.util.find_spec(name) for name in FRAMES)  # found, not imported: they take a second
    homes = (Path(spec.origin).parents[1] for spec in specs if spec is not None and spec.origin)
    # One that somebody develops lies in a project's folder, which may hold what no worker should read.
    needed += [home for home in homes if home.name in ("site-packages", "dist-packages")]
    return list(dict.fromkeys(map(str, needed)))
