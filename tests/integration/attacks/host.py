# ruff: noqa: E501 - blocks of code are easier to read on one line
"""What the attacks aim at, how one is tried, and what honest code must still be able to do.

In the code of an attack `{victim}` is a file of the host that anyone may read, `{folder}` its folder, `{port}` a TCP and
UDP port on which the host listens, `{unix}` a datagram socket with a name, `{abstract}` one without a file, `{pid}` a
process of the same user.
"""

import asyncio
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from attacks.attack import Attack
from memory_pipelines.memex.kernels.base import Kernel, Observation

WORKS = [
    ("modules of the standard library", "import sqlite3, decimal, html, xml.etree.ElementTree, difflib, csv\n'fine'", "'fine'"),
    ("threads", "import threading\nseen = []\nt = threading.Thread(target=seen.append, args=(1,))\nt.start()\nt.join()\nseen", "[1]"),
    ("a database in memory", "import sqlite3\nsqlite3.connect(':memory:').execute('select 1 + 1').fetchone()", "(2,)"),
    ("time zones", "import datetime, zoneinfo\ndatetime.datetime(2020, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Madrid'))"
     ".utcoffset().seconds", "7200"),
    ("models", "import pydantic\nclass P(pydantic.BaseModel):\n    x: int\nP(x='3')", "P(x=3)"),
    ("pools of threads", "import asyncio\nawait asyncio.to_thread(sum, [1, 2])", "3"),
    ("random numbers", "import random, secrets, uuid\nlen(secrets.token_hex(4)), uuid.uuid4().version", "(8, 4)"),
]  # fmt: skip


@contextmanager
def host(folder: Path) -> Iterator[dict[str, Any]]:
    """Set up what the attacks aim at, and check afterwards that nothing reached it."""
    folder.mkdir(parents=True, exist_ok=True)
    victim = folder / "victim.db"
    victim.write_text("a secret of the host")
    victim.chmod(0o644)
    named = str(folder / "s")
    abstract = f"attacked-{folder.name}-{id(folder)}"
    process = subprocess.Popen(["sleep", "600"])
    try:
        with (
            closing(socket.create_server(("127.0.0.1", 0))) as listening,
            closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as datagrams,
            closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as unix,
            closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as nameless,
        ):
            port = listening.getsockname()[1]
            datagrams.bind(("127.0.0.1", port))
            unix.bind(named)
            Path(named).chmod(0o777)
            nameless.bind(f"\0{abstract}")
            before = sorted(one.name for one in folder.iterdir())
            yield {
                "victim": str(victim),
                "folder": str(folder),
                "port": port,
                "unix": named,
                "abstract": abstract,
                "pid": process.pid,
            }
            for one in (listening, datagrams, unix, nameless):
                one.setblocking(False)
                try:
                    got = one.accept() if one is listening else one.recv(16)
                except BlockingIOError:
                    continue
                raise AssertionError(f"the host was reached: {got}")
            assert process.poll() is None, "a process of the host was killed"
            assert sorted(one.name for one in folder.iterdir()) == before
            assert victim.read_text() == "a secret of the host"
            assert victim.stat().st_mode & 0o777 == 0o644
    finally:
        process.kill()
        process.wait()


async def attempt(kernel: Kernel, attack: Attack, aims: dict[str, Any], *, seconds: float) -> Observation:
    """Run an attack, check what came of it, and check that the kernel, or a fresh one, still works."""
    code = attack.code
    for name, value in aims.items():
        code = code.replace(f"{{{name}!r}}", repr(value)).replace(f"{{{name}}}", str(value))
    seen = await asyncio.wait_for(kernel.run(code, seconds=seconds), 30)
    assert "BROKE" not in seen.output, f"{attack.name}: {seen.output}"
    ended = seen.state != "kept"
    assert attack.dies in (None, ended), f"{attack.name}: {seen}"
    assert attack.errs is None or attack.errs == (seen.error is not None), f"{attack.name}: {seen}"
    assert len(seen.output) < 11_000
    after = await asyncio.wait_for(kernel.run("1 + 1", seconds=2), 30)
    if after.output != "2":  # what was left behind may print first
        after = await asyncio.wait_for(kernel.run("1 + 1", seconds=2), 30)
    assert after.output.splitlines()[-1:] == ["2"], f"{attack.name} left: {after}"
    return seen
