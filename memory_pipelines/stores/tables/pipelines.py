"""Pipelines, their runs, and who works on what."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index, text
from sqlmodel import Field

from memory_pipelines.stores.columns import Json, Utc
from memory_pipelines.stores.tables.base import Table


class PipelineRow(Table, table=True):
    """A pipeline; one for each pair of stores."""

    __tablename__ = "pipelines"
    __table_args__ = (
        ForeignKeyConstraint(["session_store"], ["session_stores.id"]),
        ForeignKeyConstraint(["memory_store"], ["memory_stores.id"]),
        Index(
            "uq_pipelines_pair",
            "session_store",
            "memory_store",
            unique=True,
            sqlite_where=text("delete_time IS NULL"),
            postgresql_where=text("delete_time IS NULL"),
        ),
    )

    id: str = Field(primary_key=True)
    display_name: str
    session_store: str
    memory_store: str
    policy: dict[str, Any] = Field(sa_type=Json)
    creator: str
    last_run: int = 0  # number of the newest run
    create_time: datetime = Field(sa_type=Utc)
    update_time: datetime = Field(sa_type=Utc)
    delete_time: datetime | None = Field(default=None, sa_type=Utc)  # while a run outlives it


class RunRow(Table, table=True):
    """A run; at most one asked-for run of a pipeline is in flight."""

    __tablename__ = "runs"
    __table_args__ = (
        ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], ondelete="CASCADE"),
        Index(
            "uq_runs_in_flight",
            "pipeline_id",
            unique=True,
            sqlite_where=text("state = 'RUNNING' AND kind = 'asked'"),
            postgresql_where=text("state = 'RUNNING' AND kind = 'asked'"),
        ),
        Index(None, "state"),
    )

    pipeline_id: str = Field(primary_key=True)
    number: int = Field(primary_key=True)
    kind: str
    state: str
    error: str | None = None
    asked_by: str
    launch: bool
    actors: list[str] | None = Field(default=None, sa_type=Json)
    cancel_requested: bool = False
    model: str
    cut: bool = False  # its batches are made
    create_time: datetime = Field(sa_type=Utc)
    start_time: datetime | None = Field(default=None, sa_type=Utc)
    end_time: datetime | None = Field(default=None, sa_type=Utc)


class BatchRow(Table, table=True):
    """A batch; its actors are the results that name it."""

    __tablename__ = "batches"
    __table_args__ = (
        ForeignKeyConstraint(["pipeline_id", "run"], ["runs.pipeline_id", "runs.number"], ondelete="CASCADE"),
    )

    pipeline_id: str = Field(primary_key=True)
    run: int = Field(primary_key=True)
    number: int = Field(primary_key=True)
    start_time: datetime | None = Field(default=None, sa_type=Utc)  # first claimed


class LeaseRow(Table, table=True):
    """Until when a holder is taken to be alive."""

    __tablename__ = "leases"
    __table_args__ = (
        ForeignKeyConstraint(
            ["pipeline_id", "run", "batch"],
            ["batches.pipeline_id", "batches.run", "batches.number"],
            ondelete="CASCADE",
        ),
        Index(None, "pipeline_id", "run", "batch"),
    )

    holder: str = Field(primary_key=True)
    pipeline_id: str
    run: int
    batch: int
    until: datetime = Field(sa_type=Utc)


class ClaimRow(Table, table=True):
    """Who works on an actor."""

    __tablename__ = "claims"
    __table_args__ = (
        ForeignKeyConstraint(["holder"], ["leases.holder"], ondelete="CASCADE"),
        Index(None, "holder"),
    )

    pipeline_id: str = Field(primary_key=True)
    actor_id: str = Field(primary_key=True)
    holder: str


class ResultRow(Table, table=True):
    """What a run did for an actor."""

    __tablename__ = "actor_results"
    __table_args__ = (
        ForeignKeyConstraint(["pipeline_id", "run"], ["runs.pipeline_id", "runs.number"], ondelete="CASCADE"),
        Index(None, "pipeline_id", "run", "batch"),
    )

    pipeline_id: str = Field(primary_key=True)
    run: int = Field(primary_key=True)
    actor_id: str = Field(primary_key=True)
    batch: int = 0
    rank: int = 0  # place in the batch
    state: str = "waiting"
    stages: int = 0
    targets: dict[str, int] | None = Field(default=None, sa_type=Json)  # None: not begun
    seen_version: int | None = Field(default=None, sa_type=BigInteger)  # of the pending row, when begun
    seen_tokens: int = Field(default=0, sa_type=BigInteger)
    counted: bool = False  # its failure is in the pending row
    error: str | None = None
    error_status: str | None = None
    retryable: bool = False
    read: list[str] = Field(default_factory=list, sa_type=Json)  # sessions read
    items: int = 0
    facts: int = 0
    dropped: dict[str, int] = Field(default_factory=dict, sa_type=Json)
    created: int = 0
    updated: int = 0
    deleted: int = 0
    start_time: datetime | None = Field(default=None, sa_type=Utc)
    end_time: datetime | None = Field(default=None, sa_type=Utc)


class UsageRow(Table, table=True):
    """What a stage of an actor cost in a run."""

    __tablename__ = "usage"
    __table_args__ = (
        ForeignKeyConstraint(["pipeline_id", "run"], ["runs.pipeline_id", "runs.number"], ondelete="CASCADE"),
    )

    pipeline_id: str = Field(primary_key=True)
    run: int = Field(primary_key=True)
    actor_id: str = Field(primary_key=True)
    stage: str = Field(primary_key=True)
    calls: int = 0
    prompt_tokens: int = Field(default=0, sa_type=BigInteger)
    completion_tokens: int = Field(default=0, sa_type=BigInteger)
    cost: float = 0.0
    seconds: float = 0.0
