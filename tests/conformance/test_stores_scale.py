"""What stores ask of their database for many actors: a bounded number of statements, each of bounded size."""

import pytest
from statements import watched
from stores_world import NOON, World, later

from memory_pipelines.records import ActorResult
from memory_pipelines.stores import database

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
