"""What the process of a worker does to itself before it reads the first frame.

Part of the worker: standard library only. Further walls (system calls, files) belong here too.
"""

import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
OPEN_FILES = 64


def confine(*, memory_bytes: int, cpu_seconds: int, parent: int) -> dict[str, Any]:
    """Give up what the code of a block has no need of.

    Args:
        memory_bytes: of address space beyond what this process has now.
        cpu_seconds: of this process; one second later it is killed even if it ignores the signal.
        parent: the process id of the host, with whose thread this process ends.

    Returns:
        What is in force.
    """
    os.environ.clear()  # Python itself may set its locale there
    in_force: dict[str, Any] = {
        "memory_bytes": None,
        "cpu_seconds": cpu_seconds,
        "file_bytes": 0,
        "dies_with_host": _die_with(parent),
        "seccomp": False,
        "landlock": False,
    }
    _limit(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)
    _limit(resource.RLIMIT_FSIZE, 0, 0)
    _limit(resource.RLIMIT_CORE, 0, 0)
    _limit(resource.RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES)
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + memory_bytes
        _limit(resource.RLIMIT_AS, most, most)
        in_force["memory_bytes"] = memory_bytes
    return in_force


def _limit(what: int, soft: int, hard: int) -> None:
    _, allowed = resource.getrlimit(what)
    if allowed != resource.RLIM_INFINITY:
        soft, hard = min(soft, allowed), min(hard, allowed)
    resource.setrlimit(what, (soft, hard))


def _die_with(parent: int) -> bool:
    if sys.platform != "linux":
        return False  # the closed connection ends the worker when its block yields
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # the host ended before the call above
    return True
