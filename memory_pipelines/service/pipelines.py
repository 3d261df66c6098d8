"""Pipelines and their runs, as people ask for them."""

import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import ValidationError

from memory_pipelines.errors import AbortedError, InvalidInputError, NotFoundError, RunInFlightError
from memory_pipelines.names import MEMORY_STORE, PIPELINE, SESSION_STORE, parse_run, run_name
from memory_pipelines.records import ActorResult, Pending, Pipeline, Policy, Run, RunSummary, Trigger
from memory_pipelines.service.cron import check_cron
from memory_pipelines.stores.base import Page, Stores

MAX_INSTRUCTIONS = 20_000
"""Characters of a pipeline's instructions."""

ORCHESTRATOR_SILENCE = timedelta(seconds=60)
"""After so long without a look from an orchestrator, nobody is expected to start an asked-for run."""


class PipelineService:
    """What people may ask of pipelines."""

    def __init__(self, stores: Stores, *, default_model: str, clock: Callable[[], datetime]) -> None:
        """Keep the stores, the model of pipelines that name none, and the clock."""
        self._stores = stores
        self._pipelines = stores.pipelines
        self._default_model = default_model
        self._clock = clock

    def create(
        self,
        *,
        session_store: str,
        memory_store: str,
        pipeline: str | None = None,
        display_name: str = "",
        model: str | None = None,
        instructions: str = "",
        trigger: Trigger = "MANUAL_ONLY",
        creator: str = "local",
        **policy: Any,
    ) -> Pipeline:
        """Create a pipeline that joins a session store to a memory store; both must exist.

        Args:
            session_store: id or full name of where conversations are read.
            memory_store: id or full name of where memory is written.
            pipeline: its id; default made from the session store's.
            display_name: for people.
            model: as LiteLLM writes it; None for the configured default.
            instructions: what to remember and where, in words; they reach every stage.
            trigger: MANUAL_ONLY, SCHEDULED (daily) or CONTINUOUS (as conversations fall quiet).
            creator: principal with whose rights it works.
            policy: further fields of records.Policy, such as cron or max_calls.

        Raises:
            AlreadyExistsError: this pair of stores has a pipeline, or the id is taken.
            InvalidInputError: a field cannot be used.
            NotFoundError: one of the stores does not exist.
        """
        sessions, memories = SESSION_STORE.parse(session_store), MEMORY_STORE.parse(memory_store)
        identifier = PIPELINE.parse(pipeline) if pipeline else f"{sessions[:48]}-{secrets.token_hex(3)}"
        return self._pipelines.create(
            identifier,
            session_store=sessions,
            memory_store=memories,
            display_name=display_name or identifier,
            policy=self._policy(Policy(), {"model": model, "instructions": instructions, "trigger": trigger, **policy}),
            creator=creator,
            now=self._clock(),
        )

    def get(self, pipeline: str) -> Pipeline:
        """Return a pipeline, or raise NotFoundError."""
        return self._pipelines.get(PIPELINE.parse(pipeline))

    def update(self, pipeline: str, *, display_name: str | None = None, **policy: Any) -> Pipeline:
        """Change the given fields and leave the others.

        Args:
            pipeline: id or full name.
            display_name: for people.
            policy: fields of records.Policy; model="" goes back to the configured default.
        """
        found = self.get(pipeline)
        if policy.get("model") == "":
            policy["model"] = None
        if "trigger" in policy:
            policy.setdefault("resume_trigger", None)  # whoever chooses a trigger does not mean a pause
        changed = self._policy(found.policy, policy) if policy else None
        return self._pipelines.update(found.id, display_name=display_name, policy=changed, now=self._clock())

    def delete(self, pipeline: str) -> None:
        """Delete a pipeline with its marks; a run in flight finishes, and the memory it made stays."""
        self._pipelines.delete(self.get(pipeline).id, now=self._clock())

    def pause(self, pipeline: str) -> Pipeline:
        """Stop starting runs by themselves; `resume` goes back to the trigger of before."""
        found = self.get(pipeline)
        if found.policy.trigger == "MANUAL_ONLY":
            state = "paused already" if found.policy.paused else "not triggered by itself; there is nothing to pause"
            raise AbortedError(f"{PIPELINE.format(found.id)} is {state}")
        return self.update(found.id, trigger="MANUAL_ONLY", resume_trigger=found.policy.trigger)

    def resume(self, pipeline: str) -> Pipeline:
        """Go back to the trigger that `pause` took away; SCHEDULED where there was none."""
        found = self.get(pipeline)
        if found.policy.trigger != "MANUAL_ONLY":
            raise AbortedError(f"{PIPELINE.format(found.id)} is not paused: its trigger is {found.policy.trigger}")
        return self.update(found.id, trigger=found.policy.resume_trigger or "SCHEDULED", resume_trigger=None)

    def model_of(self, pipeline: Pipeline) -> str:
        """Return the model that a run of this pipeline uses."""
        return pipeline.policy.model or self._default_model

    # Runs

    def run(
        self, pipeline: str, *, asked_by: str = "api", launch: bool = True, actors: Sequence[str] | None = None
    ) -> Run:
        """Ask for a run over every actor with unprocessed conversation.

        Args:
            pipeline: id or full name.
            asked_by: which door: api, cli, schedule, sensor or here.
            launch: whether the orchestrator starts it; False when the caller does so itself.
            actors: only these; None for all that have something pending.

        Raises:
            RunInFlightError: a run is in flight; its full name is in the message.
        """
        found = self.get(pipeline)
        return self._pipelines.ask(
            found.id,
            asked_by=asked_by,
            model=self.model_of(found),
            launch=launch,
            actors=actors,
            now=self._clock(),
        )

    def get_run(self, run: str, *, pipeline: str | None = None) -> Run:
        """Return a run by its full name, or by its number in a pipeline."""
        identifier, number = parse_run(run, pipeline=PIPELINE.parse(pipeline) if pipeline else None)
        return self._pipelines.get_run(identifier, number)

    def runs(self, pipeline: str, *, limit: int = 50) -> list[Run]:
        """Return the newest runs of a pipeline, newest first."""
        found, _ = self._pipelines.list_runs(self.get(pipeline).id, Page(size=limit))
        return found

    def cancel(self, run: str, *, pipeline: str | None = None) -> Run:
        """Ask a run to stop; what is finished stays and the rest resumes with the next run."""
        found = self.get_run(run, pipeline=pipeline)
        if found.state != "RUNNING":
            raise AbortedError(f"run {found.number} of {found.pipeline_id} is over: {found.state}")
        return self._pipelines.cancel(found.pipeline_id, found.number, now=self._clock())

    def summary(self, run: str, *, pipeline: str | None = None) -> RunSummary:
        """Return a run added up over its actors."""
        found = self.get_run(run, pipeline=pipeline)
        return self._pipelines.summary(found.pipeline_id, found.number)

    def results(self, run: str, *, pipeline: str | None = None) -> list[ActorResult]:
        """Return what a run did for each actor."""
        found = self.get_run(run, pipeline=pipeline)
        return self._pipelines.results(found.pipeline_id, found.number)

    def pending(self, pipeline: str) -> list[Pending]:
        """Return the actors with something to process."""
        return self._pipelines.pending(self.get(pipeline).id)

    def backfill(self, pipeline: str, *, actors: Sequence[str] | None = None, made_by: str | None = None) -> list[str]:
        """Have the whole history of actors read again by the next run; what memory holds already is not doubled.

        Args:
            pipeline: id or full name.
            actors: which; None for all.
            made_by: only actors of whom this pipeline keeps facts found by this model, such as `offline`.

        Returns:
            The actors concerned.

        Raises:
            RunInFlightError: a run is in flight; its marks must not be taken back under it.
            NotFoundError: a given actor has no session.
        """
        found = self.get(pipeline)
        for run in self._pipelines.open_runs():
            if run.pipeline_id == found.id:
                raise RunInFlightError.of(run_name(run.pipeline_id, run.number))
        concerned = self._pipelines.rewind(found.id, actors=actors, made_by=made_by, now=self._clock())
        unknown = sorted(set(actors or ()) - set(concerned))
        if unknown and made_by is None:
            raise NotFoundError(
                f"no sessions of {', '.join(map(repr, unknown[:5]))} in {SESSION_STORE.format(found.session_store)};"
                f" {len(concerned)} other actors will be read again",
                actors=unknown,
            )
        return concerned

    def retry(self, pipeline: str, *, actor_id: str, session_id: str | None = None) -> int:
        """Have an actor's windows that were set aside read again by the next run; returns how many."""
        return self._pipelines.decide_windows(
            self.get(pipeline).id, actor_id, verdict="retry", session_id=session_id, now=self._clock()
        )

    def skip(self, pipeline: str, *, actor_id: str, session_id: str | None = None) -> int:
        """Leave an actor's windows that were set aside out for good; returns how many."""
        return self._pipelines.decide_windows(
            self.get(pipeline).id, actor_id, verdict="skip", session_id=session_id, now=self._clock()
        )

    def orchestrator_silent(self) -> bool:
        """Say whether no orchestrator has looked for work lately, so that an asked-for run would wait."""
        seen = self._pipelines.seen_orchestrator()
        return seen is None or self._clock() - seen > ORCHESTRATOR_SILENCE

    def close_over(self, pipeline: str) -> list[Run]:
        """Close the runs of a pipeline that nobody works on any more, and return them as closed."""
        return self._pipelines.close_over(self.get(pipeline).id, now=self._clock())

    def list(self) -> list[Pipeline]:
        """Return all pipelines by id, without deleted ones."""
        return [pipeline for pipeline in self._pipelines.list_all() if pipeline.delete_time is None]

    @staticmethod
    def _policy(base: Policy, given: dict[str, Any]) -> Policy:
        try:
            policy = Policy.model_validate({**base.model_dump(), **given})
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise InvalidInputError(f"{field}: {first['msg']}; got {first.get('input')!r}", field=field) from error
        if len(policy.instructions) > MAX_INSTRUCTIONS:
            raise InvalidInputError(
                f"the instructions have {len(policy.instructions)} characters; allowed are {MAX_INSTRUCTIONS}"
            )
        if "quiet_seconds" in given and "CONTINUOUS" not in {policy.trigger, policy.resume_trigger}:
            raise InvalidInputError(
                f"quiet_seconds {policy.quiet_seconds} goes with trigger CONTINUOUS, not {policy.trigger}: nothing else"
                " waits until an actor is quiet"
            )
        if policy.cron is not None and policy.trigger != "SCHEDULED" and policy.resume_trigger != "SCHEDULED":
            raise InvalidInputError(f"cron {policy.cron!r} goes with trigger SCHEDULED, not {policy.trigger}")
        if policy.cron is not None:
            check_cron(policy.cron)
        try:
            ZoneInfo(policy.timezone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise InvalidInputError(
                f"timezone {policy.timezone!r} is unknown; give a name such as Europe/Berlin", timezone=policy.timezone
            ) from error
        return policy
