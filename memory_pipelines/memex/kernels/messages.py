"""What a worker may say to the host: every frame from it is checked against these before anything else happens.

A worker runs code that a model wrote and may say anything. The other direction needs no check.
"""

import json
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from memory_pipelines.memex.kernels.wire import FrameError

_MAYBE_INFINITE = re.compile(rb"[0-9][eE]\+?[0-9]{3}")


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Ready(_Message):
    """The worker is confined and waits for blocks; the first message, once."""

    type: Literal["ready"]
    pid: int
    confined: dict[str, Any]  # what the worker did to itself, for `Kernel.isolation`


class Failed(_Message):
    """The worker could not get ready and ends."""

    type: Literal["failed"]
    why: str = Field(max_length=2_000)


class Call(_Message):
    """The code called a tool."""

    type: Literal["call"]
    id: int  # chosen by the worker, different from those under way
    run: int  # of the block on whose behalf
    namespace: str
    tool: str
    arguments: dict[str, Any]


class Done(_Message):
    """A block ended."""

    type: Literal["done"]
    run: int  # as the host numbered it
    output: str
    cut: int = Field(ge=0)
    error: str | None = Field(max_length=20_000)
    submitted: bool
    value: Any
    interrupted: bool  # at its deadline, or because nobody waits for it any more
    milliseconds: float = Field(ge=0)


Message = Ready | Failed | Call | Done
_FROM_WORKER: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="type")])


def decode(body: bytes) -> Any:
    """Read JSON of a worker: no NaN, no lone surrogates, no depth that could exhaust the stack.

    Args:
        body: what came.

    Returns:
        Plain values.

    Raises:
        ValueError: not such JSON.
    """
    value: object = from_json(body, allow_inf_nan=False)
    if _MAYBE_INFINITE.search(body):
        json.dumps(value, allow_nan=False)  # 1e999 is read as infinity
    return value


def understand(frame: dict[str, Any]) -> Message:
    """Make a message of a frame.

    Args:
        frame: what `decode` gave.

    Returns:
        The message.

    Raises:
        FrameError: no message of ours.
    """
    try:
        return _FROM_WORKER.validate_python(frame)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise FrameError(f"a message that does not fit: {where}: {first['msg']}") from error
