"""The process of a kernel beside its host: it brings nothing of the host with it and does not outlive it."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from memory_pipelines.errors import KernelUnavailableError
from memory_pipelines.memex.kernels import forking
from memory_pipelines.memex.kernels.base import Kernel, Limits
from memory_pipelines.memex.kernels.opening import open_kernel
from memory_pipelines.memex.kernels.pool import PoolKernel

HOST = """
import asyncio, sys
from memory_pipelines.memex.kernels.opening import open_kernel
from memory_pipelines.memex.kernels.pool import PoolKernel

async def main():
    async with open_kernel(sys.argv[1]) as kernel:
        print((await kernel.run("import os\\nos.getpid()")).output, flush=True)
        await kernel.run("while True: pass")

asyncio.run(main())
"""


@pytest.mark.parametrize("name", ["pool", "subprocess"])
def test_a_kernel_dies_with_its_host_even_while_it_computes(name: str) -> None:
    host = subprocess.Popen([sys.executable, "-c", HOST, name], stdout=subprocess.PIPE, text=True)
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
    parts = (
        "arrow",
        "capture",
        "clock",
        "confine",
        "describing",
        "home",
        "landlock",
        "leaving",
        "namespace",
        "objects",
        "reading",
        "seccomp",
        "spawning",
        "spelling",
        "steps",
        "syscalls",
    )
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


async def _process_of(kernel: Kernel) -> int:
    return int((await kernel.run("import os\nos.getpid()")).output)


def test_no_worker_of_the_pool_serves_twice_and_some_wait() -> None:
    async def seen() -> list[int]:
        processes: list[int] = []
        for _ in range(5):
            async with open_kernel("pool") as kernel:
                assert (await kernel.run("globals().get('left', 'nothing')")).output == "'nothing'"
                await kernel.run("left = 1")
                processes.append(await _process_of(kernel))
        return processes

    processes = asyncio.run(seen())
    assert len(set(processes)) == 5


def test_after_a_refill_workers_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_fork(*_: object) -> None:
        raise AssertionError("forked where one should have waited")

    async def test() -> None:
        async with open_kernel("pool", isolation="strict", limits=Limits(output_chars=123)):
            server = forking.running("strict")
            assert server is not None
            bounds = PoolKernel(isolation="strict", limits=Limits(output_chars=123)).bounds()
            server.refill(bounds)
            monkeypatch.setattr(server, "_fork", no_fork)
            taken = [server.take(bounds) for _ in range(forking.WARM)]
            assert [worker.lives for worker in taken] == [True] * forking.WARM
            for worker in taken:
                worker.kill()
                worker.link.close()
            monkeypatch.undo()

    asyncio.run(test())


def test_as_many_workers_live_as_rollouts_run() -> None:
    async def one(arrived: asyncio.Barrier) -> int:
        async with open_kernel("pool") as kernel:
            await arrived.wait()  # all twelve are open here
            return await _process_of(kernel)

    async def many() -> list[int]:
        arrived = asyncio.Barrier(12)
        return await asyncio.gather(*(one(arrived) for _ in range(12)))

    assert len(set(asyncio.run(many()))) == 12


def test_the_pool_works_in_one_event_loop_after_the_other_and_in_threads() -> None:
    async def one() -> str:
        async with open_kernel("pool") as kernel:
            return (await kernel.run("6 * 7")).output

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: asyncio.run(one()), range(8))) == ["42"] * 8


def test_a_fork_server_that_died_is_replaced_and_its_workers_die_with_it() -> None:
    async def test() -> None:
        async with open_kernel("pool") as kernel:
            await kernel.run("kept = 1")
            server = forking.running("strict")
            assert server is not None
            watched = os.pidfd_open(await _process_of(kernel))
            server.process.kill()
            ended, _, _ = select.select([watched], [], [], 10)
            os.close(watched)
            assert ended
            assert (await kernel.run("'kept' in globals()")).state == "lost"
            assert (await kernel.run("1 + 1")).output == "2"
            fresh = forking.running("strict")
            assert fresh is not None
            assert fresh is not server

    asyncio.run(test())


def test_two_workers_draw_different_numbers() -> None:
    async def drawn() -> str:
        async with open_kernel("pool") as kernel:
            return (await kernel.run("import random, uuid\nrandom.random(), uuid.uuid4()")).output

    assert asyncio.run(drawn()) != asyncio.run(drawn())


PANDAS = "import sys\n'pandas' in sys.modules"


def test_only_workers_that_expect_frames_have_pandas_loaded() -> None:
    pytest.importorskip("pandas", reason="the extra `frames` is not installed")

    async def loaded(*, frames: bool) -> str:
        async with open_kernel("pool", isolation="strict", frames=frames) as kernel:
            return (await kernel.run(PANDAS)).output

    assert [asyncio.run(loaded(frames=frames)) for frames in (False, True, False)] == ["False", "True", "False"]


def test_where_pandas_cannot_be_loaded_beforehand_workers_do_without_and_it_is_tried_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("pandas", reason="the extra `frames` is not installed")
    tried: list[bool] = []

    class Server(forking.ForkServer):
        def __init__(self, *given: object, frames: bool) -> None:
            tried.append(frames)
            if frames:
                raise KernelUnavailableError("2 threads run in the fork server")
            super().__init__(*given, frames=frames)

    monkeypatch.setattr(forking, "ForkServer", Server)
    monkeypatch.setattr(forking, "_servers", {})
    monkeypatch.setattr(forking, "_refused", {})

    async def loaded() -> list[str]:
        async with open_kernel("pool", frames=True) as one, open_kernel("pool", frames=True) as other:
            return [(await kernel.run(PANDAS)).output for kernel in (one, other)]

    assert asyncio.run(loaded()) == ["False", "False"]
    assert tried == [True, False]
