"""`memory-pipelines dev` as a user has it: UI, daemon and code location; an appended session flows; Ctrl-C ends all."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from test_quickstart import COMMAND, run

PATIENCE = 90.0  # seconds; a busy machine starts Dagster slowly
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
        dev = subprocess.Popen(
            [*COMMAND, "dev", "--port", str(port)],
            cwd=tmp_path,
            env={**kept, "HOME": str(tmp_path / "home")},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
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
        dev.send_signal(signal.SIGINT)
        try:
            dev.wait(30)
        finally:
            left = until_gone(dev.pid)
    assert not left


def until_gone(group: int) -> bool:
    """Wait until no process of the group is left; return whether one is, after ending it."""

    def gone() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    if until(gone):
        return False
    os.killpg(group, signal.SIGKILL)
    return True
