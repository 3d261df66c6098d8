"""The script that the process of a worker starts with.

It makes the packages above this folder importable without running their `__init__`, so that nothing of the host enters
the worker, and starts the worker on the connection it was given. `zygote.py` does the same once for many workers.
"""

import importlib
import io
import json
import os
import signal
import socket
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

PRELOADED = (
    *("pydantic", "json", "re", "datetime", "zoneinfo", "calendar", "collections", "itertools", "functools", "math"),
    *("statistics", "decimal", "fractions", "random", "string", "textwrap", "difflib", "unicodedata", "dataclasses"),
    *("typing", "enum", "copy", "operator", "heapq", "bisect", "hashlib", "base64", "html", "urllib.parse", "csv"),
    *("uuid", "time", "pprint", "contextlib", "inspect", "threading"),
)
"""Modules that a worker has in memory when it was forked, and when it may open no file."""

FRAMES = ("pyarrow.ipc", "pandas", "pyarrow.pandas_compat", "pyarrow.vendored.version")
"""Modules that a data frame needs to enter; the last ones are what the two need together."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""For libraries of numbers: those that they start when imported would be there before any code of a block."""


def main() -> None:
    """Start a worker as the one argument, JSON, says; ends with the process."""
    given = json.loads(sys.argv[1])
    open_packages(given["paths"])
    from memory_pipelines.memex.kernels.confine import prepare

    connection = socket.socket(fileno=given["connection"])
    tell_failures(connection)
    prepared = prepare(readable=[str(Path(__file__).resolve().parent)], **given["prepare"])
    preload_for(prepared)
    serve(connection, given["worker"], given["confine"], prepared)


def open_packages(paths: list[str]) -> None:
    """Make the worker's own modules and pydantic importable.

    Args:
        paths: folders with pydantic and its parts.
    """
    sys.argv = [""]
    sys.path += paths
    folder = Path(__file__).resolve().parent
    for package, place in (
        ("memory_pipelines", folder.parents[1]),
        ("memory_pipelines.memex", folder.parent),
        ("memory_pipelines.memex.kernels", folder),
    ):
        module = ModuleType(package)
        module.__path__ = [str(place)]
        sys.modules[package] = module


def tell_failures(connection: socket.socket) -> None:
    """Send home what ends this process, since nobody reads its standard error.

    Args:
        connection: to the host.
    """
    from memory_pipelines.memex.kernels.wire import pack

    def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        del kind, trace
        connection.sendall(pack({"type": "failed", "why": why_not(error)}, 1 << 16))

    sys.excepthook = tell


def why_not(error: BaseException) -> str:
    """Say for the host why there is no worker; what the wall says of itself needs no class before it."""
    kind = type(error).__name__
    return (str(error) if kind == "WallError" else f"{kind}: {error}")[:2_000]


def serve(connection: socket.socket, given: dict[str, Any], bounds: dict[str, Any], prepared: Any) -> None:
    """Build the wall round this process and serve the host; ends with the process.

    Args:
        connection: to the host.
        given: bounds of the worker, as `Worker` takes them.
        bounds: of the process, as `confine` takes them.
        prepared: from `prepare`.
    """
    from memory_pipelines.memex.kernels.clock import SignalClock
    from memory_pipelines.memex.kernels.confine import confine
    from memory_pipelines.memex.kernels.worker import Worker

    worker = Worker(connection, SignalClock, **given)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the host
    worker.take_process(Shown(worker))

    def warn(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        worker.write(f"{category.__name__}: {message}\n")  # without the place, which is a path of the host

    def forgotten(error: Any) -> None:
        where = getattr(error.object, "__qualname__", None) or type(error.object).__name__
        worker.write(f"ignored in {str(where)[:80]}: {worker.told(error.exc_value)}\n")

    warnings.showwarning = warn
    sys.unraisablehook = forgotten
    confined = confine(prepared=prepared, **bounds)
    try:
        worker.serve({"type": "ready", "pid": os.getpid(), "confined": confined})
    finally:
        os._exit(0)  # threads and exit handlers of the code have no say


def preload_for(prepared: Any, *, frames: bool = False) -> None:
    """Import all that code may need where the wall will open no file, since nothing can be imported behind it then.

    Args:
        prepared: from `prepare`.
        frames: import what data frames need in any case.
    """
    if frames or prepared.rules is None:
        os.environ.update(ONE_THREAD)
        preload(more=FRAMES)


def preload(more: tuple[str, ...] = ()) -> None:
    """Import what code of a block often needs.

    Args:
        more: further modules, if they are installed.
    """
    for name in PRELOADED:
        importlib.import_module(name)
    for name in more:
        with suppress(ImportError):
            importlib.import_module(name)


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
