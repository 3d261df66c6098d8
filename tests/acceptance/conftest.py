"""The command line, for tests: empty, and with something to work on."""

import pytest
from terminal import Cli, set_up, typed


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in this process, as the console script does."""
    return typed(monkeypatch, capsys)


@pytest.fixture
def ready(cli: Cli) -> Cli:
    """A session store with one actor, a memory store, and a pipeline on them."""
    return set_up(cli)
