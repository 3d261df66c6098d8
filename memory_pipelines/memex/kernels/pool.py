"""The kernel that is forked from a process with everything loaded, mostly before it is asked for."""

import asyncio
import os
import socket
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from memory_pipelines.errors import KernelUnavailableError
from memory_pipelines.memex.kernels.connection import Body
from memory_pipelines.memex.kernels.forking import fork_server, running
from memory_pipelines.memex.kernels.hosted import HostedKernel
from memory_pipelines.memex.kernels.subprocess import paths_of_pydantic


class PoolKernel(HostedKernel):
    """Runs blocks in a forked Python behind the wall: see `zygote.py` and `confine.py`.

    Starts some hundred times sooner than `subprocess`, and a few workers wait ready. Each serves one rollout; as many
    live as rollouts run. The fork server starts with the first kernel and ends with the process.
    """

    can_kill: ClassVar[bool] = True
    own_process: ClassVar[bool] = True
    lacking: ClassVar[tuple[str, ...]] = ()
    """Parts of the wall that are taken as missing, to try what happens then."""

    @property
    def isolation(self) -> Mapping[str, Any]:
        """What isolates this kernel, as its process reported it."""
        ready = self._connection.ready if self._connection else None
        return {"kernel": "pool", "process": True, "environment": "empty", **(ready.confined if ready else {})}

    async def launch(self) -> tuple[Body, socket.socket]:
        """Take a worker that waits, or have one forked."""
        if not hasattr(os, "fork"):
            raise KernelUnavailableError("the pool kernel needs a POSIX system", platform=sys.platform)
        server = running(self.wanted, self.lacking)
        if server is None:
            server = await asyncio.to_thread(fork_server, paths_of_pydantic(), self.wanted, self.lacking)
        worker = server.take(self.bounds())
        return worker, worker.link
