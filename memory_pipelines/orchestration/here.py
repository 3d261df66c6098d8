"""Runs a run in the calling process, through the same Dagster job and on the same instance as the daemon would."""

import logging

import dagster as dg

from memory_pipelines.orchestration.assets import batch_job
from memory_pipelines.orchestration.closing import close_run, end_rest
from memory_pipelines.orchestration.crew import RESOURCE, Crew, OnEvent, Pace
from memory_pipelines.orchestration.instance import open_instance
from memory_pipelines.orchestration.keys import add_partitions, run_config, run_tags
from memory_pipelines.records import Batch, Pipeline, Run
from memory_pipelines.wiring import App


def run_here(
    app: App,
    run: Run,
    *,
    on_event: OnEvent | None = None,
    instance: dg.DagsterInstance | None = None,
    pace: Pace | None = None,
) -> None:
    """Do all batches of a run and close it, whatever happens; the run's row says how it ended.

    Args:
        app: stays open.
        run: asked for with `launch=False`, so that no sensor starts it too.
        on_event: told (actor, stage, event) as it happens, in the calling thread.
        instance: default the persistent one of the settings.
        pace: delays and leases.

    Raises:
        KeyboardInterrupt: somebody pressed Ctrl-C; the run is CANCELLED and what is finished stays.
        SettingsError: Dagster's folder cannot be used.
    """
    pipeline = app.stores.pipelines.get(run.pipeline_id)
    try:
        if instance is not None:
            _run_batches(app, pipeline, run, instance, on_event, pace or Pace())
        else:
            with open_instance(app.settings) as opened:
                _run_batches(app, pipeline, run, opened, on_event, pace or Pace())
    except BaseException as error:
        cancelled = not isinstance(error, Exception)
        reason = "interrupted" if cancelled else f"unexpected {type(error).__name__}"
        _close(app, pipeline, run, cancelled=cancelled, reason=reason)
        raise
    _close(app, pipeline, run, cancelled=False, reason="the Dagster run ended before the actor did")


def _run_batches(
    app: App,
    pipeline: Pipeline,
    run: Run,
    instance: dg.DagsterInstance,
    on_event: OnEvent | None,
    pace: Pace,
) -> None:
    batches = [one for one in app.stores.progress.cut(run, now=app.clock()) if one.actors]
    add_partitions(instance, pipeline.id, [actor_id for batch in batches for actor_id in batch.actors])
    job = batch_job({"console": silent})
    with Crew(app, pace=pace, on_event=on_event) as crew:
        for batch in batches:
            _run_batch(job, instance, crew, run, batch)
            if crew.interrupted:
                raise KeyboardInterrupt
            if app.stores.pipelines.get_run(pipeline.id, run.number).state != "RUNNING":
                return


def _run_batch(job: dg.JobDefinition, instance: dg.DagsterInstance, crew: Crew, run: Run, batch: Batch) -> None:
    job.execute_in_process(
        instance=instance,
        run_config=run_config(batch),
        tags=run_tags(run, batch.number),
        resources={RESOURCE: crew},
        raise_on_error=False,  # the run's row says it
    )


def _close(app: App, pipeline: Pipeline, run: Run, *, cancelled: bool, reason: str) -> None:
    """End what has not ended; a no-op after a run that ended by itself."""
    found = app.stores.pipelines.get_run(pipeline.id, run.number)
    if found.state != "RUNNING":
        return
    now = app.clock()
    end_rest(app.stores, pipeline, run, cancelled=cancelled, reason=reason, now=now)
    close_run(app.stores, run, now=now)


@dg.logger
def silent(_context: dg.InitLoggerContext) -> logging.Logger:
    """Say nothing: Dagster's events are in its own storage, and the caller has a terminal to itself."""
    quiet = logging.Logger("memory_pipelines.quiet", level=logging.CRITICAL + 1)
    quiet.addHandler(logging.NullHandler())
    return quiet
