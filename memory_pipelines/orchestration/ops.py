"""The three ops, each over all actors of a batch: bring them up to and including my stage."""

import contextlib
import traceback
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import dagster as dg

from memory_pipelines.errors import (
    AbortedError,
    CancelledRunError,
    GatewayError,
    KernelUnavailableError,
    MemoryPipelinesError,
)
from memory_pipelines.names import run_name
from memory_pipelines.orchestration.actors import Step, each_actor
from memory_pipelines.orchestration.assignment import (
    Assignment,
    BatchConfig,
    backfill_goes_on,
    open_results,
    results_of,
    take,
)
from memory_pipelines.orchestration.closing import close_run, end_rest, failures_in_words
from memory_pipelines.orchestration.colour import mark_failed
from memory_pipelines.orchestration.crew import RESOURCE, ActorEvent, Crew, Pace, crew_of
from memory_pipelines.orchestration.events import materialization
from memory_pipelines.records import STAGES, Stage
from memory_pipelines.redaction import redact

MAX_RETRIES = 2


def retry_policy(seconds: float) -> dg.RetryPolicy:
    """Return how an op is tried again: 5, 15 seconds and so on, give or take."""
    return dg.RetryPolicy(
        max_retries=MAX_RETRIES, delay=seconds, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS
    )


# Dagster applies it to what we do not foresee. For actors that failed in passing the op asks by RetryRequested, with a
# delay reckoned by the same policy, because on the last attempt it goes on with the others instead.
RETRY = retry_policy(Pace().retry_seconds)


@dataclass
class StageWork:
    """One op at work on its batch."""

    context: dg.OpExecutionContext
    crew: Crew
    assignment: Assignment
    stage: Stage
    left: set[str] = field(default_factory=set[str])  # actors this op works on

    def beat(self) -> None:
        """Renew the lease.

        Raises:
            CancelledRunError: our run was asked to cancel, or was closed while actors are still worked on.
        """
        given, app = self.assignment, self.crew.app
        if app.stores.progress.beat(given.holder, now=app.clock(), lease_seconds=self.crew.pace.lease_seconds):
            return
        run = app.stores.pipelines.get_run(given.pipeline.id, given.run.number)
        if run.state != "RUNNING" and not run.cancel_requested and not self.left:
            return  # closed by somebody who saw that all its actors have ended
        asked = "was cancelled" if run.cancel_requested else "was taken away from this process, which was silent"
        raise CancelledRunError(f"{run_name(run.pipeline_id, run.number)} {asked}")

    def run(self) -> None:
        """Do the stage for every actor of the batch that has still to do it.

        Raises:
            dg.RetryRequested: some actors failed in passing, and Dagster has attempts left.
            dg.Failure: the run as a whole cannot go on.
        """
        try:
            todo = self._claim()
            self.context.log.info(f"{self.stage}: {len(todo)} of {len(self.assignment.batch.actors)} actors to do")
            again = self._work(todo) if todo else []
        except CancelledRunError as error:
            self._stop(error.message, cancelled=True)
        except (dg.DagsterExecutionInterruptedError, KeyboardInterrupt):
            # Raised on, Dagster's retry policy would take the interrupt for a reason to try again.
            self.crew.interrupted = True
            self._stop("the Dagster run was terminated", cancelled=True)
        if again:
            self._ask_for_retry(f"{self.stage}: {len(again)} actors failed in passing and are tried again")

    def _claim(self) -> list[str]:
        given, app = self.assignment, self.crew.app
        if app.stores.pipelines.get_run(given.pipeline.id, given.run.number).state != "RUNNING":
            return []  # all actors have ended, and somebody saw it before us
        held = app.stores.progress.claim(
            given.batch, holder=given.holder, now=app.clock(), lease_seconds=self.crew.pace.lease_seconds
        )
        self.beat()
        unfinished = open_results(self.crew, given.batch)
        for actor_id, holder in held.items():
            if actor_id in unfinished:
                self._end(actor_id, AbortedError(f"the actor is in progress in Dagster run {holder}", holder=holder))
        number = STAGES.index(self.stage) + 1
        last = self.stage == STAGES[-1]
        todo = [
            actor_id
            for actor_id, result in unfinished.items()
            if actor_id not in held and (last or result.stages < number)
        ]
        if todo and all(unfinished[actor_id].state == "waiting" for actor_id in todo):
            self._preflight()
        return todo

    def _preflight(self) -> None:
        """Start a kernel and ask the model once, so that a revoked key fails the run and not each of its actors."""
        given = self.assignment
        call = self.crew.app.runner.preflight(given.pipeline, given.run)
        try:
            self.crew.call(call, beat=self.beat)
        except KernelUnavailableError as error:
            self._stop(f"code cannot be run here: {error.message}", cancelled=False)
        except GatewayError as error:
            if error.retryable and self.context.retry_number < MAX_RETRIES:
                self._ask_for_retry(f"the model does not answer ({error.status}); asked again")
            self._stop(f"the model cannot be used: {error.message}", cancelled=False)

    def _work(self, todo: list[str]) -> list[str]:
        given, runner = self.assignment, self.crew.app.runner
        self.left = set(todo)
        steps = each_actor(
            self.crew.loop,
            todo,
            lambda actor_id: runner.advance(given.pipeline, given.run, actor_id, self.stage),
            beat=self.beat,
            concurrency=given.pipeline.policy.concurrency,
            heartbeat_seconds=self.crew.pace.heartbeat_seconds,
        )
        with contextlib.closing(steps):
            return [step.actor_id for step in steps if self._take_step(step)]

    def _take_step(self, step: Step) -> bool:
        """Note what happened to an actor; return whether it is to be tried again."""
        actor_id = step.actor_id
        if step.started:
            self._tell(actor_id, "started")
            return False
        self.left.discard(actor_id)
        if step.error is not None:
            error = self._ours(step.error)
            self.context.log.warning(f"{self.stage}: {actor_id} failed: {type(error).__name__} ({error.status})")
            if error.retryable and self.context.retry_number < MAX_RETRIES:
                self._tell(actor_id, "again")
                return True
            self._end(actor_id, error)
        else:
            if self.stage == STAGES[-1] and step.result is not None:
                app = self.crew.app
                event = materialization(self.assignment, step.result, settings=app.settings, now=app.clock())
                self._end(actor_id, None)
                self.context.log_event(event)
            self._tell(actor_id, "done")
        return False

    def _ours(self, error: Exception) -> MemoryPipelinesError:
        if isinstance(error, MemoryPipelinesError):
            return error
        # A defect. Its place goes to the log, its message does not: it may quote what somebody said.
        place = "".join(traceback.format_tb(error.__traceback__))
        self.context.log.error(f"{self.stage}: {type(error).__name__}\n{place}")
        return MemoryPipelinesError(f"unexpected {type(error).__name__} in {self.stage}; the run's log has the place")

    def _end(self, actor_id: str, error: MemoryPipelinesError | None) -> None:
        self.crew.app.runner.end(self.assignment.pipeline, self.assignment.run, actor_id, error)
        if error is not None:
            self._tell(actor_id, "cancelled" if isinstance(error, CancelledRunError) else "failed")

    def _tell(self, actor_id: str, event: ActorEvent) -> None:
        self.crew.tell(actor_id, self.stage, event)

    def _ask_for_retry(self, reason: str) -> NoReturn:
        delay = retry_policy(self.crew.pace.retry_seconds).calculate_delay(self.context.retry_number + 1)
        self.context.log.warning(reason)
        wait = dg.RetryRequested(max_retries=MAX_RETRIES, seconds_to_wait=max(0.0, delay))
        raise wait from dg.Failure(reason)  # Dagster shows the cause

    def _stop(self, reason: str, *, cancelled: bool) -> NoReturn:
        """End the batch before its actors ended by themselves; what they finished stays."""
        given, app = self.assignment, self.crew.app
        now = app.clock()
        for actor_id in end_rest(
            app.stores, given.pipeline, given.run, given.batch, cancelled=True, reason=reason, now=now
        ):
            self._tell(actor_id, "cancelled")
        app.stores.progress.release(given.holder)
        close_run(app.stores, given.run, now=now, reason=None if cancelled else reason)
        instance = self.context.instance
        seen = instance.get_run_by_id(self.context.run_id)
        if cancelled and seen is not None and seen.status == dg.DagsterRunStatus.STARTED:
            instance.report_run_canceling(seen)  # so that Dagster ends its run as CANCELED and not as a failure
        raise dg.Failure(redact(reason), allow_retries=False) from None

    def close_batch(self) -> None:
        """Colour the failed actors, close our run when this was its last batch, and fail when an actor failed.

        Raises:
            dg.Failure: with counts and names.
        """
        given, app, context = self.assignment, self.crew.app, self.context
        mine = given.batch.actors
        results = [one for one in results_of(self.crew, given.batch) if one.state in {"failed", "cancelled"}]
        app.stores.progress.release(given.holder)
        if not given.partitioned:
            failed = [one.actor_id for one in results if one.state == "failed"]
            mark_failed(context.instance, context.run, given.pipeline.id, failed)
        if not backfill_goes_on(context.instance, context.run):
            close_run(app.stores, given.run, now=app.clock())
        if not mine:
            context.log.info("nothing new: no actor has conversation that was not processed before")
        if results:
            raise dg.Failure(
                failures_in_words(results, len(mine)),
                metadata={
                    "failed": len(results),
                    "actors": len(mine),
                    "by_actor": {one.actor_id: one.error_status or "INTERNAL" for one in results[:1000]},
                    "run": run_name(given.pipeline.id, given.run.number),
                },
                allow_retries=False,
            )


@contextlib.contextmanager
def ours_as_failures() -> Generator[None, None, None]:
    """Let Dagster retry what may pass, and fail at once with our words what cannot."""
    try:
        yield
    except MemoryPipelinesError as error:
        if error.retryable:
            raise
        raise dg.Failure(redact(f"{error.status}: {error.message}"), allow_retries=False) from None


def work_on(context: dg.OpExecutionContext, config: BatchConfig, stage: Stage) -> StageWork:
    """Do a stage for the batch that the Dagster run is for."""
    with ours_as_failures():
        work = StageWork(context, crew_of(context), take(context, config), stage)
        work.run()
    return work


@dg.op(out=dg.Out(dg.Nothing), required_resource_keys={RESOURCE}, retry_policy=RETRY)
def distill(context: dg.OpExecutionContext, config: BatchConfig) -> None:
    """Read what is new of each actor's conversations, and keep the durable facts with the words that support them."""
    work_on(context, config, "distill")


@dg.op(ins={"after": dg.In(dg.Nothing)}, out=dg.Out(dg.Nothing), required_resource_keys={RESOURCE}, retry_policy=RETRY)
def merge(context: dg.OpExecutionContext, config: BatchConfig) -> None:
    """Bring the facts together with what is known of each actor, into entries by topic."""
    work_on(context, config, "merge")


# Not required and never yielded, in a generator: else Dagster materializes every partition of the run by itself, those
# of the failed actors too.
@dg.op(
    ins={"after": dg.In(dg.Nothing)},
    out=dg.Out(dg.Nothing, is_required=False),
    required_resource_keys={RESOURCE},
    retry_policy=RETRY,
)
def maintain(context: dg.OpExecutionContext, config: BatchConfig) -> Iterator[Any]:
    """Put each actor's entries in order, and report what became of every actor."""
    work = work_on(context, config, "maintain")
    with ours_as_failures():
        work.close_batch()
    yield from ()
