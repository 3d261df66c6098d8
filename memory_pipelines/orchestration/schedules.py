"""A daily schedule for each SCHEDULED pipeline. It only asks: the sensor launches, as it does for every other door."""

import logging
import zlib
from collections.abc import Callable

import dagster as dg

from memory_pipelines.errors import NotFoundError, RunInFlightError
from memory_pipelines.names import run_name
from memory_pipelines.orchestration.keys import JOB, identifier
from memory_pipelines.orchestration.sensor import Watch
from memory_pipelines.records import Pipeline

logger = logging.getLogger(__name__)


def daily_cron(pipeline_id: str) -> str:
    """Return a cron line between 2:00 and 5:59 that spreads pipelines over the night, the same in every process."""
    spread = zlib.crc32(pipeline_id.encode())
    return f"{spread % 60} {2 + spread // 60 % 4} * * *"


def ask_daily(watch: Watch, pipeline_id: str) -> str:
    """Ask for a run of a scheduled pipeline, and say what came of it."""
    try:
        pipeline = watch.stores.pipelines.get(pipeline_id)
    except NotFoundError:
        return f"pipeline {pipeline_id} is gone"
    policy = pipeline.policy
    if pipeline.delete_time is not None:
        return f"pipeline {pipeline_id} is deleted"
    if policy.trigger != "SCHEDULED":
        return f"pipeline {pipeline_id} is {'paused' if policy.resume_trigger else policy.trigger}"
    try:
        run = watch.stores.pipelines.ask(
            pipeline_id, asked_by="schedule", model=policy.model or watch.default_model, now=watch.clock()
        )
    except RunInFlightError as error:
        return error.message
    return f"asked for {run_name(pipeline_id, run.number)}; the sensor asked_runs launches it"


def daily_schedule(pipeline: Pipeline, watch: Callable[[], Watch]) -> dg.ScheduleDefinition | None:
    """Return the schedule of a pipeline, or None for a cron line or time zone that Dagster does not take.

    Args:
        pipeline: its policy's cron and time zone win over the night's spread.
        watch: opens the stores when first called.
    """
    try:

        @dg.schedule(  # pyright: ignore[reportUnknownMemberType] - of a parameter we do not give
            name=f"{identifier(pipeline.id)}_daily",
            cron_schedule=pipeline.policy.cron or daily_cron(pipeline.id),
            execution_timezone=pipeline.policy.timezone,
            job_name=JOB,
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description=f"Asks for a run of {pipeline.id} over everything new.",
        )
        def daily(_context: dg.ScheduleEvaluationContext) -> dg.SkipReason:
            return dg.SkipReason(ask_daily(watch(), pipeline.id))

    except dg.DagsterInvalidDefinitionError as error:
        logger.warning("pipeline %s has no schedule: %s", pipeline.id, error)
        return None
    return daily
