"""Agents that act by writing Python in a persistent kernel. Knows nothing of memory."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_pipelines.memex.agent import Agent, Outcome
    from memory_pipelines.memex.budget import Budget
    from memory_pipelines.memex.kernels.base import Limits
    from memory_pipelines.memex.kernels.opening import open_kernel
    from memory_pipelines.memex.schema_tools import tool_of_schema, tools_of_mcp
    from memory_pipelines.memex.subagents import Subagents
    from memory_pipelines.memex.tools import Tool, tool_of
    from memory_pipelines.memex.trajectory import Trajectory

__all__ = [
    "Agent",
    "Budget",
    "Limits",
    "Outcome",
    "Subagents",
    "Tool",
    "Trajectory",
    "open_kernel",
    "tool_of",
    "tool_of_schema",
    "tools_of_mcp",
]

_HOMES = {
    "Agent": "agent",
    "Budget": "budget",
    "Limits": "kernels.base",
    "Outcome": "agent",
    "Subagents": "subagents",
    "Tool": "tools",
    "Trajectory": "trajectory",
    "open_kernel": "kernels.opening",
    "tool_of": "tools",
    "tool_of_schema": "schema_tools",
    "tools_of_mcp": "schema_tools",
}


def __getattr__(name: str) -> Any:
    # Late, so that the worker inside a kernel can import its own module without the host's half.
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
