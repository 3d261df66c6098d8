"""A run killed at any point and run again ends where an undisturbed run ends, and pays for no recorded call twice."""

import json
import shutil
import signal
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from crash_child import MAX_ENTRY_CHARS, SAID, Point, lines, run, talk
from stage import PIPELINE, play

from memory_pipelines.errors import RunInFlightError
from memory_pipelines.wiring import utc_now

POINTS = [
    Point("complete", "before", 5, "distill"),
    Point("complete", "after", 5, "distill"),
    Point("commit_window", "inside", 3),
    Point("commit_window", "after", 3),
    Point("record_call", "after", 2, "merge"),
    Point("commit_merge", "inside", 3),
    Point("commit_merge", "after", 3),
    Point("commit_maintain", "inside", 1),
    Point("end_actor", "before", 2),
]
LATER = timedelta(minutes=10)  # the dead run's lease is over

STATE = {
    "entries": "SELECT actor_id, path, content, description, source_type, version FROM entries",
    "facts": "SELECT id, actor_id, text, quote, kind, topic, state, session_id, item_id, position, start, end,"
    " observed_at, window_id, basis FROM facts",
    "marks": "SELECT session_id, distilled, checkpoint FROM marks",
    "windows": "SELECT id, state, segments FROM windows",
    "revisions": "SELECT actor_id, path, version, action, content, stage, reason FROM revisions",
    "ties": "SELECT path, ties.line, fact_id FROM ties JOIN entries ON entries.id = entry_id",
    "pending": "SELECT actor_id FROM pending",
    "calls": "SELECT key FROM calls",
}


def query(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "home" / "memory.db")) as connection:
        return connection.execute(sql).fetchall()


def state(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(query(folder, sql)) for name, sql in STATE.items()}


def check(folder: Path, undisturbed: Path, *, kills: int, concurrency: int = 1) -> None:
    """Compare what became of a folder in which runs were killed and one was not."""
    assert json.loads((folder / "ended").read_text())[0] == "SUCCEEDED"
    assert state(folder) == state(undisturbed)
    finished, recorded = lines(folder / "finished"), lines(folder / "recorded")
    assert set(finished) == set(lines(undisturbed / "finished"))  # nothing else was asked, and nothing was left out
    assert set(recorded.values()) == {1}
    assert (finished - recorded).total() <= kills * concurrency  # ended in the moment before its record
    (paid,) = query(folder, "SELECT sum(calls) FROM usage")[0]
    late = kills * concurrency if concurrency > 1 else 0  # recorded by another actor, and killed before it was noted
    assert 0 <= paid - recorded.total() <= late


def killed_and_run_again(undisturbed: Path, folder: Path, point: Point, *, concurrency: int = 1) -> None:
    begin(folder, undisturbed)
    assert run(folder, point, concurrency=concurrency) == -signal.SIGKILL
    before = lines(folder / "recorded")

    assert run(folder, late=LATER, concurrency=concurrency) == 0

    check(folder, undisturbed, kills=1, concurrency=concurrency)
    again = lines(folder / "finished") - lines(undisturbed / "finished")
    assert not set(again) & set(before)
    states = query(folder, "SELECT number, state FROM runs ORDER BY number")
    (succeeded,) = query(folder, "SELECT count(*) FROM actor_results WHERE run = 1 AND state = 'succeeded'")[0]
    # Killed when every actor had succeeded, the run has succeeded; else it failed, and says so.
    assert states == [(1, "SUCCEEDED" if succeeded == len(SAID) else "FAILED"), (2, "SUCCEEDED")]


def begin(folder: Path, undisturbed: Path) -> None:
    """Lay the same conversations into a folder."""
    shutil.copytree(undisturbed.with_name("start"), folder, dirs_exist_ok=True)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    start = tmp_path_factory.mktemp("crash") / "start"
    with play(start, max_entry_chars=MAX_ENTRY_CHARS) as stage:
        talk(stage)
    folder = start.with_name("undisturbed")
    shutil.copytree(start, folder)
    assert run(folder) == 0
    found = state(folder)
    assert len(found["facts"]) == sum(len(texts) for sessions in SAID.values() for texts in sessions)
    assert {row[6] for row in found["facts"]} == {"merged", "superseded"}
    assert {(row[0], row[1], row[2]) for row in found["marks"]} == {
        (f"{actor}-{number}", len(texts), len(texts))
        for actor, sessions in SAID.items()
        for number, texts in enumerate(sessions)
    }
    assert found["pending"] == found["calls"] == []
    finished = lines(folder / "finished")
    assert set(finished.values()) == {1}
    assert {call.split()[0] for call in finished} == {"distill", "merge", "maintain"}
    return folder


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_killed_and_run_again(undisturbed: Path, tmp_path: Path, point: Point) -> None:
    killed_and_run_again(undisturbed, tmp_path, point)


def test_a_dead_run_holds_its_pipeline_until_its_lease_is_over(undisturbed: Path, tmp_path: Path) -> None:
    begin(tmp_path, undisturbed)
    assert run(tmp_path, Point("commit_merge", "before", 2)) == -signal.SIGKILL
    clock = [utc_now()]

    with play(tmp_path, clock=lambda: clock[0]) as stage:
        with pytest.raises(RunInFlightError, match="memory-pipelines/support/runs/1"):
            stage.app.pipelines.run(PIPELINE)
        clock[0] += timedelta(seconds=70)
        (closed,) = stage.app.stores.pipelines.close_over(now=clock[0])
        states = {one.state for one in stage.app.pipelines.results("1", pipeline=PIPELINE)}

        assert (closed.number, closed.state) == (1, "FAILED")
        assert "ended without a word" in (closed.error or "")
        assert not states & {"waiting", "running"}
        assert {one.actor_id for one in stage.app.pipelines.pending(PIPELINE)} == set(SAID)
        assert stage.app.pipelines.run(PIPELINE).number == 2
