"""The values that travel between the parts: frozen, without I/O. All times are aware."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from memory_pipelines.errors import InvalidInputError


def aware(moment: datetime) -> datetime:
    """Return the moment, or refuse it when it has no time zone."""
    if moment.tzinfo is None:
        raise InvalidInputError(f"{moment.isoformat()} has no time zone; give one, for example a trailing Z")
    return moment


Moment = Annotated[datetime, AfterValidator(aware)]


class Record(BaseModel):
    """Base of all records."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# Conversations


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


# Memory

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


# Pipelines and runs

Trigger = Literal["MANUAL_ONLY", "SCHEDULED", "CONTINUOUS"]
RunState = Literal["RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
RunKind = Literal["asked", "person"]
"""asked: by API, CLI, schedule or sensor, one in flight per pipeline; person: started in the Dagster UI."""
STAGES = ("distill", "merge", "maintain")
Stage = Literal["distill", "merge", "maintain"]


class Policy(Record):
    """How a pipeline works."""

    model: str | None = None  # None: the configured default
    instructions: str = ""  # reach every stage
    trigger: Trigger = "MANUAL_ONLY"
    cron: str | None = None  # None: daily, spread by pipeline id; only for SCHEDULED
    timezone: str = "UTC"
    quiet_seconds: int = Field(default=600, ge=0)  # CONTINUOUS: after the actor's last item
    max_entry_chars: int = Field(default=4000, ge=200)  # above it maintain splits
    batch_size: int = Field(default=500, ge=1)  # actors in one Dagster run
    concurrency: int = Field(default=32, ge=1)  # actors at once in one op
    max_calls: int | None = Field(default=None, ge=1)  # of a run
    max_tokens: int | None = Field(default=None, ge=1)  # of a run
    max_cost: float | None = Field(default=None, gt=0)  # of a run, US dollars
    resume_trigger: Trigger | None = None  # what `resume` goes back to, set while paused


class Pipeline(Record):
    """Joins a session store to a memory store."""

    id: str
    display_name: str = ""
    session_store: str
    memory_store: str
    policy: Policy = Policy()
    creator: str = "local"
    create_time: Moment
    update_time: Moment
    delete_time: Moment | None = None  # set while a run outlives its pipeline


class StageUsage(Record):
    """What one stage of one actor cost in one run."""

    stage: str
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0  # US dollars
    seconds: float = 0.0


ActorState = Literal["waiting", "running", "succeeded", "failed", "cancelled"]


class ActorResult(Record):
    """What a run did for one actor."""

    pipeline_id: str
    run: int
    actor_id: str
    state: ActorState
    stages: int = 0  # how many of STAGES are done
    targets: dict[str, int] = Field(default_factory=dict)  # session to the last position of this run
    error: str | None = None
    error_status: str | None = None  # status word
    retryable: bool = False
    sessions: int = 0
    items: int = 0
    facts: int = 0  # kept
    dropped: dict[str, int] = Field(default_factory=dict)  # reason to number
    created: int = 0
    updated: int = 0
    deleted: int = 0
    usage: tuple[StageUsage, ...] = ()
    start_time: Moment | None = None
    end_time: Moment | None = None


class Run(Record):
    """One processing of a pipeline."""

    pipeline_id: str
    number: int
    kind: RunKind = "asked"
    state: RunState
    error: str | None = None
    asked_by: str = "api"  # api, cli, schedule, sensor, ui, here
    launch: bool = True  # whether the sensor starts it
    actors: tuple[str, ...] | None = None  # None: all pending
    cancel_requested: bool = False
    model: str = ""  # as resolved when asked
    create_time: Moment
    start_time: Moment | None = None  # first batch began
    end_time: Moment | None = None


class RunSummary(Record):
    """A run added up over its actors."""

    run: Run
    actors: int = 0
    succeeded: int = 0
    failed: int = 0
    sessions: int = 0
    items: int = 0
    facts: int = 0
    dropped: dict[str, int] = Field(default_factory=dict)
    created: int = 0
    updated: int = 0
    deleted: int = 0
    usage: tuple[StageUsage, ...] = ()
    seconds: float = 0.0
    failures: dict[str, str] = Field(default_factory=dict)  # actor to error, the first 100


class Batch(Record):
    """The actors of a run that one Dagster run works on."""

    pipeline_id: str
    run: int
    number: int
    actors: tuple[str, ...]


class Pending(Record):
    """An actor with work to do."""

    actor_id: str
    version: int  # cleared only while it is still this
    tokens: int  # estimate of unread conversation
    last_said_at: Moment | None  # of the newest item
    failures: int = 0  # runs in a row that failed it
    retry_at: Moment | None = None  # sensor-started runs leave it alone until then


class Segment(Record):
    """A stretch of a session."""

    session_id: str
    first: int  # positions, both inclusive
    last: int


class Window(Record):
    """What one distill call reads."""

    id: str  # stable: hash of pipeline, actor and segments
    segments: tuple[Segment, ...]
    turns: tuple[Turn, ...]  # new
    context: tuple[Turn, ...] = ()  # said before, for understanding only
    tokens: int = 0  # estimate


class SessionNews(Record):
    """What is unread of one session."""

    session: Session
    items: tuple[Item, ...]  # after the `distilled` mark, up to the target
    before: tuple[Item, ...] = ()  # the last ones before these


class SearchHit(Record):
    """An entry found, with its score: higher is better, comparable only within one search."""

    entry: Entry
    score: float


class Tombstone(Record):
    """What a person or agent removed, remembered without its words."""

    item_hash: str  # of the item that said it
    start: int  # of the quote in what the item says, in characters
    end: int


Json = dict[str, Any]
