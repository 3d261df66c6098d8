"""Reads native tool calls: what a model wrote as arguments, as the host can use it and a provider takes it back."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from memory_pipelines.gateway.base import ToolCall
from memory_pipelines.memex.answers import loads
from memory_pipelines.memex.fences import complete
from memory_pipelines.text import clean_json

PYTHON = "python"
"""The tool that runs a block, where code travels as a native call."""

_QUOTED = 200
"""How much of unreadable arguments is quoted back."""


@dataclass(frozen=True)
class NativeCall:
    """One native call, read."""

    call: ToolCall  # for the conversation: with an id of its own, and arguments that are a JSON object
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    problem: str | None = None  # why it cannot be made, for the model


def read_calls(calls: Sequence[ToolCall], *, turn: int, truncated: bool) -> tuple[NativeCall, ...]:
    """Read the calls of one answer.

    Args:
        calls: as the gateway gave them.
        turn: of the answer; names calls without an id.
        truncated: the answer ended at the length limit, so that its last call may be incomplete.

    Returns:
        The calls. Malformed arguments are a problem of their call alone; in the conversation they become `{}`,
        because providers refuse a history with arguments that are no JSON object.
    """
    read: list[NativeCall] = []
    seen: set[str] = set()
    for number, call in enumerate(calls, start=1):
        name = call.id if call.id and call.id not in seen else f"call_{turn}_{number}"
        seen.add(name)
        arguments, text = _arguments(call)
        if arguments is not None:
            read.append(NativeCall(ToolCall(id=name, name=call.name, arguments=text), arguments))
            continue
        kept = ToolCall(id=name, name=call.name, arguments="{}")
        cut = truncated and number == len(calls)
        read.append(NativeCall(kept, problem=_CUT_OFF if cut else _malformed(call)))
    return tuple(read)


_CUT_OFF = "your answer was cut off at the length limit in the middle of this call, so it was not made; write less"


def _arguments(call: ToolCall) -> tuple[dict[str, Any] | None, str]:
    """The arguments and their text for the conversation, or None."""
    if not call.arguments.strip():
        return {}, "{}"
    text = call.arguments
    try:
        value: object = loads(text)
    except ValueError:
        try:
            # Models write line breaks into JSON strings as they are.
            value = loads(text, raw_breaks=True)
            text = json.dumps(value, ensure_ascii=False)
        except ValueError:
            value = text
    clean = clean_json(value)  # half a character, escaped, would fail wherever the value is written
    if clean != value:
        value, text = clean, json.dumps(clean, ensure_ascii=False)
    if isinstance(value, dict):
        return cast("dict[str, Any]", value), text
    # Models that were taught a tool called python in another form write bare code.
    if call.name == PYTHON and isinstance(value, str) and not value.lstrip().startswith("{") and complete(value):
        return {"code": value}, json.dumps({"code": value}, ensure_ascii=False)
    return None, ""


def _malformed(call: ToolCall) -> str:
    begin = call.arguments[:_QUOTED] + ("..." if len(call.arguments) > _QUOTED else "")
    return f"the arguments are not a JSON object: {begin}"
