"""The events of a rollout, as records."""

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, cast

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from memory_pipelines.gateway.base import Finish, ToolCall, Usage
from memory_pipelines.memex.answers import Origin
from memory_pipelines.memex.kernels.arrow import packed
from memory_pipelines.memex.kernels.base import State
from memory_pipelines.text import clean_text

_MAX_DEPTH = 100
"""How deep a kept value may be nested; readers of JSON stop at about 200."""

FORMAT = 2
"""Version of the lines; goes up when a reader of old lines would misread new ones."""


class Blob(BaseModel):
    """Where a large value of an event is."""

    model_config = ConfigDict(frozen=True)

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")  # of the content, which is named by it
    chars: int
    is_json: bool  # JSON text of a value, else the text itself

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.sha256}.{'json' if self.is_json else 'txt'}"


class EventBase(BaseModel):
    """What all events share."""

    model_config = ConfigDict(frozen=True)

    words: ClassVar[frozenset[str]] = frozenset({"kind"})  # fields that hold words of ours, never content

    blobs: dict[str, Blob] = Field(default_factory=dict[str, Blob])  # fields that are stored beside the lines


class Header(EventBase):
    """The start of a rollout."""

    words = frozenset({"kind", "at", "purpose", "action_space", "kernel"})

    kind: Literal["header"] = "header"
    format: int = FORMAT
    at: AwareDatetime  # when it started
    model: str  # as it was asked for
    purpose: str
    action_space: str  # memex or tools
    kernel: str  # none in the action space `tools`
    isolation: dict[str, JsonValue]  # what isolates the kernel, as it says itself
    tools: tuple[str, ...] = ()  # names of what the code may call
    scope: tuple[str, ...] = ()  # names of the variables it starts with
    task: str = ""  # what was asked, in words


class LlmRequest(EventBase):
    """The model is asked."""

    words = frozenset({"kind", "prefix"})

    kind: Literal["llm_request"] = "llm_request"
    turn: int  # from 1
    messages: int  # how many were sent
    prefix: str  # hash of all of them; equal prefixes can share a provider's cache


class LlmResponse(EventBase):
    """The model answered."""

    words = frozenset({"kind", "finish", "usage"})

    kind: Literal["llm_response"] = "llm_response"
    turn: int
    text: str  # all of it, with what was dropped before the code was looked for
    tool_calls: tuple[ToolCall, ...] = ()  # native calls, as the model wrote them
    finish: Finish
    usage: Usage
    model: str = ""  # as the provider named it


class Block(EventBase):
    """Code goes to the kernel."""

    words = frozenset({"kind", "namespace", "origin"})

    kind: Literal["block"] = "block"
    turn: int
    number: int  # from 1 within the turn
    namespace: str
    code: str
    origin: Origin  # who wrote it


class ToolCalled(EventBase):
    """A block, or the model itself, called a tool of the host."""

    kind: Literal["tool_call"] = "tool_call"
    turn: int
    name: str
    args: dict[str, JsonValue]
    result: JsonValue = None  # what it gave; None when it failed
    error: str | None = None  # what the block or the model was told when the call failed
    milliseconds: float


class Observed(EventBase):
    """A block ended, or a native call of a tool."""

    words = frozenset({"kind", "state"})

    kind: Literal["observation"] = "observation"
    turn: int
    number: int  # that of the block, or of the call in its answer
    output: str
    cut: int  # characters left out of `output`
    error: str | None
    state: State
    milliseconds: float


class Submitted(EventBase):
    """A value was submitted and checked by the host."""

    kind: Literal["submit"] = "submit"
    turn: int
    ok: bool
    value: JsonValue = None
    errors: tuple[str, ...] = ()  # `path: message`, when not ok


class Feedback(EventBase):
    """The model is told that its answer holds nothing that can be run."""

    words = frozenset({"kind", "reason"})

    kind: Literal["feedback"] = "feedback"
    turn: int
    reason: str  # malformed, truncated, empty, repetition
    text: str


class Spawned(EventBase):
    """The code started a subagent."""

    words = frozenset({"kind", "child"})

    kind: Literal["spawn"] = "spawn"
    turn: int
    child: str  # id of the subagent
    task: str  # in words
    scope: tuple[str, ...] = ()  # names of the variables that it was given


class Failed(EventBase):
    """The rollout ends by an error."""

    words = frozenset({"kind", "error", "status"})

    kind: Literal["error"] = "error"
    error: str  # class
    status: str  # status word of the error, empty for one that is not ours
    message: str


class End(EventBase):
    """The end of a rollout, in a result or an error."""

    words = frozenset({"kind", "usage"})

    kind: Literal["end"] = "end"
    ok: bool
    turns: int
    usage: Usage
    seconds: float


Event = Annotated[
    Header | LlmRequest | LlmResponse | Block | ToolCalled | Observed | Submitted | Feedback | Spawned | Failed | End,
    Field(discriminator="kind"),
]
"""One line of a trajectory."""

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
"""Reads an event of any kind."""


def recordable(value: object, depth: int = 0) -> JsonValue:
    """What a trajectory keeps of a value, whatever it is.

    Args:
        value: mostly JSON; a tool may give out more than that.
        depth: how deep it is nested.

    Returns:
        JSON that every reader takes: what is not JSON is named by its type.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if packed(value):
        return f"<{clean_text(str(cast('Mapping[str, object]', value)['is']))}>"  # its content is in the kernel only
    if depth < _MAX_DEPTH and isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {clean_text(str(key)): recordable(one, depth + 1) for key, one in pairs}
    if depth < _MAX_DEPTH and isinstance(value, list | tuple):
        return [recordable(one, depth + 1) for one in cast("list[object]", value)]
    return f"<{type(value).__name__}>"
