"""What every memory store does."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stores_world import NOON, World, later

from memory_pipelines.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from memory_pipelines.records import Entry
from memory_pipelines.stores.base import Page

STORE = "support-memory"
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60)
SAME_WORLD = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)


def note(world: World, path: str, content: str = "- x", *, actor: str = "ana", **named: Any) -> Entry:
    return world.stores.memories.create_entry(
        STORE, actor_id=actor, path=path, content=content, **{"author": "bo", "now": NOON, **named}
    )


def listed(world: World, size: int = 1000, **named: Any) -> list[tuple[str, str]]:
    """Walk all pages; return (actor, path) in the order given."""
    found: list[tuple[str, str]] = []
    token: str | None = None
    while True:
        rows, token = world.stores.memories.list_entries(STORE, Page(size=size, token=token), **named)
        assert len(rows) <= size
        found += [(row.actor_id, row.path) for row in rows]
        if token is None:
            return found


@SAME_WORLD
@given(content=TEXT, description=TEXT, number=st.integers(0, 10**9))
def test_what_is_written_is_read(world: World, content: str, description: str, number: int) -> None:
    made = note(world, f"/n/{number}.md", content, actor=f"a{number}-{len(listed(world))}", description=description)
    read = world.stores.memories.get_entry(STORE, made.id)

    assert read == made
    assert (read.content, read.description, read.source_type, read.version) == (content, description, "AGENT", 1)


def test_one_entry_at_a_path_of_an_actor_and_session(world: World) -> None:
    world.say("s1", "hello")
    first = note(world, "/a.md")
    bound = note(world, "/a.md", session_id="s1")
    other = note(world, "/a.md", actor="ben")

    for named in ({}, {"session_id": "s1"}, {"actor": "ben"}):
        with pytest.raises(AlreadyExistsError) as refused:
            note(world, "/a.md", "- another", **named)
        assert refused.value.facts["path"] == "/a.md"
    kept = {first.id, bound.id, other.id}
    assert {world.stores.memories.get_entry(STORE, one).content for one in kept} == {"- x"}
    assert len(kept) == 3


def test_ids_that_differ_by_case_or_by_composition_are_different(world: World) -> None:
    for actor in ("ana", "Ana", "an\u00e4", "ana\u0308"):
        note(world, "/a.md", f"- of {actor}", actor=actor)

    assert {actor for actor, _ in listed(world)} == {"ana", "Ana", "an\u00e4", "ana\u0308"}
    assert listed(world, actor_id="Ana") == [("Ana", "/a.md")]
    assert listed(world, actor_id="ana\u0308") == [("ana\u0308", "/a.md")]


PLACES = st.sets(
    st.tuples(st.sampled_from(["a", "b", "B", "ß"]), st.sampled_from([f"/{x}/{y}.md" for x in "pqP" for y in "12é"])),
    max_size=14,
)


@SAME_WORLD
@given(
    places=PLACES, size=st.integers(1, 5), actor=st.sampled_from([None, "a", "B"]), prefix=st.sampled_from([None, "/p"])
)
def test_pages_hold_every_entry_once(
    world: World, places: set[tuple[str, str]], size: int, actor: str | None, prefix: str | None
) -> None:
    for old in world.stores.memories.list_entries(STORE, Page(size=1000))[0]:
        world.stores.memories.delete_entry(STORE, old.id, author="bo", now=NOON)
    for who, path in places:
        note(world, path, actor=who)

    wanted = sorted(place for place in places if actor in (None, place[0]) and place[1].startswith(prefix or ""))
    assert listed(world, size, actor_id=actor, path_prefix=prefix) == wanted


def test_an_entry_that_comes_between_two_pages_shifts_nothing(world: World) -> None:
    for path in ("/b.md", "/c.md", "/d.md"):
        note(world, path)
    memories = world.stores.memories
    first, token = memories.list_entries(STORE, Page(size=2))
    note(world, "/a.md")
    second, end = memories.list_entries(STORE, Page(size=2, token=token))

    assert [row.path for row in (*first, *second)] == ["/b.md", "/c.md", "/d.md"]
    assert end is None


@pytest.mark.parametrize("prefix", ["/100%", "/a_b", "/\\"])
def test_a_prefix_is_no_pattern(world: World, prefix: str) -> None:
    for path in ("/100%.md", "/100x.md", "/a_b.md", "/axb.md", "/\\.md", "/x.md"):
        note(world, path)

    assert listed(world, path_prefix=prefix) == [("ana", f"{prefix}.md")]


def test_exact_paths_and_sessions(world: World) -> None:
    world.say("s1", "hello")
    note(world, "/a.md", "- everywhere")
    note(world, "/a.md", "- in s1", session_id="s1")
    note(world, "/a.md.md", "- another")
    memories = world.stores.memories

    def contents(**named: Any) -> list[str]:
        return sorted(row.content for row in memories.list_entries(STORE, Page(), **named)[0])

    assert contents(path="/a.md") == ["- everywhere", "- in s1"]
    assert contents(session_id="s1") == ["- in s1"]
    assert contents(path="/A.md") == []


@pytest.mark.parametrize(
    ("page", "says"),
    [
        (Page(size=0), "allowed are 1 to 1000"),
        (Page(size=1001), "allowed are 1 to 1000"),
        (Page(token="nonsense"), "begin with the first page"),
        (Page(token="WzFd"), "begin with the first page"),  # [1]
    ],
)
def test_a_page_that_cannot_be(world: World, page: Page, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        world.stores.memories.list_entries(STORE, page)


def test_every_state_is_kept_with_who_and_when(world: World) -> None:
    memories = world.stores.memories
    made = note(world, "/a.md", "- one")
    memories.update_entry(STORE, made.id, content="- two", author="cy", now=later(1))
    memories.update_entry(STORE, made.id, content="- two", author="cy", now=later(2))  # changes nothing
    memories.update_entry(STORE, made.id, description="of numbers", author="di", now=later(3))
    memories.delete_entry(STORE, made.id, author="ed", now=later(4))

    states = [
        (one.version, one.action, one.content, one.description, one.author, one.time)
        for one in memories.history(STORE, made.id)
    ]
    assert states == [
        (1, "create", "- one", "", "bo", NOON),
        (2, "update", "- two", "", "cy", later(1)),
        (3, "update", "- two", "of numbers", "di", later(3)),
        (4, "delete", "- two", "of numbers", "ed", later(4)),
    ]
    with pytest.raises(NotFoundError, match="does not exist"):
        memories.get_entry(STORE, made.id)
    assert note(world, "/a.md", "- anew").id != made.id


def test_words_find_entries_in_any_script(world: World) -> None:
    for path, content in {
        "/units.md": "- I prefer metric units in reports",
        "/城市.md": "- 我住在上海,喜欢喝绿茶",
        "/طعام.md": "- أحب القهوة بدون سكر",
        "/café.md": "- La cafetería de la esquina cierra a las ocho",
    }.items():
        note(world, path, content)
    note(world, "/units.md", "- metric metric metric", actor="ben")

    def best(query: str, **named: Any) -> list[str]:
        return [hit.entry.path for hit in world.stores.memories.search(STORE, actor_id="ana", query=query, **named)]

    assert best("which units")[0] == "/units.md"
    assert best("绿茶")[0] == "/城市.md"
    assert best("القهوة")[0] == "/طعام.md"
    assert best("cafeteria esquina")[0] == "/café.md"
    assert best("zzz") == []
    assert best("units", path_prefix="/c") == []
    with pytest.raises(InvalidInputError, match="allowed are 1 to"):
        best("units", limit=0)


def test_stores_and_entries_that_are_not_there(world: World) -> None:
    memories = world.stores.memories
    with pytest.raises(NotFoundError, match="memory-stores/none"):
        memories.list_entries("none", Page())
    with pytest.raises(NotFoundError, match="memory-stores/none"):
        memories.search("none", actor_id="ana", query="x")
    for call in (memories.get_entry, memories.history):
        with pytest.raises(NotFoundError, match="does not exist"):
            call(STORE, "none")
    with pytest.raises(NotFoundError, match="does not exist"):
        memories.delete_entry(STORE, "none", author="bo", now=NOON)


@pytest.mark.parametrize("path", ["", "a.md", "/../a.md", "/a//b.md", "/a\n.md"])
def test_a_path_that_cannot_be_leaves_nothing(world: World, path: str) -> None:
    with pytest.raises(InvalidInputError):
        note(world, path)

    assert listed(world) == []
    assert world.stores.memories.actors(STORE) == []


def test_lines_lead_to_the_facts_they_rest_on(world: World) -> None:
    entry = world.remember("I live in Porto.", "I have two cats.")
    note(world, "/other.md", "- from no fact")

    found = world.stores.memories.facts_of(STORE, actor_id="ana")
    assert [(line, fact.id, fact.quote) for line, fact in found] == [
        ("- I live in Porto.", "f1", "I live in Porto."),
        ("- I have two cats.", "f2", "I have two cats."),
    ]
    assert world.stores.memories.facts_of(STORE, actor_id="ana", entry_id=entry.id) == found
    assert world.stores.memories.facts_of(STORE, actor_id="ben") == []
