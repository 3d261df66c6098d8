"""The only place that plugs the parts together."""

from collections.abc import Callable
from datetime import UTC, datetime

from memory_pipelines.errors import SettingsError
from memory_pipelines.gateway.base import Gateway
from memory_pipelines.gateway.limits import CallLimits
from memory_pipelines.gateway.routing import RoutingGateway
from memory_pipelines.registry import KERNELS
from memory_pipelines.runner import Runner, RunnerOptions
from memory_pipelines.service import MemoryService, PipelineService, SessionService
from memory_pipelines.settings import Settings, read_settings
from memory_pipelines.stores.base import Stores
from memory_pipelines.stores.sql import open_stores


def utc_now() -> datetime:
    """Return the time now, aware."""
    return datetime.now(UTC)


class App:
    """One database with everything on it. What `connect` returns.

    `sessions`, `memory` and `pipelines` are what people ask; `stores` and `runner` are what the orchestration uses.
    """

    def __init__(self, settings: Settings, stores: Stores, gateway: Gateway, clock: Callable[[], datetime]) -> None:
        """Plug the given parts together; `open_app` makes them."""
        self.settings = settings
        self.stores = stores
        self.gateway = gateway
        self.clock = clock
        self.sessions = SessionService(stores.sessions, clock=clock)
        self.memory = MemoryService(stores.memories, clock=clock)
        self.pipelines = PipelineService(stores, default_model=settings.model, clock=clock)
        self.runner = Runner(
            stores,
            gateway,
            options=RunnerOptions(
                home=settings.home.absolute(),
                default_model=settings.model,
                kernel=settings.kernel,
                isolation=settings.isolation,
                window_tokens=settings.window_tokens,
                context_tokens=settings.context_tokens,
                profile=settings.profile,
                trajectories=settings.trajectories,
            ),
            clock=clock,
        )

    def close(self) -> None:
        """Release the database."""
        self.stores.close()


def open_app(
    settings: Settings | None = None, *, gateway: Gateway | None = None, clock: Callable[[], datetime] = utc_now
) -> App:
    """Open the database, bringing its schema up to date, and plug everything together.

    Args:
        settings: default read from the environment.
        gateway: default LiteLLM, or rules for the model `offline`.
        clock: the time now, aware; tests give their own.

    Raises:
        SettingsError: a setting cannot be used.
        StoreUnavailableError: the database is away.
    """
    settings = settings or read_settings()
    if settings.kernel not in KERNELS.names():
        raise SettingsError(
            f"MEMORY_PIPELINES_KERNEL: no kernel is called {settings.kernel!r}; known: {', '.join(KERNELS.names())}",
            field="kernel",
        )
    if gateway is None:
        gateway = RoutingGateway(
            limits=CallLimits(
                concurrent_calls=settings.concurrent_calls,
                requests_per_minute=settings.requests_per_minute,
                tokens_per_minute=settings.tokens_per_minute,
            ),
            call_seconds=settings.call_seconds,
        )
    return App(settings, open_stores(settings.database), gateway, clock)
