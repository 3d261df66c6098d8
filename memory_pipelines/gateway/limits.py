"""Limits of one process on model calls: how many at once, how many and how many tokens a minute."""

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from pydantic import BaseModel, ConfigDict, Field

from memory_pipelines.gateway.base import Request

_MINUTE = 60.0


class CallLimits(BaseModel):
    """What a provider's account allows, shared by everything in this process."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    concurrent_calls: int = Field(default=16, ge=1)  # under way at once
    requests_per_minute: int | None = Field(default=None, ge=1)  # None: no limit
    tokens_per_minute: int | None = Field(default=None, ge=1)  # prompt and answer together; None: no limit


def estimate_tokens(request: Request) -> int:
    """Guess what a request will cost in tokens, answer included, rather too much than too little.

    Args:
        request: not yet sent.
    """
    text = "".join(message.content for message in request.messages)
    text += "".join(call.name + call.arguments for message in request.messages for call in message.tool_calls)
    if request.tools:
        text += json.dumps(request.tools, ensure_ascii=False)
    beyond_ascii = sum(not char.isascii() for char in text)
    return (len(text) - beyond_ascii) // 4 + beyond_ascii + request.max_tokens


class Bucket:
    """A token bucket that may go into debt, so that whoever takes first goes first."""

    def __init__(self, per_minute: int, now: float) -> None:
        """Fill it.

        Args:
            per_minute: never more than this is let through in any minute.
            now: seconds of the clock that `take` is given.
        """
        # A tenth may go at once. The rate makes up for it, so that burst and refill together stay below the limit.
        self._burst = max(1.0, per_minute // 10)
        self._rate = (per_minute - self._burst + 1) / _MINUTE
        self._level = self._burst
        self._at = now

    def take(self, amount: float, now: float) -> float:
        """Take an amount and return how many seconds to wait before using it; a negative amount gives back."""
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        self._level = min(self._burst, self._level - amount)
        return max(0.0, -self._level / self._rate)


class Ticket:
    """The right to make one call; `used` corrects the estimate."""

    def __init__(self, estimate: int) -> None:
        """Start with the estimate.

        Args:
            estimate: tokens taken before the call.
        """
        self.estimate = estimate
        self.tokens: int | None = None

    def used(self, tokens: int) -> None:
        """Say what the call really cost, in tokens."""
        self.tokens = tokens


class _Waiter:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.turn: asyncio.Future[None] = self.loop.create_future()


class Turnstile:
    """Lets calls through in the order they came, within the limits; usable from several event loops and threads."""

    def __init__(
        self,
        limits: CallLimits,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Open it.

        Args:
            limits: what is allowed.
            clock: seconds, never going back.
            sleep: waits that many seconds.
        """
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._free = limits.concurrent_calls
        self._line: deque[_Waiter] = deque()
        now = clock()
        self._requests = Bucket(limits.requests_per_minute, now) if limits.requests_per_minute else None
        self._tokens = Bucket(limits.tokens_per_minute, now) if limits.tokens_per_minute else None

    @asynccontextmanager
    async def call(self, tokens: int) -> AsyncGenerator[Ticket]:
        """Wait for the right to make one call, and hold it for the length of the block.

        Args:
            tokens: estimate of the call's cost.
        """
        await self._enter()
        ticket = Ticket(tokens)
        try:
            try:
                await self._pay(1, tokens)
            except BaseException:
                self._take(-1, -tokens)  # cancelled while waiting: the call was never made
                raise
            yield ticket
        finally:
            if ticket.tokens is not None:
                self._take(0, ticket.tokens - ticket.estimate)
            self._leave()

    async def _pay(self, requests: int, tokens: int) -> None:
        wait = self._take(requests, tokens)
        if wait > 0:
            await self._sleep(wait)

    def _take(self, requests: int, tokens: int) -> float:
        with self._lock:
            now = self._clock()
            return max(
                self._requests.take(requests, now) if self._requests else 0.0,
                self._tokens.take(tokens, now) if self._tokens else 0.0,
            )

    async def _enter(self) -> None:
        with self._lock:
            if self._free > 0 and not self._line:
                self._free -= 1
                return
            waiter = _Waiter()
            self._line.append(waiter)
        try:
            await waiter.turn
        except asyncio.CancelledError:
            with self._lock:
                waiting = waiter in self._line
                if waiting:
                    self._line.remove(waiter)
            if not waiting:  # the turn had come in the same moment
                self._leave()
            raise

    def _leave(self) -> None:
        with self._lock:
            while self._line:
                waiter = self._line.popleft()
                try:
                    waiter.loop.call_soon_threadsafe(_give, waiter.turn)
                except RuntimeError:  # its event loop is closed, and nobody waits there
                    continue
                return
            self._free += 1


def _give(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
