"""Several processes on one database: one run at a time, and no item lost or doubled."""

import asyncio
import multiprocessing
from collections import Counter
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

from stage import MEMORY, PIPELINE, SESSIONS, honest, play, shown

from memory_pipelines.errors import RunInFlightError
from memory_pipelines.gateway.base import Request
from memory_pipelines.settings import read_settings
from memory_pipelines.testing import ScriptedGateway
from memory_pipelines.wiring import App, open_app

PATIENCE = 60  # seconds, of a test that has failed


def opened(folder: Path) -> App:
    return open_app(read_settings(home=folder / "home", model="scripted"), gateway=ScriptedGateway([]))


def context() -> ForkServerContext:
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["memory_pipelines.orchestration.here", "memory_pipelines.wiring", "alembic.command"])
    return found


def together(work: Callable[..., None], number: int, *args: Any) -> list[Any]:
    """Do the same in so many processes that begin at the same moment; return what each had to say."""
    made = context()
    start, said = made.Barrier(number), made.SimpleQueue()
    processes = [made.Process(target=work, args=(start, said, one, *args)) for one in range(number)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)
    assert [process.exitcode for process in processes] == [0] * number
    return [said.get() for _ in processes]


def ask(start: Any, said: Any, number: int, folder: Path) -> None:
    app = opened(folder)
    start.wait(PATIENCE)
    try:
        said.put(("run", app.pipelines.run(PIPELINE, launch=False).number))
    except RunInFlightError as error:
        said.put((error.status, error.message, error.facts["run"]))
    app.close()


def test_of_two_that_ask_at_once_one_gets_the_run_and_the_other_its_name(tmp_path: Path) -> None:
    with play(tmp_path) as stage:
        stage.say("ana", "s1", "I live in Oslo.")
        for number in (1, 2, 3):
            won, lost = sorted(together(ask, 2, tmp_path), key=lambda one: one[0] != "run")

            name = f"memory-pipelines/{PIPELINE}/runs/{number}"
            assert won == ("run", number)
            assert (lost[0], lost[2]) == ("ABORTED", name)
            assert name in lost[1]
            stage.app.pipelines.cancel(name)


def append(start: Any, said: Any, number: int, folder: Path, session: str | None, halfway: Any) -> None:
    app = opened(folder)
    start.wait(PATIENCE)
    for item in range(EACH):
        app.sessions.append(
            SESSIONS,
            session or f"s-{number}",
            actor_id="ana" if session else f"actor-{number}",
            items=[{"role": "user", "content": text_of(number, item)}],
        )
        if halfway is not None and item == EACH // 2:
            halfway.set()
    said.put(number)
    app.close()


EACH = 12


def text_of(number: int, item: int) -> str:
    return f"I like the colour {number * EACH + item} of the box."


def test_what_is_appended_during_a_run_is_the_next_runs(tmp_path: Path) -> None:
    made = context()
    started, halfway = made.Event(), made.Event()
    heard: Counter[str] = Counter()

    async def answers(request: Request) -> str:
        if request.purpose == "distill":
            heard.update(line for line in shown(request).splitlines() if "I like" in line or "I live" in line)
            started.set()
            await asyncio.to_thread(halfway.wait, PATIENCE)
        return honest(request)

    with play(tmp_path, answers) as stage:
        stage.say("ana", "s1", "I live in Oslo.")
        done = made.SimpleQueue()
        writers = [
            made.Process(target=append, args=(started, done, number, tmp_path, "s1", halfway)) for number in range(4)
        ]
        for writer in writers:
            writer.start()
        first = stage.run()
        for writer in writers:
            writer.join(PATIENCE)
        assert [writer.exitcode for writer in writers] == [0] * 4

        assert halfway.is_set()
        assert (first.run.state, first.items, first.facts) == ("SUCCEEDED", 1, 1)
        items = list(stage.app.sessions.items(SESSIONS, "s1"))
        said = {text_of(number, item) for number in range(4) for item in range(EACH)}
        assert [one.position for one in items] == list(range(1, 4 * EACH + 2))
        assert Counter(one.data["content"] for one in items[1:]) == Counter(said)
        for number in range(4):  # each writer's own order is kept
            own = [text_of(number, item) for item in range(EACH)]
            assert [one.data["content"] for one in items if one.data["content"] in own] == own
        assert [one.actor_id for one in stage.app.pipelines.pending(PIPELINE)] == ["ana"]

        second = stage.run()

        assert (second.run.state, second.items, second.facts) == ("SUCCEEDED", 4 * EACH, 4 * EACH)
        assert set(heard.values()) == {1}
        assert len(heard) == 4 * EACH + 1
        lines = Counter(line for text in stage.memory("ana").values() for line in text.splitlines())
        assert lines == Counter(["- I live in Oslo.", *(f"- {text}" for text in said)])
        facts = stage.app.stores.memories.facts_of(MEMORY, actor_id="ana")
        assert sorted(fact.source.position for _, fact in facts) == list(range(1, 4 * EACH + 2))
        assert stage.app.pipelines.pending(PIPELINE) == []


def fill(start: Any, said: Any, number: int, folder: Path) -> None:
    start.wait(PATIENCE)
    app = opened(folder)  # all at once, on a database that does not exist yet
    if number == 0:
        app.sessions.create_store(SESSIONS)
    start.wait(PATIENCE)
    append(start, said, number, folder, None, None)
    app.close()


def test_eight_processes_fill_a_new_database(tmp_path: Path) -> None:
    assert sorted(together(fill, 8, tmp_path)) == list(range(8))

    app = opened(tmp_path)
    assert app.sessions.counts(SESSIONS) == {"actors": 8, "sessions": 8, "items": 8 * EACH}
    for number in range(8):
        items = [one.data for one in app.sessions.items(SESSIONS, f"s-{number}")]
        assert [one["content"] for one in items] == [text_of(number, item) for item in range(EACH)]
    app.close()
