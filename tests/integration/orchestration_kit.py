"""What the tests of the orchestration share: real stores and a real Dagster instance, and a runner by script."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import dagster as dg

from memory_pipelines.errors import MemoryPipelinesError
from memory_pipelines.orchestration.build import build_definitions
from memory_pipelines.orchestration.crew import Pace
from memory_pipelines.orchestration.keys import memory_key, partition_key, partitions_name
from memory_pipelines.records import STAGES, ActorResult, NewItem, Pipeline, Run, Stage
from memory_pipelines.runner import Runner
from memory_pipelines.settings import Settings, read_settings
from memory_pipelines.testing import ScriptedGateway
from memory_pipelines.wiring import App, open_app

QUICK = Pace(retry_seconds=0, heartbeat_seconds=0.02)
PIPELINE = "support-memory"


class FakeRunner:
    """Walks actors through the stages without a model; `trouble` lists what goes wrong, call by call."""

    def __init__(self, real: Runner, app: App) -> None:
        self.real = real
        self.app = app
        self.calls: list[tuple[str, str]] = []
        self.trouble: dict[tuple[str, str], list[Exception]] = {}
        self.preflights: list[Exception] = []
        self.hang: set[str] = set()
        self.cancelled: list[str] = []

    def model_of(self, pipeline: Pipeline) -> str:
        return self.real.model_of(pipeline)

    async def preflight(self, pipeline: Pipeline, run: Run) -> None:
        self.calls.append(("", "preflight"))
        if self.preflights:
            raise self.preflights.pop(0)

    async def advance(self, pipeline: Pipeline, run: Run, actor_id: str, through: Stage) -> ActorResult:
        progress, now = self.app.stores.progress, self.app.clock()
        done = progress.begin(pipeline, run.number, actor_id, now=now).stages
        for number, stage in enumerate(STAGES[: STAGES.index(through) + 1], start=1):
            if done >= number:
                continue
            self.calls.append((actor_id, stage))
            if actor_id in self.hang:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    self.cancelled.append(actor_id)
                    raise
            await asyncio.sleep(0)
            if self.trouble.get((actor_id, stage)):
                raise self.trouble[actor_id, stage].pop(0)
            progress.stage_done(pipeline, run.number, actor_id, number)
        return progress.begin(pipeline, run.number, actor_id, now=now)

    def end(self, pipeline: Pipeline, run: Run, actor_id: str, error: MemoryPipelinesError | None) -> None:
        self.real.end(pipeline, run, actor_id, error)


@dataclass
class House:
    """An app with one pipeline, its actors pending, and a Dagster instance."""

    app: App
    runner: FakeRunner
    instance: dg.DagsterInstance
    settings: Settings
    clock: list[datetime]
    events: list[tuple[str, str, str]] = field(default_factory=list)

    def definitions(self) -> dg.Definitions:
        return build_definitions(self.settings, make_app=lambda: self.app, pace=QUICK)

    def ask(self, *, launch: bool = True) -> Run:
        return self.app.pipelines.run(PIPELINE, launch=launch)

    def run_row(self, number: int = 1) -> Run:
        return self.app.stores.pipelines.get_run(PIPELINE, number)

    def states(self, number: int = 1) -> dict[str, str]:
        return {one.actor_id: one.state for one in self.app.stores.pipelines.results(PIPELINE, number)}

    def colours(self) -> dict[str, str | None]:
        """Each actor's partition as the UI shows it: MATERIALIZED is green, FAILED red, None grey."""
        name = partitions_name(PIPELINE)
        actors = {partition_key(one): one for one in self.actors()}
        found = self.instance.get_status_by_partition(
            memory_key(PIPELINE), list(actors), dg.DynamicPartitionsDefinition(name=name)
        )
        found = found or dict.fromkeys(actors)  # nothing has happened to the asset yet
        return {actors[key]: status and status.value for key, status in found.items()}

    def actors(self) -> list[str]:
        return sorted({one.actor_id for one in self.app.sessions.list("support")})

    def say(self, actor_id: str, text: str = "I live in Lisbon") -> None:
        self.app.stores.sessions.append(
            "support",
            f"session-of-{actor_id}",
            [NewItem(data={"role": "user", "content": text}, said_at=self.app.clock())],
            actor_id=actor_id,
            now=self.app.clock(),
        )


@contextmanager
def house(tmp_path: Path, start: datetime, actors: int = 3, **policy: object) -> Iterator[House]:
    """Open a house in a folder; its clock stands still unless a test moves it."""
    settings = read_settings(home=tmp_path / "home", kernel="inprocess", trajectories=False)
    clock = [start]
    app = open_app(settings, gateway=ScriptedGateway([]), clock=lambda: clock[0])
    fake = FakeRunner(app.runner, app)
    app.runner = fake  # type: ignore[assignment]
    app.close, close = lambda: None, app.close  # type: ignore[method-assign]
    app.sessions.create_store("support")
    app.memory.create_store("support-memory")
    with dg.DagsterInstance.ephemeral() as instance:
        made = House(app, fake, instance, settings, clock)
        for number in range(actors):
            made.say(f"actor-{number}")
        app.pipelines.create(session_store="support", memory_store="support-memory", pipeline=PIPELINE, **policy)
        yield made
    close()
