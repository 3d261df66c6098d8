"""A run killed at any point and run again ends where an undisturbed run ends, and pays for no finished call twice."""

import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from crash_child import SAID

CHILD = Path(__file__).with_name("crash_child.py")
POINTS = [
    ("record_call", "before", 2),
    ("record_call", "after", 2),
    ("commit_window", "before", 3),
    ("commit_window", "after", 3),
    ("stage_done", "before", 1),
    ("commit_merge", "before", 2),
    ("commit_merge", "after", 1),
    ("end_actor", "before", 2),
]

STATE = {
    "entries": "SELECT actor_id, path, content, description, source_type FROM entries ORDER BY 1, 2",
    "facts": "SELECT actor_id, text, quote, kind, state, session_id, position FROM facts ORDER BY 1, 2, 3",
    "marks": "SELECT session_id, distilled, checkpoint FROM marks ORDER BY 1",
    "revisions": "SELECT actor_id, path, version, action, content FROM revisions ORDER BY 1, 2, 3",
    "ties": "SELECT count(*) FROM ties",
    "pending": "SELECT actor_id FROM pending",
    "calls": "SELECT count(*) FROM calls",
}


def run(folder: Path, method: str = "none", when: str = "-", number: int = 0) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, str(CHILD), str(folder), method, when, str(number)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def state(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    with sqlite3.connect(folder / "home" / "memory.db") as connection:
        return {name: connection.execute(sql).fetchall() for name, sql in STATE.items()}


def finished(folder: Path) -> Counter[str]:
    return Counter((folder / "calls").read_text().splitlines())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    done = run(folder)
    assert done.stdout.startswith("SUCCEEDED"), done.stdout + done.stderr
    assert len(state(folder)["facts"]) == sum(len(texts) for sessions in SAID.values() for texts in sessions)
    assert set(finished(folder).values()) == {1}
    return folder


@pytest.mark.parametrize(("method", "when", "number"), POINTS)
def test_killed_and_run_again(undisturbed: Path, tmp_path: Path, method: str, when: str, number: int) -> None:
    killed = run(tmp_path, method, when, number)
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr

    again = run(tmp_path)

    assert again.stdout.startswith("SUCCEEDED"), again.stdout + again.stderr
    assert state(tmp_path) == state(undisturbed)
    repeated = {call: times for call, times in finished(tmp_path).items() if times > 1}
    unrecorded = 1 if (method, when) == ("record_call", "before") else 0  # it ended in the moment before its record
    assert sum(times - 1 for times in repeated.values()) <= unrecorded
    with sqlite3.connect(tmp_path / "home" / "memory.db") as connection:
        states = connection.execute("SELECT number, state FROM runs ORDER BY number").fetchall()
        done = connection.execute("SELECT count(*) FROM actor_results WHERE run = 1 AND state = 'succeeded'").fetchone()
    # Killed when every actor had succeeded, the run has succeeded; else it failed, and says so.
    assert states == [(1, "SUCCEEDED" if done == (len(SAID),) else "FAILED"), (2, "SUCCEEDED")]
