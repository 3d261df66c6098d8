"""What the ops of one process share: the app, and an event loop on which actors are worked on."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, cast

import dagster as dg

from memory_pipelines.wiring import App

T = TypeVar("T")

ActorEvent = Literal["started", "done", "again", "failed", "cancelled"]
"""What happened to an actor in a stage. `again`: it failed, and Dagster tries it once more."""

OnEvent = Callable[[str, str, ActorEvent], None]
"""Called with actor, stage and event, from the thread of the op."""

RESOURCE = "memory_pipelines"


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How the work goes by the clock; tests hurry."""

    retry_seconds: float = 5.0  # base of the delay before failed actors are tried again
    heartbeat_seconds: float = 5.0  # between two renewals of the lease
    lease_seconds: float = 60.0  # a Dagster run that gave no sign of life for so long is dead, and its actors are free


class Crew:
    """The app and its event loop.

    The loop has a thread of its own, so that synchronous calls in an op (events, leases) stall no model call. It lives
    as long as the crew and not as long as an op, because connections and limits belong to a loop.
    """

    def __init__(self, app: App, *, pace: Pace, on_event: OnEvent | None = None) -> None:
        """Start the loop.

        Args:
            app: stays open when the crew is closed.
            pace: delays and leases.
            on_event: told of every actor's progress.
        """
        self.app = app
        self.pace = pace
        self.on_event = on_event
        self.interrupted = False  # by a signal: whoever started the run in this process must hear of it
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="memory-pipelines-actors", daemon=True)
        self._thread.start()

    def tell(self, actor_id: str, stage: str, event: ActorEvent) -> None:
        """Pass an event on to whoever listens."""
        if self.on_event is not None:
            self.on_event(actor_id, stage, event)

    def call(self, work: Coroutine[Any, Any, T], *, beat: Callable[[], None]) -> T:
        """Run a coroutine on the loop and wait for it, calling `beat` by the clock."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            while True:
                try:
                    return future.result(timeout=self.pace.heartbeat_seconds)
                except TimeoutError:
                    if future.done():  # the work's own
                        raise
                    beat()
        finally:
            future.cancel()

    def close(self) -> None:
        """Stop the loop and its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        if not self._thread.is_alive():
            self.loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def crew_resource(open_app: Callable[[], App], pace: Pace) -> dg.ResourceDefinition:
    """Return the resource that opens an app and a crew for each Dagster run, and closes them."""

    @dg.resource(description="Stores, models and settings of memory-pipelines")
    def crew() -> Iterator[Crew]:
        app = open_app()
        try:
            with Crew(app, pace=pace) as opened:
                yield opened
                opened.call(app.gateway.close(), beat=lambda: None)
        finally:
            app.close()

    return crew


def crew_of(context: dg.OpExecutionContext) -> Crew:
    """Return the crew of a running op."""
    return cast("Crew", getattr(context.resources, RESOURCE))
