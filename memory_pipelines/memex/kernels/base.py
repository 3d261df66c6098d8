"""The port to kernels: a persistent Python namespace that runs blocks of code and calls tools of the host."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from memory_pipelines.memex.tools import Tool

State = Literal["kept", "restored", "lost"]
"""What became of the namespace: its variables are there, were rebuilt, or are gone."""

MAIN = "main"
"""The namespace of the agent that owns the kernel; subagents have others."""


class Limits(BaseModel):
    """Bounds of one kernel."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    block_seconds: float = Field(default=30.0, gt=0)  # of one block, waiting for tools excluded
    grace_seconds: float = Field(default=1.0, gt=0)  # after a deadline, until the kernel is killed
    cpu_seconds: int = Field(default=300, gt=0)  # of the whole kernel
    memory_bytes: int = Field(default=1 << 30, gt=0)  # of address space above what a fresh kernel has
    output_chars: int = Field(default=10_000, gt=0)  # of one observation; the middle is cut
    frame_bytes: int = Field(default=16 << 20, gt=0)  # of one message between host and kernel
    pending_calls: int = Field(default=1_000, gt=0)  # tool calls under way at once


class Observation(BaseModel):
    """What running one block showed."""

    model_config = ConfigDict(frozen=True)

    output: str = ""  # what it printed, then its last expression; cut to Limits.output_chars
    cut: int = 0  # characters left out of `output`
    error: str | None = None  # the exception with the lines of the block it passed, or why the block ended
    state: State = "kept"
    submitted: bool = False  # submit() was called with a value that can leave the kernel
    value: Any = None  # that value in JSON form, not yet checked against the result type by the host
    milliseconds: float = 0.0


class Subagent(BaseModel):
    """What the code of an agent wants done by another one, in the same kernel."""

    model_config = ConfigDict(frozen=True)

    namespace: str  # its own; the objects that it was given are variables there
    task: str  # in words
    scope: dict[str, str]  # names of these variables, and what each is
    result: dict[str, Any] | None  # JSON schema of what it shall submit, None for anything


Spawn = Callable[[Subagent], Awaitable[Any]]
"""Runs a subagent to its end and gives what it submitted, in JSON form; raises ToolError for the code that asked."""


class Kernel(Protocol):
    """A running kernel. One rollout owns it; `open_kernel` opens and closes it.

    `inprocess` runs in the calling process, isolates nothing and cannot end a block that never yields;
    `subprocess` is a process of its own.
    """

    @property
    def isolation(self) -> Mapping[str, Any]:
        """What isolates this kernel, for the head of every trajectory."""
        ...

    async def put(self, scope: Mapping[str, Any], *, namespace: str = MAIN) -> None:
        """Set variables: JSON values as they are, pydantic models and dataclasses as objects with attributes.

        Args:
            scope: names and values.
            namespace: whose variables.

        Raises:
            InvalidInputError: a value cannot enter the kernel; names its path.
        """
        ...

    async def expose(
        self,
        tools: Sequence[Tool],
        *,
        result: Mapping[str, Any] | None = None,
        spawn: Spawn | None = None,
        namespace: str = MAIN,
    ) -> None:
        """Make tools callable as async functions, and `submit` check values.

        Args:
            tools: what the code may call; arguments are checked in the host before the function runs.
            result: JSON schema of what `submit` takes, None for anything.
            spawn: runs the subagents that the code asks for by `spawn_agent`; None: there are none.
            namespace: who may call them.
        """
        ...

    async def run(self, code: str, *, namespace: str = MAIN, seconds: float | None = None) -> Observation:
        """Run one block to its end or deadline.

        Args:
            code: Python with top-level await; the value of a last expression is shown.
            namespace: where.
            seconds: deadline of this block, else `Limits.block_seconds`.

        Returns:
            What it showed. Errors of the code are in it, not raised. When the kernel ended, a fresh one has run the
            earlier blocks again, with the answers that their calls were given the first time (`restored`), or has
            only what was put and exposed (`lost`).

        Raises:
            KernelDiedError: the kernel had ended before this block.
        """
        ...

    async def forget(self, namespace: str) -> None:
        """End a namespace: its variables and tools go, what it shared with others stays with them."""
        ...

    async def close(self) -> None:
        """End the kernel and everything it started."""
        ...
