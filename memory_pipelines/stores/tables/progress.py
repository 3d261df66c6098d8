"""How far pipelines have come."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index
from sqlmodel import Field

from memory_pipelines.stores.columns import Json, Utc
from memory_pipelines.stores.tables.base import Table


class PendingRow(Table, table=True):
    """An actor with work to do for a pipeline."""

    __tablename__ = "pending"
    __table_args__ = (ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], ondelete="CASCADE"),)

    pipeline_id: str = Field(primary_key=True)
    actor_id: str = Field(primary_key=True)
    version: int = Field(sa_type=BigInteger)  # starts at the clock, so that a new row is never taken for an old one
    tokens: int = Field(sa_type=BigInteger)
    last_said_at: datetime | None = Field(default=None, sa_type=Utc)
    failures: int = 0
    retry_at: datetime | None = Field(default=None, sa_type=Utc)


class MarkRow(Table, table=True):
    """The two marks of a session for a pipeline."""

    __tablename__ = "marks"
    __table_args__ = (
        ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], ondelete="CASCADE"),
        Index(None, "pipeline_id", "actor_id"),
    )

    pipeline_id: str = Field(primary_key=True)
    session_id: str = Field(primary_key=True)
    actor_id: str
    distilled: int = 0  # facts are extracted up to here
    checkpoint: int = 0  # facts are merged up to here


class WindowRow(Table, table=True):
    """A window that is done, failed or set aside."""

    __tablename__ = "windows"
    __table_args__ = (
        ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], ondelete="CASCADE"),
        Index(None, "pipeline_id", "actor_id", "state"),
    )

    pipeline_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    actor_id: str
    segments: list[Any] = Field(sa_type=Json)
    state: str  # done, failed, set_aside
    failed_runs: list[int] = Field(sa_type=Json)
    error: str | None = None
    update_time: datetime = Field(sa_type=Utc)


class CallRow(Table, table=True):
    """A finished call of a piece of work that is not committed yet."""

    __tablename__ = "calls"
    __table_args__ = (
        ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], ondelete="CASCADE"),
        Index(None, "pipeline_id", "actor_id", "stage"),
    )

    pipeline_id: str = Field(primary_key=True)
    actor_id: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    stage: str
    run: int
    response: dict[str, Any] = Field(sa_type=Json)
    create_time: datetime = Field(sa_type=Utc)


class HeartbeatRow(Table, table=True):
    """When somebody who looks for work last did so."""

    __tablename__ = "heartbeats"

    name: str = Field(primary_key=True)
    time: datetime = Field(sa_type=Utc)
