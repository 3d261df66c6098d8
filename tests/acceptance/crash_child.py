"""Runs a pipeline in a process of its own that kills itself at a named point: FOLDER METHOD WHEN NUMBER."""

import hashlib
import os
import signal
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from stage import Play, honest, play, shown

from memory_pipelines.gateway.base import Request
from memory_pipelines.wiring import utc_now

SAID = {
    "ana": [("I like black coffee.", "I live in Porto."), ("I moved to Lisbon.",), ("I prefer short answers.",)],
    "ben": [("I live in Oslo.",), ("I like skiing in the winter.", "I prefer metric units.")],
    "cleo": [("I like jazz.",), ("I prefer line charts for trends.",), ("I live near the harbour of Izmir.",)],
}


def counted(folder: Path) -> Callable[[Request], str]:
    """Answer as an honest model, noting each finished call on disk."""

    def answers(request: Request) -> str:
        answer = honest(request)
        if request.purpose != "preflight":
            key = hashlib.sha256(shown(request).encode()).hexdigest()
            with (folder / "calls").open("a") as calls:
                calls.write(f"{request.purpose} {key}\n")
        return answer

    return answers


def talk(stage: Play) -> None:
    """Say everything, unless it was said."""
    if any(True for _ in stage.app.sessions.list("support-sessions")):
        return
    for actor, sessions in SAID.items():
        for number, texts in enumerate(sessions):
            stage.say(actor, f"{actor}-{number}", *texts, day=number)


def die_at(stage: Play, method: str, when: str, number: int) -> None:
    """Wrap a method of the store that runs commit to, so that its call of this number ends the process."""
    progress: Any = stage.app.stores.progress
    real, calls = getattr(progress, method), [0]

    def wrapped(*args: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == number and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*args, **named)
        if calls[0] == number and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(progress, method, wrapped)


def main(folder: Path, method: str, when: str, number: int) -> None:
    """Run once; without a method to the end, ten minutes later, when the dead run's lease is over."""
    late = timedelta(0) if method != "none" else timedelta(minutes=10)

    def clock() -> datetime:
        return utc_now() + late

    with play(folder, counted(folder), clock=clock, concurrency=1) as stage:
        talk(stage)
        if method != "none":
            die_at(stage, method, when, number)
        summary = stage.run()
        print(summary.run.state, summary.run.error)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
