"""Seccomp: the kernel refuses this process every system call that is not on a list.

Part of the worker: standard library only. Source: the Linux kernel's documentation, userspace-api/seccomp_filter, and
`linux/filter.h` for the form of the program.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable

from memory_pipelines.memex.kernels import syscalls

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2

_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN, _AND = 0x20, 0x15, 0x45, 0x35, 0x06, 0x54
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # where they are in `struct seccomp_data`

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | 0o20000000  # the last is O_TMPFILE's own
_CLONE_THREAD = 0x10000
_CLONE_OF_THREADS = 0x17D0F00  # the flags that pthreads uses; no namespaces, no VFORK, PARENT, PTRACE or PIDFD
_PR_SET_NAME = 15
# F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC. Not those that aim signals at other processes (F_SETOWN,
# F_SETSIG, F_SETOWN_EX, F_NOTIFY), hold up who writes a file (leases, locks), or enlarge pipes.
_HARMLESS_FCNTL = (0, 1, 2, 3, 4, 1030)
_HARMLESS_IOCTL = (
    0x541B,
    0x5421,
    0x5450,
    0x5451,
    0x5401,
    0x5413,
)  # FIONREAD FIONBIO FIONCLEX FIOCLEX TCGETS TIOCGWINSZ
_SOCK_TYPE, _SOCK_STREAM = 0xF, 1
_X32 = 0x40000000
_PID = 0xDEADBEEF  # stands for the process's number until it is known

_Instruction = tuple[int, int, int, int]
_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def program(*, opens: bool, machine: str | None = None) -> bytes:
    """Write the filter for this machine; made once, it serves every process.

    Args:
        opens: whether files may be opened, for reading.
        machine: a key of `syscalls.AUDIT_ARCH`, else this machine's.

    Returns:
        The program, in which `install` fills in the process's number.

    Raises:
        KeyError: no table for this machine.
    """
    name = machine or syscalls.machine()
    arch, numbers = syscalls.AUDIT_ARCH[name], syscalls.watched(name)
    steps: list[_Instruction] = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, arch), _end(_KILL), (_LOAD, 0, 0, _NUMBER)]
    if name == "x86_64":
        steps += [(_AT_LEAST, 0, 1, _X32), _end(_KILL)]
    steps += [(_AT_LEAST, 0, 1, syscalls.FIRST_UNKNOWN), _refuse(errno.ENOSYS)]
    for number in syscalls.free(name):
        steps += _case(number, [_end(_ALLOW)])
    rules: dict[str, list[_Instruction]] = {
        "open": _opening(1) if opens else [_refuse(errno.EACCES)],
        "openat": _opening(2) if opens else [_refuse(errno.EACCES)],
        "openat2": [_refuse(errno.ENOSYS)],  # its flags are behind a pointer; libraries fall back to openat
        "clone": [
            _argument(0),
            (_ANY_BIT, 0, 1, ~_CLONE_OF_THREADS & 0xFFFFFFFF),
            _refuse(errno.EPERM),
            (_ANY_BIT, 0, 1, _CLONE_THREAD),
            _end(_ALLOW),
            _refuse(errno.EPERM),
        ],
        "clone3": [_refuse(errno.ENOSYS)],
        "tgkill": [_argument(0), (_EQUAL, 0, 1, _PID), _end(_ALLOW), _refuse(errno.EPERM)],
        "prctl": [_argument(0), (_EQUAL, 0, 1, _PR_SET_NAME), _end(_ALLOW), _refuse(errno.EPERM)],
        "prlimit64": _null(2),
        "sendto": _null(4),  # no address: to the other end of a pair, and nowhere else
        "fcntl": [_argument(1), *_one_of(_HARMLESS_FCNTL, _end(_ALLOW)), _refuse(errno.EPERM)],
        "ioctl": [_argument(1), *_one_of(_HARMLESS_IOCTL, _end(_ALLOW)), _refuse(errno.ENOTTY)],
        # A datagram socket reaches any named socket that it can see, without connecting.
        "socketpair": [
            _argument(1),
            (_AND, 0, 0, _SOCK_TYPE),
            (_EQUAL, 0, 1, _SOCK_STREAM),
            _end(_ALLOW),
            _refuse(errno.EPERM),
        ],
    }
    for called, rule in rules.items():
        if called in numbers:
            steps += _case(numbers[called], rule)
    steps.append(_refuse(errno.EPERM))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def install(code: bytes, pid: int) -> None:
    """Hold this process to a program for ever. Needs `no_new_privs`.

    Args:
        code: from `program`.
        pid: of this process, the only one whose threads it may signal.

    Raises:
        OSError: the kernel refused.
    """
    ready = code.replace(struct.pack("=I", _PID), struct.pack("=I", pid))
    buffer = ctypes.create_string_buffer(ready, len(ready))
    given = _Program(len(ready) // 8, ctypes.addressof(buffer))
    if _libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(given), 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")


def _end(action: int) -> _Instruction:
    return (_RETURN, 0, 0, action)


def _refuse(number: int) -> _Instruction:
    return _end(_ERRNO | number)


def _argument(place: int, *, high: bool = False) -> _Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * place + 4 * high)


def _case(number: int, rule: list[_Instruction]) -> list[_Instruction]:
    """Follow a rule, which ends by itself, when the call has this number."""
    return [(_EQUAL, 0, len(rule), number), *rule]


def _opening(flags: int) -> list[_Instruction]:
    return [_argument(flags), (_ANY_BIT, 0, 1, _WRITES & 0xFFFFFFFF), _refuse(errno.EROFS), _end(_ALLOW)]


def _null(place: int) -> list[_Instruction]:
    """Allow a pointer that is null, both halves."""
    return [
        _argument(place),
        (_EQUAL, 0, 3, 0),
        _argument(place, high=True),
        (_EQUAL, 0, 1, 0),
        _end(_ALLOW),
        _refuse(errno.EPERM),
    ]


def _one_of(values: Iterable[int], then: _Instruction) -> list[_Instruction]:
    return [step for value in values for step in ((_EQUAL, 0, 1, value), then)]
