"""What tests of the command line share: a command in this process, and something to work on."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memory_pipelines.cli.main import main

AT = "2026-03-01T10:00:00Z"


@dataclass
class Done:
    code: int
    out: str
    err: str


Cli = Callable[..., Done]


def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Return what runs a command in this process, as the console script does."""

    def run(*words: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["memory-pipelines", *words])
        capsys.readouterr()
        try:
            main()
            code: Any = 0
        except SystemExit as end:
            code = end.code or 0
        shown = capsys.readouterr()
        return Done(int(code), shown.out, shown.err)

    return run


def set_up(cli: Cli) -> Cli:
    """Make a session store with one actor, a memory store, and a pipeline on them."""
    line = {"actor_id": "ana", "session_id": "s1", "items": [{"role": "user", "content": "I prefer tea.", "at": AT}]}
    Path("history.jsonl").write_text(json.dumps(line) + "\n")
    assert cli("import", "native", "history.jsonl", "--store", "support").code == 0
    assert cli("memory-store", "create", "support-memory").code == 0
    made = cli("pipeline", "create", "--session-store", "support", "--memory-store", "support-memory", "--id", "sup")
    assert made.code == 0
    assert "offline (rules, not an LLM)" in made.out
    return cli
