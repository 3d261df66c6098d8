"""Watches what a piece of work asks of a database: how many statements, transactions and parameters."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, event


@dataclass
class Statements:
    """What was seen so far."""

    texts: list[str] = field(default_factory=list)
    commits: int = 0
    most_parameters: int = 0  # of one statement

    def about(self, *words: str) -> list[str]:
        """The statements that hold all of these words."""
        return [text for text in self.texts if all(word in text for word in words)]


@contextmanager
def watched() -> Iterator[Statements]:
    """Count what all databases of this process are asked meanwhile."""
    seen = Statements()

    def asked(_connection: Any, _cursor: Any, text: str, parameters: Any, _context: Any, many: bool) -> None:
        seen.texts.append(text)
        rows = parameters if many else [parameters]
        seen.most_parameters = max(seen.most_parameters, *(len(row) for row in rows))

    def committed(_connection: Any) -> None:
        seen.commits += 1

    event.listen(Engine, "before_cursor_execute", asked)
    event.listen(Engine, "commit", committed)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", asked)
        event.remove(Engine, "commit", committed)
