"""What an attack is, and code that makes system calls by their numbers."""

from dataclasses import dataclass

import system_calls

REFUSALS = (1, 13, 25, 30, 38)
"""EPERM, EACCES, ENOTTY, EROFS, ENOSYS: answers of the wall. Any other error comes from a call that got through it."""


@dataclass(frozen=True)
class Attack:
    """A block that tries something. One that succeeds in what it must not do prints BROKE."""

    name: str
    code: str
    dies: bool | None = False  # whether the kernel ends; None when both are well
    errs: bool | None = True  # whether the block fails; None when both are well

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def calls(name: str, *wanted: str) -> Attack:
    """Return an attack that makes system calls and wants each refused by the wall, not by its arguments.

    Args:
        name: of the attack.
        wanted: calls with their arguments, as `name argument argument`; those that this machine lacks are left out.
    """
    known = system_calls.here()
    rows = [(call, rest or ["0"]) for call, *rest in (one.split() for one in wanted) if call in known]
    given = ", ".join(f"({call!r}, {known[call]}, {', '.join(arguments)})" for call, arguments in rows)
    return Attack(
        name,
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nroom = ctypes.create_string_buffer(4096)\n"
        f"for name, number, *arguments in [{given}]:\n"
        "    ctypes.set_errno(0)\n"
        "    result = libc.syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))\n"
        f"    if result >= 0 or ctypes.get_errno() not in {REFUSALS}:\n"
        "        print('BROKE', name, result, ctypes.get_errno())\n"
        "raise PermissionError(name)",
    )


def ways(name: str, first: str, *tried: str) -> Attack:
    """Return an attack that tries several ways to one end, each an expression that must fail.

    Args:
        name: of the attack.
        first: statements before.
        tried: expressions.
    """
    each = "".join(f"    lambda: {one},\n" for one in tried)
    return Attack(
        name,
        f"{first}\nfor number, way in enumerate([\n{each}]):\n"
        "    try:\n        got = way()\n    except Exception:\n        continue\n"
        "    print('BROKE', number, repr(got)[:200])\n"
        "raise PermissionError('all of them failed')",
    )
