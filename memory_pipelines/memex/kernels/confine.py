"""What the process of a worker does to itself before it reads the first frame: the wall.

Part of the worker: standard library only. What can be made once, before a fork, is in `prepare`; what a process must do
for itself is in `confine`, which ends by trying what must not work.
"""

import ctypes
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_pipelines.memex.kernels import landlock, seccomp, syscalls

STRICT, BEST_EFFORT = "strict", "best_effort"

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 1, 4, 24, 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION_3 = 0x20080522
OPEN_FILES = 64
STACK_BYTES = 16 << 20
SYSTEM_FILES = (
    *("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo"),
    *("/dev/null", "/dev/zero", "/dev/urandom"),
)

REMEDIES = (
    "use a Linux that has it (for Landlock 5.13 or newer, with `landlock` in its list of security modules, outside "
    "gVisor), or isolation='best_effort' inside a container that holds no secrets, or the kernel 'inprocess' for code "
    "that you trust"
)

_libc = ctypes.CDLL(None, use_errno=True)


class WallError(OSError):
    """The wall does not stand here; says what is missing and what can be done."""


@dataclass(frozen=True)
class Prepared:
    """What is made once for all workers of a process."""

    isolation: str
    landlock: int  # version of the kernel's Landlock, 0 for none
    rules: int | None  # file descriptor of the ruleset
    filter: bytes | None  # seccomp program


def prepare(isolation: str, *, readable: Iterable[str] = (), lacking: Collection[str] = ()) -> Prepared:
    """Make the rules, and see whether they can be kept here.

    Args:
        isolation: `strict`, or `best_effort` to do without what is missing.
        readable: folders that the worker's imports need.
        lacking: `landlock`, `seccomp`: taken as missing, to try what happens without them.

    Returns:
        For `confine`.

    Raises:
        WallError: `strict`, and something is missing.
    """
    version = 0 if sys.platform != "linux" or "landlock" in lacking else landlock.abi()
    machine = syscalls.machine()
    known = sys.platform == "linux" and machine in syscalls.AUDIT_ARCH and "seccomp" not in lacking
    missing = [
        *([] if version else ["Landlock"]),
        *([] if known else [f"a seccomp table for {machine} on {sys.platform}"]),
    ]
    if missing and isolation == STRICT:
        raise WallError(f"isolation='strict' needs {' and '.join(missing)}, which this system lacks: {REMEDIES}")
    paths = [*SYSTEM_FILES, *(path for path in sys.path if path), str(Path(os.__file__).parent), *readable]
    return Prepared(
        isolation=isolation,
        landlock=version,
        rules=landlock.ruleset(dict.fromkeys(paths)) if version else None,
        # Without Landlock no file may be opened at all: what the code needs must have been imported before.
        filter=seccomp.program(opens=bool(version)) if known else None,
    )


def confine(*, memory_bytes: int, cpu_seconds: int, parent: int, prepared: Prepared) -> dict[str, Any]:
    """Give up what the code of a block has no need of, and try whether it is gone.

    Args:
        memory_bytes: of address space beyond what this process has now.
        cpu_seconds: of this process; one second later it is killed even if it ignores the signal.
        parent: the process id that this process must not outlive.
        prepared: the rules.

    Returns:
        What is in force.

    Raises:
        WallError: something that must not work did.
        OSError: the kernel refused a rule.
    """
    os.environ.clear()  # Python itself may set its locale there
    os.chdir("/")
    _first_to_go()
    in_force: dict[str, Any] = {
        "isolation": prepared.isolation,
        "memory_bytes": None,
        "cpu_seconds": cpu_seconds,
        "file_bytes": 0,
        "dies_with_host": False,
        "capabilities": None,
        "seccomp": prepared.filter is not None,
        "landlock": prepared.landlock,
    }
    _limit(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)
    _limit(resource.RLIMIT_FSIZE, 0, 0)
    _limit(resource.RLIMIT_CORE, 0, 0)
    _limit(resource.RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES)
    _limit(resource.RLIMIT_STACK, STACK_BYTES, STACK_BYTES)
    if sys.platform != "linux":
        return in_force
    most = _pages() * resource.getpagesize() + memory_bytes
    _limit(resource.RLIMIT_AS, most, most)
    _limit(resource.RLIMIT_MEMLOCK, 0, 0)
    _drop_capabilities()
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # the parent ended before the call above
    _prctl(PR_SET_DUMPABLE, 0)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    in_force |= {"memory_bytes": memory_bytes, "dies_with_host": True, "capabilities": 0}
    if prepared.rules is not None:
        landlock.restrict(prepared.rules)
        os.close(prepared.rules)
    if prepared.filter is not None:
        seccomp.install(prepared.filter, os.getpid())
    _try(prepared)
    return in_force


def _try(prepared: Prepared) -> None:
    """Do what must not work. A kernel that only says that it keeps the rules is found out here."""
    if prepared.rules is not None or prepared.filter is not None:
        _must_fail("reading a folder of the system", lambda: list(Path("/").iterdir()))
        _must_fail("writing a file", lambda: os.close(os.open("/dev/null", os.O_WRONLY)))
    if prepared.filter is not None:
        _must_fail("making a socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close())
        _must_fail("signalling another process", lambda: os.kill(os.getppid(), 0))
        child = _libc.fork()
        if child == 0:
            os._exit(0)
        if child > 0:
            raise WallError("the wall does not stand: a process could be started")


def _must_fail(what: str, attempt: Any) -> None:
    try:
        attempt()
    except OSError:
        return
    raise WallError(f"the wall does not stand: {what} was possible; {REMEDIES}")


def _drop_capabilities() -> None:
    for capability in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break  # no further ones, or not allowed to drop: then there is nothing to gain from them either
    _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    number = syscalls.watched(syscalls.machine())["capset"] if syscalls.machine() in syscalls.AUDIT_ARCH else None
    if number is None:
        return
    head, empty = struct.pack("=Ii", CAPABILITY_VERSION_3, 0), bytes(24)
    if _libc.syscall(number, head, empty) != 0:
        raise OSError(ctypes.get_errno(), "capset was refused")


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) was refused")


def _first_to_go() -> None:
    """Let the system end this process first when memory runs out."""
    try:
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return  # not everywhere allowed, and no wall
    with suppress(OSError):
        os.write(score, b"1000")
    os.close(score)


def _pages() -> int:
    """Return how much address space this process has; without `Path`, since each worker pays for this."""
    sizes = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(sizes, 100).split()[0])
    finally:
        os.close(sizes)


def _limit(what: int, soft: int, hard: int) -> None:
    _, allowed = resource.getrlimit(what)
    if allowed != resource.RLIM_INFINITY:
        soft, hard = min(soft, allowed), min(hard, allowed)
    resource.setrlimit(what, (soft, hard))
