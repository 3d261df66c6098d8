"""Measures how long each block computes, so that no block pays for the time of another.

Part of the worker: standard library only.
"""

from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any


class Steps(Coroutine[Any, Any, None]):
    """A coroutine that tells after each of its steps how long the step took."""

    def __init__(self, inner: Coroutine[Any, Any, None], clock: Callable[[], float], took: Callable[[float], None]):
        """Wrap a coroutine that has not begun.

        Args:
            inner: what runs.
            clock: seconds that only grow.
            took: is told the seconds of a step.
        """
        self._inner = inner
        self._clock = clock
        self._took = took

    def send(self, value: Any, /) -> Any:
        """Go on for a step."""
        started = self._clock()
        try:
            return self._inner.send(value)
        finally:
            self._took(self._clock() - started)

    def throw(self, kind: Any, value: Any = None, trace: TracebackType | None = None, /) -> Any:
        """Go on for a step with an exception."""
        started = self._clock()
        try:
            if value is None and trace is None:
                return self._inner.throw(kind)
            return self._inner.throw(kind, value, trace)
        finally:
            self._took(self._clock() - started)

    def close(self) -> None:
        """End it."""
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, None]:
        return self._inner.__await__()
