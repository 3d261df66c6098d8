"""Conversations: session stores, sessions, items, and what they say."""

from typing import Literal

from pydantic import Field, JsonValue

from memory_pipelines.records.base import Moment, Record


class SessionStore(Record):
    """A place for conversations."""

    id: str
    description: str = ""
    metadata: dict[str, str] = Field(default_factory=dict)
    creator: str = "local"  # principal
    create_time: Moment
    update_time: Moment


class Session(Record):
    """One conversation of one actor."""

    store: str  # id of its session store
    id: str  # unique in the store
    actor_id: str  # opaque
    parent_id: str | None = None  # the session it branched from, same actor and store
    root_id: str  # the top of its tree, itself at the top
    metadata: dict[str, str] = Field(default_factory=dict)
    create_time: Moment
    update_time: Moment
    last_activity_time: Moment  # when the last item was said


class NewItem(Record):
    """An item before it is stored."""

    data: JsonValue  # any JSON; messages are understood, all else is kept
    said_at: Moment | None = None  # None: when it is appended


class Item(Record):
    """One message, tool call or result of a session."""

    session_id: str
    id: str
    position: int  # 1-based in its session, never used twice
    data: JsonValue
    said_at: Moment  # when it was said
    create_time: Moment  # when it was stored
    context: bool = False  # copied by a fork: read for understanding, never distilled again


class ImportedSession(Record):
    """What an importer yields."""

    session_id: str
    actor_id: str
    items: tuple[NewItem, ...] = ()
    metadata: dict[str, str] = Field(default_factory=dict)
    parent_id: str | None = None


Speaker = Literal["actor", "other", "tool", "system"]
"""Who speaks: the person remembered, the other party (agent or person), a tool, or whoever set the agent up."""


class Turn(Record):
    """What an item says, read from its data; items that say nothing have no turn."""

    session_id: str
    item_id: str
    position: int
    speaker: Speaker
    name: str | None = None  # as the item names the speaker or tool
    text: str
    said_at: Moment
