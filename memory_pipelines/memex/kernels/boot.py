"""The script that the process of a worker starts with.

It makes the packages above this folder importable without running their `__init__`, so that nothing of the host enters
the worker, and starts the worker on the connection it was given.
"""

import io
import json
import os
import signal
import socket
import sys
import warnings
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any


def main() -> None:
    """Start a worker as the one argument, JSON, says; ends with the process."""
    given = json.loads(sys.argv[1])
    sys.argv = [""]
    sys.path += given["paths"]
    folder = Path(__file__).resolve().parent
    for package, place in (
        ("memory_pipelines", folder.parents[1]),
        ("memory_pipelines.memex", folder.parent),
        ("memory_pipelines.memex.kernels", folder),
    ):
        module = ModuleType(package)
        module.__path__ = [str(place)]
        sys.modules[package] = module
    from memory_pipelines.memex.kernels.wire import pack

    connection = socket.socket(fileno=given["connection"])

    def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        del trace
        connection.sendall(pack({"type": "failed", "why": f"{kind.__name__}: {error}"[:2_000]}, 1 << 16))

    sys.excepthook = tell  # nobody reads the standard error of this process
    from memory_pipelines.memex.kernels.clock import SignalClock
    from memory_pipelines.memex.kernels.confine import confine
    from memory_pipelines.memex.kernels.worker import Worker

    worker = Worker(connection, SignalClock, **given["worker"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the host
    worker.take_process(Shown(worker))

    def warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        worker.write(f"{category.__name__}: {message}\n")  # without the place, which is a path of the host

    warnings.showwarning = warn
    confined = confine(**given["confine"])
    try:
        worker.serve({"type": "ready", "pid": os.getpid(), "confined": confined})
    finally:
        os._exit(0)  # threads and exit handlers of the code have no say


class Shown(io.TextIOBase):
    """Standard output and error: what is written is part of the observation."""

    def __init__(self, worker: Any) -> None:
        """Keep the worker."""
        self._worker = worker

    def write(self, text: str, /) -> int:
        """Take text."""
        self._worker.write(text)
        return len(text)

    def writable(self) -> bool:
        """Yes."""
        return True


if __name__ == "__main__":
    main()
