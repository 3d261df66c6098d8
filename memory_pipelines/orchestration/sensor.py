"""The sensor `asked_runs`: launches what was asked for, asks for what is due, and closes what has ended."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import dagster as dg

from memory_pipelines.errors import RunInFlightError
from memory_pipelines.names import run_name
from memory_pipelines.orchestration.assignment import backfill_goes_on, has_partitions
from memory_pipelines.orchestration.closing import close_run, end_rest
from memory_pipelines.orchestration.colour import mark_failed
from memory_pipelines.orchestration.keys import (
    ASKED_TAG,
    BATCH_TAG,
    JOB,
    MAX_PARTITIONS,
    PIPELINE_TAG,
    RUN_TAG,
    add_partitions,
    run_config,
    run_tags,
)
from memory_pipelines.records import Batch, Pipeline, Run
from memory_pipelines.stores.base import Stores

TICK_SECONDS = 5
LAUNCHES = 50
"""Dagster runs requested in one tick: each costs the daemon half a second."""

SHOW_AFTER = timedelta(minutes=1)
WAITING = {dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED}


@dataclass
class Watch:
    """What the sensor does. Each tick compares our runs with Dagster's, so that the next makes good a lost one."""

    stores: Stores
    clock: Callable[[], datetime]
    default_model: str
    lease_seconds: float
    shown: dict[str, datetime] = field(default_factory=dict[str, datetime])  # pipeline: when its actors were shown last
    silent: dict[str, datetime] = field(default_factory=dict[str, datetime])  # Dagster run without a lease: since when

    def tick(self, instance: dg.DagsterInstance) -> tuple[list[dg.RunRequest], list[str]]:
        """Look once.

        Returns:
            What to launch, and what was done, in words.
        """
        now = self.clock()
        self.stores.pipelines.seen_orchestrator(now)
        pipelines = {one.id: one for one in self.stores.pipelines.list_all()}
        notes: list[str] = []
        for pipeline in pipelines.values():
            if pipeline.delete_time is None:
                self._show_actors(instance, pipeline, now)
                notes += self._ask_when_quiet(pipeline, now)
        requests: list[dg.RunRequest] = []
        for run in self.stores.pipelines.open_runs():
            if run.pipeline_id in pipelines:
                found, said = self._reconcile(instance, pipelines[run.pipeline_id], run, now)
                requests += found
                notes += said
        return requests[:LAUNCHES], notes

    def _show_actors(self, instance: dg.DagsterInstance, pipeline: Pipeline, now: datetime) -> None:
        """Let people choose actors that no run has processed yet; once a minute, since it reads all that is pending."""
        if now - self.shown.get(pipeline.id, now - SHOW_AFTER) >= SHOW_AFTER:
            self.shown[pipeline.id] = now
            actors = [one.actor_id for one in self.stores.pipelines.pending(pipeline.id)]
            if actors:
                add_partitions(instance, pipeline.id, actors)

    def _ask_when_quiet(self, pipeline: Pipeline, now: datetime) -> list[str]:
        policy = pipeline.policy
        if policy.trigger != "CONTINUOUS":
            return []
        if any(one.pipeline_id == pipeline.id and one.kind == "asked" for one in self.stores.pipelines.open_runs()):
            return []
        since = now - timedelta(seconds=policy.quiet_seconds)
        due = [
            one.actor_id
            for one in self.stores.pipelines.pending(pipeline.id)
            if (one.last_said_at is None or one.last_said_at <= since) and (one.retry_at is None or one.retry_at <= now)
        ]
        if not due:
            return []
        try:
            run = self.stores.pipelines.ask(
                pipeline.id, asked_by="sensor", model=policy.model or self.default_model, actors=due, now=now
            )
        except RunInFlightError:  # asked for by somebody else this moment
            return []
        return [f"asked for {run_name(pipeline.id, run.number)}: {len(due)} actors have new conversation"]

    def _reconcile(
        self, instance: dg.DagsterInstance, pipeline: Pipeline, run: Run, now: datetime
    ) -> tuple[list[dg.RunRequest], list[str]]:
        """Compare one of our runs with Dagster's runs for it."""
        name, notes = run_name(pipeline.id, run.number), list[str]()
        records = _newest_by_batch(instance, run)
        for number, record in records.items():
            batch = self.stores.progress.batch(pipeline.id, run.number, number)
            notes += self._look_after(instance, pipeline, run, batch, record, now)
        requests: list[dg.RunRequest] = []
        if run.launch and not run.cancel_requested:
            missing = [one for one in self.stores.progress.cut(run, now=now) if one.number not in records]
            actors = [actor_id for batch in missing for actor_id in batch.actors]
            if actors and not add_partitions(instance, pipeline.id, actors):
                notes.append(f"{name} goes on without partitions: the asset would have more than {MAX_PARTITIONS}")
            # The key dedupes a launch asked for twice; numbers start again when a pipeline is made again.
            requests = [
                dg.RunRequest(
                    run_key=f"{pipeline.id}/{run.number}/{batch.number}/{run.create_time.isoformat()}",
                    job_name=JOB,
                    run_config=run_config(batch),
                    tags=run_tags(run, batch.number),
                )
                for batch in missing
                if batch.actors
            ]
        if requests:
            notes.append(f"launched {len(requests)} batches of {name}")
        elif not any(_goes_on(instance, record.dagster_run) for record in records.values()):
            closed = close_run(self.stores, run, now=now) if records or run.launch else None
            if closed is None:  # begun elsewhere, or nowhere any more
                self.stores.pipelines.close_over(pipeline.id, now=now)
                closed = self.stores.pipelines.get_run(pipeline.id, run.number)
            if closed.state != "RUNNING":
                notes.append(f"{name} {closed.state}: {closed.error or 'no actor failed'}")
        return requests, notes

    def _look_after(
        self,
        instance: dg.DagsterInstance,
        pipeline: Pipeline,
        run: Run,
        batch: Batch,
        record: dg.RunRecord,
        now: datetime,
    ) -> list[str]:
        """End what a Dagster run left behind that ended, died, or need not begin any more."""
        dagster_run, notes = record.dagster_run, list[str]()
        if dagster_run.status in WAITING and run.cancel_requested:
            instance.report_run_canceled(dagster_run, "cancelled before it began")
        elif dagster_run.status == dg.DagsterRunStatus.STARTED and self._is_dead(dagster_run, now):
            # Dagster's default launcher has no health check; such a run would stay STARTED and keep its place.
            dead = f"no sign of life for {self.lease_seconds:.0f} s"
            instance.report_run_failed(dagster_run, dead)
            notes.append(f"Dagster run {dagster_run.run_id} ended: {dead}")
        elif not dagster_run.is_finished:
            return notes
        reloaded = instance.get_run_by_id(dagster_run.run_id) or dagster_run
        cancelled = run.cancel_requested or reloaded.status == dg.DagsterRunStatus.CANCELED
        reason = f"Dagster run {dagster_run.run_id} ended {reloaded.status.value} before the actor did"
        left = end_rest(self.stores, pipeline, run, batch, cancelled=cancelled, reason=reason, now=now)
        self.stores.progress.release(dagster_run.run_id)
        if left and not cancelled and not has_partitions(dagster_run):
            results = self.stores.pipelines.results(pipeline.id, run.number, batch=batch.number)
            failed = [one.actor_id for one in results if one.state == "failed"]
            mark_failed(instance, dagster_run, pipeline.id, failed)
        if left:
            notes.append(f"{len(left)} actors of {run_name(pipeline.id, run.number)} ended: {reason}")
        return notes

    def _is_dead(self, dagster_run: dg.DagsterRun, now: datetime) -> bool:
        lease = self.stores.progress.lease_of(dagster_run.run_id)
        if lease is not None:
            self.silent.pop(dagster_run.run_id, None)
            return lease < now
        # It has not claimed its actors yet, or has just released them: dead only if that lasts.
        since = self.silent.setdefault(dagster_run.run_id, now)
        return now - since > timedelta(seconds=self.lease_seconds)


def _newest_by_batch(instance: dg.DagsterInstance, run: Run) -> dict[int, dg.RunRecord]:
    wanted = dg.RunsFilter(tags={PIPELINE_TAG: run.pipeline_id, RUN_TAG: str(run.number)})
    newest: dict[int, dg.RunRecord] = {}
    for record in instance.get_run_records(wanted):  # newest first
        tags = record.dagster_run.tags
        if tags.get(ASKED_TAG) == run.create_time.isoformat():
            newest.setdefault(int(tags[BATCH_TAG]), record)
    return newest


def _goes_on(instance: dg.DagsterInstance, dagster_run: dg.DagsterRun) -> bool:
    reloaded = instance.get_run_by_id(dagster_run.run_id) or dagster_run
    return not reloaded.is_finished or backfill_goes_on(instance, reloaded)


def asked_runs(watch: Callable[[], Watch]) -> dg.SensorDefinition:
    """Return the sensor.

    Args:
        watch: opens the stores when first called; the same afterwards.
    """

    @dg.sensor(  # pyright: ignore[reportUnknownMemberType] - of a parameter we do not give
        name="asked_runs",
        job_name=JOB,
        minimum_interval_seconds=TICK_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Launches the runs that were asked for, asks for runs of CONTINUOUS pipelines, closes ended runs.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        requests, notes = watch().tick(context.instance)
        for note in notes:
            context.log.info(note)
        if requests:
            return dg.SensorResult(run_requests=requests)
        return dg.SkipReason("; ".join(notes) or "nothing to do")

    return sensor
