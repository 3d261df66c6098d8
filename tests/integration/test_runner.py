"""The runner over real stores: what stays when a piece of work fails, and what the model is shown."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from runner_kit import PIPELINE, START, Desk, honest, open_desk, shown

from memory_pipelines.errors import (
    BadOutputError,
    BudgetExceededError,
    ConflictError,
    GatewayError,
    GatewayFinalError,
    MemoryPipelinesError,
    RateLimitedError,
    SetAsideError,
)
from memory_pipelines.gateway.base import Request, Response, Usage
from memory_pipelines.records import Entry, NewItem
from memory_pipelines.redaction import redact
from memory_pipelines.testing import Answer

KEY = "sk-proj-aaaabbbbccccddddeeeeffff1234567890abcd"
PORTO, LISBON, TEA = "I live in Porto near the harbour.", "I moved to Lisbon in spring.", "I like green tea."
STRONG = "I like my coffee black and strong in the morning."
NOT_STRONG = "I like my coffee black, not strong, in the morning."


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(tmp_path) as opened:
        yield opened


# What stays when a piece of work fails


def test_a_rate_limit_half_way_leaves_the_finished_and_what_was_paid_for(desk: Desk) -> None:
    limited: list[bool] = []

    def answers(request: Request) -> Answer:
        if LISBON not in shown(request) or request.purpose != "distill":
            return honest(request)
        if len(request.messages) == 2:
            return "no JSON at all"  # paid for, and answered by a complaint
        if not limited:
            limited.append(True)
            return RateLimitedError("429", retry_after=None)
        return honest(request)

    desk.answers.append(answers)
    for day, text in enumerate((PORTO, LISBON, TEA)):
        desk.say(text, session=f"s{day}", day=day)
    run = desk.ask()

    with pytest.raises(RateLimitedError):
        desk.advance(run)
    assert [fact.text for fact in desk.unmerged()] == [PORTO]
    assert desk.marks() == {"s0": (1, 0)}
    assert desk.entries() == []
    assert len(desk.gateway.requests) == 3

    desk.advance(run)
    again = desk.gateway.requests[3:]
    assert [LISBON in shown(one) for one in again if one.purpose == "distill"] == [True, False]
    assert len(again[0].messages) == 4  # the first answer came from the journal
    assert desk.asked_about(PORTO) == desk.asked_about(TEA) == 1
    assert desk.marks() == {"s0": (1, 1), "s1": (1, 1), "s2": (1, 1)}
    assert desk.lines() == sorted([PORTO, LISBON, TEA])
    assert desk.query("SELECT * FROM calls") == []
    assert desk.app.stores.progress.spent(PIPELINE, run.number).calls == len(desk.gateway.requests) - 1  # but the 429


def test_another_writer_between_read_and_commit_loses_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.say(PORTO, session="s0")
    assert desk.run() is None
    desk.say(TEA, session="s1", day=1)
    progress = desk.app.stores.progress
    real, written = progress.entries, list[str]()

    def entries(*args: Any) -> list[Entry]:
        seen = real(*args)
        if not written and desk.unmerged():  # distill reads them too
            written.append("once")
            content = seen[0].content + "- I keep bees.\n"
            desk.app.memory.write("memory", actor_id="ana", path=seen[0].path, content=content, author="agent")
        return seen

    monkeypatch.setattr(progress, "entries", entries)
    assert desk.run() is None
    assert written
    assert desk.lines() == sorted([PORTO, "I keep bees.", TEA])
    assert desk.unmerged() == []
    assert desk.query("SELECT text, state FROM facts") == sorted([(PORTO, "merged"), (TEA, "merged")])


def test_a_writer_who_never_stops_fails_the_piece_for_now(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.say(PORTO, session="s0")
    assert desk.run() is None
    desk.say(TEA, session="s1", day=1)
    progress = desk.app.stores.progress
    real = progress.entries

    def entries(*args: Any) -> list[Entry]:
        seen = real(*args)
        content = f"{seen[0].content}- I keep bees, {seen[0].version} hives.\n"
        desk.app.memory.write("memory", actor_id="ana", path=seen[0].path, content=content, author="agent")
        return seen

    with monkeypatch.context() as patch:
        patch.setattr(progress, "entries", entries)
        error = desk.run()
    assert isinstance(error, ConflictError)
    assert error.retryable
    assert [fact.text for fact in desk.unmerged()] == [TEA]
    assert TEA not in desk.lines()
    assert desk.marks()["s1"] == (1, 0)

    asked = len(desk.gateway.requests)
    assert desk.run() is None
    assert TEA in desk.lines()
    assert "distill" not in desk.purposes()[asked:]


def test_a_window_that_fails_in_three_runs_is_passed_in_the_third(desk: Desk) -> None:
    desk.answers.append(lambda one: "no" if one.purpose == "distill" and PORTO in shown(one) else honest(one))
    desk.say(PORTO, session="s0")
    desk.say(TEA, session="s1", day=1)

    run = desk.ask()
    for _ in range(4):  # Dagster's attempts in one run count as one
        with pytest.raises(BadOutputError) as first:
            desk.advance(run)
    desk.close(run, first.value)
    assert isinstance(desk.run(), BadOutputError)
    assert desk.asked_about(TEA) == 0
    assert desk.entries() == []
    third = desk.run()

    assert isinstance(third, SetAsideError)
    assert not third.retryable
    assert desk.lines() == [TEA]
    assert desk.query("SELECT state, json_array_length(failed_runs) FROM windows") == [("done", 0), ("set_aside", 3)]
    asked = desk.asked_about(PORTO)
    assert desk.run() is None
    assert desk.asked_about(PORTO) == asked
    assert desk.app.pipelines.pending(PIPELINE) == []


def test_new_instructions_discard_what_is_not_merged_and_leave_what_is(desk: Desk) -> None:
    desk.say(PORTO, session="s0")
    assert desk.run() is None
    desk.say(TEA, session="s1", day=1)
    desk.say(LISBON, session="s2", day=2)
    run = desk.ask()
    desk.advance(run, through="distill")
    old = {fact.id for fact in desk.unmerged()}
    desk.close(run, RateLimitedError("429", retry_after=None))
    assert len(old) == 2

    desk.app.pipelines.update(PIPELINE, instructions="Only drinks and places.")
    assert desk.run() is None

    assert desk.query("SELECT text, state FROM facts") == sorted(
        [(PORTO, "merged"), (TEA, "discarded"), (LISBON, "discarded"), (TEA, "merged"), (LISBON, "merged")]
    )
    assert {row[0] for row in desk.query("SELECT id FROM facts WHERE state = 'discarded'")} == old
    assert desk.lines() == sorted([PORTO, TEA, LISBON])
    assert desk.asked_about(PORTO) == 1
    assert desk.asked_about(TEA) == desk.asked_about(LISBON) == 2
    assert set(desk.marks().values()) == {(1, 1)}


@pytest.mark.parametrize(
    ("policy", "unit"),
    [({"max_calls": 2}, "calls"), ({"max_tokens": 200}, "tokens"), ({"max_cost": 0.5}, "US dollars")],
)
def test_a_budget_stops_before_the_next_call_and_the_next_run_goes_on(
    desk: Desk, policy: dict[str, Any], unit: str
) -> None:
    usage = Usage(calls=1, prompt_tokens=90, completion_tokens=10, cost=0.25)
    desk.answers.append(lambda request: Response(text=honest(request), usage=usage))
    desk.app.pipelines.update(PIPELINE, **policy)
    for day, text in enumerate((PORTO, LISBON, TEA)):
        desk.say(text, session=f"s{day}", day=day)

    error = desk.run()
    assert isinstance(error, BudgetExceededError)
    assert unit in error.message
    assert len(desk.gateway.requests) == 2
    assert [fact.text for fact in desk.unmerged()] == [PORTO, LISBON]

    desk.app.pipelines.update(PIPELINE, **dict.fromkeys(policy, 100_000))
    assert desk.run() is None
    assert desk.lines() == sorted([PORTO, LISBON, TEA])
    assert [desk.asked_about(text) for text in (PORTO, LISBON, TEA)] == [1, 1, 1]


def test_five_identical_final_errors_stop_the_run_and_not_the_next(desk: Desk) -> None:
    actors = [f"actor-{number}" for number in range(7)]
    for actor in actors:
        desk.say(f"I live in the town of {actor}.", session=actor, actor=actor)
    desk.answers.append(lambda request: GatewayFinalError("401: no such key"))
    run = desk.ask()
    errors: list[MemoryPipelinesError] = []
    for actor in actors:
        with pytest.raises(GatewayError) as caught:
            desk.advance(run, actor)
        errors.append(caught.value)
        desk.app.runner.end(desk.app.pipelines.get(PIPELINE), run, actor, caught.value)
    assert len(desk.gateway.requests) == 5
    assert ["not tried" in error.message for error in errors] == [False] * 5 + [True] * 2
    desk.app.stores.pipelines.close(PIPELINE, run.number, state="FAILED", error=None, now=desk.clock[0])

    desk.answers.append(honest)
    assert desk.run(actors[0]) is None


def test_final_errors_that_differ_stop_nobody(desk: Desk) -> None:
    for number in range(7):
        desk.say(f"I live in the town of {number}.", session=f"s{number}", actor=f"actor-{number}")
    desk.answers.append(lambda request: GatewayFinalError(f"400: bad request {len(desk.gateway.requests)}"))
    run = desk.ask()
    for number in range(7):
        with pytest.raises(GatewayFinalError):
            desk.advance(run, f"actor-{number}")
    assert len(desk.gateway.requests) == 7


def test_a_cancelled_call_leaves_the_finished_windows(desk: Desk) -> None:
    desk.say(PORTO, session="s0")
    desk.say(TEA, session="s1", day=1)
    run = desk.ask()

    async def cancelled() -> None:
        waits = asyncio.Event()

        async def hang() -> str:
            waits.set()
            await asyncio.Event().wait()
            raise AssertionError

        desk.answers.append(lambda one: hang() if TEA in shown(one) else honest(one))  # type: ignore[arg-type, return-value]
        pipeline = desk.app.pipelines.get(PIPELINE)
        task = asyncio.create_task(desk.app.runner.advance(pipeline, run, "ana", "maintain"))
        await waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert [fact.text for fact in desk.unmerged()] == [PORTO]
    assert desk.entries() == []

    desk.answers.append(honest)
    desk.advance(run)
    assert desk.lines() == sorted([PORTO, TEA])
    assert desk.asked_about(PORTO) == 1


# What the model is shown


def test_a_secret_that_was_said_reaches_neither_model_nor_trajectory_nor_facts(desk: Desk) -> None:
    desk.say(f"I live in Porto, and my key is {KEY} by the way.", "I like green tea.", session="s0")
    said = {"role": "tool", "name": "config", "content": f"OPENAI_API_KEY={KEY}"}
    desk.app.sessions.append("talk", "s0", items=[said])
    assert desk.run() is None

    assert desk.gateway.requests
    assert not any(KEY in request.model_dump_json() for request in desk.gateway.requests)
    assert any("[redacted" in shown(request) for request in desk.gateway.requests)
    trajectories = list((desk.folder / "home" / "trajectories").rglob("*.jsonl"))
    assert trajectories
    assert not any(KEY in path.read_text() for path in trajectories)
    for table in ("facts", "entries", "revisions", "windows", "calls", "actor_results"):
        assert KEY not in repr(desk.query(f"SELECT * FROM {table}"))


def test_a_secret_in_an_agents_line_stays_while_the_model_sees_it_redacted(desk: Desk) -> None:
    line = f"- I like my coffee black and strong in the morning; the machine's key is {KEY}"
    desk.app.memory.write("memory", actor_id="ana", path="/home.md", content=f"{line}\n", author="agent")
    desk.say(NOT_STRONG, TEA, session="s0")
    assert desk.run() is None

    merges = [shown(request) for request in desk.gateway.requests if request.purpose == "merge"]
    assert any(redact(KEY) in text for text in merges)
    assert not any(KEY in request.model_dump_json() for request in desk.gateway.requests)
    (entry,) = desk.entries()
    assert line in entry.content.splitlines()
    assert f"- {TEA}" in entry.content.splitlines()
    assert entry.version == 2


def test_instructions_reach_every_stage(desk: Desk) -> None:
    wish = "Write for a reader who is new; 请用中文."
    desk.app.pipelines.update(PIPELINE, instructions=wish, max_entry_chars=200)
    desk.say(STRONG, PORTO, LISBON, TEA, session="s0")
    desk.say(NOT_STRONG, "I prefer line charts for trends and bar charts for shares.", session="s1", day=1)
    assert desk.run() is None
    reached = {request.purpose: wish in shown(request) for request in desk.gateway.requests}
    assert reached == {"distill": True, "merge": True, "maintain": True}


def test_what_the_actor_did_not_say_makes_no_call(desk: Desk) -> None:
    others = [
        {"role": "assistant", "content": "I live in a data centre."},
        {"role": "tool", "name": "weather", "content": "I like 20 degrees."},
        {"role": "user", "content": "👍🏽 42"},
        {"anything": ["else"]},
    ]
    desk.app.sessions.append("talk", "s0", actor_id="ana", items=others)
    assert desk.run() is None
    assert desk.gateway.requests == []
    assert desk.entries() == []
    assert desk.marks() == {"s0": (4, 4)}
    assert desk.app.pipelines.pending(PIPELINE) == []


def test_a_fact_says_where_and_when_it_was_said(desk: Desk) -> None:
    said = [
        ("user", "Hello there."),
        ("assistant", "Hello! I live in the cloud. Where do you live?"),
        ("tool", "I live in a table."),
        ("user", "Glad you ask 🙂. I live in Porto near the harbour. I like green tea."),
    ]
    times = [START + timedelta(minutes=number) for number in range(4)]
    items = [
        NewItem(data={"role": role, "content": text}, said_at=time)
        for (role, text), time in zip(said, times, strict=True)
    ]
    stored = desk.app.sessions.append("talk", "s0", actor_id="ana", items=items)
    desk.advance(desk.ask(), through="distill")

    porto, tea = desk.unmerged()
    assert (porto.text, tea.text) == (PORTO, TEA)
    for fact, start in ((porto, 16), (tea, 50)):
        assert (fact.source.session_id, fact.source.position) == ("s0", 4)
        assert fact.source.item_id == stored[3].id
        assert fact.observed_at == datetime(2026, 3, 1, 12, 3, tzinfo=UTC)
        assert fact.quote == fact.text
        assert (fact.source.start, fact.source.end) == (start, start + len(fact.quote))
        assert (fact.actor_id, fact.run, fact.model, fact.state) == ("ana", 1, "scripted", "new")
