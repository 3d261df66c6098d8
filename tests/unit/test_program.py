"""How next commands are written: they can be typed as they stand."""

import sys
from pathlib import Path

import pytest

from memory_pipelines.cli.program import as_started, command, program


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("place", "on_path", "shown"),
    [
        ("here/.venv/bin/memory-pipelines", [], ".venv/bin/memory-pipelines"),
        ("here/.venv/bin/memory-pipelines", ["here/.venv/bin"], "memory-pipelines"),
        ("here/.venv/bin/memory-pipelines", ["there/bin"], ".venv/bin/memory-pipelines"),  # PATH leads to another one
        ("there/bin/memory-pipelines", [], "{root}/there/bin/memory-pipelines"),
        ("there/my bin/memory-pipelines", [], "'{root}/there/my bin/memory-pipelines'"),
    ],
)
def test_a_program_is_named_so_that_the_shell_finds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str, on_path: list[str], shown: str
) -> None:
    executable(tmp_path / "there/bin/memory-pipelines")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "argv", [str(executable(tmp_path / place)), "quickstart"])
    monkeypatch.setenv("PATH", ":".join(["/usr/bin", *(str(tmp_path / one) for one in on_path)]))

    assert program() == shown.format(root=tmp_path)


@pytest.mark.parametrize("python", ["python", ".venv/bin/python3"])
def test_a_module_is_started_by_the_python_that_was_typed(monkeypatch: pytest.MonkeyPatch, python: str) -> None:
    monkeypatch.setattr(sys, "argv", ["/elsewhere/memory_pipelines/__main__.py", "quickstart"])
    monkeypatch.setattr(sys, "orig_argv", [python, "-m", "memory_pipelines", "quickstart"])

    assert command("dev") == f"{python} -m memory_pipelines dev"


def test_commands_in_messages_are_written_as_this_program_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bin/memory-pipelines"])

    assert (
        as_started("memory-pipelines/sup is paused; `memory-pipelines pipeline resume sup` ends that")
        == "memory-pipelines/sup is paused; `bin/memory-pipelines pipeline resume sup` ends that"
    )
