"""A working copy of an actor's memory: lines are tied, added and replaced on it, and changes come out at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from memory_pipelines.records import Change, Entry, Fact, FactState, Tie
from memory_pipelines.stages.base import Merged
from memory_pipelines.stages.layout import Layout, describe, section_of
from memory_pipelines.stages.lines import edit, normal, one_line, read
from memory_pipelines.stages.similarity import Sense, remainder, sense


@dataclass(kw_only=True)
class Spot:
    """One line that says something, on the board."""

    key: str
    path: str
    text: str
    entry: str | None  # id of the entry it stands in, None in a new one
    number: int | None  # its line there; None when it comes after the others
    after: int | None = None  # line that a new one without a number follows, if a certain one
    seen: datetime  # what is said before this is older than the line
    facts: list[str]  # ids of the facts it rests on
    fresh: list[str] = field(default_factory=list[str])  # of these, the ones to be tied
    new: bool = False  # not in memory yet
    fixed: bool = False  # may be tied but not replaced: prose, code
    heir: str | None = None  # key of the line that took its place; then it is gone

    @property
    def sense(self) -> Sense:
        """What the line says, as far as rules can see."""
        return sense(self.text)


class Board:
    """Takes decisions about facts, in time order, and keeps what memory would be after them."""

    def __init__(
        self,
        entries: Sequence[Entry],
        *,
        ties: Mapping[str, Sequence[tuple[str, str]]],
        earlier: Mapping[str, Fact],
        layout: Layout,
    ) -> None:
        """Lay out the lines of memory.

        Args:
            entries: of the actor, none bound to a session.
            ties: entry id to (line, fact id).
            earlier: the tied facts by id.
            layout: where new lines go.
        """
        self.layout = layout
        self.spots: dict[str, Spot] = {}
        self.settled: dict[str, FactState] = {}
        self._entries = {entry.id: entry for entry in entries}
        self._by_text: dict[str, str] = {}
        self._said_by: dict[str, str] = {}  # id of a fact that has no line of its own, to the line that says it
        for entry in entries:
            tied: dict[str, list[str]] = {}
            for line, fact_id in ties.get(entry.id, ()):
                tied.setdefault(normal(line), []).append(fact_id)
            for line in read(entry.content):
                if line.kind == "other":
                    continue
                facts = tied.get(normal(line.text), [])
                times = [earlier[one].observed_at for one in facts if one in earlier]
                key = f"{entry.id}:{line.number}"
                self.spots[key] = Spot(
                    key=key,
                    path=entry.path,
                    text=line.text,
                    entry=entry.id,
                    number=line.number,
                    # Nobody noted when an untied line was said: not before its entry was made.
                    seen=max(times) if times else entry.create_time,
                    facts=list(facts),
                    fixed=line.kind == "held",
                )
                self._by_text.setdefault(normal(line.text), key)

    def fork(self) -> "Board":
        """A copy on which decisions can be tried."""
        twin = object.__new__(Board)
        twin.layout = self.layout
        twin.spots = {
            key: replace(spot, facts=list(spot.facts), fresh=list(spot.fresh)) for key, spot in self.spots.items()
        }
        twin.settled = dict(self.settled)
        twin._entries = self._entries
        twin._by_text = dict(self._by_text)
        twin._said_by = dict(self._said_by)
        return twin

    def living(self) -> list[Spot]:
        """The lines that stand, in the order of memory, new ones last."""
        return [spot for spot in self.spots.values() if spot.heir is None]

    def origin(self, key: str) -> Spot | None:
        """The line of a key, standing or gone.

        Args:
            key: of a line, or the id of a fact that has been settled.

        Returns:
            The line, None when there never was one.
        """
        return self.spots.get(self._said_by.get(key, key))

    def standing(self, key: str) -> Spot | None:
        """The line of a key, or the one that took its place.

        Args:
            key: as for `origin`.

        Returns:
            The line that stands now, None when there never was one.
        """
        spot = self.origin(key)
        while spot is not None and spot.heir is not None:
            spot = self.spots.get(spot.heir)
        return spot

    def exact(self, text: str) -> Spot | None:
        """The standing line that is this text.

        Args:
            text: of a fact.

        Returns:
            The line, or None.
        """
        key = self._by_text.get(normal(one_line(text)))
        spot = self.spots[key] if key else None
        return spot if spot and spot.heir is None else None

    def tie(self, fact: Fact, spot: Spot) -> None:
        """Rest a line on one more fact.

        Args:
            fact: says what the line says.
            spot: a standing line.
        """
        if fact.id not in spot.facts:
            spot.facts.append(fact.id)
            spot.fresh.append(fact.id)
        spot.seen = max(spot.seen, fact.observed_at)
        self.settled[fact.id] = "duplicate"
        self._said_by[fact.id] = spot.key

    def add(self, fact: Fact, path: str) -> None:
        """Add a line for a fact.

        Args:
            fact: to be remembered.
            path: of an entry, existing or not.
        """
        home = next((entry for entry in self._entries.values() if entry.path == path), None)
        spot = self._put(fact, path=path, entry=home.id if home else None, number=None)
        if home:
            spot.after = section_of(fact.text, home.content)

    def replace(self, fact: Fact, spots: Sequence[Spot]) -> None:
        """Put a fact in the place of lines.

        Args:
            fact: makes the lines wrong or out of date.
            spots: standing lines, none fixed; the new line takes the place of the first.
        """
        first = spots[0]
        new = self._put(fact, path=first.path, entry=first.entry, number=first.number)
        for spot in spots:
            spot.heir = new.key
            self._leave(spot, fact)
        standing = {one for spot in self.living() for one in spot.facts}
        for spot in spots:
            for one in spot.facts:
                if one not in standing:
                    self.settled[one] = "superseded"

    def settle(self, fact: Fact, state: FactState) -> None:
        """Note what became of a fact that has no line.

        Args:
            fact: the fact.
            state: superseded or skipped.
        """
        self.settled[fact.id] = state

    def merged(self) -> Merged:
        """What memory becomes, as changes.

        Returns:
            One change for each entry that a decision touched; lines that none touched keep their bytes.
        """
        changes: list[Change] = []
        by_entry: dict[str | None, list[Spot]] = {}
        for spot in self.spots.values():
            by_entry.setdefault(spot.entry, []).append(spot)
        for entry in self._entries.values():
            change = self._update(entry, by_entry.get(entry.id, []))
            if change:
                changes.append(change)
        fresh: dict[str, list[Spot]] = {}
        for spot in by_entry.get(None, []):
            if spot.heir is None:
                fresh.setdefault(spot.path, []).append(spot)
        for path, spots in fresh.items():
            content = "".join(f"- {spot.text}\n" for spot in spots)
            changes.append(
                Change(
                    action="create",
                    path=path,
                    content=content,
                    description=describe(path, content),
                    ties=_ties(spots),
                    reason="new topic",
                )
            )
        return Merged(changes=tuple(changes), settled=self.settled)

    def _leave(self, spot: Spot, fact: Fact) -> None:
        """Keep what a replaced line says beside what the fact takes back, with the facts it rests on."""
        left = remainder(spot.text, fact.text)
        if left and not self.exact(left):
            key = f"{spot.key}, rest"
            self.spots[key] = replace(
                spot, key=key, text=left, number=None, after=spot.number, heir=None, new=True, fresh=list(spot.facts)
            )
            self._by_text[normal(left)] = key

    def _put(self, fact: Fact, *, path: str, entry: str | None, number: int | None) -> Spot:
        spot = Spot(
            key=fact.id,
            path=path,
            text=one_line(fact.text),
            entry=entry,
            number=number,
            seen=fact.observed_at,
            facts=[fact.id],
            fresh=[fact.id],
            new=True,
        )
        self.spots[spot.key] = spot
        self._by_text[normal(spot.text)] = spot.key
        self.settled[fact.id] = "merged"
        return spot

    def _update(self, entry: Entry, spots: Sequence[Spot]) -> Change | None:
        gone: dict[int, str | None] = {}
        added: list[tuple[int | None, str]] = []
        standing = [spot for spot in spots if spot.heir is None]
        for spot in spots:
            if spot.heir is not None and spot.number is not None:
                gone[spot.number] = None
        for spot in standing:
            if spot.new and spot.number is not None:
                gone[spot.number] = spot.text
            elif spot.new:
                added.append((spot.after, spot.text))
        ties = _ties(standing)
        if not (gone or added or ties):
            return None
        content = edit(entry.content, replace=gone, add=added) if gone or added else entry.content
        if not content.strip():
            return Change(
                action="delete", path=entry.path, entry_id=entry.id, version=entry.version, reason="nothing left"
            )
        own = describe(entry.path, entry.content)
        return Change(
            action="update",
            path=entry.path,
            content=content,
            description=entry.description if entry.description not in ("", own) else describe(entry.path, content),
            entry_id=entry.id,
            version=entry.version,
            ties=ties,
            reason="new facts" if gone or added else "said again",
        )


def _ties(spots: Sequence[Spot]) -> tuple[Tie, ...]:
    return tuple(Tie(line=spot.text, fact_id=fact) for spot in spots for fact in spot.fresh)
