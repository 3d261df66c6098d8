"""`memory-pipelines dev` as a user has it: UI, daemon and code location; an appended session flows; Ctrl-C ends all."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from test_quickstart import COMMAND, run

from memory_pipelines.errors import MemoryPipelinesError
from memory_pipelines.orchestration import dev
from memory_pipelines.settings import read_settings

PATIENCE = 90.0  # seconds; a busy machine starts Dagster slowly
# A shell script's `&` makes a command ignore interrupts, until it says otherwise.
IN_BACKGROUND = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
DAGSTERS = 6  # processes: ours, Dagster's, its UI, its daemon and the code location, whose server has one of its own
MORE = {
    "actor_id": "nina",
    "session_id": "nina-1",
    "items": [{"role": "user", "content": "I prefer answers in German.", "at": "2026-09-21T08:00:00Z"}],
}


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def until(true: Callable[[], bool]) -> bool:
    """Look again and again until something is so, for as long as patience lasts."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.5)
    return False


def asked(port: int, query: str) -> str:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql",
        data=json.dumps({"query": query}).encode(),
        headers={"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return ""


def test_dev_serves_runs_and_ends(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    assert run(tmp_path, "quickstart").returncode == 0
    port = free_port()
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    with (tmp_path / "dev.log").open("w") as log:
        started = subprocess.Popen(
            [*IN_BACKGROUND, *COMMAND, "dev", "--port", str(port)],
            cwd=tmp_path,
            env={**kept, "HOME": str(tmp_path / "home")},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        assert until(lambda: len(processes(tmp_path)) >= DAGSTERS)
        seen = "{ assetNodes { assetKey { path } partitionStats { numMaterialized } } }"
        assert until(lambda: '"sample"' in asked(port, seen)), (tmp_path / "dev.log").read_text()
        assert '"numMaterialized":8' in asked(port, seen)

        (tmp_path / "more.jsonl").write_text(json.dumps(MORE) + "\n")
        assert run(tmp_path, "import", "native", "more.jsonl", "--store", "sample-sessions").returncode == 0
        look = ("memory", "render", "sample-memory", "--actor", "nina")
        assert until(lambda: "answers in German" in run(tmp_path, *look).stdout), (tmp_path / "dev.log").read_text()
        assert until(lambda: '"numMaterialized":9' in asked(port, seen))

        taken = run(tmp_path, "dev", "--port", str(port))
        assert taken.returncode == 2
        assert f"{port}" in taken.stderr
        assert "--port" in taken.stderr
    finally:
        started.send_signal(signal.SIGINT)
        try:
            code = started.wait(30)
        finally:
            left = processes(tmp_path)
            for one in left:
                os.kill(one, signal.SIGKILL)
    assert code == 0
    assert not left
    assert "Dagster services shut down" in (tmp_path / "dev.log").read_text()  # by themselves, not killed


def test_dagster_that_ends_by_itself_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(host: str, port: int) -> list[str]:
        return [sys.executable, "-c", "raise SystemExit(0)"]  # what `dagster dev` answers when its daemon died

    monkeypatch.setattr(dev, "dev_command", ends)
    heard = signal.getsignal(signal.SIGINT)
    with pytest.raises(MemoryPipelinesError, match="ended by itself"):
        dev.run_dev(read_settings(home=tmp_path), port=free_port())
    assert signal.getsignal(signal.SIGINT) is heard


def processes(folder: Path) -> list[int]:
    """Return the processes that know of a folder by their environment."""
    found: list[int] = []
    for one in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # gone meanwhile, or somebody else's
            if os.fsencode(folder) in one.read_bytes():
                found.append(int(one.parent.name))
    return found
