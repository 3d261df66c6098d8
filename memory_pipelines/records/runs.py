"""Pipelines, their runs, and the work of a run."""

from typing import Literal

from pydantic import Field

from memory_pipelines.records.base import Moment, Record
from memory_pipelines.records.conversations import Item, Session, Turn

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

    @property
    def paused(self) -> bool:
        """Whether `resume` has a trigger to go back to."""
        return self.trigger == "MANUAL_ONLY" and self.resume_trigger is not None


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
    last_said_at: Moment | None  # of the newest item, not later than when it came
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
