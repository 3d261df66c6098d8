"""One actor of many whose model answers badly: what turns red, what stays, and what the next run does."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from stage import PIPELINE, honest, play, shown

from memory_pipelines.errors import GatewayFinalError, RateLimitedError
from memory_pipelines.gateway.base import Request, Response
from memory_pipelines.testing import Answer

ACTORS = [f"actor-{number:02}" for number in range(20)]
BAD = "actor-07"
PLACE = {actor: f"I live in the town of {actor.replace('-', '')}." for actor in ACTORS}


def failing(answer: Answer) -> Callable[[Request], Answer]:
    def answers(request: Request) -> Answer:
        if request.purpose == "distill" and PLACE[BAD] in shown(request):
            return answer
        return honest(request)

    return answers


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param('[{"text": "I live', id="malformed"),
        pytest.param(Response(text='[{"text": "I live in', finish="length"), id="truncated"),
        pytest.param(Response(text="", finish="refusal"), id="refused"),
        pytest.param("", id="empty"),
        pytest.param(json.dumps({"facts": 3}), id="wrong type"),
    ],
)
def test_one_of_twenty_fails_and_the_others_do_not_notice(tmp_path: Path, answer: Answer) -> None:
    model = {"answers": failing(answer)}
    with play(tmp_path, lambda request: model["answers"](request)) as stage:
        for actor in ACTORS:
            stage.say(actor, f"session-{actor}", PLACE[actor])
        first = stage.run()

        assert first.run.state == "FAILED"
        assert (first.actors, first.succeeded, first.failed) == (20, 19, 1)
        assert BAD in (first.run.error or "")
        assert "1 of 20" in (first.run.error or "")
        colours = stage.colours(ACTORS)
        assert [actor for actor, colour in colours.items() if colour == "FAILED"] == [BAD]
        assert [colour for actor, colour in colours.items() if actor != BAD] == ["MATERIALIZED"] * 19
        assert stage.memory(BAD) == {}
        assert all(PLACE[actor] in "".join(stage.memory(actor).values()) for actor in ACTORS if actor != BAD)
        assert [one.actor_id for one in stage.app.pipelines.pending(PIPELINE)] == [BAD]

        asked_before = stage.gateway.calls
        model["answers"] = honest
        second = stage.run()

        assert (second.run.state, second.actors, second.succeeded) == ("SUCCEEDED", 1, 1)
        assert {r.purpose for r in stage.gateway.requests[asked_before:]} <= {"preflight", "distill", "merge"}
        assert all(
            PLACE[BAD] in shown(request)
            for request in stage.gateway.requests[asked_before:]
            if request.purpose == "distill"
        )
        assert PLACE[BAD] in "".join(stage.memory(BAD).values())
        assert stage.colours(ACTORS)[BAD] == "MATERIALIZED"


def test_a_rate_limited_actor_is_retried_by_dagster_and_only_that_one(tmp_path: Path) -> None:
    asked: list[str] = []

    def answers(request: Request) -> Answer:
        if request.purpose == "distill":
            who = next(actor for actor in ACTORS if PLACE[actor] in shown(request))
            asked.append(who)
            if who == BAD and asked.count(BAD) == 1:
                return RateLimitedError("too many requests", retry_after=None)
        return honest(request)

    with play(tmp_path, answers) as stage:
        for actor in ACTORS:
            stage.say(actor, f"session-{actor}", PLACE[actor])
        summary = stage.run()

        assert summary.run.state == "SUCCEEDED"
        assert {actor: asked.count(actor) for actor in ACTORS} == {actor: 2 if actor == BAD else 1 for actor in ACTORS}
        (run,) = stage.instance.get_runs()
        events = [
            entry.dagster_event.event_type_value for entry in stage.instance.all_logs(run.run_id) if entry.dagster_event
        ]
        assert "STEP_UP_FOR_RETRY" in events


def test_a_merge_that_fails_leaves_facts_waiting_and_memory_as_it_was(tmp_path: Path) -> None:
    def no_merge(request: Request) -> Answer:
        return "no JSON at all" if request.purpose == "merge" else honest(request)

    model = {"answers": no_merge}
    with play(tmp_path, lambda request: model["answers"](request)) as stage:
        stage.say("ana", "s1", "I like my coffee black and strong in the morning.")
        stage.run()
        known = stage.memory("ana")
        stage.say("ana", "s2", "I like my coffee black, not strong, in the morning.", day=1)
        failed = stage.run()
        asked = stage.gateway.calls

        assert failed.run.state == "FAILED"
        assert stage.memory("ana") == known
        model["answers"] = honest
        assert stage.run().run.state == "SUCCEEDED"
        assert [r.purpose for r in stage.gateway.requests[asked:] if r.purpose == "distill"] == []
        assert "not strong" in "".join(stage.memory("ana").values())


KEPT = ("entries", "revisions", "facts", "ties", "marks", "tombstones")


def kept(folder: Path, actor: str) -> dict[str, list[tuple[Any, ...]]]:
    """What is on disk of an actor's memory and of how far it is read."""
    with closing(sqlite3.connect(folder / "home" / "memory.db")) as opened:
        of_actor = {
            "ties": "entry_id IN (SELECT id FROM entries WHERE actor_id = ?)",
        }
        return {
            table: opened.execute(
                f"SELECT * FROM {table} WHERE {of_actor.get(table, 'actor_id = ?')} ORDER BY 1, 2, 3", [actor]
            ).fetchall()
            for table in KEPT
        }


@pytest.mark.parametrize(
    ("kernel", "answer"),
    [
        pytest.param("inprocess", '[{"text": "I live', id="malformed"),
        pytest.param("inprocess", "I'm sorry, but I can't help with that.", id="refused in words"),
        pytest.param("inprocess", "```python\nprint('I live')\n1 / 0\n```", id="code that fails"),
        pytest.param(
            "subprocess", "```python\nimport os\nos.kill(os.getpid(), 9)\n```", id="code that kills the kernel"
        ),
    ],
)
def test_what_is_known_of_an_actor_stays_byte_for_byte_when_its_model_fails(
    tmp_path: Path, kernel: str, answer: Answer
) -> None:
    model: dict[str, Callable[[Request], Answer]] = {"answers": honest}
    with play(tmp_path, lambda request: model["answers"](request), kernel=kernel) as stage:
        stage.say(BAD, "s1", "I like tea in the morning.")
        stage.say("ana", "s2", "I live in Oslo.")
        assert stage.run().run.state == "SUCCEEDED"
        before = kept(tmp_path, BAD)
        assert all(before[table] for table in ("entries", "revisions", "facts", "ties", "marks"))

        stage.say(BAD, "s3", PLACE[BAD], day=1)
        stage.say("ana", "s4", "I live in Bergen.", day=1)
        model["answers"] = failing(answer)
        failed = stage.run()

        assert (failed.run.state, failed.succeeded, failed.failed) == ("FAILED", 1, 1)
        assert list(failed.failures) == [BAD]
        assert kept(tmp_path, BAD) == before
        assert "Bergen" in str(stage.memory("ana"))

        model["answers"] = honest
        assert stage.run().run.state == "SUCCEEDED"
        assert PLACE[BAD] in str(stage.memory(BAD))


def test_a_window_that_fails_in_three_runs_is_set_aside_and_later_conversation_goes_on(tmp_path: Path) -> None:
    def answers(request: Request) -> Answer:
        if request.purpose == "distill" and "poison" in shown(request) and not cured:
            return "no JSON at all"
        return honest(request)

    cured: list[bool] = []
    with play(tmp_path, answers) as stage:
        stage.say("ana", "s1", "I like poison.")
        for _ in range(2):
            assert stage.run().failures.keys() == {"ana"}
        assert stage.memory("ana") == {}
        third = stage.run()
        assert third.run.state == "FAILED"
        assert "pipeline retry" in third.failures["ana"]
        stage.say("ana", "s2", "I live in Oslo.", day=1)

        assert stage.run().run.state == "SUCCEEDED"
        assert "Oslo" in str(stage.memory("ana"))
        assert "poison" not in str(stage.memory("ana"))

        cured.append(True)
        assert stage.app.pipelines.retry(PIPELINE, actor_id="ana") == 1
        assert stage.run().run.state == "SUCCEEDED"
        assert "poison" in str(stage.memory("ana"))
        assert str(stage.memory("ana")).count("Oslo") == 1


def test_a_key_that_is_revoked_in_the_middle_is_not_tried_for_every_actor(tmp_path: Path) -> None:
    def answers(request: Request) -> Answer:
        return "ok" if request.purpose == "preflight" else GatewayFinalError("401: no such key")

    with play(tmp_path, answers, concurrency=1) as stage:
        for actor in ACTORS:
            stage.say(actor, f"session-{actor}", PLACE[actor])
        summary = stage.run()

        assert (summary.run.state, summary.failed) == ("FAILED", 20)
        assert [request.purpose for request in stage.gateway.requests].count("distill") == 5
        assert len(stage.app.pipelines.pending(PIPELINE)) == 20
