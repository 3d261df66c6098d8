"""Where items stand in their session; pure."""

import uuid
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_pipelines.records import Item, NewItem, aware
from memory_pipelines.stores import incoming
from memory_pipelines.stores.hashes import item_hash, token_estimate
from memory_pipelines.stores.tables import PoppedRow


@dataclass(frozen=True, kw_only=True)
class Placed:
    """An item with its place."""

    id: str
    position: int
    data: Any
    hash: str
    tokens: int
    said_at: datetime
    create_time: datetime
    context: bool
    returned: bool  # stood here before it was popped

    @property
    def columns(self) -> dict[str, Any]:
        """Its columns, without those of its session."""
        return {name: value for name, value in vars(self).items() if name != "returned"}

    def item(self, session_id: str) -> Item:
        """Return it as a record."""
        return Item(
            session_id=session_id,
            id=self.id,
            position=self.position,
            data=self.data,
            said_at=self.said_at,
            create_time=self.create_time,
            context=self.context,
        )


def arrange(items: Sequence[NewItem], gone: Sequence[PoppedRow], *, last_position: int, now: datetime) -> list[Placed]:
    """Give new items their places.

    Args:
        items: in order.
        gone: popped items that stood after the last one that is still there, by position.
        last_position: the highest place that was ever given.
        now: time of those that do not say when they were said.

    Returns:
        The items; one that is unchanged has its old place back as long as the order of places is the order of items.
    """
    placed: list[Placed] = []
    left = list(gone)
    for item in items:
        data = incoming.item_data(item.data)
        digest = item_hash(data)
        index = next((n for n, row in enumerate(left) if row.hash == digest), None)
        old = left[index] if index is not None else None
        if index is not None:
            del left[: index + 1]
        else:
            # A new place lies behind all old ones: what follows it cannot stand before it.
            left.clear()
            last_position += 1
        placed.append(
            Placed(
                id=old.id if old else uuid.uuid4().hex,
                position=old.position if old else last_position,
                data=data,
                hash=digest,
                tokens=token_estimate(data),
                said_at=aware(item.said_at or (old.said_at if old else now)),
                create_time=old.create_time if old else now,
                context=old.context if old else False,
                returned=old is not None,
            )
        )
    return placed


def reconcile(stored: Sequence[tuple[str, datetime]], imported: Sequence[tuple[str, datetime | None]]) -> list[int]:
    """Say which imported items are new.

    Both are walked in order, so that an item said twice is known twice; what the import does not say the time of is
    known by its content alone.

    Args:
        stored: hash and time of the stored items, in order.
        imported: the same of the imported ones.

    Returns:
        Indexes of the imported items that are not stored yet.
    """
    timed: dict[Any, list[int]] = defaultdict(list)
    for index, (digest, said_at) in enumerate(stored):
        timed[digest].append(index)
        timed[digest, said_at].append(index)
    new: list[int] = []
    reached = -1
    for index, (digest, said_at) in enumerate(imported):
        places = timed.get(digest if said_at is None else (digest, said_at), [])
        at = bisect_right(places, reached)
        if at < len(places):
            reached = places[at]
        else:
            new.append(index)
    return new
