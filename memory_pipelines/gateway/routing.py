"""The gateway that everything uses: rules for the model `offline`, LiteLLM for every other."""

import threading
from typing import TYPE_CHECKING

from memory_pipelines.gateway.base import OFFLINE, Gateway, ModelInfo, Request, Response
from memory_pipelines.gateway.limits import CallLimits
from memory_pipelines.gateway.offline import OfflineGateway

if TYPE_CHECKING:
    from memory_pipelines.gateway.litellm_gateway import LiteLLMGateway


class RoutingGateway:
    """Sends each request to the gateway that serves its model; LiteLLM is loaded when a model first needs it."""

    def __init__(
        self,
        *,
        limits: CallLimits | None = None,
        call_seconds: float = 120.0,
        context_tokens: int | None = None,
        api_base: str | None = None,
        api_key: str | None = None,
    ) -> None:
        """Keep the settings.

        Args:
            limits: on all calls of this process together; default 16 at once.
            call_seconds: patience with one call.
            context_tokens: the models' context, when the table does not know better.
            api_base: the provider's address; default by LiteLLM's conventions.
            api_key: the provider's key; default by LiteLLM's conventions.
        """
        self._limits = limits or CallLimits()
        self._call_seconds = call_seconds
        self._context_tokens = context_tokens
        self._api_base = api_base
        self._api_key = api_key
        self._rules = OfflineGateway()
        self._models: LiteLLMGateway | None = None
        self._lock = threading.Lock()

    async def complete(self, request: Request) -> Response:
        """Ask the model; see Gateway.complete."""
        return await self._serving(request.model).complete(request)

    def describe(self, model: str) -> ModelInfo:
        """Say what is known of a model, without a call."""
        return self._serving(model).describe(model)

    async def close(self) -> None:
        """Release connections, if any were made."""
        if self._models is not None:
            await self._models.close()

    def _serving(self, model: str) -> Gateway:
        if model == OFFLINE:
            return self._rules
        with self._lock:
            if self._models is None:
                from memory_pipelines.gateway.litellm_gateway import LiteLLMGateway

                self._models = LiteLLMGateway(
                    limits=self._limits,
                    call_seconds=self._call_seconds,
                    context_tokens=self._context_tokens,
                    api_base=self._api_base,
                    api_key=self._api_key,
                )
            return self._models
