"""More actors than an asset of Dagster has partitions."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from orchestration_kit import PIPELINE, QUICK, house

from memory_pipelines.errors import MemoryPipelinesError
from memory_pipelines.orchestration import keys, sensor
from memory_pipelines.orchestration.here import run_here
from memory_pipelines.records import ActorResult

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_run_over_the_limit_goes_on_without_partitions_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "MAX_PARTITIONS", 3)
    with house(tmp_path, NOW, actors=3) as home:
        watch = sensor.Watch(home.app.stores, home.app.clock, "offline", QUICK.lease_seconds)
        watch.tick(home.instance)
        home.say("actor-3")
        home.ask()
        (request,), notes = watch.tick(home.instance)

        assert any("goes on without partitions" in note for note in notes)
        known = home.instance.get_dynamic_partitions(keys.partitions_name(PIPELINE))
        assert sorted(known) == ["actor-0", "actor-1", "actor-2"]

        job = home.definitions().resolve_job_def(keys.JOB)
        job.execute_in_process(instance=home.instance, run_config=request.run_config, tags=request.tags)
        assert home.run_row().state == "SUCCEEDED"
        assert set(home.states().values()) == {"succeeded"}
        assert len(home.states()) == 4


def test_a_look_reads_no_results_of_batches_whose_actors_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with house(tmp_path, NOW, actors=6) as home:
        home.app.pipelines.update(PIPELINE, batch_size=1)
        home.ask()
        watch = sensor.Watch(home.app.stores, home.app.clock, "offline", QUICK.lease_seconds)
        requests, _ = watch.tick(home.instance)
        job = home.definitions().resolve_job_def(keys.JOB)
        for request in requests[:5]:
            job.execute_in_process(instance=home.instance, run_config=request.run_config, tags=request.tags)
        real, read = home.app.stores.pipelines.results, list[int]()

        def counted(*args: Any, **options: Any) -> list[ActorResult]:
            found = real(*args, **options)
            read.append(len(found))
            return found

        monkeypatch.setattr(home.app.stores.pipelines, "results", counted)
        watch.tick(home.instance)

        assert len(requests) == 6
        assert read == []  # one batch is left, so the run is not closed
        assert home.app.stores.pipelines.states(PIPELINE, 1) == {"succeeded": 5, "waiting": 1}


def test_a_run_in_this_process_goes_over_the_limit_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "MAX_PARTITIONS", 2)
    with house(tmp_path, NOW, actors=3) as home:
        run = home.ask(launch=False)
        run_here(home.app, run, instance=home.instance, pace=QUICK)
        assert home.run_row().state == "SUCCEEDED"
        assert home.instance.get_dynamic_partitions(keys.partitions_name(PIPELINE)) == []


def test_a_batch_reads_its_own_actors_and_the_whole_run_once_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with house(tmp_path, NOW, actors=6) as home:
        home.app.pipelines.update(PIPELINE, batch_size=1)
        run = home.ask(launch=False)
        home.runner.trouble["actor-3", "merge"] = [MemoryPipelinesError("no")]
        real, read = home.app.stores.pipelines.results, list[int]()

        def counted(*args: Any, **options: Any) -> list[ActorResult]:
            found = real(*args, **options)
            read.append(len(found))
            return found

        monkeypatch.setattr(home.app.stores.pipelines, "results", counted)
        run_here(home.app, run, instance=home.instance, pace=QUICK)

        assert home.run_row().error == "1 of 6 actors failed: actor-3 (INTERNAL)"
        assert read.count(6) == 1  # who failed, when the run is closed
        assert set(read) == {1, 6}
