"""Opens kernels by name."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from memory_pipelines.memex.kernels.base import Kernel, Limits
from memory_pipelines.registry import KERNELS


@asynccontextmanager
async def open_kernel(
    name: str, *, limits: Limits | None = None, isolation: str | None = None, frames: bool = False
) -> AsyncGenerator[Kernel]:
    """Open a kernel for one rollout and end it afterwards.

    Args:
        name: `pool`, `subprocess`, `inprocess`, or what an entry point added: a class that takes `limits` and
            `isolation` by keyword, has the methods of `Kernel`, and `start`.
        limits: its bounds, else the defaults.
        isolation: `strict`: refuse to start where the wall cannot stand; `best_effort`: do without what is missing,
            with a warning. None takes what the kind of kernel has: strict for those with a process of their own.
        frames: whether data frames will enter it. They can in any case; kernels that have a method `expect_frames`
            are told beforehand, and `pool` spares the first frame the second that importing pandas takes.

    Yields:
        The running kernel.

    Raises:
        InvalidInputError: no kernel or isolation of this name; lists the known ones.
        KernelUnavailableError: it cannot start here; says why and what can be done.
    """
    kernel = KERNELS.load(name)(limits=limits or Limits(), isolation=isolation)
    try:
        if frames and hasattr(kernel, "expect_frames"):
            kernel.expect_frames()
        await kernel.start()
        yield kernel
    finally:
        await kernel.close()
