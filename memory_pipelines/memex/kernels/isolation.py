"""The host's view of the wall: what was asked for, and a loud word where it is not all there."""

import logging
import sys
from collections.abc import Mapping
from typing import Any

from memory_pipelines.errors import InvalidInputError, KernelUnavailableError
from memory_pipelines.memex.kernels.confine import BEST_EFFORT, REMEDIES, STRICT

ISOLATIONS = (STRICT, BEST_EFFORT)

_log = logging.getLogger(__name__)
_said: set[tuple[str, ...]] = set()


def wanted(isolation: str | None) -> str:
    """Return what a kernel with a process of its own shall keep to.

    Args:
        isolation: `strict`, `best_effort`, or None for the default, which is strict.

    Raises:
        InvalidInputError: neither.
        KernelUnavailableError: there can be no wall on this system, and strict was asked for.
    """
    found = STRICT if isolation is None else isolation
    if found not in ISOLATIONS:
        raise InvalidInputError(f"unknown isolation {found!r}; allowed are {' and '.join(ISOLATIONS)}", isolation=found)
    if found == STRICT and sys.platform != "linux":
        raise KernelUnavailableError(
            f"isolation='strict' needs Landlock and seccomp, which are parts of Linux, and this is {sys.platform}: "
            f"{REMEDIES}",
            platform=sys.platform,
        )
    return found


def warn_where_open(confined: Mapping[str, Any]) -> None:
    """Warn, once for each gap, that a worker runs without parts of the wall.

    Args:
        confined: what is in force, as the worker reported it.
    """
    gaps = tuple(name for name in ("landlock", "seccomp") if not confined.get(name))
    if gaps and gaps not in _said:
        _said.add(gaps)
        _log.warning(
            "Kernels run without %s (isolation='best_effort'): code that a model writes is held back less than it "
            "should be. Every trajectory says so.",
            " and ".join(gaps),
        )
