"""What kernels with a process of their own share: what their Python starts with, and what they say of their wall."""

import importlib
import importlib.util
import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from memory_pipelines.memex.kernels.hosted import HostedKernel

PARTS_OF_PYDANTIC = ("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection")
FRAMES = ("numpy", "pandas", "pyarrow")


class WalledKernel(HostedKernel):
    """A kernel whose worker is a process behind the wall: see `confine.py`."""

    can_kill: ClassVar[bool] = True
    own_process: ClassVar[bool] = True
    name: ClassVar[str]
    """What the kernel is called."""
    lacking: ClassVar[tuple[str, ...]] = ()
    """Parts of the wall that are taken as missing, to try what happens then."""

    @property
    def isolation(self) -> Mapping[str, Any]:
        """What isolates this kernel, as its process reported it."""
        ready = self._connection.ready if self._connection else None
        return {"kernel": self.name, "process": True, "environment": "empty", **(ready.confined if ready else {})}


def command(script: Path, given: Mapping[str, Any]) -> list[str]:
    """Return the command that starts a script of ours in a Python that knows nothing of this one.

    Args:
        script: beside this file.
        given: its one argument, as JSON.
    """
    return [sys.executable, "-I", "-S", "-B", "-X", "utf8", str(script), json.dumps(given)]


@cache
def import_paths() -> list[str]:
    """Return where a worker finds pydantic, and pandas if it is installed; nothing else of our own path."""
    files = (importlib.import_module(name).__file__ for name in PARTS_OF_PYDANTIC)
    places = (Path(file) for file in files if file)
    needed = [place.parents[1] if place.stem == "__init__" else place.parent for place in places]
    specs = (importlib.util.find_spec(name) for name in FRAMES)  # found, not imported: they take a second
    homes = (Path(spec.origin).parents[1] for spec in specs if spec is not None and spec.origin)
    # One that somebody develops lies in a project's folder, which may hold what no worker should read.
    needed += [home for home in homes if home.name in ("site-packages", "dist-packages")]
    return list(dict.fromkeys(map(str, needed)))
