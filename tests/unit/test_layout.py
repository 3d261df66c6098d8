"""Where new lines go."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.names import check_path
from memory_pipelines.records import Entry, Fact, Source
from memory_pipelines.stages.layout import Place, describe, layout_of, numbered, path_topics, section_of, slug

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def an_entry(path: str, content: str = "- Something\n") -> Entry:
    return Entry.model_validate(
        {"store": "m", "id": path, "actor_id": "tom", "path": path, "content": content, "source_type": "AGENT"}
        | {"version": 1, "create_time": NOW, "update_time": NOW}
    )


def a_fact(text: str = "Wants blue charts", **more: Any) -> Fact:
    given = {"id": "f", "actor_id": "tom", "text": text, "kind": "fact", "quote": text, "observed_at": NOW}
    source = Source(session_store="s", session_id="1", item_id="i", position=1)
    run = {"pipeline_id": "p", "run": 1, "window_id": "w", "model": "offline", "basis": "b"}
    return Fact.model_validate({**given, **run, "source": source, **more})


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"topic": "preferences"}, Place(path="/preferences.md", sure=True)),
        ({"topic": "Vorlieben"}, Place(path="/vorlieben.md", sure=True)),
        ({"topic": "工作"}, Place(path="/work.md", sure=True)),
        ({"topic": "projects/apollo"}, Place(path="/projects/apollo.md", sure=True)),
        ({"topic": "/projects/apollo.md"}, Place(path="/projects/apollo.md", sure=True)),
        ({"topic": "/../../etc/passwd"}, Place(path="/passwd.md", sure=True)),
        ({"kind": "procedure"}, Place(path="/procedures.md", sure=True)),
        ({"kind": "preference"}, Place(path="/preferences.md", sure=True)),
        ({}, Place(path="/notes.md", sure=False)),
    ],
)
def test_without_entries_the_topic_decides(more: dict[str, Any], place: Place) -> None:
    assert layout_of([]).place(a_fact(**more)) == place


@pytest.mark.parametrize(
    ("instructions", "path"),
    [
        ("Keep preferences in /prefs/style.md.", "/prefs/style.md"),
        ("Preferences about charts go to /charts.md; everything else to /memory.md", "/charts.md"),
        ("Keep everything in /memory.md", "/memory.md"),
        ("Keep work in /job.md and preferences in /me.md.", "/me.md"),
        ("Guarda las preferencias en /estilo.md.", "/estilo.md"),
        ("把偏好写进 /prefs/偏好.md。", "/prefs/偏好.md"),
        ("Read https://example.com/docs/preferences first.", "/preferences.md"),
    ],
)
def test_paths_of_the_instructions_win(instructions: str, path: str) -> None:
    layout = layout_of([an_entry("/preferences.md")], instructions=instructions)

    assert layout.place(a_fact(kind="preference", topic="preferences")).path == path


def test_an_existing_entry_of_the_topic_is_used_whatever_it_is_called() -> None:
    layout = layout_of([an_entry("/user/prefs.md"), an_entry("/user/work-log.md")])

    assert layout.place(a_fact(topic="preferences")) == Place(path="/user/prefs.md", sure=True)


def test_an_entry_with_a_similar_line_is_used() -> None:
    layout = layout_of([an_entry("/a.md", "- Flies to Oslo\n"), an_entry("/b.md", "- Wants red charts in reports\n")])

    assert layout.place(a_fact("Wants blue charts in reports")) == Place(path="/b.md", sure=True)


def test_a_new_topic_joins_the_folder_that_all_entries_share() -> None:
    layout = layout_of([an_entry("/memories/a.md"), an_entry("/memories/b.md")])

    assert layout.place(a_fact(topic="travel")).path == "/memories/travel.md"


def test_a_full_entry_is_followed_by_a_numbered_one() -> None:
    layout = layout_of([an_entry("/travel.md", "- x\n" * 24_999), an_entry("/travel-2.md")])

    assert layout.place(a_fact(topic="travel")).path == "/travel-2.md"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/user/prefs.md", True),
        ("/user/hobbies.md", True),
        ("/brand-new.md", False),
        ("/other/place.md", False),
        ("/user/../x.md", False),
        ("user/x.md", False),
        ("/user/x", False),
        ("/user/x y.md", False),
        ("", False),
    ],
)
def test_which_paths_a_model_may_name(path: str, allowed: bool) -> None:
    assert layout_of([an_entry("/user/prefs.md"), an_entry("/user/work.md")]).allows(path) is allowed


def test_topics_of_paths() -> None:
    assert path_topics("/preferences.md") == path_topics("/Prefs-2.md") == {"preferences"}
    assert path_topics("/projects/apollo.md") != path_topics("/projects/hermes.md")


@pytest.mark.parametrize(("path", "number", "expected"), [("/a.md", 2, "/a-2.md"), ("/a-2.md", 3, "/a-3.md")])
def test_numbered_parts(path: str, number: int, expected: str) -> None:
    assert numbered(path, number) == expected


def test_the_section_of_a_line() -> None:
    content = "# All\n\n## Food\n\n- Likes tea\n- Likes cake\n\n## Travel plans\n\n- Flies to Oslo\n"

    assert section_of("Green tea above all", content) == 5
    assert section_of("Has travel insurance", content) == 9
    assert section_of("Owns a bike", content) is None
    assert section_of("Owns a bike", "- Likes tea\n") is None


def test_descriptions_are_short_and_say_what_is_inside() -> None:
    assert describe("/work-log.md", "# Work\n- Owns the pipeline\n") == "Work log: Owns the pipeline"
    assert len(describe("/work.md", "- " + "word " * 100)) < 90
    assert describe("/work.md", "") == "Work"


@given(topic=st.text(max_size=30), text=st.text(min_size=1, max_size=30), told=st.text(max_size=40))
def test_every_place_is_a_path(topic: str, text: str, told: str) -> None:
    layout = layout_of([], instructions=told)

    check_path(layout.place(a_fact(text, topic=topic)).path)
    assert "/" not in slug(topic)
