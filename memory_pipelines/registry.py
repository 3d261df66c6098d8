"""One directory of exchangeable parts: a name leads to `module:Class`, loaded when first asked for.

Third parties add parts by entry points of the group `memory_pipelines.<kind>`; built-in names cannot be taken over.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from memory_pipelines.errors import InvalidInputError


class Registry:
    """The parts of one kind."""

    def __init__(self, kind: str, builtin: Mapping[str, str]) -> None:
        """Keep the names; nothing is imported.

        Args:
            kind: what the parts are, in the plural, lower case: also the suffix of the entry point group.
            builtin: name to "module:Class".
        """
        self.kind = kind
        self._builtin = dict(builtin)

    def names(self) -> list[str]:
        """List the known names, sorted."""
        return sorted({*self._builtin, *(point.name for point in self._added())})

    def load(self, name: str) -> Any:
        """Import and return the part of this name.

        Args:
            name: one of `names()`.

        Raises:
            InvalidInputError: no part has this name; the message lists those that exist.
        """
        if name in self._builtin:
            module, _, attribute = self._builtin[name].partition(":")
            return getattr(import_module(module), attribute)
        for point in self._added():
            if point.name == name:
                return point.load()
        known = self.names()
        near = get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InvalidInputError(
            f"unknown name {name!r} for {self.kind}; known: {', '.join(known)}.{hint}", name=name, known=known
        )

    def _added(self) -> list[Any]:
        return list(entry_points(group=f"memory_pipelines.{self.kind}"))


KERNELS = Registry(
    "kernels",
    {
        "inprocess": "memory_pipelines.memex.kernels.inprocess:InProcessKernel",
        "pool": "memory_pipelines.memex.kernels.pool:PoolKernel",
        "subprocess": "memory_pipelines.memex.kernels.subprocess:SubprocessKernel",
    },
)
IMPORTERS = Registry(
    "importers",
    {
        "native": "memory_pipelines.importers.native:NativeImporter",
        "chat-completions": "memory_pipelines.importers.chat_completions:ChatCompletionsImporter",
    },
)
