"""Numbers of Linux system calls that a confined worker may make, by machine.

Part of the worker: standard library only. From `asm/unistd_64.h` (x86-64) and `asm-generic/unistd.h` (aarch64). A call
that a machine does not have is left out of its column.
"""

import platform
from functools import cache

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""How the kernel names the machine of a call (`linux/audit.h`)."""

FIRST_UNKNOWN = 451
"""Calls from this number on are newer than this list: they do not exist for the worker, and libraries do without."""

_FREE = """
read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, preadv 295 69, pwritev 296 70
lseek 8 62, close 3 57, close_range 436 436, fstat 5 80, stat 4 -, lstat 6 -, newfstatat 262 79, statx 332 291
statfs 137 43, fstatfs 138 44, access 21 -, faccessat 269 48, faccessat2 439 439, readlink 89 -, readlinkat 267 78
getcwd 79 17, getdents64 217 61, fadvise64 221 223, fsync 74 82, fdatasync 75 83
poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72, epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21
epoll_wait 232 -, epoll_pwait 281 22, eventfd2 290 19, pipe 22 -, pipe2 293 59, dup 32 23, dup2 33 -, dup3 292 24
mmap 9 222, munmap 11 215, mremap 25 216, mprotect 10 226, madvise 28 233, brk 12 214, mincore 27 232
rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigpending 127 136, rt_sigtimedwait 128 137
rt_sigsuspend 130 133, sigaltstack 131 132, futex 202 98, set_robust_list 273 99, get_robust_list 274 100
rseq 334 293, membarrier 324 283, set_tid_address 218 96, arch_prctl 158 -, restart_syscall 219 128
sched_yield 24 124, sched_getaffinity 204 123, sched_getparam 143 121, sched_getscheduler 145 120
sched_get_priority_max 146 125, sched_get_priority_min 147 126, getpriority 140 141, getcpu 309 168
nanosleep 35 101, clock_nanosleep 230 115, clock_gettime 228 113, clock_getres 229 114, gettimeofday 96 169, time 201 -
times 100 153, getitimer 36 102, setitimer 38 103, alarm 37 -
getpid 39 172, gettid 186 178, getppid 110 173, getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177
getpgrp 111 -, getpgid 121 155, getsid 124 156, getresuid 118 148, getresgid 120 150, getgroups 115 158
getrlimit 97 163, getrusage 98 165, getrandom 318 278, uname 63 160, sysinfo 99 179, umask 95 166
exit 60 93, exit_group 231 94
recvfrom 45 207, shutdown 48 210, getsockname 51 204, getpeername 52 205, getsockopt 55 209
"""
"""Allowed whatever their arguments are."""

_WATCHED = """
open 2 -, openat 257 56, openat2 437 437, clone 56 220, clone3 435 435, tgkill 234 131, prctl 157 167, prlimit64 302 261
fcntl 72 25, ioctl 16 29, socketpair 53 199, sendto 44 206, capset 126 91
"""
"""Allowed with some arguments, or used while the wall is built."""


def machine() -> str:
    """Return the machine's name, `x86_64` or `aarch64` where the tables know it."""
    return platform.machine()


def free(of: str) -> list[int]:
    """Return the numbers that are allowed with any argument.

    Args:
        of: machine, a key of `AUDIT_ARCH`.
    """
    return list(_column(_FREE, of).values())


@cache  # each process looks here, and none of them should have to read the table
def watched(of: str) -> dict[str, int]:
    """Return the numbers of the calls whose arguments matter, by name.

    Args:
        of: machine, a key of `AUDIT_ARCH`.
    """
    return _column(_WATCHED, of)


def _column(table: str, of: str) -> dict[str, int]:
    place = 1 + list(AUDIT_ARCH).index(of)
    rows = (row.split() for line in table.strip().splitlines() for row in line.split(","))
    return {row[0]: int(row[place]) for row in rows if row[place] != "-"}
