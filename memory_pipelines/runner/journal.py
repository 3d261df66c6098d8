"""A gateway that remembers finished calls in the database, so that a crash pays for nothing twice."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from memory_pipelines.errors import BudgetExceededError
from memory_pipelines.gateway.base import Gateway, ModelInfo, Request, Response
from memory_pipelines.records import Pipeline, Run, StageUsage
from memory_pipelines.redaction import redact, redact_json
from memory_pipelines.stores.base import Progress


class JournalGateway:
    """Wraps a gateway for one actor and stage of a run: answers a repeated request from the journal, records each
    finished call with its usage in one transaction, and stops before a call that a budget of the run forbids.
    """

    def __init__(
        self,
        gateway: Gateway,
        progress: Progress,
        *,
        pipeline: Pipeline,
        run: Run,
        actor_id: str,
        stage: str,
        clock: Callable[[], datetime],
    ) -> None:
        """Keep what a call is booked on."""
        self._gateway = gateway
        self._progress = progress
        self._pipeline = pipeline
        self._run = run
        self._actor_id = actor_id
        self._stage = stage
        self._clock = clock

    async def complete(self, request: Request) -> Response:
        """Answer from the journal, else ask and record; see Gateway.complete."""
        key = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
        known = await asyncio.to_thread(self._progress.recall, self._pipeline, self._actor_id, key)
        if known is not None:
            return Response.model_validate(known)
        await asyncio.to_thread(self._check_budget)
        response = await self._gateway.complete(request)
        await asyncio.to_thread(self._record, key, response)
        return response

    def describe(self, model: str) -> ModelInfo:
        """Say what is known of a model."""
        return self._gateway.describe(model)

    async def close(self) -> None:
        """Leave the wrapped gateway open: it is shared by all actors."""

    def _check_budget(self) -> None:
        policy = self._pipeline.policy
        if policy.max_calls is None and policy.max_tokens is None and policy.max_cost is None:
            return
        spent = self._progress.spent(self._pipeline.id, self._run.number)
        tokens = spent.prompt_tokens + spent.completion_tokens
        for limit, used, unit in (
            (policy.max_calls, spent.calls, "calls"),
            (policy.max_tokens, tokens, "tokens"),
            (policy.max_cost, spent.cost, "US dollars"),
        ):
            if limit is not None and used >= limit:
                raise BudgetExceededError(
                    f"the run has used {used:g} of {limit:g} {unit}, its budget; what is finished stays and the next"
                    f" run goes on from there. Raise the budget with `pipeline update`",
                    limit=limit,
                    spent=used,
                    unit=unit,
                )

    def _record(self, key: str, response: Response) -> None:
        usage = response.usage
        kept: Any = redact_json(response.model_dump(mode="json"))
        kept["usage"] = {}  # booked once, here
        # Ids look like secrets and are none. Without them no later request of the rollout would be found again.
        kept["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": _redacted(call.arguments)} for call in response.tool_calls
        ]
        self._progress.record_call(
            self._pipeline,
            self._run.number,
            self._actor_id,
            stage=self._stage,
            key=key,
            response=kept,
            usage=StageUsage(stage=self._stage, **usage.model_dump()),
            now=self._clock(),
        )


def _redacted(arguments: str) -> str:
    """Redact the arguments of a call inside of its JSON, which stays as the model wrote it where nothing is secret."""
    try:
        value: object = json.loads(arguments)
    except (ValueError, RecursionError):
        return redact(arguments)  # malformed; the model is told so
    clean = redact_json(value)
    return arguments if clean == value else json.dumps(clean, ensure_ascii=False)


def trajectory_path(home: Path, pipeline_id: str, run: int, actor_id: str, stage: str) -> Path:
    """Return a path that no rollout has used yet: <home>/trajectories/<pipeline>/<run>/<actor>/<stage>-<n>.jsonl."""
    digest = hashlib.sha256(actor_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    readable = "".join(c if c.isascii() and (c.isalnum() or c in "-_.@") else "_" for c in actor_id)[:60]
    folder = home / "trajectories" / pipeline_id / str(run) / f"{readable}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while (path := folder / f"{stage}-{number}.jsonl").exists():
        number += 1
    return path
