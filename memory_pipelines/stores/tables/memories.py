"""Memory: entries, their past, and the facts they rest on."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index, UniqueConstraint, text
from sqlmodel import Field

from memory_pipelines.stores.columns import Json, Utc
from memory_pipelines.stores.tables.base import Table


class MemoryStoreRow(Table, table=True):
    """A memory store."""

    __tablename__ = "memory_stores"

    id: str = Field(primary_key=True)
    description: str
    creator: str
    create_time: datetime = Field(sa_type=Utc)
    update_time: datetime = Field(sa_type=Utc)


class EntryRow(Table, table=True):
    """An entry as it is now."""

    __tablename__ = "entries"
    __table_args__ = (
        ForeignKeyConstraint(["store"], ["memory_stores.id"], ondelete="CASCADE"),
        UniqueConstraint("store", "actor_id", "session_id", "path"),
    )

    store: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    actor_id: str
    session_id: str = ""  # empty for none, so that uniqueness holds
    path: str
    content: str
    description: str
    source_type: str
    version: int  # for compare and swap
    create_time: datetime = Field(sa_type=Utc)
    update_time: datetime = Field(sa_type=Utc)


class RevisionRow(Table, table=True):
    """A past state of an entry; it outlives the entry and the pipeline."""

    __tablename__ = "revisions"
    __table_args__ = (
        ForeignKeyConstraint(["store"], ["memory_stores.id"], ondelete="CASCADE"),
        Index(None, "store", "actor_id"),
        Index(None, "pipeline_id", "run"),
    )

    store: str = Field(primary_key=True)
    entry_id: str = Field(primary_key=True)
    version: int = Field(primary_key=True)
    actor_id: str
    path: str
    action: str
    content: str
    description: str
    pipeline_id: str | None = None
    run: int | None = None
    stage: str | None = None
    reason: str
    author: str
    time: datetime = Field(sa_type=Utc)


class FactRow(Table, table=True):
    """A fact with its evidence; it outlives the pipeline and the session."""

    __tablename__ = "facts"
    __table_args__ = (
        ForeignKeyConstraint(["store"], ["memory_stores.id"], ondelete="CASCADE"),
        Index(None, "store", "actor_id"),
        Index(None, "pipeline_id", "actor_id", "state"),
    )

    store: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    actor_id: str
    text: str
    kind: str
    quote: str
    topic: str
    session_store: str
    session_id: str
    item_id: str
    position: int
    item_hash: str
    start: int
    end: int
    observed_at: datetime = Field(sa_type=Utc)
    pipeline_id: str
    run: int
    window_id: str
    model: str
    basis: str
    state: str


class TieRow(Table, table=True):
    """A line of an entry rests on a fact."""

    __tablename__ = "ties"
    __table_args__ = (
        ForeignKeyConstraint(["store", "entry_id"], ["entries.store", "entries.id"], ondelete="CASCADE"),
        ForeignKeyConstraint(["store", "fact_id"], ["facts.store", "facts.id"], ondelete="CASCADE"),
        Index(None, "store", "fact_id"),
    )

    store: str = Field(primary_key=True)
    entry_id: str = Field(primary_key=True)
    line: str = Field(primary_key=True)  # hash of the normalised line
    fact_id: str = Field(primary_key=True)


class TombstoneRow(Table, table=True):
    """What a person or agent removed, without its words; bound to no pipeline, so that it outlives it."""

    __tablename__ = "tombstones"
    __table_args__ = (ForeignKeyConstraint(["store"], ["memory_stores.id"], ondelete="CASCADE"),)

    store: str = Field(primary_key=True)
    actor_id: str = Field(primary_key=True)
    item_hash: str = Field(primary_key=True)
    start: int = Field(primary_key=True)
    end: int = Field(primary_key=True)
    author: str
    time: datetime = Field(sa_type=Utc)


class ProposalRow(Table, table=True):
    """Changes that wait for a person; at most one open for an actor and stage of a pipeline."""

    __tablename__ = "proposals"
    __table_args__ = (
        ForeignKeyConstraint(["store"], ["memory_stores.id"], ondelete="CASCADE"),
        ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], ondelete="CASCADE"),
        Index(
            "uq_proposals_open",
            "pipeline_id",
            "actor_id",
            "stage",
            unique=True,
            sqlite_where=text("state = 'open'"),
            postgresql_where=text("state = 'open'"),
        ),
    )

    id: str = Field(primary_key=True)
    store: str
    pipeline_id: str
    actor_id: str
    stage: str
    run: int
    changes: list[Any] = Field(sa_type=Json)
    settled: dict[str, str] = Field(sa_type=Json)  # fact to state, as if approved
    reason: str
    state: str  # open, approved, rejected
    version: int = Field(default=1, sa_type=BigInteger)  # for compare and swap
    create_time: datetime = Field(sa_type=Utc)
    decide_time: datetime | None = Field(default=None, sa_type=Utc)
    decided_by: str | None = None
