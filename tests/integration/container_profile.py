"""Seccomp profiles of containers, as Docker and Podman write them, made into programs for the kernel.

The form is that of Docker's `--security-opt seccomp=FILE`. What a runtime makes of it, this makes too: rules that do
not hold for the machine, the capabilities or the kernel are left out, and a call that is newer than all that the
profile names does not exist (ENOSYS), so that libraries fall back, while one that it knows and does not grant is
refused. Calls of sub-architectures that the profile names (32-bit ones) pass: there is no table of them here, and the
kernel under test must not lean on the container.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import system_calls

DOCKER_CAPABILITIES = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_FSETID": 4,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_BIND_SERVICE": 10,
    "CAP_NET_RAW": 13,
    "CAP_SYS_CHROOT": 18,
    "CAP_MKNOD": 27,
    "CAP_AUDIT_WRITE": 29,
    "CAP_SETFCAP": 31,
}
"""What root in a container has when nothing was added, with the numbers of `linux/capability.h`."""

MACHINES = {"x86_64": ("SCMP_ARCH_X86_64", "amd64", 0xC000003E), "aarch64": ("SCMP_ARCH_AARCH64", "arm64", 0xC00000B7)}
"""What a profile calls a machine in its map and in its rules, and what the kernel calls it."""
SUB_ARCHITECTURES = {"SCMP_ARCH_X86": 0x40000003, "SCMP_ARCH_ARM": 0x40000028}
X32 = 0x40000000

ALLOW, KILL_PROCESS, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
ACTIONS = {
    "SCMP_ACT_ALLOW": ALLOW,
    "SCMP_ACT_LOG": 0x7FFC0000,
    "SCMP_ACT_TRAP": 0x00030000,
    "SCMP_ACT_KILL": 0,
    "SCMP_ACT_KILL_THREAD": 0,
    "SCMP_ACT_KILL_PROCESS": KILL_PROCESS,
}

LOAD, AND, JUMP, RETURN = 0x20, 0x54, 0x05, 0x06
EQUAL, GREATER, AT_LEAST = 0x15, 0x25, 0x35
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
MOST_STEPS = 4096

PASSES, FAILS, NEXT = "passes", "fails", "next"
Step = tuple[int, int, str, str]  # code, value, where to go when it holds and when not


@dataclass(frozen=True)
class Rule:
    """One way in which a call is decided."""

    conditions: tuple[tuple[int, str, int, int], ...]  # argument, comparison, value, second value
    action: int


def compiled(
    profile: Mapping[str, Any],
    *,
    machine: str,
    capabilities: Collection[str] = DOCKER_CAPABILITIES,
    kernel: tuple[int, int] = (6, 1),
) -> bytes:
    """Make a program of a profile.

    Args:
        profile: as read from its JSON.
        machine: `x86_64` or `aarch64`.
        capabilities: of the container, which decide over the rules that hold in it.
        kernel: its version, which does too.

    Raises:
        ValueError: the profile uses what is not known here, or decides a call in two ways.
    """
    name, _, own = MACHINES[machine]
    default = _action(profile["defaultAction"], profile.get("defaultErrnoRet"))
    rules = _rules(profile, MACHINES[machine][1], capabilities, kernel, default)
    numbers = system_calls.numbers(machine)
    known = {numbers[call]: found for call, found in rules.items() if call in numbers}
    mapped = {entry["architecture"]: entry.get("subArchitectures") or [] for entry in profile.get("archMap") or []}
    if mapped and name not in mapped:
        raise ValueError(f"the profile has no {name}; it has {', '.join(mapped)}")
    subs = mapped.get(name, [])
    code = [_step(LOAD, ARCHITECTURE)]
    for sub in (SUB_ARCHITECTURES[sub] for sub in subs if sub in SUB_ARCHITECTURES):
        code += [_step(EQUAL, sub, 0, 1), _step(RETURN, ALLOW)]
    code += [_step(EQUAL, own, 1, 0), _step(RETURN, KILL_PROCESS), _step(LOAD, NUMBER)]
    if machine == "x86_64":
        other = ALLOW if "SCMP_ARCH_X32" in subs else KILL_PROCESS
        code += [_step(AT_LEAST, X32, 0, 1), _step(RETURN, other)]
    if known and default & 0x7FFF0000 == ERRNO:
        code += [_step(GREATER, max(known), 0, 1), _step(RETURN, ERRNO | errno.ENOSYS)]
    for number, found in sorted(known.items()):
        body = _decided(found, default)
        code += [_step(EQUAL, number, 1, 0), _step(JUMP, len(body)), *body]
    code.append(_step(RETURN, default))
    if len(code) > MOST_STEPS:
        raise ValueError(f"the program has {len(code)} steps, the kernel takes {MOST_STEPS}")
    return b"".join(code)


def install(program: bytes) -> None:
    """Hold this process, and all that it starts, to a program for ever."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    given = Program(len(program) // 8, ctypes.addressof(buffer))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(given), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "the kernel refused the program")


def running_kernel() -> tuple[int, int]:
    """Return the version of this machine's kernel."""
    return _version(os.uname().release)


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int("".join(one for one in minor if one.isdigit()))


def _action(name: str, errno_ret: int | None) -> int:
    if name == "SCMP_ACT_ERRNO":
        return ERRNO | (errno.EPERM if errno_ret is None else errno_ret)
    if name not in ACTIONS:
        raise ValueError(f"unknown action {name}; known are SCMP_ACT_ERRNO, {', '.join(ACTIONS)}")
    return ACTIONS[name]


def _rules(
    profile: Mapping[str, Any], arch: str, capabilities: Collection[str], kernel: tuple[int, int], default: int
) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for group in profile["syscalls"]:
        if not _holds(group, arch, capabilities, kernel):
            continue
        action = _action(group["action"], group.get("errnoRet"))
        conditions = [
            (given["index"], given["op"], given["value"], given.get("valueTwo", 0)) for given in group.get("args") or []
        ]
        places = [condition[0] for condition in conditions]
        # Conditions on different arguments hold together; several on one argument are ways to choose from.
        ways = [(one,) for one in conditions] if len(set(places)) < len(places) else [tuple(conditions)]
        for name in group.get("names") or [group["name"]]:
            # What only repeats the default decides nothing, but tells that the profile knows the call.
            found.setdefault(name, []).extend(Rule(way, action) for way in ways if action != default)
    return found


def _holds(group: Mapping[str, Any], arch: str, capabilities: Collection[str], kernel: tuple[int, int]) -> bool:
    includes, excludes = group.get("includes") or {}, group.get("excludes") or {}
    return not (
        arch in (excludes.get("arches") or [])
        or any(one in capabilities for one in excludes.get("caps") or [])
        or ("minKernel" in excludes and kernel >= _version(excludes["minKernel"]))
        or (includes.get("arches") and arch not in includes["arches"])
        or any(one not in capabilities for one in includes.get("caps") or [])
        or ("minKernel" in includes and kernel < _version(includes["minKernel"]))
    )


def _decided(rules: Sequence[Rule], default: int) -> list[bytes]:
    """Return the steps that end a call; the first rule whose conditions hold decides."""
    actions = {rule.action for rule in rules}
    always = [rule for rule in rules if not rule.conditions]
    if always:
        if len(actions) > 1:
            raise ValueError(f"a call is decided in {len(actions)} ways at once: {rules}")
        return [_step(RETURN, always[0].action)]
    code: list[bytes] = []
    for rule in rules:
        code += _checked(rule)
    return [*code, _step(RETURN, default)]


def _checked(rule: Rule) -> list[bytes]:
    """Return the steps of one rule; where a condition fails they go on behind the rule."""
    parts = [_compared(*condition) for condition in rule.conditions]
    length = sum(map(len, parts)) + 1
    code: list[bytes] = []
    for part in parts:
        end = len(code) + len(part)
        for at, (kind, value, yes, no) in enumerate(part, start=len(code)):
            places = {PASSES: end - at - 1, FAILS: length - at - 1, NEXT: 0}
            code.append(_step(kind, value, places[yes], places[no]))
    return [*code, _step(RETURN, rule.action)]


def _compared(place: int, comparison: str, value: int, second: int) -> list[Step]:
    """Return the steps that compare both halves of an argument; the higher one is behind the lower."""
    low, high = ARGUMENTS + 8 * place, ARGUMENTS + 8 * place + 4
    if comparison == "SCMP_CMP_MASKED_EQ":
        return [
            (LOAD, high, NEXT, NEXT),
            (AND, value >> 32, NEXT, NEXT),
            (EQUAL, second >> 32, NEXT, FAILS),
            (LOAD, low, NEXT, NEXT),
            (AND, value & 0xFFFFFFFF, NEXT, NEXT),
            (EQUAL, second & 0xFFFFFFFF, PASSES, FAILS),
        ]
    # In each: whether the lower half is compared, and where it leads.
    ways = {
        "SCMP_CMP_EQ": (EQUAL, PASSES, FAILS, FAILS),
        "SCMP_CMP_NE": (EQUAL, FAILS, PASSES, PASSES),
        "SCMP_CMP_GT": (GREATER, PASSES, FAILS, FAILS),
        "SCMP_CMP_GE": (AT_LEAST, PASSES, FAILS, FAILS),
        "SCMP_CMP_LE": (GREATER, FAILS, PASSES, PASSES),
        "SCMP_CMP_LT": (AT_LEAST, FAILS, PASSES, PASSES),
    }
    if comparison not in ways:
        raise ValueError(f"unknown comparison {comparison}; known are SCMP_CMP_MASKED_EQ, {', '.join(ways)}")
    kind, yes, no, unequal = ways[comparison]
    above = [] if kind == EQUAL else [(GREATER, value >> 32, yes, NEXT)]
    return [
        (LOAD, high, NEXT, NEXT),
        *above,
        (EQUAL, value >> 32, NEXT, unequal),
        (LOAD, low, NEXT, NEXT),
        (kind, value & 0xFFFFFFFF, yes, no),
    ]


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)
