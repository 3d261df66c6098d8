"""What starts and ends runs without a person: the sensor, tick by tick, and the schedule."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from orchestration_kit import PIPELINE, House, house

from memory_pipelines.orchestration.sensor import Watch

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def watch(home: House) -> Watch:
    return Watch(home.app.stores, home.app.clock, "offline", lease_seconds=60)


@pytest.fixture
def three(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path, NOW) as home:
        yield home


@pytest.fixture
def continuous(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path, NOW, trigger="CONTINUOUS", quiet_seconds=600) as home:
        yield home


def test_nothing_asked_for_nothing_launched(three: House) -> None:
    requests, _ = watch(three).tick(three.instance)

    assert requests == []
    assert three.app.stores.pipelines.seen_orchestrator() == NOW


def test_actors_can_be_chosen_before_any_run(three: House) -> None:
    seen = watch(three)
    seen.tick(three.instance)
    three.say("actor-new")
    three.clock[0] = NOW + timedelta(minutes=1)
    seen.tick(three.instance)

    known = set(three.instance.get_dynamic_partitions(f"{PIPELINE}_actors"))
    assert known == {"actor-0", "actor-1", "actor-2", "actor-new"}


def test_what_was_asked_for_is_launched_once_a_batch(three: House) -> None:
    three.ask()
    (request,), _ = watch(three).tick(three.instance)
    again, _ = watch(three).tick(three.instance)

    assert request.run_key is not None
    assert [one.run_key for one in again] in ([], [request.run_key])  # Dagster launches a key once
    assert set(three.instance.get_dynamic_partitions(f"{PIPELINE}_actors")) == {"actor-0", "actor-1", "actor-2"}


def test_what_its_caller_runs_is_not_launched(three: House) -> None:
    three.ask(launch=False)

    assert watch(three).tick(three.instance)[0] == []


def test_an_asked_for_run_without_actors_succeeds_at_once(tmp_path: Path) -> None:
    with house(tmp_path, NOW, actors=0) as home:
        home.ask()
        requests, _ = watch(home).tick(home.instance)

        assert requests == []
        assert home.run_row().state == "SUCCEEDED"


def test_a_continuous_pipeline_waits_until_its_actors_are_quiet(continuous: House) -> None:
    continuous.clock[0] = NOW + timedelta(seconds=599)
    assert watch(continuous).tick(continuous.instance)[0] == []
    assert continuous.app.pipelines.runs(PIPELINE) == []

    continuous.clock[0] = NOW + timedelta(seconds=300)
    continuous.say("actor-1", "still talking")
    continuous.clock[0] = NOW + timedelta(seconds=601)
    requests, _ = watch(continuous).tick(continuous.instance)

    assert len(requests) == 1
    run = continuous.run_row()
    assert run.asked_by == "sensor"
    assert sorted(run.actors or ()) == ["actor-0", "actor-2"]


def test_a_failed_actor_of_a_continuous_pipeline_is_left_alone_for_a_while(continuous: House) -> None:
    continuous.clock[0] = NOW + timedelta(seconds=601)
    watch(continuous).tick(continuous.instance)
    pipeline = continuous.app.pipelines.get(PIPELINE)
    for actor in ("actor-0", "actor-1", "actor-2"):
        state = "failed" if actor == "actor-1" else "succeeded"
        progress = continuous.app.stores.progress
        progress.begin(pipeline, 1, actor, now=continuous.clock[0])
        progress.end_actor(
            pipeline, 1, actor, state=state, error="no" if state == "failed" else None, now=continuous.clock[0]
        )
    continuous.app.stores.pipelines.close(PIPELINE, 1, state="FAILED", error="no", now=continuous.clock[0])

    assert watch(continuous).tick(continuous.instance)[0] == []
    continuous.clock[0] = NOW + timedelta(minutes=30)
    watch(continuous).tick(continuous.instance)
    assert continuous.run_row(2).actors == ("actor-1",)


def test_a_dead_run_is_closed_and_its_actors_are_free(three: House) -> None:
    run = three.ask()
    (request,), _ = watch(three).tick(three.instance)
    created = three.instance.create_run_for_job(
        three.definitions().resolve_job_def("memory_pipeline_batch"), run_config=request.run_config, tags=request.tags
    )
    (batch,) = three.app.stores.progress.cut(run, now=NOW)
    three.app.stores.progress.claim(batch, holder=created.run_id, now=NOW, lease_seconds=60)
    three.instance.report_run_failed(created, "killed")
    three.clock[0] = NOW + timedelta(seconds=61)
    watch(three).tick(three.instance)

    assert three.run_row().state == "FAILED"
    assert set(three.states().values()) == {"failed"}
    assert three.ask().number == 2


def test_the_schedule_only_asks(tmp_path: Path) -> None:
    with house(tmp_path, NOW, trigger="SCHEDULED") as home:
        repository = home.definitions().get_repository_def()
        (schedule,) = repository.schedule_defs
        with dg.build_schedule_context(instance=home.instance, repository_def=repository) as context:
            first = schedule.evaluate_tick(context)
            second = schedule.evaluate_tick(context)

        assert first.run_requests in (None, [])
        assert home.run_row().asked_by == "schedule"
        assert "memory-pipelines/support-memory/runs/1" in (second.skip_message or "")
        assert len(home.app.pipelines.runs(PIPELINE)) == 1
