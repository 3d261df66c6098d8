# ruff: noqa: E501 - blocks of code are easier to read on one line
"""Blocks that try to get out of a kernel, to bring it down, or to reach its host; each says what must come of it.

A block that succeeds in what it must not do prints BROKE. `{victim}` is a file of the host that anyone may read,
`{folder}` its folder, `{port}` a TCP and UDP port on which the host listens, `{unix}` a datagram socket with a name,
`{abstract}` one without a file, `{pid}` a process of the same user.
"""

import asyncio
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_pipelines.memex.kernels.base import Kernel, Observation


@dataclass(frozen=True)
class Attack:
    name: str
    code: str
    dies: bool | None = False  # whether the kernel ends; None when both are well
    errs: bool | None = True  # whether the block fails; None when both are well

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def raw(number: int, *arguments: str) -> str:
    """Return code that makes a system call by its number and says so when it is not refused."""
    given = ", ".join((str(number), *arguments))
    return (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"result = libc.syscall({given})\n"
        "if result >= 0:\n    print('BROKE')\nelse:\n    raise PermissionError(ctypes.get_errno())"
    )


FILES = [
    Attack("read a system file", "print('BROKE', open('/etc/passwd').read())"),
    Attack("read a file anyone may read", "print('BROKE', open({victim!r}).read())"),
    Attack("read it by a relative path", "import os\nprint('BROKE', open(os.path.relpath({victim!r}, '/')).read())"),
    Attack("read the environment of the host", "print('BROKE', open('/proc/{pid}/environ').read())"),
    Attack("read its own past environment", "print('BROKE', open('/proc/self/environ').read())"),
    Attack("read memory of another process", "print('BROKE', open('/proc/{pid}/mem', 'rb').read(1))"),
    Attack("list the root", "import os\nprint('BROKE', os.listdir('/'))"),
    Attack("list a folder", "import os\nprint('BROKE', os.listdir({folder!r}))"),
    Attack("write a file", "open({folder!r} + '/new', 'w').write('x')\nprint('BROKE')"),
    Attack("append to a file", "open({victim!r}, 'a').write('x')\nprint('BROKE')"),
    Attack("write where modules are", "import json\nopen(json.__file__, 'a')\nprint('BROKE')"),
    Attack("make a folder", "import os\nos.mkdir({folder!r} + '/new')\nprint('BROKE')"),
    Attack("delete a file", "import os\nos.unlink({victim!r})\nprint('BROKE')"),
    Attack("rename a file", "import os\nos.rename({victim!r}, {victim!r} + '2')\nprint('BROKE')"),
    Attack("link to a file", "import os\nos.symlink({victim!r}, {folder!r} + '/new')\nprint('BROKE')"),
    Attack("hard link", "import os\nos.link({victim!r}, {folder!r} + '/new')\nprint('BROKE')"),
    Attack("change rights", "import os\nos.chmod({victim!r}, 0o777)\nprint('BROKE')"),
    Attack("truncate", "import os\nos.truncate({victim!r}, 0)\nprint('BROKE')"),
    Attack("file without a name", "import os\nos.open('/tmp', os.O_TMPFILE | os.O_RDWR)\nprint('BROKE')"),
    Attack("file in memory", "import os\nos.memfd_create('x')\nprint('BROKE')"),
    Attack("named pipe", "import os\nos.mkfifo({folder!r} + '/new')\nprint('BROKE')"),
    Attack(
        "database", "import sqlite3\nsqlite3.connect({victim!r}).execute('select * from sqlite_master')\nprint('BROKE')"
    ),
]

NETWORK = [
    Attack("connect", "import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)\nprint('BROKE')"),
    Attack("send a datagram", "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
           "s.sendto(b'x', ('127.0.0.1', {port}))\nprint('BROKE')"),
    Attack("listen", "import socket\nsocket.create_server(('127.0.0.1', 0))\nprint('BROKE')"),
    Attack("ask a name", "import socket\nsocket.gethostbyname('localhost.example')\nprint('BROKE')"),
    Attack("fetch", "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{port}', timeout=2)\nprint('BROKE')"),
    Attack("datagram pair to a named socket", "import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
           "a.sendto(b'pwn', {unix!r})\nprint('BROKE')"),
    Attack("stream pair with an address", "import socket\na, b = socket.socketpair()\n"
           "a.sendto(b'pwn', {unix!r})\nprint('BROKE')"),
    Attack("socket without a file", "import socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
           "s.sendto(b'pwn', '\\0' + {abstract!r})\nprint('BROKE')"),
    Attack("netlink", "import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\nprint('BROKE')"),
    Attack("pass a descriptor", "import array, socket\na, b = socket.socketpair()\nsocket.send_fds(a, [b'x'], [0])\nprint('BROKE')"),
]  # fmt: skip

PROCESSES = [
    Attack("run a program", "import subprocess\nprint('BROKE', subprocess.run(['id'], capture_output=True).stdout)"),
    Attack("run a shell", "import os\nprint('BROKE') if os.system('id > /dev/null') == 0 else exec('raise OSError')"),
    Attack("become a program", "import os\nos.execv('/bin/sh', ['sh', '-c', 'id'])"),
    Attack("fork", "import os\nif os.fork() == 0:\n    os._exit(0)\nprint('BROKE')"),
    Attack("fork of the C library", "import ctypes, os\nif ctypes.CDLL(None).fork() == 0:\n    os._exit(0)\nraise OSError"),
    Attack("multiprocessing", "import multiprocessing\nmultiprocessing.get_context('fork').Process(target=print).start()\nprint('BROKE')"),
    Attack("signal the host", "import os\nos.kill(os.getppid(), 0)\nprint('BROKE')"),
    Attack("kill all", "import os\nos.kill(-1, 9)\nprint('BROKE')"),
    Attack("signal by a descriptor", "import os\nos.pidfd_open({pid})\nprint('BROKE')"),
    Attack("signal another's thread", raw(234, "{pid}", "{pid}", "0")),
    Attack("SIGIO through fcntl", "import fcntl, os\nr, w = os.pipe()\nfcntl.fcntl(r, 8, {pid})\n"
           "fcntl.fcntl(r, 4, fcntl.fcntl(r, 3) | 0o20000)\nos.write(w, b'x')\nprint('BROKE')"),
    Attack("SIGIO through ioctl", "import fcntl, socket, struct\na, b = socket.socketpair()\n"
           "fcntl.ioctl(a, 0x8901, struct.pack('i', {pid}))\nfcntl.ioctl(a, 0x5452, struct.pack('i', 1))\n"
           "b.send(b'x')\nprint('BROKE')"),
    Attack("type into a terminal", "import fcntl\nfcntl.ioctl(0, 0x5412, b'x')\nprint('BROKE')"),
    Attack("trace", "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\n"
           "print('BROKE') if l.ptrace(16, {pid}, 0, 0) == 0 else exec('raise OSError')"),
    Attack("raise its own limits", "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))\nprint('BROKE')"),
    Attack("limits of another", "import resource\nresource.prlimit({pid}, resource.RLIMIT_CPU, (1, 1))\nprint('BROKE')"),
    Attack("become another user", "import os\nos.setuid(65534)\nprint('BROKE')"),
    Attack("become traceable", "import ctypes\nl = ctypes.CDLL(None)\n"
           "print('BROKE') if l.prctl(4, 1, 0, 0, 0) == 0 else exec('raise OSError')"),
    *(Attack(f"system call {name}", raw(number, *arguments)) for name, number, arguments in (
        ("process_vm_readv", 310, ("{pid}", "0", "0", "0", "0", "0")),
        ("unshare", 272, ("0x10000000",)),
        ("mount", 165, ("0", "0", "0", "0", "0")),
        ("bpf", 321, ("0", "0", "0")),
        ("userfaultfd", 323, ("0",)),
        ("io_uring_setup", 425, ("8", "ctypes.create_string_buffer(120)")),
        ("perf_event_open", 298, ("0", "0", "0", "0", "0")),
        ("keyctl", 250, ("0", "-3", "1", "0", "0")),
        ("add_key", 248, ("b'user'", "b'x'", "b'y'", "1", "-3")),
        ("init_module", 175, ("0", "0", "b''")),
        ("memfd_secret", 447, ("0",)),
        ("clone3", 435, ("0", "0")),
        ("openat2", 437, ("-100", "b'/etc/passwd'", "ctypes.create_string_buffer(24)", "24")),
        ("name_to_handle_at", 303, ("-100", "b'/'", "0", "0", "0")),
        ("vfork", 58, ()),
        ("chroot", 161, ("b'/'",)),
        ("pivot_root", 155, ("b'/'", "b'/'")),
        ("setsid", 112, ()),
        ("personality", 135, ("0",)),
        ("shmget", 29, ("0", "4096", "0o1600")),
        ("of x32", 0x40000000 + 39, ()),
    ) if name != "of x32"),
]  # fmt: skip

RESOURCES = [
    Attack("ten gigabytes", "x = bytearray(10 << 30)\nprint('BROKE')"),
    Attack("lists without end", "x = []\nwhile True:\n    x.append(bytearray(1 << 24))", dies=None),
    Attack("text without end", "s = 'a' * (1 << 20)\nwhile True:\n    s += s", dies=None),
    Attack("recursion", "def f(n):\n    return f(n + 1)\nf(0)"),
    Attack("recursion without a limit", "import sys\nsys.setrecursionlimit(10**9)\ndef f(n):\n    return f(n + 1)\nf(0)", dies=None),
    Attack("threads without end", "import threading\nwhile True:\n    threading.Thread(target=threading.Event().wait, daemon=True).start()", dies=None),
    Attack("descriptors without end", "import os\nkept = []\nwhile True:\n    kept.append(os.dup(0))"),
    Attack("endless loop", "while True:\n    pass"),
    Attack("endless loop that catches all", "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass", dies=None),
    Attack("a sum in C", "sum(range(10**12))", dies=True),
    Attack("a power", "x = 10 ** (10 ** 8)", dies=None),
    Attack("a pattern that explodes", "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')", dies=None),
    Attack("sleep", "import time\ntime.sleep(600)", dies=None),
    Attack("blocked alarm", "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))\nwhile True:\n    pass", dies=None),
    Attack("stopped timer", "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0)\nwhile True:\n    pass", dies=None),
    Attack("much printed", "print('x' * (100 << 20))", errs=None),
    Attack("often printed", "for i in range(100_000):\n    print(i)", errs=False),
    Attack("large repr", "list(range(10**6))", errs=False),
    Attack("endless repr", "class E:\n    def __repr__(self):\n        while True: pass\nE()", dies=None, errs=None),
    Attack("deep value submitted", "x = []\nfor _ in range(10**5): x = [x]\nsubmit(x)"),
    Attack("large value submitted", "submit('x' * (64 << 20))", dies=None),
]  # fmt: skip

SABOTAGE = [
    Attack("exit", "import sys\nsys.exit(0)"),
    Attack("interrupt", "raise KeyboardInterrupt"),
    Attack("os._exit", "import os\nos._exit(3)", dies=True),
    Attack("abort", "import os\nos.abort()", dies=True),
    Attack("null pointer", "import ctypes\nctypes.string_at(0)", dies=True),
    Attack("close all", "import os\nos.closerange(0, 1024)", dies=True),
    Attack("junk to the host", "import os\nfor fd in range(3, 1024):\n    try: os.write(fd, b'\\xff\\xff\\xff\\x7fjunk')\n"
           "    except OSError: pass", dies=True),
    Attack("a frame of its own", "import os, struct\nbody = b'[1,2]'\nfor fd in range(3, 1024):\n"
           "    try: os.write(fd, struct.pack('<I', len(body)) + body)\n    except OSError: pass", dies=True),
    Attack("a call it has not", "import json, os, struct\n"
           "body = json.dumps(dict(type='call', id=9, namespace='main', tool='rm', arguments=dict())).encode()\n"
           "for fd in range(3, 1024):\n    try: os.write(fd, struct.pack('<I', len(body)) + body)\n"
           "    except OSError: pass", dies=True),
    Attack("builtins deleted", "import builtins\nfor name in list(vars(builtins)):\n"
           "    if name != '__build_class__': delattr(builtins, name)", errs=None),
    Attack("no standard output", "import sys\nsys.stdout = sys.stderr = None", errs=False),
    Attack("no modules", "import sys\nsys.modules.clear()", dies=None, errs=None),
    Attack("loop stopped", "import asyncio\nasyncio.get_running_loop().stop()", dies=None, errs=None),
    Attack("tasks cancelled", "import asyncio\nfor task in asyncio.all_tasks(): task.cancel()", dies=None, errs=None),
    Attack("thread left", "import threading, time\ndef work():\n    while True:\n        time.sleep(0.01)\n        print('late')\n"
           "threading.Thread(target=work).start()", errs=False),
    Attack("task left", "import asyncio\nasync def work():\n    while True: await asyncio.sleep(0.01)\n"
           "left = asyncio.create_task(work())", errs=False),
    Attack("exit hook", "import atexit\natexit.register(lambda: open('/tmp/x', 'w'))", errs=False),
    Attack("nobody to ask", "input('password? ')"),
    Attack("evil repr", "class E:\n    def __repr__(self): raise SystemExit(1)\nE()", errs=None),
    Attack("garbage collected late", "class E:\n    def __del__(self):\n        while True: pass\nE()", dies=None, errs=None),
    Attack("a signal handler of its own", "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
           "while True: pass", dies=None),
]  # fmt: skip

ALL = [*FILES, *NETWORK, *PROCESSES, *RESOURCES, *SABOTAGE]

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
