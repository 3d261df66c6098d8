"""The model `offline`: fixed rules that call the heuristics of a stage. It is not an LLM and never pretends to be."""

from memory_pipelines.errors import GatewayFinalError
from memory_pipelines.gateway.base import NOT_AN_LLM, OFFLINE, ModelInfo, Request, Response, Usage

_BLOCKS = {  # purpose -> the block that the stage's own tools answer
    "distill": "facts = await candidate_facts()\nsubmit(facts)",
    "merge": "submit(await suggest_merge())",
    "maintain": "submit(await suggest_maintenance())",
}


class OfflineGateway:
    """Answers a request's purpose with a fixed block of code, whatever the messages say."""

    async def complete(self, request: Request) -> Response:
        """Answer at once, at no cost.

        Args:
            request: only its purpose counts.

        Raises:
            GatewayFinalError: rules cannot serve this purpose.
        """
        if request.purpose == "preflight":
            return Response(text="ok", model=NOT_AN_LLM, usage=Usage(calls=1))
        block = _BLOCKS.get(request.purpose)
        if block is None:
            raise GatewayFinalError(
                f"The model {OFFLINE!r} is rules, not an LLM: it serves {', '.join(_BLOCKS)} and preflight, "
                f"not {request.purpose!r}. Set MEMORY_PIPELINES_MODEL to a model, such as openai/gpt-5.",
                model=OFFLINE,
                purpose=request.purpose,
                retry_after=None,
            )
        return Response(text=f"```python\n{block}\n```", model=NOT_AN_LLM, usage=Usage(calls=1))

    def describe(self, model: str) -> ModelInfo:
        """Say that it is small and costs nothing."""
        return ModelInfo(name=model)

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""
