"""What the tests of the runner share: real stores, a model by script, and runs that are advanced by hand."""

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory_pipelines.errors import MemoryPipelinesError
from memory_pipelines.gateway.base import Request
from memory_pipelines.records import Entry, Fact, NewItem, Run, Stage
from memory_pipelines.settings import read_settings
from memory_pipelines.testing import Answer, ScriptedGateway
from memory_pipelines.wiring import App, open_app

PIPELINE = "talk-memory"
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BLOCKS = {"merge": "submit(await suggest_merge())", "maintain": "submit(await suggest_maintenance())"}


def shown(request: Request) -> str:
    return "\n".join(message.content for message in request.messages)


def honest(request: Request) -> str:
    """Answer distill with the sentences that begin with I, and the rest by the stages' own rules."""
    if request.purpose in BLOCKS:
        return f"```python\n{BLOCKS[request.purpose]}\n```"
    said = re.findall(r"\bI (?:like|live|prefer|moved|keep)[^.\n]*\.", shown(request))
    return json.dumps([{"text": one, "kind": "fact", "topic": "home"} for one in dict.fromkeys(said)])


@dataclass
class Desk:
    """An app with one pipeline, whose runs are advanced by hand."""

    app: App
    gateway: ScriptedGateway
    folder: Path
    clock: list[datetime]
    answers: list[Callable[[Request], Answer]] = field(default_factory=list)  # the last one counts

    def say(self, *texts: str, session: str, actor: str = "ana", day: int = 0) -> None:
        said_at = START + timedelta(days=day)
        items = [NewItem(data={"role": "user", "content": text}, said_at=said_at) for text in texts]
        self.app.sessions.append("talk", session, actor_id=actor, items=items)

    def ask(self) -> Run:
        return self.app.pipelines.run(PIPELINE, launch=False)

    def advance(self, run: Run, actor: str = "ana", through: Stage = "maintain") -> None:
        asyncio.run(self.app.runner.advance(self.app.pipelines.get(PIPELINE), run, actor, through))

    def close(self, run: Run, error: MemoryPipelinesError | None = None, actor: str = "ana") -> None:
        """End an actor and the run."""
        self.app.runner.end(self.app.pipelines.get(PIPELINE), run, actor, error)
        state = "FAILED" if error else "SUCCEEDED"
        self.app.stores.pipelines.close(PIPELINE, run.number, state=state, error=None, now=self.clock[0])

    def run(self, actor: str = "ana") -> MemoryPipelinesError | None:
        """Do a whole run for one actor and return its error."""
        run, failed = self.ask(), None
        try:
            self.advance(run, actor)
        except MemoryPipelinesError as error:
            failed = error
        self.close(run, failed, actor)
        return failed

    def unmerged(self, actor: str = "ana") -> list[Fact]:
        return self.app.stores.progress.unmerged(self.app.pipelines.get(PIPELINE), actor)

    def entries(self, actor: str = "ana") -> list[Entry]:
        return list(self.app.memory.list("memory", actor_id=actor))

    def lines(self, actor: str = "ana") -> list[str]:
        return sorted(line.removeprefix("- ") for one in self.entries(actor) for line in one.content.splitlines())

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "home" / "memory.db")) as opened:
            return sorted(opened.execute(sql).fetchall())

    def marks(self) -> dict[str, tuple[int, int]]:
        rows = self.query("SELECT session_id, distilled, checkpoint FROM marks")
        return {session: (distilled, checkpoint) for session, distilled, checkpoint in rows}

    def purposes(self) -> list[str]:
        return [request.purpose for request in self.gateway.requests]

    def asked_about(self, text: str) -> int:
        return sum(text in shown(request) for request in self.gateway.requests if request.purpose == "distill")


@contextmanager
def open_desk(folder: Path) -> Iterator[Desk]:
    """Open a desk whose clock stands still unless a test moves it."""
    clock = [START + timedelta(days=30)]
    answers: list[Callable[[Request], Answer]] = [honest]
    gateway = ScriptedGateway(lambda request: answers[-1](request))
    settings = read_settings(home=folder / "home", kernel="inprocess", model="scripted")
    app = open_app(settings, gateway=gateway, clock=lambda: clock[0])
    app.sessions.create_store("talk")
    app.memory.create_store("memory")
    app.pipelines.create(session_store="talk", memory_store="memory", pipeline=PIPELINE)
    yield Desk(app, gateway, folder, clock, answers)
    app.close()
