# ruff: noqa: E501 - blocks of code are easier to read on one line
"""Attempts to break the worker from within."""

from attacks.attack import Attack

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
           "body = json.dumps(dict(type='call', id=9, run=1, namespace='main', tool='rm', arguments=dict())).encode()\n"
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
    Attack("a signal handler that swallows", "import signal\nsignal.signal(signal.SIGALRM, lambda *_: None)\nwhile True: pass", dies=None),
    Attack("a signal handler that never ends", "import signal\ndef stay(*_):\n    while True: pass\nsignal.signal(signal.SIGALRM, stay)\nwhile True: pass", dies=None),
    Attack("a handler of the C library", "import ctypes\nctypes.CDLL(None).signal(14, 1)\nwhile True: pass", dies=None),
    Attack("a timer of its own", "import signal\nsignal.setitimer(signal.ITIMER_REAL, 10**6)\nwhile True: pass", dies=None),
    Attack("every signal ignored", "import signal\nfor one in range(1, 65):\n    try: signal.signal(one, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: pass", dies=None),
    Attack("a limit of time that is ignored", "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True:\n    try:\n        while True: pass\n    except BaseException: pass", dies=None),
    Attack("a signal through a descriptor", "import os, signal\nr, w = os.pipe()\nos.set_blocking(w, False)\nsignal.set_wakeup_fd(w)\nwhile True: pass", dies=None),
    Attack("traced without end", "import sys\ndef trace(*_):\n    while True: pass\nsys.settrace(trace)\ndef f(): pass\nf()", dies=None),
    Attack("a trace that stays", "import sys\ndef trace(*_): raise ValueError('traced')\nsys.settrace(trace)", dies=None, errs=None),
    Attack("a profile that stays", "import sys, threading\ndef trace(*_): raise ValueError('profiled')\nthreading.setprofile(trace)\nsys.setprofile(trace)", dies=None, errs=None),
    Attack("a hook for audits", "import sys\ndef hook(name, given): raise RuntimeError('audited')\nsys.addaudithook(hook)\nopen('/dev/null')", dies=None),
    Attack("a hook for audits without end", "import sys\ndef hook(name, given):\n    while True: pass\nsys.addaudithook(hook)\nopen('/dev/null')", dies=None, errs=None),
    Attack("a hook of the collector", "import gc\ndef again(*_):\n    while True: pass\ngc.callbacks.append(again)\ngc.collect()", dies=None, errs=None),
    Attack("a hook of the collector that raises", "import gc\ndef again(*_): raise SystemExit(1)\ngc.callbacks.append(again)\ngc.collect()", dies=None, errs=None),
    Attack("objects that come back", "class E:\n    def __del__(self): globals()['kept'] = self\nfor _ in range(1000): E()", errs=False),
    Attack("a hook for exceptions", "import sys, threading\ndef stay(*_):\n    while True: pass\nsys.excepthook = sys.unraisablehook = threading.excepthook = stay\n"
           "class E:\n    def __del__(self): raise ValueError\nE()", dies=None, errs=None),
    Attack("a hook for display", "import sys\nsys.displayhook = lambda *_: exit()\n1", errs=False),
    Attack("a hook for imports", "import sys\nclass F:\n    def find_spec(self, *_):\n        while True: pass\nsys.meta_path.insert(0, F())\nimport nothing_of_this_name", dies=None),
    Attack("imports replaced", "import builtins\nbuiltins.__import__ = lambda *_, **__: exit()\nimport json", dies=None, errs=None),
    Attack("another exit hook", "import atexit, os\ndef stay():\n    while True: pass\natexit.register(stay)\nraise SystemExit", dies=None),
    Attack("threads at the end", "import threading\nthreading._register_atexit(lambda: threading.Event().wait())", dies=None, errs=None),
    Attack("switches that never come", "import sys, threading\nsys.setswitchinterval(10**6)\ndef work():\n    while True: pass\nthreading.Thread(target=work, daemon=True).start()\nwhile True: pass", dies=None),
    Attack("no depth left", "import sys\nsys.setrecursionlimit(40)\nx = 1", dies=None, errs=None),
    Attack("the clock stopped", "import time\ntime.monotonic = time.perf_counter = time.time = lambda: 0.0\nwhile True: pass", dies=None),
    Attack("the loop's clock stopped", "import asyncio\nloop = asyncio.get_running_loop()\nloop.time = lambda: 0.0\nwhile True: pass", dies=None),
    Attack("the loop closed", "import asyncio\nasyncio.get_running_loop().close()", dies=None, errs=None),
    Attack("the loop emptied", "import asyncio\nloop = asyncio.get_running_loop()\nloop._ready.clear()\nloop._scheduled.clear()\nwhile True: pass", dies=None),
    Attack("the loop deaf", "import asyncio\nloop = asyncio.get_running_loop()\nfor key in list(loop._selector.get_map().values()): loop._selector.unregister(key.fd)", dies=None, errs=None),
    Attack("another loop", "import asyncio\nasyncio.set_event_loop(asyncio.new_event_loop())\nasyncio._set_running_loop(None)", dies=None, errs=None),
    Attack("its deadline moved", "import gc\nfor one in gc.get_objects():\n    if type(one).__name__ == 'Block': one.deadline = 1e12; one.waiting = 1\nwhile True: pass", dies=None),
    Attack("its worker changed", "import gc\nfor one in gc.get_objects():\n    if type(one).__name__ == 'Worker':\n        one._overdue = lambda *_: False\n        one._output_chars = one._frame_bytes = one._pending_calls = 10**12\n"
           "print('x' * (1 << 20))", dies=None, errs=None),
    Attack("an output without bounds", "import gc\nfor one in gc.get_objects():\n    if type(one).__name__ == 'Output': one._room = 10**12\nprint('x' * (1 << 20))", dies=True),
    Attack("its answer replaced", "import sys\nworker = sys.modules['memory_pipelines.memex.kernels.worker']\nworker.Worker._finish = lambda *_: None", dies=None),
    Attack("modules of the worker gone", "import sys\nfor name in list(sys.modules):\n    if name.startswith('memory_pipelines'): vars(sys.modules[name]).clear()", dies=None, errs=None),
    Attack("every global of every function gone", "import gc, types\nfor one in gc.get_objects():\n    if isinstance(one, types.FunctionType) and one.__globals__ is not globals(): one.__code__ = (lambda *_, **__: None).__code__", dies=None, errs=None),
    Attack("memory overwritten", "import ctypes\nctypes.memset(id(int), 0, 400)\nprint(1 + 1)", dies=True),
    Attack("memory of itself unmapped", "import ctypes\nctypes.CDLL(None).munmap(ctypes.c_void_p(id(None) & ~4095), 1 << 20)", dies=True),
    Attack("the worker's file of modules gone", "import sys\nsys.path.clear()\nsys.path_hooks.clear()\nsys.meta_path.clear()", errs=False),
    Attack("standard output closed", "import os\nfor fd in range(3): os.close(fd)", errs=False),
    Attack("standard output replaced", "import sys\nclass S:\n    def write(self, text):\n        while True: pass\n    flush = write\nsys.stdout = sys.stderr = sys.__stdout__ = S()\nfor _ in (1,): print('x', file=sys.stdout)", dies=None),
    Attack("the connection turned round", "import os\nfor fd in range(3, 64):\n    try: os.set_blocking(fd, True); os.dup2(3, fd)\n    except OSError: pass", dies=None, errs=None),
    Attack("the connection closed half", "import socket\nfor fd in range(3, 64):\n    try: socket.socket(fileno=fd).shutdown(socket.SHUT_WR)\n    except OSError: pass", dies=None, errs=None),
    Attack("the answers of the host read away", "import os, threading\ndef steal():\n    while True:\n        for fd in range(3, 64):\n            try: os.read(fd, 1)\n            except OSError: pass\n"
           "threading.Thread(target=steal, daemon=True).start()", dies=None, errs=None),
    Attack("garbage in the middle of its work", "import threading, os\ndef spoil():\n    while True:\n        for fd in range(3, 64):\n            try: os.write(fd, b'\\0')\n            except OSError: pass\n"
           "threading.Thread(target=spoil, daemon=True).start()\nimport time\ntime.sleep(0.2)", dies=None, errs=None),
]  # fmt: skip
