"""The process of a kernel beside its host: it brings nothing of the host with it and does not outlive it."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys

import pytest

from memory_pipelines.errors import KernelUnavailableError
from memory_pipelines.memex.kernels.base import Limits
from memory_pipelines.memex.kernels.opening import open_kernel

HOST = """
import asyncio
from memory_pipelines.memex.kernels.opening import open_kernel

async def main():
    async with open_kernel("subprocess") as kernel:
        print((await kernel.run("import os\\nos.getpid()")).output, flush=True)
        await kernel.run("while True: pass")

asyncio.run(main())
"""


def test_a_kernel_dies_with_its_host_even_while_it_computes() -> None:
    host = subprocess.Popen([sys.executable, "-c", HOST], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    try:
        watched = os.pidfd_open(int(host.stdout.readline()))
    finally:
        host.kill()
        host.wait()
        host.stdout.close()
    try:
        ended, _, _ = select.select([watched], [], [], 10)  # readable once the process has ended
        if not ended:
            signal.pidfd_send_signal(watched, signal.SIGKILL)
        assert ended
    finally:
        os.close(watched)


def test_only_the_parts_of_the_worker_are_loaded_in_it() -> None:
    async def loaded() -> list[str]:
        async with open_kernel("subprocess") as kernel:
            seen = await kernel.run(
                "import sys, json\nprint(json.dumps(sorted(name for name in sys.modules if name[:7] == 'memory_')))"
            )
            return json.loads(seen.output)

    kernels = "memory_pipelines.memex.kernels"
    parts = ("capture", "clock", "confine", "landlock", "namespace", "objects", "seccomp", "spelling", "syscalls")
    assert asyncio.run(loaded()) == [
        "memory_pipelines",
        "memory_pipelines.memex",
        kernels,
        *(f"{kernels}.{part}" for part in (*parts, "wire", "worker")),
    ]


def test_a_kernel_that_cannot_start_says_why() -> None:
    async def start() -> None:
        async with open_kernel("subprocess", limits=Limits(memory_bytes=1 << 80)):
            pass

    with pytest.raises(KernelUnavailableError, match="the kernel did not start: OverflowError"):
        asyncio.run(start())


def test_an_idle_worker_has_not_paid_for_pydantic() -> None:
    async def loaded() -> str:
        async with open_kernel("subprocess") as kernel:
            return (await kernel.run("import sys\n'pydantic' in sys.modules")).output

    assert asyncio.run(loaded()) == "False"
