"""Memory: entries, their past, and the facts they rest on."""

from typing import Literal

from pydantic import ConfigDict

from memory_pipelines.records.base import Moment, Record

SourceType = Literal["AGENT", "DREAMER"]
"""Who made an entry: an agent or person, or a pipeline. Never changes."""


class MemoryStore(Record):
    """A place for entries."""

    id: str
    description: str = ""
    creator: str = "local"
    create_time: Moment
    update_time: Moment


class Entry(Record):
    """A short Markdown document about an actor."""

    store: str
    id: str
    actor_id: str
    session_id: str | None = None  # bound to a session: never touched by a pipeline
    path: str
    content: str
    description: str = ""
    source_type: SourceType
    version: int  # grows with every write; for compare and swap
    create_time: Moment
    update_time: Moment


class Revision(Record):
    """One past state of an entry."""

    entry_id: str
    actor_id: str
    path: str
    version: int
    action: Literal["create", "update", "delete"]
    content: str  # after the action; for delete what was deleted
    description: str = ""
    pipeline_id: str | None = None  # with run and stage when a pipeline wrote it
    run: int | None = None
    stage: str | None = None
    reason: str = ""
    author: str = "local"  # principal or pipeline
    time: Moment


FactKind = Literal["fact", "preference", "correction", "procedure"]
FactState = Literal["new", "merged", "duplicate", "superseded", "skipped", "retracted", "rejected", "discarded"]


class Source(Record):
    """Where a fact was said."""

    session_store: str
    session_id: str
    item_id: str
    position: int
    item_hash: str = ""  # of the item's data: the same words imported again, or read by another pipeline, hash alike
    start: int = 0  # of the quote in what the item says, in characters
    end: int = 0


class Candidate(Record):
    """A fact as a model gives it, before the host has looked for its evidence."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str  # one sentence, in the language of the conversation
    kind: FactKind = "fact"
    quote: str = ""  # the words that support it; the host searches when they are not found
    topic: str = ""  # a word or path for where it belongs, may be empty


class Fact(Record):
    """A fact with its evidence."""

    id: str
    actor_id: str
    text: str
    kind: FactKind
    quote: str  # occurs verbatim in the source item, as redacted
    topic: str = ""
    source: Source
    observed_at: Moment  # when it was said
    pipeline_id: str
    run: int
    window_id: str
    model: str  # "offline" is not an LLM
    basis: str  # hash of model, instructions and prompt version
    state: FactState = "new"


class Tie(Record):
    """A line of an entry rests on a fact."""

    line: str  # the line's text
    fact_id: str


class Change(Record):
    """What a stage wants to do to one entry."""

    action: Literal["create", "update", "delete"]
    path: str
    content: str = ""  # whole new content; empty for delete
    description: str = ""
    entry_id: str | None = None  # None for create
    version: int | None = None  # of the entry it was made from
    ties: tuple[Tie, ...] = ()  # new ties; those of unchanged lines stay
    reason: str = ""


class SearchHit(Record):
    """An entry found, with its score: higher is better, comparable only within one search."""

    entry: Entry
    score: float


class Span(Record):
    """A stretch of what an item says, without its words."""

    item_hash: str  # of the item's data
    start: int  # in characters of what the item says
    end: int

    def meets(self, item_hash: str, start: int, end: int) -> bool:
        """Tell whether another stretch shares a character with this one."""
        return self.item_hash == item_hash and self.start < end and start < self.end


class Tombstone(Span):
    """What a person or agent removed, remembered without its words."""
