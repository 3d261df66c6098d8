"""What every store does for runs: marks, facts, entries by compare and swap, claims, and what is removed by hand."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from stores_world import NOON, World, later, texts, update, window

from memory_pipelines.errors import AbortedError, ConflictError, RunInFlightError
from memory_pipelines.records import Change, NewItem, Policy, StageUsage, Tie
from memory_pipelines.stores.base import Page, Stores
from memory_pipelines.stores.sql import open_stores


def test_what_is_appended_after_a_run_began_is_the_next_runs(world: World) -> None:
    world.say("s1", "one", "two")
    run = world.ask()
    begun = world.begin(run)
    world.say("s1", "three")

    assert begun.targets == {"s1": 2}
    assert world.unread(world.begin(run)) == {"s1": ["one", "two"]}
    world.distill(run, "s1", 1, 2)
    world.merge(run)
    world.end(run)
    assert list(world.pending()) == ["ana"]
    world.stores.pipelines.close("nightly", run.number, state="SUCCEEDED", error=None, now=NOON)
    assert world.unread(world.begin(world.ask())) == {"s1": ["three"]}


def test_success_clears_what_was_seen(world: World) -> None:
    world.say("s1", "one")
    run = world.ask()
    world.begin(run)
    world.distill(run, "s1", 1, 1)
    world.merge(run)
    world.end(run)

    assert world.pending() == {}


def test_a_window_twice_is_a_window_once(world: World) -> None:
    (item,) = world.say("s1", "I like tea")
    run = world.ask()
    world.begin(run)
    for _ in range(2):
        world.distill(run, "s1", 1, 1, world.fact("f1", item))

    assert [fact.id for fact in world.stores.progress.unmerged(world.pipeline, "ana")] == ["f1"]
    assert world.stores.pipelines.summary("nightly", run.number).facts == 1


def test_the_checkpoint_waits_for_the_last_fact(world: World) -> None:
    items = world.say("s1", "I like tea", "I live in Oslo")
    run = world.ask()
    world.begin(run)
    world.distill(run, "s1", 1, 2, world.fact("f1", items[0]), world.fact("f2", items[1]))
    world.merge(run, f1="skipped")
    world.stores.progress.discard(world.pipeline, "ana", basis="another")
    assert world.unread(world.begin(run)) == {"s1": ["I like tea", "I live in Oslo"]}

    world.distill(run, "s1", 1, 2, world.fact("f3", items[1], basis="another"))
    world.merge(run, f3="skipped")
    world.stores.progress.discard(world.pipeline, "ana", basis="b1")
    assert world.unread(world.begin(run)) == {}


def test_a_merge_from_an_old_version_changes_nothing(world: World) -> None:
    entry = world.remember("I like tea")
    world.stores.memories.update_entry(
        "support-memory", entry.id, content="- I like tea\n- mine", author="ana", now=later(1)
    )
    (item,) = world.say("s2", "I live in Oslo")
    run = world.ask()
    world.begin(run)
    world.distill(run, "s2", 1, 1, world.fact("f9", item))

    with pytest.raises(ConflictError):
        world.merge(run, update(entry, "- I live in Oslo", Tie(line="- I live in Oslo", fact_id="f9")), f9="merged")

    assert world.stores.memories.get_entry("support-memory", entry.id).content == "- I like tea\n- mine"
    assert [fact.id for fact in world.stores.progress.unmerged(world.pipeline, "ana")] == ["f9"]


def test_creating_where_something_is_conflicts(world: World) -> None:
    entry = world.remember("I like tea")
    run = world.ask()
    world.begin(run)

    with pytest.raises(ConflictError):
        world.merge(run, Change(action="create", path=entry.path, content="- other"))


def test_said_again_ties_a_second_sentence_to_the_same_line(world: World) -> None:
    entry = world.remember("I like tea")
    (item,) = world.say("s2", "I do like tea")
    run = world.ask()
    world.begin(run)
    world.distill(run, "s2", 1, 1, world.fact("f9", item))
    world.merge(run, update(entry, entry.content, Tie(line="- I like tea", fact_id="f9")), f9="duplicate")

    ties = world.stores.memories.facts_of("support-memory", actor_id="ana")
    assert sorted(fact.id for _, fact in ties) == ["f1", "f9"]
    assert len({line for line, _ in ties}) == 1


def test_a_line_removed_by_a_person_leaves_a_tombstone_without_words(world: World) -> None:
    entry = world.remember("I like tea", "I live in Oslo")
    world.stores.memories.update_entry(
        "support-memory", entry.id, content="- I live in Oslo", author="ana", now=later(1)
    )

    (grave,) = world.stores.progress.tombstones(world.pipeline, "ana")
    assert (grave.start, grave.end) == (0, len("I like tea"))
    assert [line for line, _ in world.stores.memories.facts_of("support-memory", actor_id="ana")] == [
        "- I live in Oslo"
    ]
    assert list(world.pending()) == ["ana"]


def test_every_state_of_an_entry_is_kept(world: World) -> None:
    entry = world.remember("I like tea")
    world.stores.memories.update_entry("support-memory", entry.id, content="- mine", author="ana", now=later(1))
    world.stores.memories.delete_entry("support-memory", entry.id, author="ana", now=later(2))

    history = world.stores.memories.history("support-memory", entry.id)
    assert [(one.version, one.action, one.content) for one in history] == [
        (1, "create", "- I like tea"),
        (2, "update", "- mine"),
        (3, "delete", "- mine"),
    ]
    assert [one.stage for one in history] == ["merge", None, None]


def test_one_asked_for_run_is_in_flight(world: World) -> None:
    world.say("s1", "one")
    first = world.ask()

    with pytest.raises(RunInFlightError, match=rf"memory-pipelines/nightly/runs/{first.number}"):
        world.ask()
    assert world.ask(kind="person", launch=False, actors=["ana"]).number == 2

    world.stores.pipelines.close("nightly", first.number, state="FAILED", error="x", now=NOON)
    assert world.ask().number == 3


def test_a_run_whose_lease_is_over_is_closed_by_whoever_asks_next(world: World) -> None:
    world.say("s1", "one")
    dead = world.ask(launch=False)
    (batch,) = world.stores.progress.cut(dead, now=NOON)
    assert world.stores.progress.claim(batch, holder="gone", now=NOON, lease_seconds=60) == {}
    world.begin(dead)

    with pytest.raises(RunInFlightError):
        world.ask(now=later(59))
    assert world.ask(now=later(61)).number == 2
    assert world.stores.pipelines.get_run("nightly", dead.number).state == "FAILED"


def test_two_processes_ask_and_one_wins(world: World, address: str) -> None:
    world.say("s1", "one")
    code = (
        "import sys; from datetime import UTC, datetime; from memory_pipelines.stores.sql import open_stores\n"
        "from memory_pipelines.errors import RunInFlightError\n"
        "stores = open_stores(sys.argv[1])\n"
        "try: print(stores.pipelines.ask('nightly', asked_by='cli', model='offline', now=datetime.now(UTC)).number)\n"
        "except RunInFlightError as error: print(error.message)\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", code, address], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    said = sorted(child.communicate(timeout=60)[0].strip() for child in children)

    assert said[0] == "1"
    assert all("memory-pipelines/nightly/runs/1" in one for one in said[1:])


def test_a_claimed_actor_is_anothers_until_its_lease_is_over(world: World) -> None:
    world.say("s1", "one")
    progress = world.stores.progress
    mine = progress.add_batch(world.ask(kind="person", launch=False, actors=["ana"]), ["ana"], now=NOON)
    yours = progress.add_batch(world.ask(kind="person", launch=False, actors=["ana"]), ["ana"], now=NOON)

    assert progress.claim(mine, holder="me", now=NOON, lease_seconds=60) == {}
    assert progress.claim(yours, holder="you", now=later(30), lease_seconds=60) == {"ana": "me"}
    assert progress.beat("me", now=later(50), lease_seconds=60)
    assert progress.claim(yours, holder="you", now=later(100), lease_seconds=60) == {"ana": "me"}
    assert progress.claim(yours, holder="you", now=later(111), lease_seconds=60) == {}


def test_batches_are_cut_once_the_largest_first_and_the_outsize_alone(stores: Stores) -> None:
    world = World.make(stores, Policy(batch_size=2))
    for actor, words in {"a": 10, "b": 20, "c": 30, "huge": 20_000, "d": 5}.items():
        world.say(f"s-{actor}", "word " * words, actor=actor)
    run = world.ask()

    batches = stores.progress.cut(run, now=NOON)
    world.say("s-late", "late", actor="late")

    assert [batch.actors for batch in batches] == [("huge",), ("c", "b"), ("a", "d")]
    assert stores.progress.cut(run, now=later(1)) == batches


def test_a_failure_keeps_the_actor_pending_and_puts_off_only_sensors(world: World) -> None:
    world.say("s1", "one")
    run = world.ask()
    world.begin(run)
    world.end(run, state="failed", error="no", error_status="DATA_LOSS")

    (row,) = world.stores.pipelines.pending("nightly")
    assert row.failures == 1
    assert row.retry_at is not None
    assert row.retry_at > NOON


def test_a_call_is_recalled_until_it_is_forgotten_and_paid_once(world: World) -> None:
    world.say("s1", "one")
    run = world.ask()
    world.begin(run)
    progress, cost = world.stores.progress, StageUsage(stage="distill", calls=1, prompt_tokens=7, cost=0.5)
    progress.record_call(
        world.pipeline, run.number, "ana", stage="distill", key="k", response={"text": "hi"}, usage=cost, now=NOON
    )

    for _ in range(2):
        assert progress.recall(world.pipeline, "ana", "k") == {"text": "hi"}
    assert (progress.spent("nightly", run.number).calls, progress.spent("nightly", run.number).cost) == (1, 0.5)
    progress.forget_calls(world.pipeline, "ana", "distill")
    assert progress.recall(world.pipeline, "ana", "k") is None


def test_a_window_is_counted_once_a_run_and_can_be_read_again(world: World) -> None:
    world.say("s1", "one", "two")
    progress, failing = world.stores.progress, window("s1", 1, 1)
    for number in range(1, 4):
        run = world.ask()
        world.begin(run)
        assert progress.fail_window(world.pipeline, run.number, "ana", failing, error="no", now=NOON) == number
        assert progress.fail_window(world.pipeline, run.number, "ana", failing, error="no", now=NOON) == number
        world.end(run, state="failed", error="no")
        world.stores.pipelines.close("nightly", run.number, state="FAILED", error="no", now=NOON)
    progress.set_aside(world.pipeline, "ana", failing, now=NOON)
    assert world.unread(world.begin(world.ask())) == {"s1": ["two"]}

    assert world.stores.pipelines.decide_windows("nightly", "ana", verdict="retry", now=NOON) == 1
    world.stores.pipelines.close("nightly", 4, state="FAILED", error="no", now=NOON)
    assert world.unread(world.begin(world.ask())) == {"s1": ["one", "two"]}


def test_a_backfill_reads_everything_again(world: World) -> None:
    world.remember("I like tea")
    assert world.stores.pipelines.rewind("nightly", actors=None, made_by="another-model", now=NOON) == []
    assert world.stores.pipelines.rewind("nightly", actors=None, made_by="offline", now=NOON) == ["ana"]

    assert world.unread(world.begin(world.ask())) == {"s1": ["I like tea"]}


def test_concurrent_appends_lose_and_double_nothing(world: World, address: str) -> None:
    def append(number: int) -> None:
        mine = open_stores(address)
        for turn in range(5):
            item = NewItem(data={"role": "user", "content": f"{number}-{turn}"})
            mine.sessions.append("support", "s1", [item], actor_id="ana", now=NOON)
        mine.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(append, range(8)))

    stored = world.stores.sessions.list_items("support", "s1", Page(size=100))[0]
    assert [item.position for item in stored] == list(range(1, 41))
    assert sorted(texts(stored)) == sorted(f"{number}-{turn}" for number in range(8) for turn in range(5))
    for number in range(8):
        assert [text for text in texts(stored) if text.startswith(f"{number}-")] == [f"{number}-{n}" for n in range(5)]


def test_a_deleted_pipeline_leaves_memory_and_what_was_removed(world: World) -> None:
    entry = world.remember("I like tea", "I live in Oslo")
    world.stores.memories.update_entry("support-memory", entry.id, content="- I like tea", author="ana", now=later(1))
    world.stores.pipelines.delete("nightly", now=later(2))

    assert world.stores.pipelines.list_all() == []
    assert world.stores.memories.get_entry("support-memory", entry.id).content == "- I like tea"
    assert len(world.stores.progress.tombstones(world.pipeline, "ana")) == 1


def test_a_cancelled_run_that_nobody_began_is_over(world: World) -> None:
    world.say("s1", "one")
    run = world.ask()

    assert world.stores.pipelines.cancel("nightly", run.number, now=later(1)).state == "CANCELLED"
    other = world.ask()
    world.stores.pipelines.close("nightly", other.number, state="SUCCEEDED", error=None, now=later(2))
    with pytest.raises(AbortedError):
        world.stores.pipelines.cancel("nightly", other.number, now=later(3))
