"""The kernel that is forked from a process with everything loaded, mostly before it is asked for."""

import asyncio
import os
import socket
import sys
from typing import ClassVar

from memory_pipelines.errors import KernelUnavailableError
from memory_pipelines.memex.kernels.connection import Body
from memory_pipelines.memex.kernels.forking import fork_server, running
from memory_pipelines.memex.kernels.walled import WalledKernel, import_paths


class PoolKernel(WalledKernel):
    """Runs blocks in a forked Python behind the wall: see `zygote.py` and `confine.py`.

    Starts some hundred times sooner than `subprocess`, and a few workers wait ready. Each serves one rollout; as many
    live as rollouts run. The fork server starts with the first kernel and ends with the process.
    """

    name: ClassVar[str] = "pool"

    async def launch(self) -> tuple[Body, socket.socket]:
        """Take a worker that waits, or have one forked."""
        if not hasattr(os, "fork"):
            raise KernelUnavailableError("the pool kernel needs a POSIX system", platform=sys.platform)
        server = running(self.wanted, self.lacking)
        if server is None:
            server = await asyncio.to_thread(fork_server, import_paths(), self.wanted, self.lacking)
        worker = server.take(self.bounds())
        return worker, worker.link
