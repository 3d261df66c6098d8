"""A small world for tests of stores: one session store, one memory store, one pipeline, and a clock that is told."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from memory_pipelines.records import (
    Change,
    Fact,
    Item,
    NewItem,
    Pipeline,
    Policy,
    Run,
    Segment,
    Source,
    Tie,
    Window,
)
from memory_pipelines.stores.base import Stores

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def said(text: str, at: datetime | None = None) -> NewItem:
    return NewItem(data={"role": "user", "content": text}, said_at=at)


def texts(items: Any) -> list[str]:
    return [item.data["content"] for item in items]


@dataclass
class World:
    """Shortcuts that a run would take, one step each."""

    stores: Stores
    pipeline: Pipeline
    items: dict[str, list[Item]] = field(default_factory=dict)

    @classmethod
    def make(cls, stores: Stores, policy: Policy | None = None) -> "World":
        stores.sessions.create_store("support", creator="local", now=NOON)
        stores.memories.create_store("support-memory", creator="local", now=NOON)
        pipeline = stores.pipelines.create(
            "nightly",
            session_store="support",
            memory_store="support-memory",
            policy=policy or Policy(),
            creator="local",
            now=NOON,
        )
        return cls(stores, pipeline)

    def say(self, session: str, *words: str, actor: str = "ana", now: datetime = NOON) -> list[Item]:
        stored = self.stores.sessions.append(
            "support", session, [said(word) for word in words], actor_id=actor, now=now
        )
        self.items.setdefault(session, []).extend(stored)
        return stored

    def ask(self, now: datetime = NOON, **named: Any) -> Run:
        return self.stores.pipelines.ask("nightly", **{"asked_by": "cli", "model": "offline", "now": now, **named})

    def begin(self, run: Run, actor: str = "ana") -> Any:
        return self.stores.progress.begin(self.pipeline, run.number, actor, now=NOON)

    def unread(self, begun: Any, actor: str = "ana") -> dict[str, list[str]]:
        news = self.stores.progress.news(self.pipeline, actor, begun.targets)
        return {one.session.id: texts(one.items) for one in news}

    def fact(self, name: str, item: Item, *, actor: str = "ana", basis: str = "b1", **named: Any) -> Fact:
        return Fact(
            **{
                "id": name,
                "actor_id": actor,
                "text": f"Fact {name}",
                "kind": "fact",
                "quote": item.data["content"],
                "source": Source(
                    session_store="support",
                    session_id=item.session_id,
                    item_id=item.id,
                    position=item.position,
                    start=0,
                    end=len(item.data["content"]),
                ),
                "observed_at": item.said_at,
                "pipeline_id": "nightly",
                "run": 1,
                "window_id": f"w-{item.session_id}",
                "model": "offline",
                "basis": basis,
                **named,
            }
        )

    def distill(self, run: Run, session: str, first: int, last: int, *facts: Fact, actor: str = "ana") -> None:
        self.stores.progress.commit_window(
            self.pipeline, run.number, actor, window(session, first, last), facts, dropped={}, now=NOON
        )

    def merge(self, run: Run, *changes: Change, actor: str = "ana", **settled: Any) -> None:
        self.stores.progress.commit_merge(self.pipeline, run.number, actor, changes, settled, dropped={}, now=NOON)

    def end(self, run: Run, actor: str = "ana", state: Any = "succeeded", now: datetime = NOON, **named: Any) -> None:
        self.stores.progress.end_actor(self.pipeline, run.number, actor, state=state, now=now, **named)

    def remember(self, *lines: str, path: str = "/topics/home.md", actor: str = "ana", session: str = "s1") -> Any:
        """Let a whole run store an entry of which each line rests on a fact of its own, named f1, f2, ..."""
        items = self.say(session, *lines, actor=actor)
        run = self.ask()
        self.begin(run, actor)
        facts = [self.fact(f"f{n}", item, actor=actor) for n, item in enumerate(items, start=1)]
        self.distill(run, session, items[0].position, items[-1].position, *facts, actor=actor)
        ties = tuple(Tie(line=f"- {line}", fact_id=fact.id) for line, fact in zip(lines, facts, strict=True))
        content = "\n".join(f"- {line}" for line in lines)
        change = Change(action="create", path=path, content=content, ties=ties)
        self.merge(run, change, actor=actor, **{fact.id: "merged" for fact in facts})
        self.end(run, actor)
        self.stores.pipelines.close("nightly", run.number, state="SUCCEEDED", error=None, now=NOON)
        return self.stores.progress.entries(self.pipeline, actor)[0]

    def pending(self) -> dict[str, int]:
        return {row.actor_id: row.version for row in self.stores.pipelines.pending("nightly")}


def window(session: str, first: int, last: int, name: str | None = None) -> Window:
    segment = Segment(session_id=session, first=first, last=last)
    return Window(id=name or f"w-{session}-{first}-{last}", segments=(segment,), turns=())


def update(entry: Any, content: str, *ties: Tie, **named: Any) -> Change:
    return Change(
        **{
            "action": "update",
            "path": entry.path,
            "content": content,
            "entry_id": entry.id,
            "version": entry.version,
            "ties": ties,
            **named,
        }
    )


def delete(entry: Any) -> Change:
    return Change(action="delete", path=entry.path, entry_id=entry.id, version=entry.version)
