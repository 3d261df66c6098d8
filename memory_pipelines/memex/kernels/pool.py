"""The kernel that is forked from a process with everything loaded, mostly before it is asked for."""

import asyncio
import importlib.util
import os
import socket
import sys
from typing import ClassVar

from memory_pipelines.errors import KernelUnavailableError
from memory_pipelines.memex.kernels.connection import Body
from memory_pipelines.memex.kernels.forking import REFILL_SECONDS, ForkServer, fork_server, running
from memory_pipelines.memex.kernels.walled import WalledKernel, import_paths


class PoolKernel(WalledKernel):
    """Runs blocks in a forked Python behind the wall: see `zygote.py` and `confine.py`.

    Starts some hundred times sooner than `subprocess`, and a few workers wait ready. Each serves one rollout; as many
    live as rollouts run. The fork server starts with the first kernel and ends with the process; a second one, with
    pandas loaded, with the first kernel that expects data frames.
    """

    name: ClassVar[str] = "pool"

    _frames = False

    def expect_frames(self) -> None:
        """Be forked from a process that has pandas loaded too, if it is installed; see `open_kernel`."""
        self._frames = importlib.util.find_spec("pandas") is not None

    async def launch(self) -> tuple[Body, socket.socket]:
        """Take a worker that waits, or have one forked."""
        if not hasattr(os, "fork"):
            raise KernelUnavailableError("the pool kernel needs a POSIX system", platform=sys.platform)
        try:
            server = await self._server(frames=self._frames)
        except KernelUnavailableError:
            if not self._frames:
                raise
            server = await self._server(frames=False)  # whose workers import pandas themselves
        bounds = self.bounds()
        worker = server.take(bounds)
        asyncio.get_running_loop().call_later(REFILL_SECONDS, server.refill, bounds)
        return worker, worker.link

    async def _server(self, *, frames: bool) -> ForkServer:
        found = running(self.wanted, self.lacking, frames=frames)
        if found is not None:
            return found
        return await asyncio.to_thread(fork_server, import_paths(), self.wanted, self.lacking, frames=frames)
