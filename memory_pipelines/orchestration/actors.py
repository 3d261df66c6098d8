"""Works on many actors at once, from the thread of an op."""

import asyncio
import contextlib
import queue
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass

from memory_pipelines.records import ActorResult


@dataclass(frozen=True)
class Step:
    """Something happened to an actor: it started, or it ended with a result or an error."""

    actor_id: str
    started: bool = False
    result: ActorResult | None = None
    error: Exception | None = None


def each_actor(
    loop: asyncio.AbstractEventLoop,
    actors: Sequence[str],
    work: Callable[[str], Awaitable[ActorResult]],
    *,
    beat: Callable[[], None],
    concurrency: int,
    heartbeat_seconds: float,
) -> Generator[Step, None, None]:
    """Yield what happens to the actors, as it happens.

    When the caller stops early for any reason (an interrupt, an error, `beat` raising, the generator closed), the
    work under way is cancelled and waited for: no model call goes on behind its back.

    Args:
        loop: runs in another thread.
        actors: each is worked on once.
        work: what is done for one actor.
        beat: called by the clock, also while the actors keep the caller busy.
        concurrency: how many at once.
        heartbeat_seconds: the time between two calls of `beat`.
    """
    steps: queue.SimpleQueue[Step | None] = queue.SimpleQueue()
    tasks: list[asyncio.Task[None]] = []

    async def one(gate: asyncio.Semaphore, actor_id: str) -> None:
        async with gate:
            steps.put(Step(actor_id, started=True))
            try:
                result = await work(actor_id)
            except Exception as error:  # noqa: BLE001 - the boundary between one actor's failure and the others
                steps.put(Step(actor_id, error=error))
            else:
                steps.put(Step(actor_id, result=result))

    async def everyone() -> None:
        gate = asyncio.Semaphore(concurrency)
        await asyncio.gather(*(one(gate, actor_id) for actor_id in actors))

    def start() -> None:
        task = loop.create_task(everyone())
        task.add_done_callback(lambda _: steps.put(None))
        tasks.append(task)

    def cancel() -> None:  # runs after `start`, since the loop calls in order
        for task in tasks:
            task.cancel()

    loop.call_soon_threadsafe(start)
    over = False
    beaten = float("-inf")
    try:
        while True:
            if time.monotonic() - beaten >= heartbeat_seconds:
                beat()
                beaten = time.monotonic()
            try:
                step = steps.get(timeout=heartbeat_seconds)
            except queue.Empty:
                continue
            if step is None:
                over = True
                return
            yield step
    finally:
        if not over:
            loop.call_soon_threadsafe(cancel)
            _drain(steps, seconds=10)


def _drain(steps: "queue.SimpleQueue[Step | None]", *, seconds: float) -> None:
    """Wait until the cancelled work has ended."""
    until = time.monotonic() + seconds
    with contextlib.suppress(queue.Empty):
        while steps.get(timeout=max(0.0, until - time.monotonic())) is not None:
            pass
