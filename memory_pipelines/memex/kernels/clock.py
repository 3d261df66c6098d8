"""Deadlines of blocks, kept inside the worker.

A block that waits is cancelled by its event loop. A block that computes never gives the loop a turn; these clocks raise
an exception in it. Part of the worker: standard library only.
"""

import selectors
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

REPEAT_SECONDS = 0.2
"""How soon code that swallowed the exception gets it again."""


class BlockTimeoutError(BaseException):
    """The block ran longer than it may. Not an Exception, so that `except Exception` does not swallow it."""


class SignalClock:
    """Interrupts the main thread of a worker's own process by SIGALRM; also out of most calls into the system."""

    def __init__(self, overdue: Callable[[FrameType | None], bool]) -> None:
        """Take over SIGALRM.

        Args:
            overdue: whether the code of this frame must be interrupted now.
        """

        def on_alarm(number: int, frame: FrameType | None) -> None:
            del number
            if overdue(frame):
                raise BlockTimeoutError

        self._on_alarm = on_alarm
        signal.signal(signal.SIGALRM, on_alarm)

    def start(self, seconds: float) -> None:
        """Look in so many seconds, and repeatedly after that."""
        signal.signal(signal.SIGALRM, self._on_alarm)  # a block may have taken it away
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001), REPEAT_SECONDS)

    def stop(self) -> None:
        """Look no more."""
        signal.setitimer(signal.ITIMER_REAL, 0)


class ThreadClock:
    """Interrupts the thread that made it, from another; only between two steps of Python, not inside a C call."""

    def __init__(self, overdue: Callable[[FrameType | None], bool]) -> None:
        """Watch the calling thread.

        Args:
            overdue: whether the code of this frame must be interrupted now.
        """
        self._overdue = overdue
        self._thread = threading.get_ident()
        self._stopped: threading.Event | None = None

    def start(self, seconds: float) -> None:
        """Look in so many seconds, and repeatedly after that."""
        self.stop()
        self._stopped = threading.Event()
        threading.Thread(target=self._watch, args=(self._stopped, seconds), daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        if self._stopped is not None:
            self._stopped.set()
            self._stopped = None

    def _watch(self, stopped: threading.Event, seconds: float) -> None:
        import ctypes  # not at the top: a worker's own process has no need of it and starts sooner without

        while not stopped.wait(max(seconds, 0.001)):
            frame = sys._current_frames().get(self._thread)  # pyright: ignore[reportPrivateUsage]
            if self._overdue(frame):
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(BlockTimeoutError)
                )
            seconds = REPEAT_SECONDS


class IdleSelector(selectors.DefaultSelector):
    """Tells how long the event loop had nothing to do, so that waiting for tools is not counted."""

    def __init__(self, clock: Callable[[], float], idle: Callable[[float], None]) -> None:
        """Keep the functions.

        Args:
            clock: seconds, monotonic.
            idle: told after each wait, before anything that became ready runs.
        """
        super().__init__()
        self._clock = clock
        self._idle = idle

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait as the base class does."""
        started = self._clock()
        ready = super().select(timeout)
        self._idle(self._clock() - started)
        return ready
