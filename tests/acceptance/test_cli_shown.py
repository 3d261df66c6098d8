"""What lists and `get` show of a pipeline: everything that decides what it does and costs."""

import json

import pytest
from terminal import Cli


def rows(shown: str) -> dict[str, str]:
    lines = [line.strip() for line in shown.splitlines()[1:]]
    return {line[:13].strip(): line[13:].strip() for line in lines}


def test_a_list_names_the_model_that_runs_use(ready: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "offline (rules, not an LLM)" in ready("pipeline", "list").out
    (listed,) = json.loads(ready("pipeline", "list", "--json").out)
    assert (listed["model"], listed["policy"]["model"]) == ("offline", None)

    monkeypatch.setenv("MEMORY_PIPELINES_MODEL", "openai/gpt-5")
    assert "openai/gpt-5" in ready("pipeline", "list").out
    assert rows(ready("pipeline", "get", "sup").out)["model"] == "openai/gpt-5, by default"


def test_a_paused_pipeline_says_what_resume_restores(ready: Cli) -> None:
    assert ready("pipeline", "update", "sup", "--trigger", "continuous", "--quiet-seconds", "90").code == 0
    assert rows(ready("pipeline", "get", "sup").out)["trigger"] == "CONTINUOUS (after 90 quiet seconds)"
    assert ready("pipeline", "pause", "sup").code == 0

    shown = rows(ready("pipeline", "get", "sup").out)["trigger"]
    assert shown == "paused; resume restores CONTINUOUS (after 90 quiet seconds)"
    assert "paused (CONTINUOUS)" in ready("pipeline", "list").out
    assert json.loads(ready("pipeline", "get", "sup", "--json").out)["paused"] is True
    assert "paused already" in ready("pipeline", "pause", "sup").err

    assert ready("pipeline", "update", "sup", "--trigger", "manual").code == 0
    assert rows(ready("pipeline", "get", "sup").out)["trigger"] == "MANUAL_ONLY"


def test_a_scheduled_pipeline_shows_when(ready: Cli) -> None:
    when = ("--trigger", "scheduled", "--cron", "0 3 * * *", "--timezone", "Europe/Berlin")
    assert ready("pipeline", "update", "sup", *when).code == 0

    assert rows(ready("pipeline", "get", "sup").out)["trigger"] == "SCHEDULED (cron 0 3 * * * Europe/Berlin)"


def test_budgets_are_shown(ready: Cli) -> None:
    assert rows(ready("pipeline", "get", "sup").out)["budgets"] == "none"
    limits = ("--max-calls", "40", "--max-tokens", "90000", "--max-cost", "2.5")
    assert ready("pipeline", "update", "sup", *limits).code == 0

    assert rows(ready("pipeline", "get", "sup").out)["budgets"] == "40 calls, 90000 tokens, $2.5 a run"


def test_one_is_not_in_the_plural(ready: Cli) -> None:
    assert rows(ready("pipeline", "get", "sup").out)["pending"] == "1 actor"
    assert "1 actor, 1 session, 1 item." in ready("session-store", "get", "support").out
    again = ready("import", "native", "history.jsonl", "--store", "support").out
    assert again == "Imported 1 session of 1 actor into support: 0 new items, 1 known before.\n"
