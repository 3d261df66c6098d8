"""Trajectories on their way into the scope of another rollout."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, JsonValue

from memory_pipelines.gateway.base import Usage
from memory_pipelines.memex.events import Event
from memory_pipelines.memex.trajectory import Trajectory


class TrajectoryView(BaseModel):
    """One rollout. Beside its fields: .turns (each .number .text .code .blocks .outputs .tool_calls), .blocks,
    .outputs, .tool_calls, .children, and .grep(regex), which gives events.
    """

    model_config = ConfigDict(frozen=True, json_schema_extra={"x-methods": "trajectory"})

    task: str  # what was asked
    ok: bool  # whether it ended well
    value: JsonValue  # what was submitted and accepted
    usage: Usage  # of all calls
    events: list[Event]  # everything, in order


def view_of(trajectory: Trajectory) -> TrajectoryView:
    """Make of a trajectory what enters a kernel, whole.

    Args:
        trajectory: read or recorded.

    Returns:
        A model; in the kernel it has the attributes and `grep` of a `Trajectory`.
    """
    header, end = trajectory.header, trajectory.end
    return TrajectoryView(
        task=header.task if header else "",
        ok=bool(end and end.ok),
        value=trajectory.value,
        usage=trajectory.usage,
        events=list(trajectory.events),
    )


def viewed(value: Any) -> Any:
    """Put views in place of trajectories, in lists and dicts too; everything else stays as it is."""
    if isinstance(value, Trajectory):
        return view_of(value)
    if type(value) in (list, tuple) and any(isinstance(one, Trajectory) for one in value):
        return [viewed(one) for one in value]
    if type(value) is dict:
        pairs = cast("Mapping[Any, Any]", value).items()
        return {key: viewed(one) for key, one in pairs}
    return value
