"""How long each block has run, seen from the host: the hard deadline goes by this."""

from dataclasses import dataclass


@dataclass
class _Run:
    own: float = 0.0
    outside: int = 0  # calls under way


class OwnSeconds:
    """Counts for each block the seconds in which it did not wait for tools.

    Blocks of one worker share one thread, so that seconds in which several run are divided among them: a subagent
    that computes does not use up the time of its parent. One that hangs is still found, a little later.
    """

    def __init__(self, now: float) -> None:
        """Start without blocks.

        Args:
            now: seconds that only grow, here and in all methods.
        """
        self._runs: dict[int, _Run] = {}
        self._now = now

    def begin(self, run: int, now: float) -> None:
        """A block starts."""
        self._advance(now)
        self._runs[run] = _Run()

    def end(self, run: int, now: float) -> float:
        """A block ended.

        Returns:
            Its seconds.
        """
        self._advance(now)
        return self._runs.pop(run, _Run()).own

    def enter(self, run: int, now: float) -> None:
        """A call of the block is under way; of a block that has ended it does not matter."""
        self._advance(now)
        if run in self._runs:
            self._runs[run].outside += 1

    def leave(self, run: int, now: float) -> None:
        """A call of the block was answered."""
        self._advance(now)
        if run in self._runs:
            self._runs[run].outside -= 1

    def of(self, run: int, now: float) -> float:
        """Return the seconds of a block until now."""
        self._advance(now)
        return self._runs[run].own

    def _advance(self, now: float) -> None:
        inside = [one for one in self._runs.values() if one.outside <= 0]
        for one in inside:
            one.own += (now - self._now) / len(inside)
        self._now = now
