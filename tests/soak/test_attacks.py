"""Every attack, one kernel each, under every kind of system that the project runs on."""

import asyncio
import ctypes
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "integration"))

import attacks

from memory_pipelines.memex.kernels.base import Limits
from memory_pipelines.memex.kernels.opening import open_kernel
from memory_pipelines.memex.kernels.pool import PoolKernel
from memory_pipelines.memex.kernels.subprocess import SubprocessKernel

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(sys.platform != "linux", reason="the wall is made of parts of Linux"),
]

LIMITS = Limits(memory_bytes=512 << 20, grace_seconds=0.5, cpu_seconds=30)
DOCKER_REFUSES = {
    # What Docker's default profile refuses a container without added capabilities, of the calls that a wall could need
    # or an attack could use: mount, unshare, setns, ptrace on old kernels, bpf, keyctl, add_key, perf_event_open,
    # userfaultfd, kexec, init_module, pivot_root, name_to_handle_at, open_by_handle_at, process_vm_readv, io_uring.
    "x86_64": (165, 272, 308, 321, 250, 248, 298, 323, 246, 175, 155, 303, 304, 310, 425, 426, 427),
    "aarch64": (40, 97, 268, 280, 219, 217, 241, 282, 104, 105, 41, 264, 265, 270, 425, 426, 427),
}


def ordinary(folder: Path) -> None:
    """Leave the process as it is."""


def unprivileged(folder: Path) -> None:
    """Become a user without rights, as far as the interpreter can still be read."""
    if os.getuid() == 0:
        os.setgroups([])
        keep_reading()
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        raise_reading()


def docker(folder: Path) -> None:
    """Take on a filter that refuses what Docker's default profile refuses."""
    install_filter(DOCKER_REFUSES[os.uname().machine])


def without_landlock(folder: Path) -> None:
    SubprocessKernel.lacking = PoolKernel.lacking = ("landlock",)


SYSTEMS: dict[str, tuple[Callable[[Path], None], str | None]] = {
    "ordinary": (ordinary, None),
    "unprivileged": (unprivileged, None),
    "docker": (docker, None),
    "without-landlock": (without_landlock, "best_effort"),
}

PR_CAPBSET_DROP, PR_SET_KEEPCAPS, PR_CAP_AMBIENT, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 24, 8, 47, 38, 22
CAP_DAC_READ_SEARCH = 2
libc = ctypes.CDLL(None, use_errno=True)


def keep_reading() -> None:
    """Keep capabilities over the change of user: here the interpreter may lie in root's own folder."""
    assert libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0


def raise_reading() -> None:
    """Give up all capabilities but the one to read, and pass that one on to programs that are started."""
    bit = 1 << CAP_DAC_READ_SEARCH
    head, data = struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", bit, bit, bit, 0, 0, 0)
    number = {"x86_64": 126, "aarch64": 91}[os.uname().machine]
    assert libc.syscall(number, head, data) == 0
    assert libc.prctl(PR_CAP_AMBIENT, 2, CAP_DAC_READ_SEARCH, 0, 0) == 0


def install_filter(refused: tuple[int, ...]) -> None:
    steps = [(0x20, 0, 0, 0)]
    for number in refused:
        steps += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | 1)]
    steps.append((0x06, 0, 0, 0x7FFF0000))
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    given = Program(len(steps), ctypes.addressof(buffer))
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(given), 0, 0) == 0


async def whole_list(folder: Path, isolation: str | None, kernel_name: str) -> list[str]:
    """Try every attack, each in a kernel of its own; return what went wrong."""
    wrong: list[str] = []
    with attacks.host(folder) as aims:
        for attack in attacks.ALL:
            try:
                async with open_kernel(kernel_name, limits=LIMITS, isolation=isolation) as kernel:
                    await attacks.attempt(kernel, attack, aims, seconds=1.0)
            except (AssertionError, TimeoutError) as error:
                wrong.append(f"{attack.name}: {error!r}")
        async with open_kernel(kernel_name, limits=LIMITS, isolation=isolation) as kernel:
            for name, code, output in attacks.WORKS if isolation is None else ():
                seen = await kernel.run(code)
                if (seen.output, seen.error) != (output, None):
                    wrong.append(f"{name}: {seen}")
    return wrong


def in_child(system: str, folder: Path, kernel: str) -> list[str]:
    """Try the list in a process that is made like the system first."""
    prepare, isolation = SYSTEMS[system]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        told: Any = "the child ended early"
        try:
            prepare(folder)
            told = asyncio.run(whole_list(folder, isolation, kernel))
        except BaseException as error:  # noqa: BLE001 - the boundary of a forked child: pytest is the parent's
            told = [f"{type(error).__name__}: {error}"]
        finally:
            os.write(writing, repr(told)[:60_000].encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return [said] if said != "[]" else []


@pytest.mark.parametrize("kernel", ["pool", "subprocess"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_no_attack_gets_through(system: str, kernel: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = Path(f"/tmp/attacked-{os.getpid()}-{system}-{kernel}")
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    try:
        assert in_child(system, folder, kernel) == []
    finally:
        for one in folder.iterdir():
            one.unlink()
        folder.rmdir()
