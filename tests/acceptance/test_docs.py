"""What the pages show works: Python blocks run, commands exist with their options, tables tell the truth."""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from memory_pipelines.cli.main import app
from memory_pipelines.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for block in blocks(page, "(?:sh|bash|console)?"):
            joined = block.replace("\\\n", " ")
            for line in joined.splitlines():
                line = line.split("  #")[0].strip().removeprefix("$ ").removeprefix(".venv/bin/")
                if line.startswith("memory-pipelines "):
                    found.append((page.name, line))
    return found


def test_pages_show_commands() -> None:
    assert len(commands()) > 5


@pytest.mark.parametrize(("page", "line"), commands())
def test_a_command_of_the_pages_exists_with_its_options(page: str, line: str) -> None:
    words = shlex.split(line)[1:]
    command: Any = get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"{page}: {line}"
        command = command.commands[words.pop(0)]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}

    assert {word.split("=")[0] for word in words if word.startswith("--")} <= known, f"{page}: {line}"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_of_the_pages_runs(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, Any] = {}
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), scope)
    if "app" in scope:
        scope["app"].close()


@pytest.mark.skipif(sys.platform != "linux", reason="the wall is made of parts of Linux")
def test_the_example_of_the_kernel_page_shows_the_wall(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks(ROOT / "docs" / "kernel.md", "python")
    exec(compile(code, "kernel.md", "exec"), {})

    done = capsys.readouterr()
    assert done.err == ""
    error, held = done.out.rsplit("\n", 2)[0], done.out.splitlines()[-1]
    assert "PermissionError: [Errno 13] Permission denied: '/etc/passwd'" in error
    assert held == "strict True"


def settings_table() -> str:
    rows = ["| variable | meaning | default |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else f"`{field.default}`"
        rows.append(f"| `MEMORY_PIPELINES_{name.upper()}` | {field.description} | {default} |")
    return "\n".join(rows)


def test_the_table_of_settings_is_true() -> None:
    assert settings_table() in (ROOT / "docs" / "model.md").read_text(encoding="utf-8")


def test_links_between_pages_lead_somewhere() -> None:
    broken, seen = [], 0
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                seen += 1
                broken += [] if (page.parent / target).exists() else [f"{page.name}: {target}"]

    assert seen > 5
    assert broken == []
