"""What acceptance tests share: an app with a scripted model, and runs through the real Dagster job."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import dagster as dg

from memory_pipelines.gateway.base import Request
from memory_pipelines.orchestration.crew import Pace
from memory_pipelines.orchestration.here import run_here
from memory_pipelines.orchestration.keys import memory_key, partition_key, partitions_name
from memory_pipelines.records import NewItem, RunSummary
from memory_pipelines.settings import read_settings
from memory_pipelines.testing import Answer, ScriptedGateway
from memory_pipelines.wiring import App, open_app, utc_now

PIPELINE, SESSIONS, MEMORY = "support", "support-sessions", "support-memory"
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
QUICK = Pace(retry_seconds=0, heartbeat_seconds=0.05)


def shown(request: Request) -> str:
    """Return all that the model is shown."""
    return "\n".join(message.content for message in request.messages)


def honest(request: Request) -> str:
    """Answer as a good small model would: every sentence of the actor that says what they like or where they live."""
    if request.purpose == "preflight":
        return "ok"
    if request.purpose != "distill":
        return json.dumps({"decisions": [], "operations": []})
    said = re.findall(r"(I (?:like|live|prefer|moved)[^.\n]*\.)", shown(request))
    return json.dumps([{"text": one, "kind": "fact", "quote": one, "topic": "home"} for one in dict.fromkeys(said)])


@dataclass
class Play:
    """An app on a folder, and a Dagster instance."""

    app: App
    instance: dg.DagsterInstance
    gateway: ScriptedGateway
    events: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    def say(self, actor: str, session: str, *texts: str, day: int = 0) -> None:
        said_at = START + timedelta(days=day)
        items = [NewItem(data={"role": "user", "content": text}, said_at=said_at) for text in texts]
        self.app.sessions.append(SESSIONS, session, actor_id=actor, items=items)

    def run(self, pipeline: str = PIPELINE) -> RunSummary:
        asked = self.app.pipelines.run(pipeline, asked_by="here", launch=False)
        told = self.events.append
        run_here(self.app, asked, instance=self.instance, pace=QUICK, on_event=lambda *event: told(event))
        return self.app.pipelines.summary(str(asked.number), pipeline=pipeline)

    def memory(self, actor: str) -> dict[str, str]:
        return {entry.path: entry.content for entry in self.app.memory.list(MEMORY, actor_id=actor)}

    def colours(self, actors: list[str]) -> dict[str, str | None]:
        """Each actor's partition as the UI shows it: MATERIALIZED is green, FAILED red, None grey."""
        keys = {partition_key(one): one for one in actors}
        found = self.instance.get_status_by_partition(
            memory_key(PIPELINE), list(keys), dg.DynamicPartitionsDefinition(name=partitions_name(PIPELINE))
        )
        return {keys[key]: status and status.value for key, status in (found or {}).items()}


@contextmanager
def play(
    folder: Path,
    answers: Callable[[Request], Answer] = honest,
    *,
    clock: Callable[[], datetime] = utc_now,
    kernel: str = "inprocess",
    window_tokens: int = 2000,
    profile: Literal["small", "strong"] = "small",
    **policy: object,
) -> Iterator[Play]:
    """Open an app with one pipeline whose model is `scripted`."""
    gateway = ScriptedGateway(answers, profile=profile)
    settings = read_settings(
        home=folder / "home", model="scripted", kernel=kernel, window_tokens=window_tokens, trajectories=False
    )
    app = open_app(settings, gateway=gateway, clock=clock)
    try:
        if not app.pipelines.list():
            app.sessions.create_store(SESSIONS)
            app.memory.create_store(MEMORY)
            app.pipelines.create(session_store=SESSIONS, memory_store=MEMORY, pipeline=PIPELINE, **policy)
        with dg.DagsterInstance.ephemeral() as instance:
            yield Play(app, instance, gateway)
    finally:
        app.close()
