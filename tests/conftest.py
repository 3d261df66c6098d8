"""Shared by all tests: a clean environment, and no way to a model or the network."""

import socket
from pathlib import Path
from typing import Any

import pytest

LOCAL = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", None, "")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the machine reaches a test, and nothing is written outside its folder."""
    import os

    for name in list(os.environ):
        if name.startswith(("MEMORY_PIPELINES_", "OPENAI_", "ANTHROPIC_", "LITELLM_", "DAGSTER_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only this machine can be reached."""
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in LOCAL:
            raise AssertionError(f"a test reached for {address[0]}")
        connect(self, address)

    def guarded_look_up(host: Any, *args: Any, **named: Any) -> Any:
        if host not in LOCAL:
            raise AssertionError(f"a test asked for the address of {host}")
        return look_up(host, *args, **named)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_look_up)
