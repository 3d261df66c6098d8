"""Profiles of containers: what their rules grant, worked out by hand, in an interpreter and by the kernel itself."""

import ctypes
import errno
import json
import os
import struct
import sys
from pathlib import Path
from typing import Any

import container_profile
import pytest
import system_calls
from container_profile import compiled

from memory_pipelines.memex.kernels import syscalls

AMD64, ARM64, I386 = 0xC000003E, 0xC00000B7, 0x40000003
ALLOWED, EPERM, ENOSYS, KILLED = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
ALLOW, REFUSE = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"
MAP = [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"]}]
CAPS = frozenset({"CAP_KILL"})


def profile(*rules: dict[str, Any], default: str = REFUSE, **more: Any) -> dict[str, Any]:
    return {"defaultAction": default, "syscalls": [{"action": ALLOW, **rule} for rule in rules], **more}


def program(*rules: dict[str, Any], machine: str = "x86_64", kernel: tuple[int, int] = (6, 1), **more: Any) -> bytes:
    return compiled(profile(*rules, **more), machine=machine, capabilities=CAPS, kernel=kernel)


def answer(code: bytes, number: int, *arguments: int, arch: int = AMD64) -> int:
    """Run a program on one call, as `linux/filter.h` describes the steps."""
    data = struct.pack("=IIQ6Q", number, arch, 0, *(*arguments, *[0] * (6 - len(arguments))))
    steps = list(struct.iter_unpack("=HBBI", code))
    at = held = 0
    while True:
        kind, yes, no, value = steps[at]
        at += 1
        if kind == 0x20:
            (held,) = struct.unpack_from("=I", data, value)
        elif kind == 0x54:
            held &= value
        elif kind == 0x05:
            at += value
        elif kind == 0x06:
            return value
        else:
            at += yes if {0x15: held == value, 0x25: held > value, 0x35: held >= value}[kind] else no


def test_what_is_named_passes_and_what_is_not_is_refused() -> None:
    code = program({"names": ["read", "seccomp"]})  # 0 and 317 on x86-64

    assert [answer(code, number) for number in (0, 1, 316, 317)] == [ALLOWED, EPERM, EPERM, ALLOWED]


def test_calls_newer_than_the_profile_do_not_exist() -> None:
    assert answer(program({"names": ["read", "seccomp"]}), 318) == ENOSYS
    assert answer(program({"names": ["read", "seccomp"]}, defaultErrnoRet=1), 318) == ENOSYS
    assert answer(program({"names": ["read"], "action": REFUSE}, default=ALLOW), 318) == ALLOWED
    # A call that is named to be refused as all others are is one that the profile knows.
    assert answer(program({"names": ["read"]}, {"names": ["openat2"], "action": REFUSE}), 437) == EPERM


def test_errors_are_those_that_are_named() -> None:
    code = program({"names": ["clone3"], "action": REFUSE, "errnoRet": 38}, {"names": ["openat2"]}, defaultErrnoRet=13)

    assert [answer(code, number) for number in (435, 437, 0)] == [ENOSYS, ALLOWED, 0x0005000D]


def test_other_machines_and_old_calls() -> None:
    code = program({"names": ["read"]})
    mapped = program({"names": ["read"]}, archMap=MAP)

    assert [answer(code, 0, arch=arch) for arch in (AMD64, I386, ARM64)] == [ALLOWED, KILLED, KILLED]
    assert [answer(mapped, 0, arch=arch) for arch in (AMD64, I386, ARM64)] == [ALLOWED, ALLOWED, KILLED]
    assert (answer(code, 0x40000000), answer(mapped, 0x40000000)) == (KILLED, ALLOWED)  # read of x32
    with pytest.raises(ValueError, match=r"no SCMP_ARCH_AARCH64; it has SCMP_ARCH_X86_64"):
        program({"names": ["read"]}, machine="aarch64", archMap=MAP)


def test_the_numbers_are_those_of_the_machine() -> None:
    code = program({"names": ["read", "open", "no_such_call"]}, machine="aarch64")  # read is 63, open does not exist

    assert [answer(code, number, arch=ARM64) for number in (63, 2, 0)] == [ALLOWED, EPERM, EPERM]
    assert answer(code, 63) == KILLED


@pytest.mark.parametrize(
    ("held", "rule"),
    [
        (True, {}),
        (True, {"includes": {}, "excludes": {}}),
        (True, {"includes": {"arches": ["arm64", "amd64"]}}),
        (False, {"includes": {"arches": ["arm64"]}}),
        (False, {"excludes": {"arches": ["amd64"]}}),
        (True, {"excludes": {"arches": ["s390"]}}),
        (True, {"includes": {"caps": ["CAP_KILL"]}}),
        (False, {"includes": {"caps": ["CAP_SYS_ADMIN"]}}),
        (False, {"includes": {"caps": ["CAP_KILL", "CAP_SYS_ADMIN"]}}),
        (False, {"excludes": {"caps": ["CAP_SYS_ADMIN", "CAP_KILL"]}}),
        (True, {"excludes": {"caps": ["CAP_SYS_ADMIN"]}}),
        (True, {"includes": {"minKernel": "4.8"}}),
        (True, {"includes": {"minKernel": "6.1"}}),
        (False, {"includes": {"minKernel": "6.2"}}),
        (False, {"includes": {"minKernel": "10.0"}}),
        (True, {"excludes": {"minKernel": "6.2"}}),
        (False, {"excludes": {"minKernel": "6.1"}}),
    ],
)
def test_rules_for_other_circumstances_are_left_out(held: bool, rule: dict[str, Any]) -> None:
    code = program({"names": ["read"], **rule}, {"names": ["write"]})

    assert answer(code, 0) == (ALLOWED if held else EPERM)


BIG = 0x1_0000_0005


@pytest.mark.parametrize(
    ("op", "passing", "failing"),
    [
        ("EQ", [BIG], [5, BIG - 1, BIG + 1, 0x2_0000_0005, 0x1_0000_0000]),
        ("NE", [5, BIG + 1, 0x2_0000_0005], [BIG]),
        ("GT", [BIG + 1, 0x2_0000_0000, 2**64 - 1], [BIG, BIG - 1, 0, 0xFFFFFFFF]),
        ("GE", [BIG, BIG + 1, 0x2_0000_0000], [BIG - 1, 0, 0xFFFFFFFF]),
        ("LT", [BIG - 1, 0, 0xFFFFFFFF], [BIG, BIG + 1, 0x2_0000_0000]),
        ("LE", [BIG, BIG - 1, 0xFFFFFFFF], [BIG + 1, 0x2_0000_0000, 2**64 - 1]),
    ],
)
@pytest.mark.parametrize("place", [0, 5])
def test_arguments_are_compared_with_all_their_bits(
    op: str, passing: list[int], failing: list[int], place: int
) -> None:
    code = program({"names": ["read"], "args": [{"index": place, "value": BIG, "op": f"SCMP_CMP_{op}"}]})

    for value in passing:
        assert answer(code, 0, *[0] * place, value) == ALLOWED, hex(value)
    for value in failing:
        assert answer(code, 0, *[0] * place, value) == EPERM, hex(value)


def test_bits_under_a_mask() -> None:
    # As Docker's profile has it: clone without a flag that makes a namespace.
    code = program({"names": ["clone"], "args": [{"index": 0, "value": 2114060288, "op": "SCMP_CMP_MASKED_EQ"}]})
    both = {"index": 1, "value": 0xF_0000_000F, "valueTwo": 0x3_0000_0004, "op": "SCMP_CMP_MASKED_EQ"}
    wide = program({"names": ["read"], "args": [both]})

    assert [answer(code, 56, flags) for flags in (0x00010F00, 0x11, 0x1_0000_0011)] == [ALLOWED] * 3
    assert [answer(code, 56, flags) for flags in (0x10000000, 0x00020011, 0x7E020000)] == [EPERM] * 3
    assert [answer(wide, 0, 0, value) for value in (0x3_0000_0004, 0xF3_0000_00F4)] == [ALLOWED] * 2
    assert [answer(wide, 0, 0, value) for value in (0x4, 0x3_0000_0000, 0x7_0000_0004)] == [EPERM] * 3


def test_several_conditions_and_several_rules() -> None:
    def equal(place: int, value: int) -> dict[str, Any]:
        return {"index": place, "value": value, "op": "SCMP_CMP_EQ"}

    together = program({"names": ["socket"], "args": [equal(0, 1), equal(1, 2)]})
    either = program({"names": ["socket"], "args": [equal(0, 1), equal(0, 2)]})
    rules = program(*({"names": ["socket"], "args": [equal(0, value)]} for value in range(60)))

    assert [answer(together, 41, *given) for given in ((1, 2), (1, 3), (2, 2))] == [ALLOWED, EPERM, EPERM]
    assert [answer(either, 41, given) for given in (1, 2, 3)] == [ALLOWED, ALLOWED, EPERM]
    assert [answer(rules, 41, given) for given in (0, 59, 60)] == [ALLOWED, ALLOWED, EPERM]
    # Without conditions a rule grants whatever others ask of the arguments.
    assert answer(program({"names": ["read"], "args": [equal(0, 1)]}, {"names": ["read"]}), 0, 7) == ALLOWED


def test_what_is_not_understood_is_not_guessed() -> None:
    with pytest.raises(ValueError, match="unknown action SCMP_ACT_NOTIFY; known are SCMP_ACT_ERRNO"):
        program({"names": ["read"], "action": "SCMP_ACT_NOTIFY"})
    with pytest.raises(ValueError, match="unknown comparison SCMP_CMP_ODD; known are"):
        program({"names": ["read"], "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_ODD"}]})
    with pytest.raises(ValueError, match="decided in 2 ways at once"):
        program({"names": ["read"]}, {"names": ["read"], "action": "SCMP_ACT_KILL_PROCESS"})


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_table_agrees_with_that_of_the_kernels(machine: str) -> None:
    numbers = system_calls.numbers(machine)

    assert numbers["openat"] == {"x86_64": 257, "aarch64": 56}[machine]
    assert set(syscalls.free(machine)) <= set(numbers.values())
    assert {name: numbers[name] for name in syscalls.watched(machine)} == syscalls.watched(machine)


@pytest.mark.skipif(sys.platform != "linux" or not system_calls.here(), reason="needs Linux on a machine of the table")
def test_the_kernel_keeps_to_a_program() -> None:
    given = profile(
        {"names": ["getppid"], "action": REFUSE, "errnoRet": errno.EXDEV},
        {"names": ["lseek"], "action": REFUSE, "args": [{"index": 1, "value": BIG, "op": "SCMP_CMP_GE"}]},
        default=ALLOW,
    )
    code = compiled(given, machine=os.uname().machine)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        container_profile.install(code)
        call = system_calls.here()

        def tried(name: str, *arguments: int) -> int:
            ctypes.set_errno(0)
            libc.syscall(call[name], *(ctypes.c_uint64(one) for one in arguments))
            return ctypes.get_errno()

        # The pipe cannot seek: that a call came through shows by the kernel's own error.
        told = [tried("getppid"), tried("getpid"), tried("lseek", writing, BIG - 1, 0), tried("lseek", writing, BIG, 0)]
        os.write(writing, json.dumps(told).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        seen = json.loads(pipe.read())
    os.waitpid(child, 0)

    assert seen == [errno.EXDEV, 0, errno.ESPIPE, errno.EPERM]


def through_libseccomp(given: dict[str, Any], machine: str, folder: Path) -> bytes:
    """Have libseccomp make the program of rules that all hold."""
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    allow, error = 0x7FFF0000, 0x00050000

    class Condition(ctypes.Structure):
        _fields_ = (
            ("arg", ctypes.c_uint),
            ("op", ctypes.c_int),
            ("a", ctypes.c_uint64),
            ("b", ctypes.c_uint64),
        )

    ops = ["", "NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ"]
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(error | 1)))
    if machine != os.uname().machine:
        library.seccomp_arch_remove(context, 0)
        library.seccomp_arch_add(context, ctypes.c_uint32({"x86_64": AMD64, "aarch64": ARM64}[machine]))
    for rule in given["syscalls"]:
        action = allow if rule["action"] == ALLOW else error | rule["errnoRet"]
        asked = [
            Condition(
                one["index"], ops.index(one["op"].removeprefix("SCMP_CMP_")), one["value"], one.get("valueTwo", 0)
            )
            for one in rule.get("args", [])
        ]
        conditions = (Condition * len(asked))(*asked)
        for name in rule["names"]:
            number = library.seccomp_syscall_resolve_name(name.encode())
            library.seccomp_rule_add_array(context, ctypes.c_uint32(action), number, len(conditions), conditions)
    path = folder / "program"
    with path.open("wb") as file:
        library.seccomp_export_bpf(context, file.fileno())
    return path.read_bytes()


@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="compares programs for x86-64")
def test_libseccomp_makes_programs_that_answer_alike(tmp_path: Path) -> None:
    try:
        ctypes.CDLL("libseccomp.so.2")
    except OSError:
        pytest.skip("libseccomp is not installed")
    rules = [
        {"names": ["read", "write", "openat", "clone3"]},
        {"names": ["personality"], "args": [{"index": 0, "value": 8, "op": "SCMP_CMP_EQ"}]},
        {"names": ["personality"], "args": [{"index": 0, "value": 0xFFFFFFFF, "op": "SCMP_CMP_EQ"}]},
        {"names": ["clone"], "args": [{"index": 0, "value": 2114060288, "op": "SCMP_CMP_MASKED_EQ"}]},
        {"names": ["socket"], "args": [{"index": 0, "value": 12, "op": "SCMP_CMP_LT"}]},
        {"names": ["lseek"], "args": [{"index": 1, "value": BIG, "op": "SCMP_CMP_GT"},
                                      {"index": 2, "value": 1, "op": "SCMP_CMP_NE"}]},
        {"names": ["mmap"], "args": [{"index": 3, "value": BIG, "op": "SCMP_CMP_LE"}]},
        {"names": ["kill"], "action": REFUSE, "errnoRet": 13},
    ]  # fmt: skip
    ours = program(*rules)
    theirs = through_libseccomp(profile(*rules), "x86_64", tmp_path)
    values = [0, 1, 2, 8, 11, 12, 13, 0x20000, 0x10000000, 0xFFFFFFFF, BIG - 1, BIG, BIG + 1, 2**64 - 1]

    for number in range(436):
        for value in values:
            given = (value, value, 2, value)
            assert answer(ours, number, *given) == answer(theirs, number, *given), (number, hex(value))
