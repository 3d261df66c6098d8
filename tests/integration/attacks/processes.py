# ruff: noqa: E501 - blocks of code are easier to read on one line
"""Attempts to start, signal, read and change processes, and to change what this one may do."""

import os

from attacks.attack import REFUSALS, Attack, calls, ways
from memory_pipelines.memex.kernels import syscalls

_MACHINE = os.uname().machine
_LISTED = (
    sorted({*syscalls.free(_MACHINE), *syscalls.watched(_MACHINE).values()}) if _MACHINE in syscalls.AUDIT_ARCH else []
)

_PAST_SECCOMP = (335, 336) if _MACHINE == "x86_64" else ()
"""uretprobe and uprobe: Linux lets them past every filter, and ends whoever makes them without a probe."""

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
    ways(
        "ways to start a program", "import ctypes, os, pty, subprocess, sys\nparent = os.getppid()",
        "os.posix_spawn('/bin/true', ['true'], {})", "os.posix_spawnp('true', ['true'], {})", "os.popen('id').read() or 1 / 0", "os.spawnv(os.P_NOWAIT, '/bin/true', ['true'])",
        "os.execve('/proc/self/exe', ['x'], {})", "os.execv(sys.executable, ['python'])", "pty.spawn('id')", "os.forkpty()", "subprocess.getoutput('id').startswith('uid') or 1 / 0",
        "os.execve(os.open(sys.executable, os.O_RDONLY), ['x'], {})", "os.execve(os.open('/bin/sh', os.O_RDONLY), ['x'], {})", "subprocess.Popen(['id'], close_fds=False)",
        "subprocess.run('id', shell=True, check=True)", "__import__('concurrent.futures').futures.ProcessPoolExecutor(1).submit(print).result(1)",
        "__import__('multiprocessing').Pool(1)", "__import__('multiprocessing').shared_memory.SharedMemory(create=True, size=1)", "__import__('multiprocessing').Lock()",
    ),
    ways(
        "signals to others", "import os, signal, fcntl\nparent = os.getppid()\nr, w = os.pipe()",
        "os.kill({pid}, 0)", "os.kill({pid}, 9)", "os.kill(parent, 9)", "os.kill(0, 0)", "os.killpg(os.getpgrp(), 0)", "os.killpg(os.getpgid({pid}), 0)", "os.kill(os.getpid(), 0)",
        "signal.pidfd_send_signal(r, 0)", "fcntl.fcntl(r, 8, {pid})", "fcntl.fcntl(r, 8, parent)", "fcntl.fcntl(r, 8, -{pid})", "fcntl.fcntl(r, 10, 9)",
        "fcntl.fcntl(r, 15, (0).to_bytes(4, 'little') + ({pid}).to_bytes(4, 'little'))", "fcntl.fcntl(r, 15, (1).to_bytes(4, 'little') + ({pid}).to_bytes(4, 'little'))",
        "fcntl.fcntl(os.open('/usr/lib', os.O_RDONLY), 1026, 1)", "fcntl.fcntl(r, 1024, 0)", "fcntl.ioctl(r, 0x8902, ({pid}).to_bytes(4, 'little'))", "fcntl.ioctl(r, 0x5452, b'\\1\\0\\0\\0')",
        "fcntl.ioctl(0, 0x540E, 0)", "fcntl.ioctl(0, 0x5410, ({pid}).to_bytes(4, 'little'))", "fcntl.ioctl(0, 0x541C, b'\\x0b')", "fcntl.ioctl(0, 0x4B3A, 1)",
    ),
    ways(
        "ways to take or get more", "import os, resource, fcntl\nall_limits = [getattr(resource, name) for name in dir(resource) if name.startswith('RLIMIT_')]",
        "[resource.setrlimit(one, (-1, -1)) for one in all_limits if resource.getrlimit(one) != (-1, -1)][0]", "resource.setrlimit(resource.RLIMIT_CPU, (10**6, 10**6))",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))", "resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))", "os.nice(-5)", "os.nice(1)", "os.setpriority(os.PRIO_USER, 0, 19)",
        "os.setpriority(os.PRIO_PROCESS, {pid}, 19)", "os.sched_setaffinity(0, {0})", "os.sched_setaffinity({pid}, {0})", "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
        "os.sched_setscheduler({pid}, os.SCHED_IDLE, os.sched_param(0))", "os.setuid(0)", "os.setgid(0)", "os.setgroups([0])", "os.setresuid(-1, 0, -1)", "os.initgroups('root', 0)", "os.setsid()", "os.setpgid(0, 0)",
        "os.waitpid(-1, os.WNOHANG)", "os.setns(0)", "os.unshare(0x10000000)", "fcntl.fcntl(os.pipe()[0], 1031, 1 << 20)",
    ),
    calls(
        "processes by other calls", "fork", "vfork", "clone3 room 88", "clone3 0 0", "clone 17 0 0 0 0", "clone 0x11 0 0 0 0", "clone 0x10000011 0 0 0 0", "clone 0x7e020011 0 0 0 0",
        "execve b'/bin/sh' 0 0", "execveat -100 b'/bin/sh' 0 0 0", "execveat 0 b'' 0 0 0x1000", "kill {pid} 0", "tkill {pid} 0", "tgkill {pid} {pid} 0", "tgkill -1 {pid} 0", "tgkill 0 {pid} 0",
        "rt_sigqueueinfo {pid} 0 room", "rt_tgsigqueueinfo {pid} {pid} 0 room", "pidfd_open {pid} 0", "pidfd_send_signal 0 0 0 0", "pidfd_getfd 0 0 0", "wait4 -1 0 1 0", "waitid 0 0 0 1 0",
        "setsid", "setpgid {pid} 0", "prlimit64 {pid} 0 room 0", "prlimit64 0 9 room 0", "setrlimit 9 room", "prctl 4 1 0 0 0", "prctl 22 2 room 0 0", "prctl 0x59616d61 -1 0 0 0", "prctl 36 1 0 0 0",
        "prctl 1 0 0 0 0", "prctl 38 1 0 0 0", "prctl 47 2 0 0 0", "prctl 35 6 room 0 0", "prctl 41 1 0 0 0",
    ),
    calls(
        "memory of others", "ptrace 16 {pid} 0 0", "ptrace 0x4206 {pid} 0 0", "ptrace 0 0 0 0", "process_vm_readv {pid} room 1 room 1 0", "process_vm_writev {pid} room 1 room 1 0",
        "process_madvise 0 room 1 4 0", "process_mrelease 0 0", "kcmp {pid} {pid} 0 0 0", "userfaultfd 0", "userfaultfd 1", "perf_event_open room {pid} -1 -1 0", "perf_event_open room 0 -1 -1 0",
        "migrate_pages {pid} 1 room room", "move_pages {pid} 0 0 0 0 0", "mbind 0 0 0 0 0 0", "set_mempolicy 0 0 0", "get_mempolicy 0 0 0 0 0", "shmget 0 4096 0o1600", "shmat 0 0 0", "shmctl 0 2 room",
        "msgget 0 0o1600", "semget 0 1 0o1600", "mq_open b'x' 0o102 0o600 0", "mq_unlink b'x'", "mq_notify 0 room", "memfd_secret 0", "remap_file_pages 0 0 0 0 0", "pkey_alloc 0 0", "mlockall 3", "mlock room 1",
        "mseal 0 0 0", "map_shadow_stack 0 4096 0",
    ),
    calls(
        "namespaces and mounts", "unshare 0x10000000", "unshare 0x20000", "unshare 0x400", "setns 0 0", "mount b'a' b'/' b'tmpfs' 0 0", "umount2 b'/' 2", "pivot_root b'/' b'/'", "chroot b'/'", "fsopen b'tmpfs' 0",
        "fsmount 0 0 0", "fsconfig 0 0 0 0 0", "fspick -100 b'/' 0", "open_tree -100 b'/' 1", "move_mount -100 b'/' -100 b'/' 0", "mount_setattr -100 b'/' 0 room 32", "open_tree_attr -100 b'/' 0 room 32",
        "swapoff b'x'", "chdir b'/'", "fchdir 0", "acct 0",
    ),
    calls(
        "rights and the system", "keyctl 0 -3 1 0 0", "keyctl 11 -3 room 4096 0", "keyctl 1 0 0 0 0", "add_key b'user' b'x' b'y' 1 -3", "request_key b'user' b'x' 0 -3", "bpf 0 room 120", "bpf 5 room 120",
        "setuid 0", "setgid 0", "setreuid 0 0", "setresuid 0 0 0", "setresgid 0 0 0", "setgroups 0 room", "setfsuid 0", "setfsgid 0", "capset room room", "capget room room", "seccomp 1 0 room", "seccomp 0 0 0",
        "landlock_create_ruleset 0 0 1", "landlock_restrict_self 0 0", "personality 0", "personality 0x40000", "init_module 0 0 b''", "finit_module 0 b'' 0", "delete_module b'x' 0", "kexec_load 0 0 0 0", "kexec_file_load 0 0 0 b'' 0",
        "reboot 0xfee1dead 672274793 0 0", "iopl 3", "ioperm 0 1 1", "modify_ldt 0 room 16", "syslog 3 room 16", "vhangup", "settimeofday room 0", "clock_settime 0 room", "clock_adjtime 0 room", "adjtimex room", "_sysctl room",
        "lsm_list_modules room room 0", "lsm_get_self_attr 100 room room 0",
    ),
    calls(
        "clocks and turns", "timer_create 0 room room", "timer_create 1 0 room", "timer_settime 0 0 room 0", "timerfd_create 0 0", "signalfd 0 room 8", "signalfd4 -1 room 8 0", "setpriority 0 {pid} 19", "setpriority 2 0 19", "ioprio_set 1 {pid} 0",
        "ioprio_set 1 0 0", "ioprio_get 1 {pid}", "sched_setaffinity {pid} 8 room", "sched_setaffinity 0 8 room", "sched_setscheduler {pid} 5 room", "sched_setparam 0 room", "sched_setattr 0 room 0", "sched_setattr {pid} room 0",
    ),
    Attack("every call that is not on the list", "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
           f"for number in (*range(2048), 1 << 16, 0x3fffffff):\n    if number in {[*_LISTED, *_PAST_SECCOMP]}: continue\n    ctypes.set_errno(0)\n"
           "    result = libc.syscall(number, 0, 0, 0, 0, 0, 0)\n"
           f"    if result >= 0 or ctypes.get_errno() not in {REFUSALS}: print('BROKE', number, result, ctypes.get_errno())\nraise PermissionError"
           if _LISTED else "raise PermissionError"),
    Attack("threads that are more than threads", "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
           f"for flag in (0x80, 0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x1000, 0x2000, 0x4000, 0x8000, 0x800000, 0x80000000):\n"
           f"    ctypes.set_errno(0)\n    result = libc.syscall({syscalls.watched(_MACHINE).get('clone', 0) if _LISTED else 0}, 0x10d00 | flag, 0, 0, 0, 0)\n"
           "    if result >= 0 or ctypes.get_errno() != 1: print('BROKE', hex(flag), result, ctypes.get_errno())\nraise PermissionError"),
]  # fmt: skip

if _MACHINE == "x86_64":
    _MACHINE_CODE = (
        "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(bytes.fromhex({code!r}))\n"
        "result = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()\nprint('BROKE', result)"
    )
    PROCESSES += [
        Attack("calls of 32 bits", _MACHINE_CODE.format(code="b814000000cd80c3"), dies=True),  # int 0x80, getpid
        *(
            Attack(
                f"call {number} of probes",
                f"import ctypes\nprint('BROKE') if ctypes.CDLL(None).syscall({number}) >= 0 else 1 / 0",
                dies=None,
            )
            for number in _PAST_SECCOMP
        ),
        Attack("calls of x32", "import ctypes\nprint('BROKE', ctypes.CDLL(None).syscall(0x40000000 + 39))", dies=True),
        Attack(
            "calls of x32 that the list has",
            "import ctypes\nprint('BROKE', ctypes.CDLL(None).syscall(0x40000000))",
            dies=True,
        ),
    ]
