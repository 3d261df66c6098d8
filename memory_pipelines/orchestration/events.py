"""What Dagster is told of an actor: numbers and links, never what anybody said."""

from datetime import datetime

import dagster as dg

from memory_pipelines.gateway.base import NOT_AN_LLM, OFFLINE
from memory_pipelines.names import run_name
from memory_pipelines.orchestration.assignment import Assignment
from memory_pipelines.orchestration.keys import memory_key, partition_key
from memory_pipelines.records import ActorResult
from memory_pipelines.runner.journal import trajectory_path
from memory_pipelines.settings import Settings


def model_in_words(model: str) -> str:
    """Return a model's name for people; the offline one says that it is no LLM."""
    return NOT_AN_LLM if model == OFFLINE else model


def materialization(
    assignment: Assignment, result: ActorResult, *, settings: Settings, now: datetime
) -> dg.AssetMaterialization:
    """Return the event that turns an actor's partition green, with numbers that plot."""
    pipeline, run, actor_id = assignment.pipeline, assignment.run, result.actor_id
    usage = result.usage
    metadata: dict[str, dg.MetadataValue] = {
        "sessions": dg.MetadataValue.int(result.sessions),
        "facts": dg.MetadataValue.int(result.facts),
        "entries_created": dg.MetadataValue.int(result.created),
        "entries_updated": dg.MetadataValue.int(result.updated),
        "entries_deleted": dg.MetadataValue.int(result.deleted),
        "calls": dg.MetadataValue.int(sum(one.calls for one in usage)),
        "prompt_tokens": dg.MetadataValue.int(sum(one.prompt_tokens for one in usage)),
        "completion_tokens": dg.MetadataValue.int(sum(one.completion_tokens for one in usage)),
        "cost_usd": dg.MetadataValue.float(sum((one.cost for one in usage), 0.0)),
        "seconds": dg.MetadataValue.float(
            round((now - result.start_time).total_seconds(), 3) if result.start_time else 0.0
        ),
        "model": dg.MetadataValue.text(model_in_words(run.model)),
        "run": dg.MetadataValue.text(run_name(pipeline.id, run.number)),
    }
    if settings.trajectories:
        folder = trajectory_path(settings.home.absolute(), pipeline.id, run.number, actor_id, "maintain").parent
        if any(folder.glob("*")):  # there is none when the model was not called
            metadata["trajectories"] = dg.PathMetadataValue(str(folder))
    return dg.AssetMaterialization(memory_key(pipeline.id), partition=partition_key(actor_id), metadata=metadata)
