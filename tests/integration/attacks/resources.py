# ruff: noqa: E501 - blocks of code are easier to read on one line
"""Attempts to use up time, memory, descriptors and patience."""

from attacks.attack import Attack

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
    Attack("colliding keys", "class K:\n    def __hash__(self): return 7\n    def __eq__(self, other): return self is other\n{K() for _ in range(10**6)}", dies=None),
    Attack("colliding numbers", "m = (1 << 61) - 1\nd = {m * k: 0 for k in range(1, 200_000)}", dies=None, errs=None),
    Attack("text and numbers of many digits", "import sys\nsys.set_int_max_str_digits(0)\nint('9' * 10**7)", dies=None),
    Attack("padding", "'{:10000000000}'.format(1)"),
    Attack("a product of lists", "import itertools\nlist(itertools.product(range(1000), repeat=5))", dies=None),
    Attack("an endless iterator in C", "import itertools\nsum(itertools.repeat(1))", dies=True),
    Attack("an endless chain in C", "import collections, itertools\ncollections.deque(itertools.count(), maxlen=0)", dies=True),
    Attack("decimals", "import decimal\ndecimal.getcontext().prec = 10**7\ndecimal.Decimal(2).sqrt()", dies=None),
    Attack("a tree too deep to compile", "eval('(' * 10**5 + ')' * 10**5)", dies=None),
    Attack("operators too deep to compile", "eval('-' * 10**6 + '1')", dies=None),
    Attack("a syntax tree of its own", "import ast\ntree = ast.Constant(1)\nfor _ in range(10**5): tree = ast.UnaryOp(ast.USub(), tree)\n"
           "compile(ast.fix_missing_locations(ast.Expression(tree)), 'x', 'eval')", dies=None),
    Attack("JSON too deep", "import json\njson.loads('[' * 10**6)", dies=None),
    Attack("packed zeros", "import zlib\nzlib.decompress(zlib.compress(bytes(64 << 20)) * 1)\npacked = zlib.compress(zlib.compress(bytes(256 << 20)))\n"
           "kept = []\nwhile True: kept.append(zlib.decompress(zlib.decompress(packed)))", dies=None),
    Attack("packed zeros by LZMA", "import lzma\npacked = lzma.compress(bytes(32 << 20))\nkept = []\nwhile True: kept.append(lzma.decompress(packed))", dies=None),
    Attack("packed zeros in an Arrow stream", "import pyarrow as pa\nsink = pa.BufferOutputStream()\ntable = pa.table(dict(x=pa.array([0] * (1 << 20))))\n"
           "with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression='zstd')) as out:\n    out.write_table(table)\n"
           "data = sink.getvalue()\nkept = []\nwhile True: kept.append(pa.ipc.open_stream(data).read_all())", dies=None),
    Attack("a stream of Arrow that lies", "import pyarrow as pa\npa.ipc.open_stream(b'\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x7f' + b'x' * 64).read_all()", dies=None),
    Attack("an array that is not there", "import numpy\nnumpy.zeros(1 << 40, 'u1')"),
    Attack("pickled bomb", "import pickle\npickle.loads(b'\\x80\\x02' + b'(' * 10 + b'X' + (1 << 30).to_bytes(4, 'little'))", dies=None),
    Attack("code from bytes", "import marshal\nmarshal.loads(b'\\xf3' + b'\\xff' * 100)", dies=None),
    Attack("memory shared with nobody", "import mmap\nkept = []\nwhile True:\n    kept.append(mmap.mmap(-1, 1 << 26))\n    kept[-1][::4096] = b'x' * len(kept[-1][::4096])", dies=None),
    Attack("a map of pieces", "import mmap\nkept = []\nwhile True: kept.append(mmap.mmap(-1, 4096, prot=1 + len(kept) % 2))", dies=None),
    Attack("full pipes", "import os\nkept = []\nwhile True:\n    r, w = os.pipe()\n    os.set_blocking(w, False)\n    kept.append((r, w))\n"
           "    try:\n        while True: os.write(w, b'x' * 65536)\n    except BlockingIOError: pass"),
    Attack("full pairs", "import socket\nkept = []\nwhile True:\n    a, b = socket.socketpair()\n    a.setblocking(False)\n    kept.append((a, b))\n"
           "    try:\n        while True: a.send(b'x' * 65536)\n    except BlockingIOError: pass"),
    Attack("threads that compute", "import threading\ndef work():\n    while True: pass\nfor _ in range(30): threading.Thread(target=work, daemon=True).start()\nwhile True: pass", dies=None),
    Attack("threads that compute in C", "import hashlib, threading\nfor _ in range(30): threading.Thread(target=lambda: hashlib.pbkdf2_hmac('sha256', b'x', b'y', 10**9), daemon=True).start()\n"
           "hashlib.pbkdf2_hmac('sha256', b'x', b'y', 10**9)", dies=True),
    Attack("tasks without end", "import asyncio\nasync def work(): await asyncio.sleep(0)\nwhile True: asyncio.ensure_future(work())", dies=None),
    Attack("callbacks without end", "import asyncio\nloop = asyncio.get_running_loop()\ndef again(): loop.call_soon(again); loop.call_soon(again)\nagain()\nawait asyncio.sleep(60)", dies=None),
    Attack("a loop of awaits", "import asyncio\nwhile True: await asyncio.sleep(0)"),
    Attack("awaits that catch all", "import asyncio\nwhile True:\n    try: await asyncio.sleep(0.01)\n    except BaseException: pass", dies=None),
    Attack("a coroutine that never yields", "async def f():\n    while True: pass\nawait f()"),
    Attack("endless length", "class E:\n    def __len__(self):\n        while True: pass\nlen(E())", dies=None),
    Attack("endless words of an error", "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E", dies=None),
    Attack("long words of an error", "raise ValueError('x' * (64 << 20))"),
    Attack("a long chain of errors", "def f(n):\n    try:\n        raise ValueError(n)\n    except ValueError:\n        if n: f(n - 1)\n        raise\nf(500)"),
    Attack("a group of many errors", "raise ExceptionGroup('many', [ValueError(i) for i in range(10**5)])"),
    Attack("a name that is long", "raise type('E' * (8 << 20), (Exception,), {})"),
    Attack("much to standard output by its number", "import os\nfor fd in (1, 2):\n    for _ in range(200): os.write(fd, b'x' * (1 << 20))", errs=None),
    Attack("a value of many small parts", "submit([[] for _ in range(3_000_000)])", dies=None, errs=None),
    Attack("a number of many digits submitted", "submit(1 << 9_000)", errs=None),
]  # fmt: skip
