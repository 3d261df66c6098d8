"""Runs of the job and of the asset, on a real Dagster instance: who is called, who is green, how our run ends."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from orchestration_kit import PIPELINE, QUICK, House, house

from memory_pipelines.errors import GatewayFinalError, GatewayTransientError, RateLimitedError, RefusedError
from memory_pipelines.orchestration.here import run_here
from memory_pipelines.orchestration.keys import RUN_TAG, add_partitions, memory_key
from memory_pipelines.records import Run

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def three(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path, NOW, actors=3) as made:
        yield made


@pytest.fixture
def twenty(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path, NOW, actors=20) as made:
        yield made


def here(home: House, run: Run | None = None) -> Run:
    asked = run or home.ask(launch=False)
    run_here(home.app, asked, instance=home.instance, pace=QUICK, on_event=lambda *event: home.events.append(event))
    return home.run_row(asked.number)


def events_of(home: House, kind: str) -> list[dg.DagsterEvent]:
    entries = [entry for run in reversed(home.instance.get_runs()) for entry in home.instance.all_logs(run.run_id)]
    events = [entry.dagster_event for entry in entries if entry.dagster_event is not None]
    return [event for event in events if event.event_type_value == kind]


def test_every_actor_of_a_good_run_is_green_and_the_run_succeeded(three: House) -> None:
    run = here(three)
    assert (run.state, run.error) == ("SUCCEEDED", None)
    assert set(three.colours().values()) == {"MATERIALIZED"}
    assert [one.status for one in three.instance.get_runs()] == [dg.DagsterRunStatus.SUCCESS]


def test_one_of_twenty_fails_alone(twenty: House) -> None:
    twenty.runner.trouble["actor-7", "merge"] = [RefusedError("the model refused: I hate Mondays")]
    run = here(twenty)

    assert run.state == "FAILED"
    assert run.error == "1 of 20 actors failed: actor-7 (DATA_LOSS)"
    colours = twenty.colours()
    assert colours.pop("actor-7") == "FAILED"
    assert set(colours.values()) == {"MATERIALIZED"}
    assert len(colours) == 19
    (failure,) = events_of(twenty, "STEP_FAILURE")
    assert "1 of 20 actors failed: actor-7" in str(failure.step_failure_data.error_display_string)

    twenty.runner.calls.clear()
    again = here(twenty)
    assert again.state == "SUCCEEDED"
    assert {actor for actor, stage in twenty.runner.calls if stage != "preflight"} == {"actor-7"}
    assert twenty.colours()["actor-7"] == "MATERIALIZED"


def test_what_an_actor_said_does_not_reach_dagster(three: House) -> None:
    three.runner.trouble["actor-1", "distill"] = [RefusedError("cannot speak of: my diagnosis")]
    three.runner.trouble["actor-2", "distill"] = [ValueError("my diagnosis")]
    here(three)
    (run,) = three.instance.get_runs()
    written = "".join(f"{entry.user_message}{entry.to_json()}" for entry in three.instance.all_logs(run.run_id))
    assert "actor-1" in written
    assert "diagnosis" not in written


def test_a_defect_fails_its_actor_alone(three: House) -> None:
    three.runner.trouble["actor-2", "distill"] = [ValueError("a defect")]
    run = here(three)
    assert run.error == "1 of 3 actors failed: actor-2 (INTERNAL)"
    assert three.states() == {"actor-0": "succeeded", "actor-1": "succeeded", "actor-2": "failed"}


def test_a_rate_limited_actor_is_tried_again_alone(three: House) -> None:
    three.runner.trouble["actor-1", "distill"] = [RateLimitedError("429"), RateLimitedError("429")]
    run = here(three)

    assert run.state == "SUCCEEDED"
    retries = events_of(three, "STEP_UP_FOR_RETRY")
    assert [one.step_key for one in retries] == ["distill", "distill"]
    calls = Counter(actor for actor, stage in three.runner.calls if stage == "distill")
    assert calls == {"actor-0": 1, "actor-1": 3, "actor-2": 1}
    assert ("actor-1", "distill", "again") in three.events


def test_after_the_last_attempt_the_others_go_on(three: House) -> None:
    three.runner.trouble["actor-1", "distill"] = [RateLimitedError("429")] * 3
    run = here(three)
    assert run.error == "1 of 3 actors failed: actor-1 (RESOURCE_EXHAUSTED)"
    assert three.states() == {"actor-0": "succeeded", "actor-1": "failed", "actor-2": "succeeded"}
    assert three.colours() == {"actor-0": "MATERIALIZED", "actor-1": "FAILED", "actor-2": "MATERIALIZED"}


def test_a_revoked_key_fails_the_run_once(three: House) -> None:
    three.runner.preflights = [
        GatewayFinalError("401: the key sk-proj-aaaabbbbccccddddeeeeffff1234567890abcd is revoked")
    ]
    run = here(three)
    assert run.state == "FAILED"
    assert run.error is not None
    assert run.error.startswith("the model cannot be used: 401")
    assert "aaaabbbb" not in run.error
    assert three.runner.calls == [("", "preflight")]


def test_a_model_that_is_away_for_a_moment_is_asked_again(three: House) -> None:
    three.runner.preflights = [GatewayTransientError("503")]
    assert here(three).state == "SUCCEEDED"
    assert three.runner.calls[:2] == [("", "preflight"), ("", "preflight")]


def test_a_cancelled_run_stops_its_calls_and_resumes(three: House) -> None:
    three.runner.hang = {"actor-1"}
    asked = three.ask(launch=False)

    def cancel(actor_id: str, stage: str, event: str) -> None:
        if (actor_id, event) == ("actor-1", "started"):
            three.app.pipelines.cancel(str(asked.number), pipeline=PIPELINE)

    run_here(three.app, asked, instance=three.instance, pace=QUICK, on_event=cancel)
    assert three.run_row().state == "CANCELLED"
    assert three.runner.cancelled == ["actor-1"]
    assert [one.status for one in three.instance.get_runs()] == [dg.DagsterRunStatus.CANCELED]
    assert "FAILED" not in three.colours().values()

    three.runner.hang = set()
    assert here(three).state == "SUCCEEDED"
    assert set(three.states(2).values()) == {"succeeded"}


def test_an_interrupt_stops_the_calls_closes_the_run_and_is_passed_on(three: House) -> None:
    three.runner.hang = {"actor-1"}
    asked = three.ask(launch=False)

    def interrupt(actor_id: str, stage: str, event: str) -> None:
        if (actor_id, event) == ("actor-1", "started"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_here(three.app, asked, instance=three.instance, pace=QUICK, on_event=interrupt)
    assert three.runner.cancelled == ["actor-1"]
    assert three.run_row().state == "CANCELLED"
    assert [one.status for one in three.instance.get_runs()] == [dg.DagsterRunStatus.CANCELED]

    three.runner.hang = set()
    assert here(three).state == "SUCCEEDED"


def test_a_run_of_several_batches_is_closed_by_the_last(tmp_path: Path) -> None:
    with house(tmp_path, NOW, actors=5, batch_size=2) as home:
        home.runner.trouble["actor-3", "distill"] = [RefusedError("no")]
        run = here(home)
        assert run.error == "1 of 5 actors failed: actor-3 (DATA_LOSS)"
        assert len(home.instance.get_runs()) == 3
        assert Counter(home.colours().values()) == {"MATERIALIZED": 4, "FAILED": 1}


def test_a_run_with_nothing_new_succeeds_without_dagster(three: House) -> None:
    here(three)
    run = here(three)
    assert (run.number, run.state, run.error) == (2, "SUCCEEDED", None)
    assert len(three.instance.get_runs()) == 1


def test_an_actor_that_another_run_works_on_is_left_to_it(three: House) -> None:
    other = three.app.stores.pipelines.ask(
        PIPELINE, asked_by="ui", model="offline", kind="person", launch=False, actors=["actor-1"], now=NOW
    )
    progress = three.app.stores.progress
    batch = progress.add_batch(other, ["actor-1"], now=NOW)
    assert progress.claim(batch, holder="other-dagster-run", now=NOW, lease_seconds=60) == {}

    run = here(three)
    assert run.error is not None
    assert run.error.startswith("1 of 3 actors failed: actor-1")
    (result,) = [one for one in three.app.stores.pipelines.results(PIPELINE, run.number) if one.actor_id == "actor-1"]
    assert "other-dagster-run" in str(result.error)
    assert ("actor-1", "distill") not in three.runner.calls


def asset_run(home: House, **options: object) -> dg.DagsterRun:
    job = home.definitions().resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=home.instance, raise_on_error=False, **options)  # type: ignore[arg-type]
    found = home.instance.get_run_by_id(result.run_id)
    assert found is not None
    return found


def test_a_run_of_one_partition_is_adopted(three: House) -> None:
    add_partitions(three.instance, PIPELINE, three.actors())
    dagster_run = asset_run(three, partition_key="actor-1")
    run = three.run_row()
    assert (run.kind, run.state, run.asked_by) == ("person", "SUCCEEDED", "ui")
    assert dagster_run.tags[RUN_TAG] == "1"
    assert three.colours() == {"actor-0": None, "actor-1": "MATERIALIZED", "actor-2": None}


def test_a_run_of_a_range_colours_each_actor(three: House) -> None:
    add_partitions(three.instance, PIPELINE, three.actors())
    three.runner.trouble["actor-1", "maintain"] = [RefusedError("no")]
    asset_run(
        three,
        tags={
            "dagster/asset_partition_range_start": "actor-0",
            "dagster/asset_partition_range_end": "actor-1",
        },
    )
    assert three.run_row().error == "1 of 2 actors failed: actor-1 (DATA_LOSS)"
    materialized = three.instance.get_materialized_partitions(memory_key(PIPELINE))
    assert materialized == {"actor-0"}


def test_a_run_without_partitions_takes_all_that_is_pending(three: House) -> None:
    three.runner.trouble["actor-1", "maintain"] = [RefusedError("no")]
    asset_run(three)
    assert three.run_row().error == "1 of 3 actors failed: actor-1 (DATA_LOSS)"
    assert three.colours() == {"actor-0": "MATERIALIZED", "actor-1": "FAILED", "actor-2": "MATERIALIZED"}


def test_a_person_may_start_the_job_with_the_pipeline_alone(three: House) -> None:
    job = three.definitions().resolve_job_def("memory_pipeline_batch")
    job.execute_in_process(instance=three.instance, run_config={"pipeline": PIPELINE}, raise_on_error=False)
    assert (three.run_row().kind, three.run_row().state) == ("person", "SUCCEEDED")


def test_a_dagster_run_of_a_closed_run_does_nothing(three: House) -> None:
    here(three)
    three.runner.calls.clear()
    job = three.definitions().resolve_job_def("memory_pipeline_batch")
    (done,) = three.instance.get_runs()
    batch = int(done.tags["memory-pipelines/batch"])
    result = job.execute_in_process(
        instance=three.instance, run_config={"pipeline": PIPELINE, "run": 1, "batch": batch}, raise_on_error=False
    )
    assert not result.success
    assert three.runner.calls == []


def test_the_materialization_has_numbers_that_plot_and_names_the_model(three: House) -> None:
    here(three)
    event = three.instance.get_latest_materialization_event(memory_key(PIPELINE))
    assert event is not None
    assert event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    numbers = {
        "sessions", "facts", "entries_created", "entries_updated", "entries_deleted",
        "calls", "prompt_tokens", "completion_tokens", "cost_usd", "seconds",
    }  # fmt: skip
    assert all(isinstance(metadata[name].value, int | float) for name in numbers)
    assert metadata["model"].value == "offline (rules, not an LLM)"
    assert metadata["run"].value == f"memory-pipelines/{PIPELINE}/runs/1"
