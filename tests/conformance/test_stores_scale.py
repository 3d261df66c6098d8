"""What stores ask of their database for many actors: a bounded number of statements, each of bounded size."""

from collections.abc import Iterator

import pytest
from statements import watched
from stores_world import NOON, World, later, said, texts

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.records import ActorResult, ImportedSession, Policy
from memory_pipelines.service import SessionService
from memory_pipelines.service.sessions import ImportReport
from memory_pipelines.stores import database
from memory_pipelines.stores.base import Page

MANY = 60  # more than one statement names, where a test makes that ten


@pytest.fixture
def ten_at_once(monkeypatch: pytest.MonkeyPatch) -> int:
    """Let one statement name ten values; return how many parameters it has at most with all else that it says."""
    monkeypatch.setattr(database, "CHUNK", 10)
    return 30


def crowd(world: World) -> list[str]:
    """Let many actors say something each."""
    actors = [f"actor-{number:02}" for number in range(MANY)]
    for actor in actors:
        world.say(f"session-of-{actor}", "I live in Lisbon", actor=actor)
    return actors


def results(world: World, number: int) -> dict[str, ActorResult]:
    return {one.actor_id: one for one in world.stores.pipelines.results("nightly", number)}


def test_all_open_actors_end_in_one_transaction(world: World) -> None:
    for number in range(30):
        world.say(f"s{number}", "I live in Lisbon", actor=f"actor-{number:02}")
    run = world.ask()
    world.stores.progress.cut(run, now=NOON)
    world.begin(run, "actor-00")
    world.end(run, "actor-00")
    world.begin(run, "actor-01")

    with watched() as seen:
        ended = world.stores.progress.end_open(
            world.pipeline, run.number, state="failed", error="gone", error_status="UNAVAILABLE", now=later(60)
        )

    assert ended == [f"actor-{number:02}" for number in range(1, 30)]
    assert seen.commits == 1
    assert len(seen.texts) <= 5  # BEGIN is none; results and pending rows are read once and written once
    found = results(world, run.number)
    assert found["actor-00"].state == "succeeded"
    assert {found[actor].state for actor in ended} == {"failed"}
    assert {(found[actor].error, found[actor].error_status, found[actor].retryable) for actor in ended} == {
        ("gone", "UNAVAILABLE", True)
    }
    waiting = {row.actor_id: (row.failures, row.retry_at) for row in world.stores.pipelines.pending("nightly")}
    assert waiting == {actor: (1, later(60 + 300)) for actor in ended}


def test_ending_open_actors_twice_counts_their_failure_once_and_cancelling_counts_none(world: World) -> None:
    world.say("s1", "I live in Lisbon", actor="ana")
    world.say("s2", "I live in Porto", actor="ben")
    run = world.ask()
    world.stores.progress.cut(run, now=NOON)
    named = {"error": "gone", "error_status": "UNAVAILABLE", "now": NOON}

    assert world.stores.progress.end_open(world.pipeline, run.number, batch=2, state="failed", **named) == []
    assert world.stores.progress.end_open(world.pipeline, run.number, batch=1, state="failed", **named) == [
        "ana",
        "ben",
    ]
    assert world.stores.progress.end_open(world.pipeline, run.number, batch=1, state="failed", **named) == []
    assert [row.failures for row in world.stores.pipelines.pending("nightly")] == [1, 1]

    world.stores.pipelines.close("nightly", run.number, state="FAILED", error="gone", now=NOON)
    other = world.ask()
    world.stores.progress.cut(other, now=NOON)
    assert world.stores.progress.end_open(world.pipeline, other.number, state="cancelled", **named) == ["ana", "ben"]
    assert world.stores.pipelines.states("nightly", other.number) == {"cancelled": 2}
    assert [row.failures for row in world.stores.pipelines.pending("nightly")] == [1, 1]


def test_states_are_counted_without_reading_the_actors(world: World) -> None:
    for number in range(5):
        world.say(f"s{number}", "I live in Lisbon", actor=f"actor-{number}")
    run = world.ask()
    world.stores.progress.cut(run, now=NOON)
    world.begin(run, "actor-0")
    world.end(run, "actor-0")
    world.begin(run, "actor-1")

    with watched() as seen:
        assert world.stores.pipelines.states("nightly", run.number) == {"succeeded": 1, "running": 1, "waiting": 3}

    assert len(seen.about("actor_results")) == 1
    assert "count(" in seen.about("actor_results")[0]


def test_no_statement_names_all_actors_of_a_batch(world: World, ten_at_once: int) -> None:
    actors = crowd(world)
    run = world.ask(kind="person", launch=False)

    with watched() as seen:
        first = world.stores.progress.add_batch(run, [*actors, "nobody"], now=NOON)
        second = world.stores.progress.add_batch(run, actors[5:], now=NOON)

    assert seen.most_parameters <= ten_at_once
    assert first.actors == tuple(actors)
    assert second.actors == tuple(actors[5:])
    assert world.stores.progress.batch("nightly", run.number, 1).actors == tuple(actors[:5])


def test_no_statement_names_all_actors_that_are_read_again(world: World, ten_at_once: int) -> None:
    actors = crowd(world)
    run = world.ask(actors=actors)
    world.stores.progress.cut(run, now=NOON)
    for actor in actors[:2]:
        world.begin(run, actor)
        world.distill(run, f"session-of-{actor}", 1, 1, actor=actor)
        world.stores.progress.stage_done(world.pipeline, run.number, actor, 2)
        world.end(run, actor)
    before = world.pending()
    assert sorted(before) == actors[2:]

    with watched() as seen:
        assert world.stores.pipelines.rewind("nightly", actors=None, now=later(60)) == actors

    assert seen.most_parameters <= ten_at_once
    assert len(seen.texts) <= 4 * MANY // 10 + 3  # four for ten actors, not four for each
    after = world.pending()
    assert {actor: after[actor] for actor in actors[2:]} == {actor: before[actor] + 1 for actor in actors[2:]}
    other = world.ask(kind="person", launch=False, actors=actors[:1])
    assert world.unread(world.begin(other, actors[0]), actors[0]) == {"session-of-actor-00": ["I live in Lisbon"]}


def test_no_statement_names_all_actors_that_fail(world: World, ten_at_once: int) -> None:
    actors = crowd(world)
    run = world.ask(actors=actors)
    world.stores.progress.cut(run, now=NOON)
    for actor in actors:
        world.begin(run, actor)

    with watched() as seen:
        world.stores.pipelines.close("nightly", run.number, state="FAILED", error="gone", now=later(60))

    assert seen.most_parameters <= ten_at_once
    assert {row.failures for row in world.stores.pipelines.pending("nightly")} == {1}


def test_no_statement_names_all_facts_of_an_actor(world: World, ten_at_once: int) -> None:
    with watched() as seen:
        entry = world.remember(*(f"I have been in town {number}" for number in range(MANY)))
        content = "\n".join(entry.content.splitlines()[:3])
        world.stores.memories.update_entry("support-memory", entry.id, content=content, author="local", now=later(60))

    assert seen.most_parameters <= ten_at_once
    assert len(world.stores.memories.facts_of("support-memory", actor_id="ana")) == 3
    assert len(world.stores.progress.tombstones(world.pipeline, "ana")) == MANY - 3


def test_no_statement_names_all_sessions_whose_facts_are_made_anew(world: World, ten_at_once: int) -> None:
    sessions = [f"s{number:02}" for number in range(MANY)]
    run = world.ask()
    for session in sessions:
        world.say(session, "I live in Lisbon")
    world.begin(run)
    for session in sessions:
        world.distill(run, session, 1, 1, world.fact(f"f-{session}", world.items[session][0], basis="old"))

    with watched() as seen:
        assert world.stores.progress.discard(world.pipeline, "ana", basis="new") == MANY

    assert seen.most_parameters <= ten_at_once
    assert sorted(world.unread(world.begin(run))) == sessions


def said_by(actor: str, session: str, *words: str, parent: str | None = None) -> ImportedSession:
    items = tuple(said(word, later(60 * number)) for number, word in enumerate(words))
    return ImportedSession(session_id=session, actor_id=actor, items=items, parent_id=parent)


def stored(world: World, session: str) -> list[str]:
    return texts(world.stores.sessions.list_items("support", session, Page(size=1000))[0])


def test_many_imported_sessions_are_a_few_transactions_of_a_few_statements(world: World) -> None:
    service = SessionService(world.stores.sessions, clock=lambda: NOON)
    history = [said_by(f"actor-{number // 2:03}", f"s{number:03}", "one", "two") for number in range(450)]
    told: list[tuple[str, int]] = []

    with watched() as seen:
        report = service.add_imported(
            "support", history, on_session=lambda session, new: told.append((session.session_id, new))
        )

    assert report == ImportReport(sessions=450, actors=225, items=900, new_items=900)
    assert told == [(f"s{number:03}", 2) for number in range(450)]
    assert seen.commits == 3
    assert len(seen.texts) < 30
    assert stored(world, "s000") == stored(world, "s449") == ["one", "two"]
    session = world.stores.sessions.get_session("support", "s449")
    assert (session.actor_id, session.last_activity_time) == ("actor-224", later(60))
    waiting = world.stores.pipelines.pending("nightly")
    assert len(waiting) == 225
    assert {row.last_said_at for row in waiting} == {NOON}  # a minute later is ahead of the clock
    assert len({row.tokens for row in waiting}) == 1

    assert service.add_imported("support", history).new_items == 0
    assert world.stores.pipelines.pending("nightly") == waiting


def test_an_imported_session_that_cannot_be_stored_stops_neither_those_before_it_nor_hides_itself(
    world: World,
) -> None:
    world.say("s7", "mine", actor="zoe")
    history = [said_by("ana", f"s{number}", "I live in Lisbon") for number in range(12)]

    with pytest.raises(InvalidInputError, match=r"sessions/s7 is a conversation of actor 'zoe', not of 'ana'"):
        world.stores.sessions.add_imported("support", history, now=NOON)

    assert [one.id for one in world.stores.sessions.list_sessions("support", Page(), actor_id="ana")[0]] == [
        f"s{number}" for number in range(7)
    ]
    assert stored(world, "s6") == ["I live in Lisbon"]
    assert stored(world, "s7") == ["mine"]


def test_what_comes_before_a_line_that_cannot_be_read_is_stored(world: World) -> None:
    def broken() -> Iterator[ImportedSession]:
        yield said_by("ana", "s1", "I live in Lisbon")
        yield said_by("ben", "s2", "I live in Porto")
        raise InvalidInputError("history.jsonl:3: not JSON")

    with pytest.raises(InvalidInputError, match=r"history\.jsonl:3"):
        SessionService(world.stores.sessions, clock=lambda: NOON).add_imported("support", broken())

    assert world.stores.sessions.counts("support") == {"actors": 2, "sessions": 2, "items": 2}


def test_a_session_may_come_twice_and_after_its_parent_in_one_import(world: World) -> None:
    numbers = world.stores.sessions.add_imported(
        "support",
        [
            said_by("ana", "low", "c", parent="top"),
            said_by("ana", "top", "a"),
            said_by("ana", "mid", "b", parent="top"),
            said_by("ana", "top", "a", "d"),
            said_by("ana", "top", "a", "d"),
        ],
        now=NOON,
    )

    assert numbers == [1, 1, 1, 1, 0]
    assert stored(world, "top") == ["a", "d"]
    roots = {one.id: one.root_id for one in world.stores.sessions.list_sessions("support", Page())[0]}
    assert roots == {"low": "top", "mid": "top", "top": "top"}


def test_every_pipeline_on_a_store_hears_of_an_import(world: World) -> None:
    world.stores.memories.create_store("second-memory", creator="local", now=NOON)
    world.stores.pipelines.create(
        "weekly", session_store="support", memory_store="second-memory", policy=Policy(), creator="local", now=NOON
    )
    world.say("s1", "hi", actor="ana")
    before = world.pending()

    world.stores.sessions.add_imported(
        "support", [said_by("ana", "s2", "a"), said_by("ana", "s3", "b"), said_by("ben", "s4", "c")], now=later(60)
    )

    after = world.pending()
    assert sorted(after) == ["ana", "ben"]
    assert after["ana"] > before["ana"]
    weekly = {row.actor_id: row.tokens for row in world.stores.pipelines.pending("weekly")}
    nightly = {row.actor_id: row.tokens for row in world.stores.pipelines.pending("nightly")}
    assert weekly == nightly
    assert nightly["ana"] > 2 * nightly["ben"]
