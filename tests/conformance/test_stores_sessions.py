"""What every session store does."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stores_world import NOON, World, later, said, texts

from memory_pipelines.errors import AbortedError, AlreadyExistsError, InvalidInputError, NotFoundError
from memory_pipelines.records import ImportedSession, NewItem, Policy
from memory_pipelines.stores.base import Page, Stores

HARD_TEXTS = [
    "👩‍👩‍👧‍👦 family, four bytes and joiners",
    "עִבְרִית \u202bright to left\u202c",
    "العَرَبِيَّة",
    "e\u0301 combining, not é",
    'quote " backslash \\ newline \n tab \t null-ish \\u0000',
    "{}[]:,",
    "你好,世界",
    "x" * 200_000,
    "",
]


def items_of(stores: Stores, session: str = "s1") -> list[Any]:
    return stores.sessions.list_items("support", session, Page(size=1000))[0]


def add_one(world: World, session: ImportedSession, now: datetime = NOON) -> int:
    (new,) = world.stores.sessions.add_imported("support", [session], now=now)
    return new


@pytest.mark.parametrize("text", HARD_TEXTS, ids=lambda text: text[:12].encode("unicode_escape").decode())
def test_text_of_any_kind_survives(world: World, text: str) -> None:
    world.say("s1", text)

    assert texts(items_of(world.stores)) == [text]


@pytest.mark.parametrize(
    "text", ["a\x00b", "a" + chr(0xD800) + "b", "a" + chr(0xDFFF) + "b"], ids=["nul", "high", "low"]
)
def test_what_no_database_carries_becomes_a_mark(world: World, text: str) -> None:
    returned = world.say("s1", text)

    assert texts(returned) == texts(items_of(world.stores)) == ["a\ufffdb"]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), inner, max_size=3
        )
    ),
    max_leaves=8,
)
MOMENTS = st.datetimes(
    datetime(1970, 1, 2),  # noqa: DTZ001 - the zone comes from the strategy
    datetime(9000, 1, 1),  # noqa: DTZ001
    timezones=st.integers(-12, 14).map(lambda hours: timezone(timedelta(hours=hours))),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=JSON, said_at=MOMENTS, count=st.integers(0, 10**9))
def test_any_json_and_any_moment_come_back(stores: Stores, data: Any, said_at: datetime, count: int) -> None:
    store = f"s{count}-store"
    try:
        stores.sessions.create_store(store, creator="local", now=NOON)
    except AlreadyExistsError:
        stores.sessions.delete_store(store)
        stores.sessions.create_store(store, creator="local", now=NOON)
    stores.sessions.append(store, "s", [NewItem(data=data, said_at=said_at)], actor_id="a", now=NOON)

    (item,), _ = stores.sessions.list_items(store, "s", Page())

    assert (item.data, type(item.data)) == (data, type(data))
    assert item.said_at == said_at
    assert item.said_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_json_is_refused_whole(world: World, value: float) -> None:
    with pytest.raises(InvalidInputError, match="NaN"):
        world.stores.sessions.append("support", "s1", [said("a"), NewItem(data=[value])], actor_id="ana", now=NOON)

    with pytest.raises(NotFoundError):
        world.stores.sessions.get_session("support", "s1")


def test_endless_nesting_is_refused(world: World) -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(InvalidInputError, match="nested"):
        world.stores.sessions.append(
            "support", "s1", [NewItem.model_construct(data=deep, said_at=None)], actor_id="ana", now=NOON
        )


def test_a_time_without_zone_is_refused(world: World) -> None:
    with pytest.raises(InvalidInputError, match="time zone"):
        world.say("s1", "hello", now=NOON.replace(tzinfo=None))

    assert world.stores.sessions.counts("support") == {"actors": 0, "sessions": 0, "items": 0}


def test_positions_count_from_one_and_times_are_kept(world: World) -> None:
    old = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    sessions = world.stores.sessions
    sessions.append("support", "s1", [said("a", old), said("b")], actor_id="ana", now=NOON)
    sessions.append("support", "s1", [said("c")], now=later(60))

    stored = items_of(world.stores)

    assert [(item.position, item.said_at, item.create_time) for item in stored] == [
        (1, old, NOON),
        (2, NOON, NOON),
        (3, later(60), later(60)),
    ]
    session = sessions.get_session("support", "s1")
    assert (session.create_time, session.last_activity_time) == (NOON, later(60))


def test_the_last_activity_of_an_imported_session_is_when_it_was(world: World) -> None:
    old = datetime(2023, 5, 8, tzinfo=UTC)
    world.stores.sessions.append("support", "s1", [said("a", old)], actor_id="ana", now=NOON)

    assert world.stores.sessions.get_session("support", "s1").last_activity_time == old


def test_a_session_has_one_actor(world: World) -> None:
    world.say("s1", "mine")

    with pytest.raises(InvalidInputError, match=r"'ana'.*'bob'"):
        world.say("s1", "yours", actor="bob")
    with pytest.raises(InvalidInputError, match=r"'ana'.*'bob'"):
        add_one(world, ImportedSession(session_id="s1", actor_id="bob", items=(said("x"),)))

    assert texts(items_of(world.stores)) == ["mine"]


def test_an_unknown_session_needs_an_actor(world: World) -> None:
    with pytest.raises(NotFoundError, match="sessions/s9"):
        world.stores.sessions.append("support", "s9", [said("x")], now=NOON)
    with pytest.raises(NotFoundError, match="session-stores/nowhere"):
        world.stores.sessions.append("nowhere", "s9", [said("x")], actor_id="ana", now=NOON)


@pytest.mark.parametrize("bad", ["", "a\x00b", "a\ud800", "x" * 513])
def test_ids_that_cannot_be_kept_are_refused(world: World, bad: str) -> None:
    with pytest.raises(InvalidInputError, match="actor"):
        world.say("s1", "x", actor=bad)
    with pytest.raises(InvalidInputError, match="session"):
        world.say(bad, "x")
    child = ImportedSession(session_id="s1", actor_id="ana", parent_id=bad)
    with pytest.raises(InvalidInputError, match="parent session"):
        add_one(world, child)


def test_asking_for_what_no_text_can_be_is_refused(world: World) -> None:
    with pytest.raises(InvalidInputError, match="UTF-8"):
        world.stores.sessions.get_session("support", "s\udcff")
    with pytest.raises(InvalidInputError, match="UTF-8"):
        world.stores.sessions.list_sessions("support", Page(), actor_id="a\udcff")


def test_what_was_said_in_the_future_does_not_put_an_actor_off(world: World) -> None:
    ahead = ImportedSession(session_id="s1", actor_id="ana", items=(said("x", NOON + timedelta(days=36500)),))
    add_one(world, ahead)
    world.stores.memories.create_store("second-memory", creator="local", now=NOON)
    world.stores.pipelines.create(
        "later", session_store="support", memory_store="second-memory", policy=Policy(), creator="local", now=later(60)
    )

    assert [one.last_said_at for one in world.stores.pipelines.pending("nightly")] == [NOON]
    assert [one.last_said_at for one in world.stores.pipelines.pending("later")] == [later(60)]


# Imports


def imported(*words: str, start: datetime | None = NOON) -> ImportedSession:
    items = tuple(said(word, None if start is None else start + timedelta(minutes=n)) for n, word in enumerate(words))
    return ImportedSession(session_id="s1", actor_id="ana", items=items, metadata={"from": "file"})


@pytest.mark.parametrize("start", [NOON, None])
def test_importing_twice_adds_nothing(world: World, start: datetime | None) -> None:
    session = imported("hi", "ok", "ok", start=start)

    assert add_one(world, session, now=later(1000)) == 3
    version = world.pending()
    assert add_one(world, session, now=later(2000)) == 0

    assert texts(items_of(world.stores)) == ["hi", "ok", "ok"]
    assert world.pending() == version
    assert world.stores.sessions.get_session("support", "s1").metadata == {"from": "file"}


def test_importing_a_longer_history_adds_its_tail(world: World) -> None:
    add_one(world, imported("a", "b"))

    assert add_one(world, imported("a", "b", "b", "c")) == 2

    stored = items_of(world.stores)
    assert texts(stored) == ["a", "b", "b", "c"]
    assert [item.said_at for item in stored] == [later(60 * n) for n in range(4)]


def test_what_was_appended_between_imports_stays(world: World) -> None:
    add_one(world, imported("a", "b"))
    world.say("s1", "live", now=later(500))

    assert add_one(world, imported("a", "b", "c")) == 1

    assert texts(items_of(world.stores)) == ["a", "b", "live", "c"]


def test_the_same_words_at_another_time_are_new(world: World) -> None:
    add_one(world, imported("ok"))

    assert add_one(world, imported("ok", start=later(86400))) == 1


# Popping


def test_items_put_back_unchanged_get_their_places_back(world: World) -> None:
    """A published client takes out its last item by clearing the session and appending all others again."""
    before = world.say("s1", "a", "b", "c")
    sessions = world.stores.sessions

    assert sessions.clear_items("support", "s1") == 3
    back = sessions.append("support", "s1", [said("a"), said("b")], now=later(60))
    new = sessions.append("support", "s1", [said("d")], now=later(90))

    assert back == before[:2]
    assert [item.position for item in new] == [4]
    assert texts(items_of(world.stores)) == ["a", "b", "d"]


def test_places_never_go_back(world: World) -> None:
    world.say("s1", "a", "b")
    popped = world.stores.sessions.pop_item("support", "s1")
    world.say("s1", "other")
    again = world.say("s1", "b")

    assert popped is not None
    assert popped.position == 2
    assert [(item.position, item.data["content"]) for item in items_of(world.stores)] == [
        (1, "a"),
        (3, "other"),
        (4, "b"),
    ]
    assert again[0].id != popped.id


def test_putting_back_is_no_news(world: World) -> None:
    world.say("s1", "a", "b")
    before = world.pending()
    world.stores.sessions.clear_items("support", "s1")
    world.say("s1", "a")

    assert world.pending() == before


def test_popping_an_empty_session(world: World) -> None:
    world.say("s1")

    assert world.stores.sessions.pop_item("support", "s1") is None
    assert world.stores.sessions.clear_items("support", "s1") == 0


# Lists and deletion


def test_pages_show_everything_once_while_more_comes(world: World) -> None:
    world.say("s1", *[f"n{n}" for n in range(7)])
    seen: list[str] = []
    page, token = Page(size=3), None
    while True:
        items, token = world.stores.sessions.list_items("support", "s1", page.model_copy(update={"token": token}))
        seen += texts(items)
        if len(seen) == 3:
            world.say("s1", "late")
        if token is None:
            break

    assert seen == [*[f"n{n}" for n in range(7)], "late"]


def test_sessions_are_listed_newest_first_by_actor(world: World) -> None:
    for n, actor in enumerate(["ana", "bob", "ana", "ana"]):
        world.say(f"s{n}", "x", actor=actor, now=later(n // 3))  # s0, s1 and s2 at the same time
    sessions = world.stores.sessions

    first, token = sessions.list_sessions("support", Page(size=2), actor_id="ana")
    second, end = sessions.list_sessions("support", Page(size=2, token=token), actor_id="ana")

    assert [session.id for session in first + second] == ["s3", "s0", "s2"]
    assert end is None


@pytest.mark.parametrize("token", ["x", "bnVsbA==", "WzEsMl0=", "WyJhIl0=", "ÿ", "WzFlMzAwXQ=="])
def test_a_foreign_page_token_is_refused(world: World, token: str) -> None:
    world.say("s1", "x")

    with pytest.raises(InvalidInputError, match="token"):
        world.stores.sessions.list_items("support", "s1", Page(token=token))


@pytest.mark.parametrize("size", [0, -1, 1001])
def test_a_page_has_bounds(world: World, size: int) -> None:
    with pytest.raises(InvalidInputError, match="1000"):
        world.stores.sessions.list_stores(Page(size=size))


def test_stores_are_created_once_and_listed_by_id(stores: Stores) -> None:
    for name in ("zeta", "alpha", "mid"):
        stores.sessions.create_store(name, description=name, metadata={"k": "v"}, creator="eve", now=NOON)

    with pytest.raises(AlreadyExistsError, match="session-stores/mid"):
        stores.sessions.create_store("mid", creator="eve", now=NOON)

    first, token = stores.sessions.list_stores(Page(size=2))
    rest, end = stores.sessions.list_stores(Page(size=2, token=token))
    assert [store.id for store in first + rest] == ["alpha", "mid", "zeta"]
    assert end is None
    assert stores.sessions.get_store("session-stores/mid") == first[1]
    assert (first[1].metadata, first[1].creator) == ({"k": "v"}, "eve")


def test_a_store_that_a_pipeline_reads_stays(world: World) -> None:
    world.say("s1", "x")
    with pytest.raises(AbortedError, match="memory-pipelines/nightly"):
        world.stores.sessions.delete_store("support")

    world.stores.pipelines.delete("nightly", now=NOON)
    world.stores.sessions.delete_store("support")

    with pytest.raises(NotFoundError):
        world.stores.sessions.get_session("support", "s1")


def test_a_deleted_session_made_again_is_read_from_its_start(world: World) -> None:
    world.say("s1", "a", "b")
    run = world.ask()
    world.begin(run)
    world.distill(run, "s1", 1, 2)
    world.stores.sessions.delete_session("support", "s1")
    world.say("s1", "new")
    other = world.stores.pipelines.ask("nightly", asked_by="ui", kind="person", launch=False, model="m", now=NOON)

    begun = world.begin(other)

    assert world.unread(begun) == {"s1": ["new"]}


def test_children_know_their_root(world: World) -> None:
    add_one(world, ImportedSession(session_id="top", actor_id="ana"))
    add_one(world, ImportedSession(session_id="mid", actor_id="ana", parent_id="top"))
    add_one(world, ImportedSession(session_id="low", actor_id="ana", parent_id="mid"))

    low = world.stores.sessions.get_session("support", "low")

    assert (low.parent_id, low.root_id) == ("mid", "top")
    with pytest.raises(InvalidInputError, match="'ana'"):
        add_one(world, ImportedSession(session_id="bad", actor_id="bob", parent_id="mid"))
