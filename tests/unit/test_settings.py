"""Settings: a name that is none is told, with what was probably meant."""

import warnings

import pytest

from memory_pipelines.errors import MemoryPipelinesWarning
from memory_pipelines.settings import read_settings, unknown_variables


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("MEMORY_PIPELINES_MODLE", "did you mean MEMORY_PIPELINES_MODEL?"),
        ("MEMORY_PIPELINES_DATABASE", "did you mean MEMORY_PIPELINES_DATABASE_URL?"),
        ("memory_pipelines_windows_tokens", "did you mean MEMORY_PIPELINES_WINDOW_TOKENS?"),
        ("MEMORY_PIPELINES_X", "there are MEMORY_PIPELINES_HOME, MEMORY_PIPELINES_DATABASE_URL, "),
    ],
)
def test_a_misspelt_variable_is_told_with_what_was_meant(name: str, meant: str) -> None:
    (message,) = unknown_variables([name, "PATH", "MEMORY_PIPELINES_MODEL"])

    assert message.startswith(f"{name} is set")
    assert meant in message


def test_what_is_a_setting_or_not_ours_is_not_told() -> None:
    of_kubernetes = [
        "MEMORY_PIPELINES_SERVICE_HOST",
        "MEMORY_PIPELINES_SERVICE_PORT_HTTP",
        "MEMORY_PIPELINES_PORT",
        "MEMORY_PIPELINES_PORT_3000_TCP_ADDR",
    ]

    assert unknown_variables(["memory_pipelines_model", "MEMORY_PIPELINES_HOME", "HOME", *of_kubernetes]) == []


def test_reading_warns_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_PIPELINES_MODLE", "openai/gpt-5")

    with pytest.warns(MemoryPipelinesWarning, match="MEMORY_PIPELINES_MODEL"):
        assert read_settings().model == "offline"

    monkeypatch.delenv("MEMORY_PIPELINES_MODLE")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_settings()
