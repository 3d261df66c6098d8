"""What a kernel was told and answered, in order; a fresh worker is brought to the same state by telling it again."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memory_pipelines.errors import KernelDiedError
from memory_pipelines.memex.kernels.connection import Connection
from memory_pipelines.memex.kernels.messages import Call, Done
from memory_pipelines.memex.kernels.wire import FrameError

REPLAY_SECONDS = 10.0
"""How much work of earlier blocks is done again; above this, starting anew costs less."""

_PATIENCE = 2.0
"""Seconds that a replay may take beside twice what the blocks took."""

_IN_A_ROW = 3
"""How often a kernel may end without a block that ends well, before it is believed to be the earlier blocks' doing."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


class DivergedError(Exception):
    """A block did not do again what it did before; the message says which and how."""


@dataclass(eq=False)
class Made:
    """A call that the code made."""

    call: Call  # as the worker that waits for the answer numbered it
    answer: tuple[bool, Any] | None = None  # whether it went well, and the value or what went wrong
    task: asyncio.Task[Any] | None = field(default=None, repr=False)  # that makes it, until it is answered


@dataclass(frozen=True)
class Sent:
    """A message that nothing answers."""

    message: Mapping[str, Any]


@dataclass(frozen=True)
class Shared:
    """What the code gave along with a call became variables of another namespace."""

    made: Made
    namespace: str


@dataclass(frozen=True)
class Answered:
    """A call was answered."""

    made: Made


@dataclass(frozen=True)
class Begun:
    """A block was started."""

    run: int
    namespace: str
    code: str
    seconds: float


@dataclass(frozen=True)
class Ended:
    """A block ended."""

    run: int
    done: Done


class Journal:
    """The steps of one kernel."""

    def __init__(self) -> None:
        """Begin with an empty kernel."""
        self._steps: list[Sent | Shared | Answered | Begun | Ended] = []
        self._seconds = 0.0  # of the blocks that ended
        self._fruitless = 0  # replays since a block ended
        self._broken: str | None = None  # why the state cannot be had again

    @property
    def blocks(self) -> int:
        """How many blocks a replay runs."""
        return sum(isinstance(step, Ended) for step in self._steps)

    def sent(self, message: Mapping[str, Any]) -> None:
        """Keep a message to the worker."""
        self._steps.append(Sent(message))

    def shared(self, made: Made, namespace: str) -> None:
        """Keep that what came along with a call went to a namespace."""
        self._steps.append(Shared(made, namespace))

    def answered(self, made: Made) -> None:
        """Keep the answer of a call."""
        self._steps.append(Answered(made))

    def begun(self, run: int, namespace: str, code: str, seconds: float) -> None:
        """Keep that a block was started."""
        self._steps.append(Begun(run, namespace, code, seconds))

    def ended(self, run: int, done: Done, seconds: float) -> None:
        """Keep what came of a block, and the seconds that were its own."""
        self._steps.append(Ended(run, done))
        self._seconds += seconds
        self._fruitless = 0
        if done.interrupted:
            self.broken("a block was stopped in the middle")

    def broken(self, why: str) -> None:
        """Note that from here on the state cannot be had again."""
        self._broken = self._broken or why

    def drop_open_blocks(self) -> set[int]:
        """Leave out the blocks that had not ended when the worker did, and the calls that they made.

        Returns:
            Their numbers.
        """
        ended = {step.run for step in self._steps if isinstance(step, Ended)}
        kept: list[Sent | Shared | Answered | Begun | Ended] = []
        dropped: set[int] = set()
        for step in self._steps:
            run = step.made.call.run if isinstance(step, Shared | Answered) else getattr(step, "run", None)
            if run is None or run in ended:
                kept.append(step)
            else:
                dropped.add(run)
        self._steps = kept
        return dropped

    async def replay(self, connection: Connection, waiting: list[Made], *, pending: int) -> None:
        """Bring a fresh worker to the state of the last one. No call is made: the answers are those of the first time.

        Args:
            connection: to the worker; its calls belong to whoever set `connection.calls`, after this.
            waiting: calls that the last worker still waited for; afterwards they are those of this one.
            pending: how many calls may be under way at once.

        Raises:
            DivergedError: that cannot be done; says why.
        """
        if self._broken is not None:
            raise DivergedError(self._broken)
        if self._seconds > REPLAY_SECONDS:
            raise DivergedError(f"earlier blocks took {self._seconds:.0f} s, and would take them again")
        if not self._steps and not waiting:
            return  # as for every first worker, which would otherwise be asked for a block that proves nothing
        if self._steps:
            self._fruitless += 1
        if self._fruitless > _IN_A_ROW:
            raise DivergedError(f"the kernel ended {self._fruitless} times in a row")
        try:
            async with asyncio.timeout(_PATIENCE + 2 * self._seconds):
                await _Replay(connection, pending).run(self._steps, waiting)
        except TimeoutError as error:
            raise DivergedError("running the earlier blocks again took longer than before") from error
        except KernelDiedError as error:
            raise DivergedError(f"running the earlier blocks again failed: {error.message}") from error


class _Replay:
    """One replay on its way."""

    def __init__(self, connection: Connection, pending: int) -> None:
        self._connection = connection
        self._pending = pending
        self._arrived: list[Call] = []
        self._news = asyncio.Event()

    async def run(self, steps: list[Sent | Shared | Answered | Begun | Ended], waiting: list[Made]) -> None:
        connection = self._connection
        connection.calls = self._take
        connection.on_end(self._news.set)
        here: set[Made] = set()  # calls that the worker has made again
        for step in steps:
            match step:
                case Sent(message):
                    connection.send(message)
                case Begun(run, namespace, code, seconds):
                    connection.begin(run, namespace, code, seconds)
                case Ended(run, done):
                    _compare(done, (await connection.finish(run))[0])
                case Shared(made, namespace):
                    await self._again(made)
                    here.add(made)
                    connection.send({"type": "share", "call": made.call.id, "namespace": namespace})
                case Answered(made):
                    if made not in here:
                        await self._again(made)
                    ok, value = made.answer or (False, "")
                    connection.answer(made.call, value, ok=ok)
        for made in waiting:
            if made not in here:
                await self._again(made)
        # An empty block shows that the worker is still well once all that the others left to do has had its turn.
        connection.begin(0, "", "", _PATIENCE)
        await connection.finish(0)
        if self._arrived:
            raise DivergedError(f"{self._arrived[0].tool} was called once more than before")

    def _take(self, call: Call) -> None:
        if len(self._arrived) >= self._pending:
            raise FrameError(f"more than {self._pending} calls at once")
        self._arrived.append(call)
        self._news.set()

    async def _again(self, made: Made) -> None:
        """Wait until the code has made this call again, and take the number that it has now."""
        while True:
            for call in self._arrived:
                if _same(call, made.call):
                    self._arrived.remove(call)
                    made.call = call
                    return
            if self._connection.why is not None:
                raise KernelDiedError(self._connection.why)
            self._news.clear()
            await self._news.wait()


def _same(one: Call, other: Call) -> bool:
    return (one.run, one.namespace, one.tool) == (other.run, other.namespace, other.tool) and (
        one.arguments == other.arguments
    )


def _compare(before: Done, now: Done) -> None:
    """An agent has seen the first output: variables that print another one are not those it knows."""
    if (before.error is None) != (now.error is None):
        raise DivergedError(f"a block that ended well before did not: {now.error}" if now.error else _OTHER)
    if _ADDRESS.sub("", before.output) != _ADDRESS.sub("", now.output) or before.value != now.value:
        raise DivergedError(_OTHER)


_OTHER = "a block showed something else than the first time, as code does that asks for the time or for chance"
