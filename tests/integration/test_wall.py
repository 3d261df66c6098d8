"""The wall round a kernel: what code that means harm cannot do, and what honest code still can."""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attacks
import pytest

from memory_pipelines.errors import InvalidInputError, KernelUnavailableError
from memory_pipelines.memex.kernels import isolation, seccomp, syscalls
from memory_pipelines.memex.kernels.base import Kernel, Limits
from memory_pipelines.memex.kernels.opening import open_kernel
from memory_pipelines.registry import KERNELS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the wall is made of parts of Linux")

QUICK = [*attacks.FILES, *attacks.NETWORK, *attacks.PROCESSES]
LIMITS = Limits(memory_bytes=256 << 20, grace_seconds=0.3, cpu_seconds=60)


KINDS = ("pool", "subprocess")


def on(test: Callable[[Kernel], Awaitable[None]], name: str = "subprocess", **named: Any) -> None:
    async def opened() -> None:
        async with open_kernel(name, limits=LIMITS, **named) as kernel:
            await test(kernel)

    asyncio.run(opened())


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("kind", ["FILES", "NETWORK", "PROCESSES", "SABOTAGE", "FRAMES"])
def test_attacks_come_to_nothing(kind: str, name: str, tmp_path: Path) -> None:
    async def test(kernel: Kernel) -> None:
        for attack in getattr(attacks, kind):
            await attacks.attempt(kernel, attack, aims, seconds=0.3)

    with attacks.host(tmp_path / "host") as aims:
        on(test, name)


@pytest.mark.parametrize("name", KINDS)
def test_a_fresh_kernel_holds_nothing_of_others(name: str) -> None:
    code = """
import os, stat
kinds = []
for fd in range(64):
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        continue
    kinds.append('null' if stat.S_ISCHR(mode) else 'socket' if stat.S_ISSOCK(mode) else oct(stat.S_IFMT(mode)))
sorted(kinds)
"""

    async def test(kernel: Kernel) -> None:
        seen = await kernel.run(code)
        # Standard streams, the connection, the pair by which its loop wakes itself, and what the loop waits on.
        assert seen.output == str(["0o0", *["null"] * 3, *["socket"] * 3])

    on(test, name)


def test_kernels_from_one_fork_server_share_nothing() -> None:
    change = """
import builtins, ctypes, math, textwrap
builtins.left = textwrap.left = math.left = 'left'
ctypes.memmove(id(math.tau) + 16, ctypes.byref(ctypes.c_double(4.0)), 8)
textwrap.dedent.__code__ = (lambda *_, **__: 'changed').__code__
math.tau, textwrap.dedent("1")
"""
    look = (
        "import builtins, math, textwrap\n"
        "math.tau, textwrap.dedent('1'), [hasattr(o, 'left') for o in (builtins, math, textwrap)]"
    )

    async def test(kernel: Kernel) -> None:
        seen = await kernel.run(change)
        assert (seen.output, seen.error) == ("(4.0, 'changed')", None)
        async with open_kernel("pool", limits=LIMITS) as sibling:
            assert (await sibling.run(look)).output == "(6.283185307179586, '1', [False, False, False])"

    on(test, "pool")


def test_the_project_and_its_database_are_out_of_reach(tmp_path: Path) -> None:
    inside = Path(isolation.__file__).parents[3] / "memory-of-a-test.db"  # beside the package, as people keep it
    secret = "kept from code"
    inside.write_text(secret)

    async def test(kernel: Kernel) -> None:
        for path in (inside, inside.parent / "pyproject.toml", Path(isolation.__file__).parents[2] / "settings.py"):
            seen = await kernel.run(f"open({str(path)!r}).read()")
            assert "PermissionError" in (seen.error or "")
        assert (await kernel.run("import os\ndict(os.environ), os.getcwd()")).output == "({}, '/')"

    try:
        on(test)
    finally:
        inside.unlink()


@pytest.mark.parametrize("name", KINDS)
def test_honest_code_still_works(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        for what, code, output in attacks.WORKS:
            seen = await kernel.run(code)
            assert (seen.output, seen.error) == (output, None), what

    on(test, name)


@pytest.mark.parametrize("name", KINDS)
def test_the_kernel_says_what_holds(name: str) -> None:
    async def test(kernel: Kernel) -> None:
        said = kernel.isolation
        assert (said["isolation"], said["seccomp"], said["capabilities"]) == ("strict", True, 0)
        assert said["landlock"] >= 1

    on(test, name)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("lacking", "says"),
    [
        (("landlock",), "needs Landlock"),
        (("seccomp",), "needs a seccomp table"),
        (("landlock", "seccomp"), "Landlock and"),
    ],
)
def test_strict_refuses_where_something_is_missing(
    name: str, lacking: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KERNELS.load(name), "lacking", lacking)

    async def test(kernel: Kernel) -> None:
        raise AssertionError(kernel)

    with pytest.raises(KernelUnavailableError, match=says) as refused:
        on(test, name)
    assert "isolation='best_effort'" in str(refused.value)
    assert "'inprocess'" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", KINDS)
def test_best_effort_warns_once_and_opens_no_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(KERNELS.load(name), "lacking", ("landlock",))
    monkeypatch.setattr(isolation, "_said", set[tuple[str, ...]]())

    async def test(kernel: Kernel) -> None:
        assert (kernel.isolation["isolation"], kernel.isolation["landlock"]) == ("best_effort", 0)
        for attack in QUICK:
            await attacks.attempt(kernel, attack, aims, seconds=0.3)
        assert (await kernel.run("import pydantic, json, re\njson.dumps([1])")).output == "'[1]'"

    with attacks.host(tmp_path / "host") as aims, caplog.at_level(logging.WARNING):
        on(test, name, isolation="best_effort")
        on(test, name, isolation="best_effort")
    assert [record.message for record in caplog.records if "landlock" in record.message] == [
        "Kernels run without landlock (isolation='best_effort'): code that a model writes is held back less than it "
        "should be. Every trajectory says so."
    ]


def test_an_isolation_that_is_none() -> None:
    async def test(kernel: Kernel) -> None:
        raise AssertionError(kernel)

    with pytest.raises(InvalidInputError, match="allowed are strict and best_effort"):
        on(test, isolation="loose")
    with pytest.raises(KernelUnavailableError, match="'inprocess' isolates nothing"):
        on(test, "inprocess", isolation="strict")


def test_other_systems_are_refused_with_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation.sys, "platform", "darwin")

    with pytest.raises(KernelUnavailableError, match=r"parts of Linux, and this is darwin.*'inprocess'"):
        isolation.wanted(None)
    assert isolation.wanted("best_effort") == "best_effort"


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_both_machines_have_a_program_that_the_kernel_can_take(machine: str) -> None:
    steps = len(seccomp.program(opens=True, machine=machine)) / 8

    assert steps == int(steps) < 4096  # BPF_MAXINSNS
    assert len(set(syscalls.free(machine))) == len(syscalls.free(machine))
    assert not set(syscalls.free(machine)) & set(syscalls.watched(machine).values())
