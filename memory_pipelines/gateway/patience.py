"""Trying again after errors that pass: exponential back-off with full jitter, within bounded patience."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from memory_pipelines.errors import GatewayError, GatewayTransientError

T = TypeVar("T")


class Patience(BaseModel):
    """How often and how long one request is tried."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attempts: int = Field(default=4, ge=1)  # calls of the provider, the first included
    seconds: float = Field(default=60.0, ge=0)  # from the first failure to the start of the last attempt
    first: float = Field(default=1.0, gt=0)  # longest wait after the first failure; doubles each time
    longest: float = Field(default=20.0, gt=0)  # of one wait that we choose ourselves


class Retrier:
    """Repeats a call while its error is transient and patience lasts."""

    def __init__(
        self,
        patience: Patience,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Keep the means.

        Args:
            patience: the bounds.
            clock: seconds, never going back.
            sleep: waits that many seconds.
            chance: a number from 0 to 1.
        """
        self._patience = patience
        self._clock = clock
        self._sleep = sleep
        self._chance = chance

    async def call(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Call until it succeeds.

        Args:
            attempt: makes one call.

        Raises:
            GatewayError: the first final error, or the last transient one; the latter carries `attempts`.
        """
        tried, failed_at = 0, None
        while True:
            tried += 1
            try:
                return await attempt()
            except GatewayError as error:
                error.facts["attempts"] = tried
                wait = self._wait(error, tried)
                now = self._clock()
                failed_at = now if failed_at is None else failed_at
                # A wait that would end after our patience is left to whoever asked.
                if wait is None or now - failed_at + wait > self._patience.seconds:
                    raise
            await self._sleep(wait)

    def _wait(self, error: GatewayError, tried: int) -> float | None:
        if not isinstance(error, GatewayTransientError) or tried >= self._patience.attempts:
            return None
        asked: object = error.facts.get("retry_after")
        if isinstance(asked, int | float):
            return float(asked)
        return self._chance() * min(self._patience.longest, self._patience.first * 2.0 ** (tried - 1))
