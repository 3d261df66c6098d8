"""What stores ask of their database for many actors: a bounded number of statements, each of bounded size."""

from statements import watched
from stores_world import NOON, World, later

from memory_pipelines.records import ActorResult


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
