"""The first command a new user types, in an empty home: what it prints, keeps, and keeps out."""

import json
import os
import resource
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memory_pipelines import connect
from memory_pipelines.samples import expected

COMMAND = [str(Path(sys.executable).with_name("memory-pipelines"))]


@dataclass
class Tried:
    """A folder in which the quickstart ran."""

    folder: Path
    output: str
    seconds: float

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run(self.folder, *words)

    def typed(self, *words: str) -> subprocess.CompletedProcess[str]:
        return typed(self.folder, *words)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.folder / ".memory-pipelines" / "memory.db") as connection:
            return connection.execute(sql).fetchall()

    def lines(self, actor: str) -> list[str]:
        found = self.rows("SELECT actor_id, content FROM entries")
        return [line for who, content in found if who == actor for line in content.splitlines() if line.strip()]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return typed(folder, *COMMAND, *words)


def typed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH") if name in os.environ}
    environment = {**kept, "HOME": str(folder / "home"), "COLUMNS": "200"}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    folder = tmp_path_factory.mktemp("quickstart")
    (folder / "home").mkdir()
    before = spent()
    done = run(folder, "quickstart")
    assert done.returncode == 0, done.stderr + done.stdout
    return Tried(folder, done.stdout + done.stderr, spent() - before)


def spent() -> float:
    """Seconds of processor that commands took so far: unlike the clock they do not grow on a busy machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


EXPECTED: dict[str, dict[str, Any]] = json.loads(expected().read_text(encoding="utf-8"))


def test_it_shows_what_it_did(tried: Tried) -> None:
    for words in ("53 sessions of 8 actors", "SUCCEEDED", "8 succeeded, 0 failed", "Next:", "memory-pipelines dev"):
        assert words in tried.output
    for actor in EXPECTED:
        if EXPECTED[actor]["keep"]:
            assert actor in tried.output
    assert tried.seconds < 60


def test_it_says_that_the_model_is_not_one(tried: Tried) -> None:
    assert tried.output.count("offline (rules, not an LLM)") >= 2
    assert {row[0] for row in tried.rows("SELECT model FROM facts")} == {"offline"}


@pytest.mark.parametrize("actor", sorted(EXPECTED))
def test_what_lasts_is_kept(tried: Tried, actor: str) -> None:
    memory = "\n".join(tried.lines(actor)).casefold()
    missing = [
        wanted["about"]
        for wanted in EXPECTED[actor]["keep"]
        if not any(words.casefold() in memory for words in wanted["any_of"])
    ]

    assert missing == []


@pytest.mark.parametrize("actor", sorted(EXPECTED))
def test_what_is_outdated_is_not_current(tried: Tried, actor: str) -> None:
    stale = [
        line
        for outdated in EXPECTED[actor]["outdated"]
        for line in tried.lines(actor)
        if outdated["old"].casefold() in line.casefold()
        and not any(words.casefold() in line.casefold() for words in outdated["unless"])
    ]

    assert stale == []


@pytest.mark.parametrize("actor", sorted(EXPECTED))
def test_what_must_not_be_kept_is_in_no_fact_entry_or_revision(tried: Tried, actor: str) -> None:
    kept = " ".join(
        str(value)
        for sql in ("SELECT text FROM facts", "SELECT content, path FROM entries", "SELECT content FROM revisions")
        for row in tried.rows(sql)
        for value in row
    ).casefold()

    assert kept
    assert [words for words in EXPECTED[actor]["absent"] if words.casefold() in kept] == []


def test_secrets_are_nowhere_but_in_the_conversation(tried: Tried) -> None:
    secrets = [secret for wanted in EXPECTED.values() for secret in wanted["secrets"]]
    assert len(secrets) >= 3
    tables = [row[0] for row in tried.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    dump = json.dumps(
        [[str(row) for row in tried.rows(f'SELECT * FROM "{name}"')] for name in tables if name != "items"]
    )
    files = [path for path in tried.folder.rglob("*") if path.is_file() and not path.name.startswith("memory.db")]
    assert len(files) > 50  # trajectories, Dagster's own

    written = dump.encode() + tried.output.encode() + b"".join(path.read_bytes() for path in files)

    assert [secret for secret in secrets if secret.encode() in written] == []
    assert [secret for secret in secrets if json.dumps(secret)[1:-1].encode() in written] == []


def test_secrets_are_on_no_page_of_the_database_but_those_of_the_items(tried: Tried, tmp_path: Path) -> None:
    secrets = [secret.encode() for wanted in EXPECTED.values() for secret in wanted["secrets"]]
    copy = tmp_path / "copy.db"
    with (
        closing(sqlite3.connect(tried.folder / ".memory-pipelines" / "memory.db")) as kept,
        closing(sqlite3.connect(copy)) as target,
    ):
        kept.backup(target)
    assert all(secret in copy.read_bytes() for secret in secrets)

    with closing(sqlite3.connect(copy)) as opened:
        opened.execute("DROP TABLE items")
        opened.execute("VACUUM")

    assert [secret for secret in secrets if secret in copy.read_bytes()] == []


def test_twenty_ways_to_say_it_and_one_correction_are_one_line(tried: Tried) -> None:
    said = [row[0] for row in tried.rows("SELECT text FROM facts WHERE actor_id = 'tom.becker@example.com'")]
    about_units = [text for text in said if "metric" in text.casefold() or "imperial" in text.casefold()]
    current = [line for line in tried.lines("tom.becker@example.com") if "unit" in line or "metric" in line.casefold()]

    assert len(about_units) == 21
    assert len(current) == 1
    assert "imperial" in current[0]


def test_every_line_is_traced_to_a_sentence_of_its_actor(tried: Tried) -> None:
    from memory_pipelines.redaction import redact_json

    data = {(row[0], row[1]): row[2] for row in tried.rows("SELECT session_id, id, data FROM items")}
    owner = dict(tried.rows("SELECT id, actor_id FROM sessions"))
    facts = tried.rows("SELECT actor_id, session_id, item_id, quote FROM facts")
    assert len(facts) > 50
    for actor, session, item, quote in facts:
        said = redact_json(json.loads(data[session, item]))
        content = said["content"] if isinstance(said["content"], str) else json.dumps(said, ensure_ascii=False)
        assert said["role"] == "user"
        assert quote in content
        assert owner[session] == actor

    app = connect(f"sqlite:///{tried.folder / '.memory-pipelines' / 'memory.db'}")
    for actor in EXPECTED:
        traced = {line for line, fact in app.memory.sources("sample-memory", actor_id=actor) if fact.actor_id == actor}
        assert set(tried.lines(actor)) == traced
    app.close()


def test_again_there_is_nothing_new_and_nothing_changes(tried: Tried) -> None:
    before = tried.rows("SELECT id, version, content FROM entries ORDER BY id")

    done = tried.run("quickstart")

    assert done.returncode == 0, done.stderr
    assert "Nothing new" in done.stdout
    assert tried.rows("SELECT id, version, content FROM entries ORDER BY id") == before

    told = tried.run("quickstart", "--json")
    assert (told.returncode, told.stderr) == (0, "")
    shown = json.loads(told.stdout)
    assert (shown["imported"]["sessions"], shown["imported"]["new_items"]) == (53, 0)
    assert (shown["summary"]["run"]["state"], shown["summary"]["actors"]) == ("SUCCEEDED", 0)
    assert len(shown["entries"]) == len(before)


def test_the_memory_can_be_read_in_every_way(tried: Tried) -> None:
    who = ("--actor", "tom.becker@example.com")
    found = tried.run("memory", "search", "sample-memory", "units", *who, "--json")
    got = tried.run("memory", "get", "sample-memory", "/preferences.md", *who, "--sources")
    rendered = tried.run("memory", "render", "sample-memory", *who, "--budget-tokens", "60")

    assert next(hit["entry"]["path"] for hit in json.loads(found.stdout)) == "/preferences.md"
    assert "From now on, use imperial units" in got.stdout
    assert "2026-09-08" in got.stdout
    assert 0 < len(rendered.stdout) <= 60 * 4


def test_what_it_says_to_type_next_works(tried: Tried) -> None:
    shown = [shlex.split(line) for line in tried.output.splitlines() if line.startswith("  ") and " memory " in line]
    steps = [words for words in shown if words[1:2] == ["memory"]]

    assert {words[2] for words in steps} == {"search", "get", "render"}
    for line in steps:
        done = tried.typed(*line)
        assert (done.returncode, done.stderr) == (0, "")
        assert "imperial units" in done.stdout, line
