"""Re-execution, backfills, dead processes, and a database that is away when Dagster loads the definitions."""

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
import yaml
from orchestration_kit import PIPELINE, QUICK, House, house

from memory_pipelines.errors import RefusedError, StoreUnavailableError
from memory_pipelines.orchestration import build
from memory_pipelines.orchestration.here import run_here
from memory_pipelines.orchestration.keys import RUN_TAG, add_partitions, memory_key
from memory_pipelines.orchestration.sensor import Watch

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUSES: list[House] = []  # Dagster makes a re-executed job anew, from a function of a module


@pytest.fixture
def three(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path, NOW) as made:
        HOUSES.append(made)
        yield made
        HOUSES.clear()


def batch_job() -> dg.JobDefinition:
    return HOUSES[-1].definitions().resolve_job_def("memory_pipeline_batch")


def asset_job() -> dg.JobDefinition:
    return HOUSES[-1].definitions().resolve_implicit_global_asset_job_def()


def watch(home: House) -> Watch:
    return Watch(home.app.stores, home.app.clock, "offline", lease_seconds=60)


def test_re_execution_from_failure_does_the_failed_actor_alone(three: House) -> None:
    three.runner.trouble["actor-1", "distill"] = [RefusedError("no")]
    three.ask()
    (request,), _ = watch(three).tick(three.instance)
    job = dg.reconstructable(batch_job)
    failed = dg.execute_job(
        job, three.instance, run_config=request.run_config, tags=dict(request.tags), raise_on_error=False
    )
    assert three.run_row().error == "1 of 3 actors failed: actor-1 (DATA_LOSS)"
    three.runner.calls.clear()

    options = dg.ReexecutionOptions.from_failure(failed.run_id, three.instance)
    again = dg.execute_job(job, three.instance, reexecution_options=options, raise_on_error=False)

    assert again.success
    # Dagster runs `maintain` alone, the step that reported the failure; the actor fell two steps before it.
    assert three.runner.calls == [
        ("", "preflight"),
        ("actor-1", "distill"),
        ("actor-1", "merge"),
        ("actor-1", "maintain"),
    ]
    assert (three.run_row(2).kind, three.run_row(2).state) == ("person", "SUCCEEDED")
    assert set(three.colours().values()) == {"MATERIALIZED"}


def test_the_runs_of_one_backfill_are_one_run_of_ours(three: House) -> None:
    add_partitions(three.instance, PIPELINE, three.actors())
    job = asset_job()
    later = three.instance.create_run_for_job(
        job, tags={"dagster/backfill": "b1", "dagster/partition": "actor-2"}, status=dg.DagsterRunStatus.NOT_STARTED
    )
    job.execute_in_process(instance=three.instance, partition_key="actor-0", tags={"dagster/backfill": "b1"})
    assert three.run_row().state == "RUNNING"

    three.instance.delete_run(later.run_id)  # it begins now
    job.execute_in_process(instance=three.instance, partition_key="actor-2", tags={"dagster/backfill": "b1"})
    assert three.run_row().state == "SUCCEEDED"
    assert three.states() == {"actor-0": "succeeded", "actor-2": "succeeded"}
    assert [run.tags[RUN_TAG] for run in three.instance.get_runs()] == ["1", "1"]


def test_a_process_that_died_is_found_by_its_lease(three: House) -> None:
    asked = three.ask()
    (request,), _ = watch(three).tick(three.instance)
    dead = three.instance.create_run_for_job(
        batch_job(), run_config=request.run_config, tags=request.tags, status=dg.DagsterRunStatus.STARTED
    )
    progress, pipeline = three.app.stores.progress, three.app.pipelines.get(PIPELINE)
    (batch,) = progress.cut(asked, now=NOW)
    progress.claim(batch, holder=dead.run_id, now=NOW, lease_seconds=60)
    progress.begin(pipeline, 1, "actor-0", now=NOW)
    progress.end_actor(pipeline, 1, "actor-0", state="succeeded", now=NOW)

    three.clock[0] = NOW + timedelta(seconds=59)
    assert watch(three).tick(three.instance)[0] == []
    assert three.run_row().state == "RUNNING"

    three.clock[0] = NOW + timedelta(seconds=61)
    assert watch(three).tick(three.instance)[0] == []
    found = three.instance.get_run_by_id(dead.run_id)
    assert found is not None
    assert found.status == dg.DagsterRunStatus.FAILURE
    assert three.run_row().state == "FAILED"
    assert three.states() == {"actor-0": "succeeded", "actor-1": "failed", "actor-2": "failed"}
    assert three.colours() == {"actor-0": None, "actor-1": "FAILED", "actor-2": "FAILED"}


def test_a_run_that_has_just_released_its_actors_is_not_taken_for_dead(three: House) -> None:
    three.ask()
    (request,), _ = watch(three).tick(three.instance)
    ending = three.instance.create_run_for_job(
        batch_job(), run_config=request.run_config, tags=request.tags, status=dg.DagsterRunStatus.STARTED
    )
    seen = watch(three)  # holds no lease any more, hours after it began
    three.clock[0] = NOW + timedelta(hours=3)
    seen.tick(three.instance)
    three.clock[0] += timedelta(seconds=5)
    seen.tick(three.instance)
    found = three.instance.get_run_by_id(ending.run_id)
    assert found is not None
    assert found.status == dg.DagsterRunStatus.STARTED


def test_a_queued_batch_of_a_cancelled_run_does_not_begin(tmp_path: Path) -> None:
    with house(tmp_path, NOW, batch_size=2) as home:
        HOUSES.append(home)
        asked = home.ask()
        first, second = watch(home).tick(home.instance)[0]
        begun = home.instance.create_run_for_job(
            batch_job(), run_config=first.run_config, tags=first.tags, status=dg.DagsterRunStatus.STARTED
        )
        queued = home.instance.create_run_for_job(
            batch_job(), run_config=second.run_config, tags=second.tags, status=dg.DagsterRunStatus.NOT_STARTED
        )
        progress = home.app.stores.progress
        progress.claim(progress.cut(asked, now=NOW)[0], holder=begun.run_id, now=NOW, lease_seconds=60)
        home.app.pipelines.cancel("1", pipeline=PIPELINE)
        watch(home).tick(home.instance)

        found = home.instance.get_run_by_id(queued.run_id)
        assert found is not None
        assert found.status == dg.DagsterRunStatus.CANCELED
        assert sorted(home.states().values()) == ["cancelled", "waiting", "waiting"]
        HOUSES.clear()


def test_ctrl_c_is_a_signal_like_any_other(three: House) -> None:
    three.runner.hang = {"actor-1"}

    def press(actor_id: str, stage: str, event: str) -> None:
        if (actor_id, event) == ("actor-1", "started"):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_here(three.app, three.ask(launch=False), instance=three.instance, pace=QUICK, on_event=press)
    assert three.runner.cancelled == ["actor-1"]
    assert three.run_row().state == "CANCELLED"


def test_while_the_database_is_away_the_assets_known_last_stay(
    three: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert three.definitions().resolve_all_asset_keys() == [memory_key(PIPELINE)]

    def away(url: str) -> None:
        raise StoreUnavailableError("the database does not answer")

    monkeypatch.setattr(build, "open_stores", away)
    assert three.definitions().resolve_all_asset_keys() == [memory_key(PIPELINE)]
    assert "does not answer" in caplog.text


def test_the_settings_of_dagster_at_the_top_level_are_those_of_the_package_and_a_folder() -> None:
    top = Path(__file__).parents[2]
    packaged = yaml.safe_load((top / "memory_pipelines" / "orchestration" / "dagster.yaml").read_text(encoding="utf-8"))
    found = yaml.safe_load((top / "dagster.yaml").read_text(encoding="utf-8"))
    # Without DAGSTER_HOME `dagster dev` shows the runs that the commands made.
    assert found.pop("storage") == {"sqlite": {"base_dir": ".memory-pipelines/dagster"}}
    assert found == packaged
