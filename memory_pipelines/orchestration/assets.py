"""The ops wired twice: an asset for each pipeline, which people see and click, and one job for all pipelines."""

import warnings
from collections.abc import Mapping
from typing import Any

import dagster as dg

from memory_pipelines.orchestration.events import model_in_words
from memory_pipelines.orchestration.keys import JOB, identifier, partitions_name
from memory_pipelines.orchestration.ops import distill, maintain, merge
from memory_pipelines.records import STAGES, Pipeline


def memory_asset(pipeline: Pipeline, *, default_model: str) -> dg.AssetsDefinition:
    """Return the asset `<pipeline>/memory`, partitioned by actor.

    Args:
        pipeline: as stored.
        default_model: for a pipeline that names none.
    """

    def config_of_ops(_given: Any) -> dict[str, Any]:
        return {stage: {"config": {"pipeline": pipeline.id}} for stage in STAGES}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # of `backfill_policy`

        @dg.graph_asset(  # pyright: ignore[reportUnknownMemberType] - of a parameter we do not give
            name="memory",
            key_prefix=[pipeline.id],
            group_name=identifier(pipeline.id),
            description=_description(pipeline, default_model),
            config=dg.ConfigMapping(config_fn=config_of_ops, config_schema={}),
            partitions_def=dg.DynamicPartitionsDefinition(name=partitions_name(pipeline.id)),
            backfill_policy=dg.BackfillPolicy.single_run(),
            kinds={"memory", "llm"},
            tags={
                "memory-pipelines/session-store": pipeline.session_store,
                "memory-pipelines/memory-store": pipeline.memory_store,
                "memory-pipelines/trigger": pipeline.policy.trigger,
            },
        )
        def memory() -> Any:
            return maintain(merge(distill()))

    return memory


def _description(pipeline: Pipeline, default_model: str) -> str:
    policy = pipeline.policy
    quoted = "\n".join(f"> {line}" for line in policy.instructions.splitlines())
    return "\n\n".join(
        part
        for part in (
            f"Long-term memory of each actor of session store `{pipeline.session_store}`, in memory store"
            f" `{pipeline.memory_store}`. A partition is an actor.",
            f"Model: **{model_in_words(policy.model or default_model)}**. Trigger: {policy.trigger}."
            + (" The pipeline is deleted; its last run is ending." if pipeline.delete_time else ""),
            f"Instructions:\n\n{quoted}" if quoted else "",
        )
        if part
    )


def batch_job(loggers: Mapping[str, dg.LoggerDefinition] | None = None) -> dg.JobDefinition:
    """Return the job that works on one batch of any pipeline, also of one made after this was loaded.

    Its events carry the key of the pipeline's asset, so they show there.

    Args:
        loggers: in place of Dagster's console logger.
    """

    def config_of_ops(given: Any) -> dict[str, Any]:
        ops = {stage: {"config": dict(given)} for stage in STAGES}
        return {"ops": ops, "loggers": {name: {} for name in loggers}} if loggers else {"ops": ops}

    @dg.job(  # pyright: ignore[reportUnknownMemberType] - of a parameter we do not give
        name=JOB,
        description="Works on one batch of actors of a run. Started by the sensor `asked_runs` or by a command.",
        logger_defs=dict(loggers) if loggers else None,
        config=dg.ConfigMapping(
            config_fn=config_of_ops,
            config_schema={
                "pipeline": dg.Field(str, description="Id of the pipeline."),
                "run": dg.Field(int, is_required=False, description="Number of the run; left out: a new run."),
                "batch": dg.Field(int, is_required=False, description="Batch of the run."),
            },
        ),
    )
    def memory_pipeline_batch() -> None:
        maintain(merge(distill()))

    return memory_pipeline_batch
