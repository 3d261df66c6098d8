"""Typed functions to make tools of, shared by the tests of tools and of their stubs."""

import dataclasses
import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

JANUARY = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC)


class Node(BaseModel):
    """A thing with things below it."""

    name: str
    below: list["Node"] = []


class Hit(BaseModel):
    document: str = Field(description="where it was found")
    at: datetime.datetime
    kind: Literal["title", "body"] = "body"
    score: float | None = None


@dataclasses.dataclass
class Span:
    start: int
    end: int


async def search(
    query: Annotated[str, Field(description="what to look for", min_length=2)], top: int = 10, schema: str | None = None
) -> list[Hit]:
    """Search the documents."""
    return [Hit(document=f"{query}-{number}-{schema}", at=JANUARY) for number in range(top)]


def tree(root: Node, span: Span) -> Node:
    """Grow a tree."""
    return Node(name=f"{root.name}{span.end - span.start}", below=[root])
