"""The command line: help, machine output, exit codes, and one clear line for every mistake."""

import io
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from terminal import AT, Cli
from typer.main import get_command

from memory_pipelines.cli.main import app


def commands(node: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    if not hasattr(node, "commands"):
        return [(path, node)]
    return [found for name, inner in node.commands.items() for found in commands(inner, (*path, name))]


def options(command: Any) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


@pytest.mark.parametrize(
    ("path", "command"),
    commands(get_command(app)),
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_every_command_has_help_with_an_example(path: tuple[str, ...], command: Any) -> None:
    assert command.help
    assert f"memory-pipelines {' '.join(path)}" in command.epilog


def test_lists_are_tables_for_people_and_json_for_machines(ready: Cli) -> None:
    assert json.loads(ready("pipeline", "list", "--json").out)[0]["id"] == "sup"
    assert json.loads(ready("session-store", "get", "support", "--json").out)["counts"] == {
        "actors": 1,
        "sessions": 1,
        "items": 1,
    }
    assert "sup" in ready("pipeline", "list").out
    assert json.loads(ready("pipeline", "get", "sup", "--json").out)["pending_actors"] == 1


def test_importing_twice_adds_nothing_and_a_dry_run_stores_nothing(ready: Cli) -> None:
    again = json.loads(ready("import", "native", "history.jsonl", "--store", "support", "--json").out)
    assert again == {"sessions": 1, "actors": 1, "items": 1, "new_items": 0}

    lines = [{"actor_id": "ben", "session_id": name, "items": []} for name in ("s7", "s8", "s7")]
    Path("back.jsonl").write_text("\n".join(map(json.dumps, lines)))
    back = json.loads(ready("import", "native", "back.jsonl", "--store", "support", "--json").out)
    assert back["sessions"] == 2  # one of them comes back

    dry = ready("import", "native", "history.jsonl", "--store", "other-store", "--dry-run")
    assert dry.code == 0
    assert "1 session of 1 actor with 1 item" in dry.out
    assert "other-store" not in ready("session-store", "list").out


def test_a_run_in_flight_refuses_a_second_and_names_the_first(ready: Cli) -> None:
    first = ready("pipeline", "run", "sup")
    assert first.code == 0
    assert "no orchestrator has looked for work" in first.err

    second = ready("pipeline", "run", "sup")
    assert second.code == 1
    assert "memory-pipelines/sup/runs/1" in second.err

    assert ready("pipeline", "cancel", "1", "--pipeline", "sup").code == 0
    assert json.loads(ready("pipeline", "runs", "sup", "--json").out)[0]["state"] == "CANCELLED"
    assert ready("pipeline", "cancel", "1", "--pipeline", "sup").code == 1


def test_pause_and_resume_go_back_to_the_trigger(ready: Cli) -> None:
    assert ready("pipeline", "update", "sup", "--trigger", "continuous").code == 0
    assert ready("pipeline", "pause", "sup").code == 0
    assert ready("pipeline", "pause", "sup").code == 1
    assert "CONTINUOUS" in ready("pipeline", "resume", "sup").out


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("session-store", "create", "A"), 2, "3 to 55"),
        (("session-store", "get", "nowhere"), 1, "nowhere"),
        (("import", "nope", "x.jsonl", "--store", "abc"), 2, "native"),
        (("import", "native", "missing.jsonl", "--store", "abc"), 2, "missing.jsonl"),
        (("pipeline", "get", "nothing"), 1, "nothing"),
        (("pipeline", "create", "--session-store", "abc", "--memory-store", "def"), 1, "session-stores/abc"),
        (("pipeline", "create", "--session-store", "abc", "--memory-store", "def", "--trigger", "x"), 2, "continuous"),
        (("pipeline", "run", "nothing", "--wait", "--here"), 2, "--here"),
        (("memory", "get", "nothing", "/a.md", "--actor", "x"), 1, "nothing"),
        (("pipeline", "cancel", "one"), 2, "runs/<number>"),
    ],
)
def test_a_mistake_is_one_clear_line(cli: Cli, words: tuple[str, ...], code: int, says: str) -> None:
    done = cli(*words)

    assert done.code == code
    assert says in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert "Traceback" not in done.err


def test_a_broken_line_is_named_and_what_came_before_is_kept(ready: Cli) -> None:
    good = {"actor_id": "ben", "session_id": "s2", "items": [{"role": "user", "content": "hi", "at": AT}]}
    Path("broken.jsonl").write_text(json.dumps(good) + "\n{not json\n")

    done = ready("import", "native", "broken.jsonl", "--store", "support")

    assert done.code == 2
    assert "broken.jsonl:2" in done.err
    assert json.loads(ready("session-store", "get", "support", "--json").out)["counts"]["items"] in {1, 2}


@pytest.mark.parametrize(
    ("key", "value"),
    [("actor_id", "x" * 513), ("actor_id", "\ud800"), ("session_id", "y" * 600), ("parent_id", "\x00")],
)
def test_a_dry_run_refuses_what_the_import_refuses(ready: Cli, key: str, value: str) -> None:
    good = {"actor_id": "ben", "session_id": "s2", "items": [{"role": "user", "content": "hi", "at": AT}]}
    Path("ids.jsonl").write_text(json.dumps(good) + "\n" + json.dumps({**good, "session_id": "s3", key: value}) + "\n")

    dry = ready("import", "native", "ids.jsonl", "--store", "support", "--dry-run")
    real = ready("import", "native", "ids.jsonl", "--store", "support")

    assert (dry.code, real.code) == (2, 2)
    assert dry.err == real.err
    assert dry.err.startswith("Error: ids.jsonl:2: ")
    assert "1 to 512 characters" in dry.err


def test_a_dry_run_refuses_a_store_that_cannot_be(ready: Cli) -> None:
    words = ("import", "native", "history.jsonl", "--store", "A")

    assert ready(*words, "--dry-run").err == ready(*words).err
    assert ready(*words, "--dry-run").code == 2


def test_what_the_database_refuses_names_the_file(ready: Cli) -> None:
    other = {"actor_id": "ben", "session_id": "s1", "items": [{"role": "user", "content": "hi", "at": AT}]}
    Path("other.jsonl").write_text(json.dumps(other) + "\n")

    done = ready("import", "native", "history.jsonl", "other.jsonl", "--store", "support")

    assert done.code == 2
    assert done.err.startswith("Error: other.jsonl: session-stores/support/sessions/s1 ")


def test_an_error_for_machines_is_json(cli: Cli) -> None:
    done = cli("pipeline", "get", "nothing", "--json")

    assert json.loads(done.err)["error"]["code"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("pipeline", "get"), "Missing argument 'pipeline'"),
        (("pipeline", "gett", "sup"), "No such command 'gett'"),
        (("pipeline", "runs", "sup", "--limit", "many"), "'--limit'"),
        (("pipeline", "runs", "sup", "--limt", "3"), "--limit"),
    ],
)
def test_wrong_use_for_machines_is_json_too(cli: Cli, words: tuple[str, ...], says: str) -> None:
    done = cli(*words, "--json")

    assert (done.code, done.out) == (2, "")
    error = json.loads(done.err)["error"]
    assert error["code"] == "INVALID_PARAMETER_VALUE"
    assert says in error["message"]
    assert cli(*words).code == 2


def test_every_command_prints_json_for_machines() -> None:
    without = [" ".join(path) for path, command in commands(get_command(app)) if "--json" not in options(command)]

    assert without == ["dev"]  # it prints what Dagster prints, until Ctrl-C


def test_a_run_in_this_process_and_every_way_to_read_what_it_made(ready: Cli) -> None:
    run = ready("pipeline", "run", "sup", "--here", "--json")
    assert (run.code, run.err) == (0, "")
    summary = json.loads(run.out)
    assert (summary["run"]["state"], summary["actors"], summary["created"]) == ("SUCCEEDED", 1, 1)

    listed = json.loads(ready("memory", "list", "support-memory", "--json").out)
    assert [(one["actor_id"], one["path"], one["content"]) for one in listed] == [
        ("ana", "/food.md", "- I prefer tea.\n")
    ]
    who = ("support-memory", "/food.md", "--actor", "ana")
    ((line, fact),) = json.loads(ready("memory", "get", *who, "--sources", "--json").out)["sources"]
    assert (line, fact["quote"], fact["source"]["session_id"]) == ("- I prefer tea.", "I prefer tea.", "s1")
    shown = ready("memory", "get", *who, "--sources").out
    assert "s1, item 1, 2026-03-01" in shown
    assert "offline (rules, not an LLM)" in shown
    (revision,) = json.loads(ready("memory", "history", *who, "--json").out)
    assert (revision["version"], revision["action"], revision["run"]) == (1, "create", 1)
    (hit,) = json.loads(ready("memory", "search", "support-memory", "tea", "--actor", "ana", "--json").out)
    assert hit["entry"]["path"] == "/food.md"
    assert ready("memory", "search", "support-memory", "zebra", "--actor", "ana").out == "Nothing found.\n"
    assert ready("memory", "render", "support-memory", "--actor", "ana").out == "## food\n- I prefer tea.\n"
    assert json.loads(ready("memory", "render", "support-memory", "--actor", "ben", "--json").out) == {"text": ""}

    results = json.loads(ready("pipeline", "results", "1", "--pipeline", "sup", "--json").out)
    assert [(one["actor_id"], one["state"]) for one in results["actors"]] == [("ana", "succeeded")]
    again = ready("pipeline", "run", "sup", "--here")
    assert again.code == 0
    assert "Nothing new" in again.out
    back = json.loads(ready("pipeline", "backfill", "sup", "--here", "--json").out)
    assert (back["run"]["number"], back["actors"], back["created"], back["updated"]) == (3, 1, 0, 0)


def test_an_update_changes_what_is_given_and_nothing_else(ready: Cli) -> None:
    Path("wishes.md").write_text("Remember allergies.\n", encoding="utf-8")
    before = json.loads(ready("pipeline", "get", "sup", "--json").out)
    assert ready("pipeline", "update", "sup", "--max-cost", "2.5", "--instructions", "@wishes.md").code == 0

    after = json.loads(ready("pipeline", "get", "sup", "--json").out)
    assert after.pop("policy") == {**before.pop("policy"), "max_cost": 2.5, "instructions": "Remember allergies.\n"}
    assert {**after, "update_time": ""} == {**before, "update_time": ""}
    assert ready("pipeline", "update", "sup").code == 2


def test_deleting_asks_first(ready: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (("pipeline", "delete", "sup"), ("memory-store", "delete", "support-memory")):
        for answer in ("n\n", ""):  # no, and nobody there to answer
            monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
            assert ready(*words).code == 1
    assert [one["id"] for one in json.loads(ready("pipeline", "list", "--json").out)] == ["sup"]

    unasked = ready("session-store", "delete", "support", "--json")
    assert (unasked.code, unasked.out) == (2, "")
    assert "--yes" in json.loads(unasked.err)["error"]["message"]

    refused = ready("session-store", "delete", "support", "--yes")
    assert refused.code == 1
    assert "memory-pipelines/sup" in refused.err

    for noun, name in (("pipeline", "sup"), ("session-store", "support"), ("memory-store", "support-memory")):
        deleted = ready(noun, "delete", name, "--yes", "--json")
        assert json.loads(deleted.out) == {"deleted": f"{'memory-' * (noun == 'pipeline')}{noun}s/{name}"}
        assert json.loads(ready(noun, "list", "--json").out) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--id", "UP"), "3 to 56"),
        (("--trigger", "scheduled", "--cron", "99 * * * *"), "minute"),
        (("--cron", "0 3 * * *"), "SCHEDULED"),
        (("--trigger", "scheduled", "--timezone", "Mars/Base"), "Europe/Berlin"),
        (("--trigger", "continuous", "--quiet-seconds", "-1"), "quiet_seconds"),
        (("--quiet-seconds", "60"), "CONTINUOUS"),
        (("--trigger", "scheduled", "--quiet-seconds", "60"), "CONTINUOUS"),
        (("--max-calls", "0"), "max_calls"),
        (("--max-cost", "0"), "max_cost"),
        (("--instructions", "@nowhere.md"), "nowhere.md"),
        (("--instructions", "x" * 20_001), "20000"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_a_pipeline_that_cannot_be_is_not_half_made(cli: Cli, words: tuple[str, ...], says: str) -> None:
    assert cli("session-store", "create", "support").code == 0
    assert cli("memory-store", "create", "support-memory").code == 0

    done = cli("pipeline", "create", "--session-store", "support", "--memory-store", "support-memory", *words)

    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert json.loads(cli("pipeline", "list", "--json").out) == []


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("MEMORY_PIPELINES_WINDOW_TOKENS", "many", "MEMORY_PIPELINES_WINDOW_TOKENS"),
        ("MEMORY_PIPELINES_DATABASE_URL", "mysql://host/db", "sqlite:///"),
        ("MEMORY_PIPELINES_PROFILE", "huge", "MEMORY_PIPELINES_PROFILE"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)

    done = cli("pipeline", "list")

    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_a_misspelt_setting_is_told_in_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_PIPELINES_MODLE", "openai/gpt-5")

    done = cli("pipeline", "list")

    assert done.code == 0
    assert done.err.startswith("Warning: MEMORY_PIPELINES_MODLE is set")
    assert len(done.err.splitlines()) == 1
    (line,) = cli("pipeline", "list", "--json").err.splitlines()
    assert "MEMORY_PIPELINES_MODEL" in json.loads(line)["warning"]["message"]


def test_people_may_write_square_brackets(cli: Cli) -> None:
    assert cli("session-store", "create", "support", "--description", "[bold]red[/] [x]").code == 0
    assert "[bold]red[/] [x]" in cli("session-store", "list").out
    assert "[bold]red[/] [x]" in cli("session-store", "get", "support").out


@pytest.mark.parametrize("words", [r"C:\[/red]", r"C:\[red]x[/red]", r"a\[b", ":rocket:", "back\\"])
def test_what_people_say_is_printed_as_they_said_it(ready: Cli, words: str) -> None:
    said = f"I prefer {words} in tea examples."
    line = {"actor_id": words, "session_id": "s2", "items": [{"role": "user", "content": said, "at": AT}]}
    Path("more.jsonl").write_text(json.dumps(line) + "\n")
    assert ready("import", "native", "more.jsonl", "--store", "support").code == 0
    assert ready("pipeline", "update", "sup", "--display-name", f"tea {words}").code == 0
    run = ready("pipeline", "run", "sup", "--here", "--actor", words)
    assert run.code == 0

    (entry,) = json.loads(ready("memory", "list", "support-memory", "--actor", words, "--json").out)
    assert entry["content"] == f"- {said}\n"
    shown = ready("memory", "get", "support-memory", entry["path"], "--actor", words, "--sources")
    assert (shown.code, shown.out.count(said)) == (0, 3)  # the entry, its line, the quote
    listed = ready("memory", "list", "support-memory", "--actor", words)
    assert (listed.code, words in listed.out) == (0, True)
    results = ready("pipeline", "results", "1", "--pipeline", "sup")
    assert (results.code, words in results.out) == (0, True)
    assert f"tea {words}" in ready("pipeline", "get", "sup").out


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memory_pipelines", "--version"], capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == f"memory-pipelines {version('memory-pipelines')}"
