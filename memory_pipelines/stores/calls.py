"""The journal of calls: what was paid for is not paid again after a crash."""

from datetime import datetime

from sqlalchemy import delete
from sqlmodel import col

from memory_pipelines.records import Json, Pipeline, StageUsage, aware
from memory_pipelines.stores.database import Database, upsert
from memory_pipelines.stores.results import usage_of
from memory_pipelines.stores.tables import CallRow, UsageRow
from memory_pipelines.text import clean_json

_ADDED = ("calls", "prompt_tokens", "completion_tokens", "cost", "seconds")


class SqlCalls:
    """The part of stores.base.Progress about model calls."""

    def __init__(self, database: Database) -> None:
        """Keep the way to the database."""
        self._database = database

    def recall(self, pipeline: Pipeline, actor_id: str, key: str) -> Json | None:
        """Return the response of a finished call, None when there is none."""
        with self._database.read() as session:
            row = session.get(CallRow, (pipeline.id, actor_id, key))
            return None if row is None else row.response

    def record_call(
        self,
        pipeline: Pipeline,
        run: int,
        actor_id: str,
        *,
        stage: str,
        key: str,
        response: Json,
        usage: StageUsage,
        now: datetime,
    ) -> None:
        """Keep a finished call and add its usage to the actor's, in one transaction; a call kept before is kept."""
        values = {name: getattr(usage, name) for name in _ADDED}
        with self._database.write() as session:
            if session.get(CallRow, (pipeline.id, actor_id, key)) is None:
                session.add(
                    CallRow(
                        pipeline_id=pipeline.id,
                        actor_id=actor_id,
                        key=key,
                        stage=stage,
                        run=run,
                        response=clean_json(response),  # pyright: ignore[reportArgumentType]  # a dict stays one
                        create_time=aware(now),
                    )
                )
            # A repeated call was paid for all the same.
            statement = upsert(session, UsageRow)
            old, new = UsageRow.table().c, statement.excluded
            session.execute(
                statement.values(
                    pipeline_id=pipeline.id, run=run, actor_id=actor_id, stage=stage, **values
                ).on_conflict_do_update(
                    index_elements=["pipeline_id", "run", "actor_id", "stage"],
                    set_={name: old[name] + new[name] for name in _ADDED},
                )
            )

    def forget_calls(self, pipeline: Pipeline, actor_id: str, stage: str) -> None:
        """Drop the journal of a stage's piece of work, after its commit or its final failure."""
        with self._database.write() as session:
            session.execute(
                delete(CallRow).where(
                    col(CallRow.pipeline_id) == pipeline.id,
                    col(CallRow.actor_id) == actor_id,
                    col(CallRow.stage) == stage,
                )
            )

    def spent(self, pipeline: str, run: int) -> StageUsage:
        """Return what the run has cost so far, over all stages."""
        with self._database.read() as session:
            stages = usage_of(session, pipeline, run)
        return StageUsage(
            stage="all",
            calls=sum(one.calls for one in stages),
            prompt_tokens=sum(one.prompt_tokens for one in stages),
            completion_tokens=sum(one.completion_tokens for one in stages),
            cost=sum(one.cost for one in stages),
            seconds=sum(one.seconds for one in stages),
        )
