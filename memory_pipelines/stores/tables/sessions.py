"""Conversations."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKeyConstraint, Index
from sqlmodel import Field

from memory_pipelines.stores.columns import Json, Utc
from memory_pipelines.stores.tables.base import Table


class SessionStoreRow(Table, table=True):
    """A session store."""

    __tablename__ = "session_stores"

    id: str = Field(primary_key=True)
    description: str
    labels: dict[str, str] = Field(sa_type=Json)  # the record's metadata
    creator: str  # principal
    create_time: datetime = Field(sa_type=Utc)
    update_time: datetime = Field(sa_type=Utc)


class SessionRow(Table, table=True):
    """A session, with the counter of its positions."""

    __tablename__ = "sessions"
    __table_args__ = (
        ForeignKeyConstraint(["store"], ["session_stores.id"], ondelete="CASCADE"),
        Index(None, "store", "actor_id"),
    )

    store: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    actor_id: str
    parent_id: str | None = None  # may be imported later, so no foreign key
    root_id: str
    labels: dict[str, str] = Field(sa_type=Json)
    last_position: int = 0  # never goes back, whatever is popped
    tokens: int = 0  # estimate over its items
    create_time: datetime = Field(sa_type=Utc)
    update_time: datetime = Field(sa_type=Utc)
    last_activity_time: datetime = Field(sa_type=Utc)


class ItemRow(Table, table=True):
    """An item."""

    __tablename__ = "items"
    __table_args__ = (
        ForeignKeyConstraint(["store", "session_id"], ["sessions.store", "sessions.id"], ondelete="CASCADE"),
        Index(None, "store", "session_id", "id", unique=True),
    )

    store: str = Field(primary_key=True)
    session_id: str = Field(primary_key=True)
    position: int = Field(primary_key=True)
    id: str
    data: Any = Field(sa_type=Json)
    hash: str  # of the data
    tokens: int  # estimate
    said_at: datetime = Field(sa_type=Utc)
    create_time: datetime = Field(sa_type=Utc)
    context: bool = False  # copied by a fork


class PoppedRow(Table, table=True):
    """Where a popped item stood, without its words: appended again unchanged it goes back there."""

    __tablename__ = "popped_items"
    __table_args__ = (
        ForeignKeyConstraint(["store", "session_id"], ["sessions.store", "sessions.id"], ondelete="CASCADE"),
    )

    store: str = Field(primary_key=True)
    session_id: str = Field(primary_key=True)
    position: int = Field(primary_key=True)
    id: str
    hash: str
    said_at: datetime = Field(sa_type=Utc)
    create_time: datetime = Field(sa_type=Utc)
    context: bool = False
