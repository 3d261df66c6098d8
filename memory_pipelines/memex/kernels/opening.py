"""Opens kernels by name."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from memory_pipelines.memex.kernels.base import Kernel, Limits
from memory_pipelines.registry import KERNELS


@asynccontextmanager
async def open_kernel(name: str, *, limits: Limits | None = None) -> AsyncGenerator[Kernel]:
    """Open a kernel for one rollout and end it afterwards.

    Args:
        name: `inprocess`, `subprocess`, or what an entry point added: a class that takes `limits` by keyword, has
            the methods of `Kernel`, and `start`.
        limits: its bounds, else the defaults.

    Yields:
        The running kernel.

    Raises:
        InvalidInputError: no kernel of this name; lists the known ones.
        KernelUnavailableError: it cannot start here; says why.
    """
    kernel = KERNELS.load(name)(limits=limits or Limits())
    try:
        await kernel.start()
        yield kernel
    finally:
        await kernel.close()
