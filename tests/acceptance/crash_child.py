"""Runs a pipeline in a process of its own that kills itself at a named point."""

import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Engine, event
from stage import PIPELINE, Play, honest, play

from memory_pipelines.gateway.base import Request
from memory_pipelines.runner import merging
from memory_pipelines.wiring import utc_now

SAID = {
    "ana": [
        ("I like my coffee black and strong in the morning.", "I live in Porto near the old harbour."),
        ("I like my coffee black, not strong, in the morning.", "I moved to Lisbon in the spring."),
        ("I prefer short answers with the result first.", "I prefer short answers with one example."),
    ],
    "ben": [
        ("I live in Oslo with my sister Inga.",),
        ("I like skiing in the winter with my sister.", "I prefer metric units in every table."),
        ("I like skiing in the winter with my brother.", "I prefer tables to charts in a report."),
    ],
    "cleo": [
        ("I like jazz on Sunday evenings at home.",),
        ("I prefer line charts for trends in a report.", "I prefer bar charts for shares in a report."),
        ("I live near the harbour of Izmir.", "I like jazz on Monday evenings at home."),
    ],
    "dev": [("I like tea.",), ("I live in Pune.",), ("I prefer mail to calls.",)],
}
MAX_ENTRY_CHARS = 200
RULES = {"merge": "submit(await suggest_merge())", "maintain": "submit(await suggest_maintenance())"}

SLOW = [
    "memory_pipelines.orchestration.here",
    "memory_pipelines.wiring",
    "alembic.command",
    "dagster._core.instance.factory",
    "dagster._daemon.types",
    "dateparser",
    "detect_secrets.core.scan",
    "rich.traceback",
    "structlog",
]
"""Modules that every run imports; imported once, they make a run half as long."""

When = Literal["before", "inside", "after"]
"""inside: when everything is written and nothing is committed."""


@dataclass(frozen=True)
class Point:
    """Where a process dies: at the call of this number of a method of the stores, or of the model (`complete`)."""

    method: str
    when: When
    number: int = 1
    stage: str = ""  # only calls of this stage count

    def __str__(self) -> str:
        return "-".join(filter(None, (self.method, self.stage, self.when, str(self.number))))


class Doom:
    """Ends the process when its point is reached."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.calls = 0
        self.inside: int | None = None  # the thread that makes the call; others commit meanwhile

    def enter(self, *stages: object) -> bool:
        """Count a call, and die before it; return whether it is the one."""
        if self.point.stage and self.point.stage not in stages:
            return False
        self.calls += 1
        due = self.calls == self.point.number
        if due and self.point.when == "before":
            die()
        if due and self.point.when == "inside":
            self.inside = threading.get_ident()
        return due

    def leave(self, due: bool) -> None:
        """Die after the call."""
        if due and self.point.when == "after":
            die()

    def commit(self, *_: object) -> None:
        """Die when a transaction of the call is about to be committed."""
        if self.inside == threading.get_ident():
            die()

    def wrap(self, owner: Any) -> None:
        """Watch a method of a store."""
        real = getattr(owner, self.point.method)

        def wrapped(*args: Any, **named: Any) -> Any:
            due = self.enter(*(one for one in (*args, *named.values()) if isinstance(one, str | int)))
            result = real(*args, **named)
            self.leave(due)
            return result

        setattr(owner, self.point.method, wrapped)


def die() -> None:
    """End as a machine without power does."""
    os.kill(os.getpid(), signal.SIGKILL)


def note(path: Path, line: str) -> None:
    """Append a line that survives the process."""
    with path.open("a") as file:
        file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())


def key_of(request: Request) -> str:
    """Name a call by its stage and all that it asks."""
    return f"{request.purpose} {hashlib.sha256(request.model_dump_json().encode()).hexdigest()[:16]}"


def model(folder: Path, doom: Doom | None) -> Callable[[Request], str]:
    """Answer as a function of the request alone, noting each finished call."""

    def answers(request: Request) -> str:
        if request.purpose == "preflight":
            return "ok"
        watched = doom if doom and doom.point.method == "complete" else None
        due = watched.enter(request.purpose) if watched else False
        block = RULES.get(request.purpose)
        answer = f"```python\n{block}\n```" if block else honest(request)
        note(folder / "finished", key_of(request))
        if watched:
            watched.leave(due)
        return answer

    return answers


def note_records(folder: Path, progress: Any) -> None:
    """Note each call that the journal holds."""
    real = progress.record_call

    def record_call(*args: Any, **named: Any) -> None:
        real(*args, **named)
        note(folder / "recorded", f"{named['stage']} {named['key'][:16]}")

    progress.record_call = record_call


def talk(stage: Play) -> None:
    """Say everything."""
    for actor, sessions in SAID.items():
        for number, texts in enumerate(sessions):
            stage.say(actor, f"{actor}-{number}", *texts, day=number)


def work(folder: Path, point: Point | None, late: timedelta, concurrency: int) -> None:
    """Run once, in a process that may die of it; how the run ended is written to the folder."""
    for name in [one for one in os.environ if one.startswith("MEMORY_PIPELINES_")]:
        del os.environ[name]
    merging.MERGE_FACTS = 2  # several sets an actor, from a few facts
    doom = Doom(point) if point else None
    with play(folder, model(folder, doom), clock=lambda: utc_now() + late) as stage:
        stage.app.pipelines.update(PIPELINE, concurrency=concurrency)
        note_records(folder, stage.app.stores.progress)
        if doom and doom.point.method != "complete":
            stores = stage.app.stores
            owner = next(one for one in (stores.progress, stores.pipelines) if hasattr(one, doom.point.method))
            doom.wrap(owner)
            event.listen(Engine, "commit", doom.commit)
        summary = stage.run()
        (folder / "ended").write_text(json.dumps([summary.run.state, summary.run.error]))


def run(
    folder: Path,
    point: Point | None = None,
    *,
    late: timedelta = timedelta(0),
    concurrency: int = 1,
    after: float | None = None,
) -> int | None:
    """Work in a new process and return its exit code.

    Args:
        folder: of the database and of what the process notes.
        point: where it kills itself; None for nowhere.
        late: how far its clock is ahead.
        concurrency: actors at once.
        after: seconds after which it is killed from outside.
    """
    folder.mkdir(exist_ok=True)
    (folder / "ended").unlink(missing_ok=True)
    context = multiprocessing.get_context("forkserver")  # imports what is slow to import once
    context.set_forkserver_preload(SLOW)
    process = context.Process(target=work, args=(folder, point, late, concurrency))
    process.start()
    process.join(after if after is not None else 100)
    if process.is_alive():
        process.kill()
        process.join()
    code = process.exitcode
    process.close()
    return code


def lines(path: Path) -> Counter[str]:
    """Return the lines that were noted in a file, each with how often."""
    return Counter(path.read_text().splitlines()) if path.exists() else Counter()
