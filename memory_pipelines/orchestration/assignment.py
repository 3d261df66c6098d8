"""Finds out which run and batch of ours a Dagster run works on, and makes them where a person started it."""

from dataclasses import dataclass

import dagster as dg

from memory_pipelines.names import run_name
from memory_pipelines.orchestration.crew import Crew, crew_of
from memory_pipelines.orchestration.keys import (
    ADOPTED_TAG,
    BACKFILL_TAG,
    BATCH_TAG,
    RUN_TAG,
    actor_of,
    add_partitions,
    run_tags,
)
from memory_pipelines.records import STAGES, ActorResult, Batch, Pipeline, Run

UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


class BatchConfig(dg.Config):
    """What one Dagster run works on. Without run and batch it becomes a run of its own."""

    pipeline: str
    run: int | None = None
    batch: int | None = None


@dataclass(frozen=True)
class Assignment:
    """The work of one Dagster run."""

    pipeline: Pipeline
    run: Run
    batch: Batch
    holder: str  # id of the Dagster run, which claims the actors
    partitioned: bool  # Dagster chose the partitions: it has planned their materializations itself


def has_partitions(run: dg.DagsterRun) -> bool:
    """Tell whether a Dagster run was started for partitions."""
    return any(tag in run.tags for tag in ("dagster/partition", "dagster/asset_partition_range_start"))


def results_of(crew: Crew, batch: Batch) -> list[ActorResult]:
    """Return what became of the actors of a batch, in its order; a run has many batches, so not of the whole run."""
    return crew.app.stores.pipelines.results(batch.pipeline_id, batch.run, batch=batch.number)


def open_results(crew: Crew, batch: Batch) -> dict[str, ActorResult]:
    """Return the results of those actors of a batch that are not closed, by actor, in the order of the batch."""
    return {one.actor_id: one for one in results_of(crew, batch) if one.state in {"waiting", "running"}}


def take(context: dg.OpExecutionContext, config: BatchConfig) -> Assignment:
    """Return the assignment of the running op, which is the same for all ops of a Dagster run.

    Raises:
        NotFoundError: the pipeline is gone.
        dg.Failure: the run of ours that this Dagster run belongs to has ended.
    """
    crew = crew_of(context)
    pipelines = crew.app.stores.pipelines
    pipeline = pipelines.get(config.pipeline)
    # Not `context.run`: that is a snapshot from before this run was adopted.
    dagster_run = context.instance.get_run_by_id(context.run_id) or context.run
    number, batch_number = config.run, config.batch
    if RUN_TAG in dagster_run.tags:
        number, batch_number = int(dagster_run.tags[RUN_TAG]), int(dagster_run.tags[BATCH_TAG])
    if number is not None and batch_number is not None:
        run = pipelines.get_run(pipeline.id, number)
        batch = crew.app.stores.progress.batch(pipeline.id, number, batch_number)
        again = dagster_run.parent_run_id is not None and dagster_run.tags.get(ADOPTED_TAG) != context.run_id
        begins = context.op.name == STAGES[0] and context.retry_number == 0
        if not again and run.state != "RUNNING" and (begins or not _worked_on(crew, batch)):
            reason = f": {run.error}" if run.error else ""
            raise dg.Failure(
                f"{run_name(pipeline.id, number)} is {run.state}{reason}; nothing was done", allow_retries=False
            )
        if not again:
            return Assignment(pipeline, run, batch, context.run_id, has_partitions(dagster_run))
        actors = _unfinished(crew, batch)  # the tags are copies: a re-execution is a run of its own
    elif context.has_partition_key or context.has_partition_key_range:
        actors = [actor_of(key) for key in context.partition_keys]
    else:
        actors = [one.actor_id for one in pipelines.pending(pipeline.id)]
    return _adopt(context, crew, pipeline, dagster_run, actors)


def _worked_on(crew: Crew, batch: Batch) -> bool:
    """Tell whether actors of the batch came to an end by themselves.

    Whoever looks at a run closes it once all its actors have ended; the Dagster run that worked on them has then still
    to report what became of them.
    """
    return any(one.state in {"succeeded", "failed"} for one in results_of(crew, batch))


def _unfinished(crew: Crew, batch: Batch) -> list[str]:
    """Return the actors that a re-execution is for: those that did not succeed, else all."""
    succeeded = {one.actor_id for one in results_of(crew, batch) if one.state == "succeeded"}
    return [actor_id for actor_id in batch.actors if actor_id not in succeeded] or list(batch.actors)


def _adopt(
    context: dg.OpExecutionContext, crew: Crew, pipeline: Pipeline, dagster_run: dg.DagsterRun, actors: list[str]
) -> Assignment:
    """Give a Dagster run that a person started a run of ours; the runs of one backfill share it."""
    stores, now = crew.app.stores, crew.app.clock()
    run = _run_of_backfill(context, crew, pipeline, dagster_run)
    if run is None:
        run = stores.pipelines.ask(
            pipeline.id,
            asked_by="ui",
            model=crew.app.runner.model_of(pipeline),
            kind="person",
            launch=False,
            actors=actors,
            now=now,
        )
    batch = stores.progress.add_batch(run, actors, now=now)
    context.instance.add_run_tags(context.run_id, {**run_tags(run, batch.number), ADOPTED_TAG: context.run_id})
    partitioned = has_partitions(dagster_run)
    if not partitioned:
        add_partitions(context.instance, pipeline.id, actors)
    context.log.info(f"this is batch {batch.number} of {run_name(pipeline.id, run.number)}, {len(actors)} actors")
    return Assignment(pipeline, run, batch, context.run_id, partitioned)


def _run_of_backfill(
    context: dg.OpExecutionContext, crew: Crew, pipeline: Pipeline, dagster_run: dg.DagsterRun
) -> Run | None:
    backfill = dagster_run.tags.get(BACKFILL_TAG)
    if backfill is None:
        return None
    for other in context.instance.get_runs(dg.RunsFilter(tags={BACKFILL_TAG: backfill})):
        if other.tags.get(ADOPTED_TAG) == other.run_id:
            run = crew.app.stores.pipelines.get_run(pipeline.id, int(other.tags[RUN_TAG]))
            if run.state == "RUNNING":
                return run
    return None


def backfill_goes_on(instance: dg.DagsterInstance, dagster_run: dg.DagsterRun) -> bool:
    """Tell whether other Dagster runs of the same backfill have still to end."""
    backfill = dagster_run.tags.get(BACKFILL_TAG)
    if backfill is None:
        return False
    others = instance.get_runs(dg.RunsFilter(tags={BACKFILL_TAG: backfill}, statuses=UNFINISHED))
    return any(other.run_id != dagster_run.run_id for other in others)
