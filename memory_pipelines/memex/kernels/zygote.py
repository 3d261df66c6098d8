"""The script of a fork server: it loads what workers need once, and forks one for each request.

It talks with the host over a socket that keeps messages apart: JSON, and the worker's end of a connection with each
request to fork. It must have one thread only when it forks, holds nothing of the host, and ends with it.
Part of the worker: standard library only.
"""

import gc
import importlib.util
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

LOOK_SECONDS = 1.0
"""How often the fork server looks whether its host still lives; the end of the socket mostly tells sooner."""
MESSAGE_BYTES = 1 << 16
REHEARSALS = 10
"""Python makes code faster that has run eight times or so, in memory that forks share until they write to it."""
_HANG_UP = """
import socket
host = socket.socket(fileno={})
host.shutdown(socket.SHUT_WR)
host.detach()
"""
"""A block that ends its own connection as the host would: in a rehearsal there is nobody else to do it."""


def main() -> None:
    """Serve the host as the one argument, JSON, says; ends with the process."""
    given = json.loads(sys.argv[1])
    host = os.getppid()
    control = socket.socket(fileno=given["control"])
    boot = _boot()
    try:
        boot.open_packages(given["paths"])
        from memory_pipelines.memex.kernels.confine import prepare

        boot.preload()
        prepared = prepare(readable=[str(Path(__file__).resolve().parent)], **given["prepare"])
        boot.preload_for(prepared, frames=given["frames"])
        _rehearse()
        threads = len(list(Path("/proc/self/task").iterdir())) if sys.platform == "linux" else 1
        if threads != 1:
            raise OSError(f"{threads} threads run in the fork server, where there must be one: a module started them")
    except Exception as error:  # noqa: BLE001 - the boundary: the host hears why there will be no workers
        _tell(control, {"failed": boot.why_not(error)})
        return
    os.environ.clear()  # what steered the allocators while modules were loaded
    gc.collect()
    gc.freeze()
    _tell(control, {"up": True})
    _Server(control, boot, prepared, host).serve()


class _Server:
    def __init__(self, control: socket.socket, boot: ModuleType, prepared: Any, host: int) -> None:
        self._control = control
        self._boot = boot
        self._prepared = prepared
        self._host = host
        self._numbers: dict[int, int] = {}  # of workers, by process id
        self._wake, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def serve(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the host
        signal.signal(signal.SIGCHLD, _heed)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        while os.getppid() == self._host:
            ready, _, _ = select.select([self._control, self._wake], [], [], LOOK_SECONDS)
            if self._wake in ready:
                os.read(self._wake, MESSAGE_BYTES)
                self._reap()
            if self._control in ready and not self._hear():
                break
        for process in self._numbers:
            os.kill(process, signal.SIGKILL)

    def _hear(self) -> bool:
        """Do what the host asks next; False when it is gone."""
        try:
            data, handed, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, 1)
        except ConnectionError:
            return False
        if not data:
            return False
        asked = json.loads(data)
        if asked["do"] == "fork":
            self._fork(asked, handed[0])
        else:
            for process, number in self._numbers.items():
                if number == asked["number"]:
                    os.kill(process, signal.SIGKILL)
        return True

    def _fork(self, asked: dict[str, Any], connection: int) -> None:
        process = os.fork()
        if process == 0:
            self._be_worker(asked, socket.socket(fileno=connection))
        os.close(connection)
        self._numbers[process] = asked["number"]

    def _be_worker(self, asked: dict[str, Any], connection: socket.socket) -> None:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._control.close()
            os.close(self._wake)
            os.close(self._waker)
            os.setsid()
            numpy = sys.modules.get("numpy")
            if numpy is not None:
                numpy.random.seed()  # else all workers draw the same numbers; `random` sees to itself
            self._boot.tell_failures(connection)
            bounds = {**asked["confine"], "parent": os.getppid()}
            self._boot.serve(connection, asked["worker"], bounds, self._prepared)
        except BaseException as error:  # noqa: BLE001 - the boundary: no worker may run on as a fork server
            sys.excepthook(type(error), error, error.__traceback__)
        finally:
            os._exit(70)

    def _reap(self) -> None:
        while self._numbers:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            number = self._numbers.pop(process)
            _tell(self._control, {"ended": number, "code": os.waitstatus_to_exitcode(status)})


def _heed(number: int, frame: FrameType | None) -> None:
    """Let the signal wake the loop, by the descriptor that Python writes to, and do no more."""


def _rehearse() -> None:
    """Serve some workers in this process, so that what is done the first times is done once and not after each fork."""
    from memory_pipelines.memex.kernels.clock import SignalClock
    from memory_pipelines.memex.kernels.wire import pack
    from memory_pipelines.memex.kernels.worker import Worker

    for _ in range(REHEARSALS):
        host, connection = socket.socketpair()
        code = _HANG_UP.format(host.fileno())
        with host:
            host.sendall(pack({"type": "run", "run": 1, "namespace": "", "code": code, "seconds": 10.0}, MESSAGE_BYTES))
            worker = Worker(connection, SignalClock, output_chars=100, frame_bytes=MESSAGE_BYTES, pending_calls=1)
            worker.serve({"type": "ready"})


def _tell(control: socket.socket, message: dict[str, Any]) -> None:
    try:
        control.send(json.dumps(message).encode())
    except OSError:
        return  # the host is gone, which the next look shows


def _boot() -> ModuleType:
    """Load the script beside this one, which cannot be imported by name before it has opened the packages."""
    spec = importlib.util.spec_from_file_location("boot", Path(__file__).with_name("boot.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
