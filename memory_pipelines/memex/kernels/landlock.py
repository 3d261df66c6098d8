"""Landlock: the kernel denies this process every file, port and signal that is not granted.

Part of the worker: standard library only. Source: the Linux kernel's documentation, userspace-api/landlock.
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same number on every machine
CREATE_RULESET_VERSION = 1
RULE_PATH_BENEATH = 1
READ_FILE, READ_DIR = 1 << 2, 1 << 3
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many rights over files an ABI knows; later ones know at least as many as the last here."""
TCP_SINCE, SCOPES_SINCE = 4, 6
BOTH = 3
"""Bind and connect of TCP; abstract sockets and signals of scopes."""

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """Return the version of the kernel's Landlock, 0 where there is none."""
    found = _libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(CREATE_RULESET_VERSION))
    return max(int(found), 0)


def ruleset(readable: Iterable[str]) -> int:
    """Make a set of rules that grants reading, and nothing else.

    Args:
        readable: files, and folders with all that is beneath them; those that do not exist are left out.

    Returns:
        Its file descriptor, for `restrict`.

    Raises:
        OSError: the kernel refused.
    """
    version = abi()
    rights = (1 << FILE_RIGHTS[min(version, max(FILE_RIGHTS))]) - 1
    fields = [rights]
    if version >= TCP_SINCE:
        fields.append(BOTH)
    if version >= SCOPES_SINCE:
        fields.append(BOTH)
    given = struct.pack(f"={len(fields)}Q", *fields)
    made = _checked(_libc.syscall(CREATE_RULESET, given, ctypes.c_size_t(len(given)), ctypes.c_uint32(0)))
    for path in readable:
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            allowed = READ_FILE | READ_DIR if Path(path).is_dir() else READ_FILE
            rule = struct.pack("=Qi", allowed, handle)
            _checked(_libc.syscall(ADD_RULE, made, RULE_PATH_BENEATH, rule, ctypes.c_uint32(0)))
        finally:
            os.close(handle)
    return made


def restrict(rules: int) -> None:
    """Hold this thread, and all that it starts, to the rules for ever. Needs `no_new_privs`.

    Args:
        rules: from `ruleset`; stays open.

    Raises:
        OSError: the kernel refused.
    """
    _checked(_libc.syscall(RESTRICT_SELF, rules, ctypes.c_uint32(0)))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
