"""The door for Python: connect, append, run, search, render; and what a budget, a deletion and a naive time do."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from stage import MEMORY, PIPELINE, honest, play

from memory_pipelines import connect
from memory_pipelines.errors import (
    AlreadyExistsError,
    InvalidInputError,
    NotFoundError,
    SettingsError,
)
from memory_pipelines.orchestration.here import run_here
from memory_pipelines.records import NewItem
from memory_pipelines.wiring import App

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    opened = connect("sqlite:///memory.db", home=tmp_path / "home", kernel="inprocess")
    yield opened
    opened.close()


def test_conversation_in_and_memory_out(app: App, tmp_path: Path) -> None:
    app.sessions.create_store("support")
    app.memory.create_store("support-memory")
    app.sessions.append(
        "support",
        "session-1",
        actor_id="u1",
        items=[
            {"role": "user", "content": "Please use metric units in all my reports."},
            {"role": "assistant", "content": "I will. The van is 4.37 degrees cold."},
            {"role": "user", "content": "What time is it?"},
        ],
    )
    app.sessions.append("support", "session-2", actor_id="u2", items=[{"role": "user", "content": "I prefer tea."}])
    made = app.pipelines.create(session_store="support", memory_store="support-memory", model=None)
    assert made.id.startswith("support-")
    assert app.pipelines.model_of(made) == "offline"

    run_here(app, app.pipelines.run(made.id, asked_by="here", launch=False))

    (hit,) = app.memory.search("support-memory", actor_id="u1", query="units")
    assert hit.entry.content == "- Please use metric units in all my reports.\n"
    assert (hit.entry.source_type, hit.entry.actor_id) == ("DREAMER", "u1")
    assert app.memory.search("support-memory", actor_id="u2", query="units") == []
    block = app.memory.render("support-memory", actor_id="u1", budget_tokens=800)
    assert block == "## preferences\n- Please use metric units in all my reports.\n"
    assert app.memory.render("support-memory", actor_id="nobody") == ""
    ((line, fact),) = app.memory.sources("support-memory", actor_id="u1")
    assert line == "- Please use metric units in all my reports."
    assert fact.quote in "Please use metric units in all my reports."
    assert (fact.source.session_id, fact.source.position, fact.model) == ("session-1", 1, "offline")
    assert (tmp_path / "memory.db").is_file()
    assert list((tmp_path / "home" / "trajectories").rglob("distill-1.jsonl"))
    assert list((tmp_path / "home" / "dagster").rglob("*.db"))


def test_full_names_are_taken_wherever_ids_are(app: App) -> None:
    app.sessions.create_store("session-stores/support")
    app.memory.create_store("memory-stores/support-memory")
    made = app.pipelines.create(
        session_store="session-stores/support", memory_store="memory-stores/support-memory", pipeline="nightly"
    )
    assert app.pipelines.get("memory-pipelines/nightly") == made
    assert list(app.memory.list("memory-stores/support-memory")) == []


def test_text_of_any_kind_comes_back_as_it_went_in(app: App) -> None:
    app.sessions.create_store("support")
    odd = {"role": "user", "content": "👩‍👩‍👧 שלום é עברית\u202e \U00020000 नमस्ते", "more": [1, None, {"a": 1.5}]}
    broken = {"role": "user", "content": "a\x00b\ud800c"}

    stored = app.sessions.append("support", "s1", actor_id="אבג 👩", items=[odd, NewItem(data=broken, said_at=AT)])

    assert [item.position for item in stored] == [1, 2]
    again = list(app.sessions.items("support", "s1"))
    assert again[0].data == odd
    assert again[1].said_at == AT
    text = str(again[1].data)
    assert "a" in text
    assert "\x00" not in text
    text.encode("utf-8")
    assert app.sessions.get("support", "s1").actor_id == "אבג 👩"


def test_nothing_of_a_refused_append_is_stored(app: App) -> None:
    app.sessions.create_store("support")
    app.sessions.append("support", "s1", actor_id="u1", items=[{"role": "user", "content": "one"}])

    with pytest.raises(InvalidInputError, match="'u1'"):
        app.sessions.append("support", "s1", actor_id="u2", items=[{"role": "user", "content": "two"}])
    with pytest.raises(InvalidInputError, match="1001 items"):
        app.sessions.append("support", "s1", items=[{"role": "user", "content": "x"}] * 1001)
    with pytest.raises(NotFoundError, match="s2"):
        app.sessions.append("support", "s2", items=[{"role": "user", "content": "x"}])
    with pytest.raises(InvalidInputError, match="time zone"):
        NewItem(data="x", said_at=datetime(2026, 3, 1))  # noqa: DTZ001 - that is what is refused

    assert app.sessions.counts("support") == {"actors": 1, "sessions": 1, "items": 1}


def test_a_second_pipeline_on_the_same_stores_is_refused(app: App) -> None:
    app.sessions.create_store("support")
    app.memory.create_store("support-memory")
    app.pipelines.create(session_store="support", memory_store="support-memory", pipeline="first")

    with pytest.raises(AlreadyExistsError, match="first"):
        app.pipelines.create(session_store="support", memory_store="support-memory", pipeline="second")

    assert [one.id for one in app.pipelines.list()] == ["first"]


@pytest.mark.parametrize("url", ["mysql://x/y", "not a url", "sqlite:////proc/nowhere/memory.db"])
def test_a_database_that_cannot_be_used_is_one_clear_error(url: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as raised:
        connect(url, home=tmp_path / "home")

    assert len(raised.value.message.splitlines()) == 1


def marks(folder: Path) -> dict[str, tuple[int, int]]:
    with closing(sqlite3.connect(folder / "home" / "memory.db")) as opened:
        found = opened.execute("SELECT session_id, distilled, checkpoint FROM marks")
        return {row[0]: (row[1], row[2]) for row in found}


def test_a_budget_stops_a_run_and_the_next_goes_on_from_there(tmp_path: Path) -> None:
    actors = [f"actor-{number}" for number in range(6)]
    with play(tmp_path, honest, max_calls=2, concurrency=1) as stage:
        for actor in actors:
            stage.say(actor, f"s-{actor}", f"I live in the town of {actor}.")
        first = stage.run()

        assert first.run.state == "FAILED"
        asked = [request.purpose for request in stage.gateway.requests]
        assert asked.count("distill") == 2
        done = [actor for actor in actors if stage.memory(actor)]
        assert len(done) == 2
        assert (first.succeeded, first.failed) == (2, 4)
        assert all("2 of 2 calls" in error and "pipeline update" in error for error in first.failures.values())
        assert marks(tmp_path) == {f"s-{actor}": (1, 1) for actor in done}

        stage.gateway.requests.clear()
        stage.app.pipelines.update(PIPELINE, max_calls=100)
        second = stage.run()

        assert (second.run.state, second.actors) == ("SUCCEEDED", 4)
        assert [request.purpose for request in stage.gateway.requests].count("distill") == 4
        assert all(f"town of {actor}" in str(stage.memory(actor)) for actor in actors)


def test_what_a_run_cost_is_added_up(tmp_path: Path) -> None:
    with play(tmp_path) as stage:
        for actor in ("ana", "ben"):
            stage.say(actor, f"s-{actor}", f"I live in the town of {actor}.")
        summary = stage.run()

        asked = [request for request in stage.gateway.requests if request.purpose == "distill"]
        usage = {one.stage: one for one in summary.usage}
        assert usage["distill"].calls == len(asked) == 2
        expected = sum(-(-len("".join(one.content for one in request.messages)) // 4) for request in asked)
        assert usage["distill"].prompt_tokens == expected
        assert usage["distill"].completion_tokens > 0


def test_a_session_deleted_and_made_again_under_its_id_is_read_anew(tmp_path: Path) -> None:
    with play(tmp_path) as stage:
        stage.say("ana", "s1", "I like tea.", "I live in Oslo.")
        stage.run()
        stage.app.sessions.delete("support-sessions", "s1")
        stage.say("ana", "s1", "I like maps.", "I prefer rain.", day=3)  # as many items as before

        summary = stage.run()

        assert (summary.sessions, summary.items) == (1, 2)
        lines = str(stage.memory("ana"))
        assert all(text in lines for text in ("tea", "Oslo", "maps", "rain"))


def test_agents_and_people_write_and_read_entries(tmp_path: Path) -> None:
    with play(tmp_path) as stage:
        memory = stage.app.memory
        made = memory.write(MEMORY, actor_id="ana", path="/notes/todo.md", content="- call Bob\n", author="agent")
        memory.write(MEMORY, actor_id="ana", path="/notes/todo.md", content="- call Eve\n", author="ana")
        assert (made.source_type, made.version) == ("AGENT", 1)
        seen = [(one.version, one.action, one.content, one.author) for one in
                memory.history(MEMORY, actor_id="ana", path="/notes/todo.md")]  # fmt: skip
        assert seen == [(1, "create", "- call Bob\n", "agent"), (2, "update", "- call Eve\n", "ana")]
        for path in ("notes.md", "/a/../b.md", "/a//b.md", "/", "/a\nb"):
            with pytest.raises(InvalidInputError, match="is not a path"):
                memory.write(MEMORY, actor_id="ana", path=path, content="x")
        with pytest.raises(InvalidInputError, match="cannot be the id of an actor"):
            memory.write(MEMORY, actor_id="", path="/a.md", content="x")
        assert [one.path for one in memory.list(MEMORY)] == ["/notes/todo.md"]
        memory.delete(MEMORY, actor_id="ana", path="/notes/todo.md")
        with pytest.raises(NotFoundError, match="none"):
            memory.get(MEMORY, actor_id="ana", path="/notes/todo.md")


def test_a_rendered_block_keeps_to_its_budget(tmp_path: Path) -> None:
    with play(tmp_path) as stage:
        for number in range(5):
            lines = "".join(f"- line {number}.{line} about {'tea' if number == 3 else 'work'}\n" for line in range(10))
            stage.app.memory.write(MEMORY, actor_id="ana", path=f"/topic-{number}.md", content=lines)
        block = stage.app.memory.render(MEMORY, actor_id="ana", budget_tokens=60, query="tea")
        shown = [line for line in block.splitlines() if line.startswith("- ")]

        assert len(block) <= 240
        assert block.startswith("## topic-3\n- line 3.0 about tea\n")
        assert f"({50 - len(shown)} more lines)" in block
