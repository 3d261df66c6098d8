"""More actors than an asset of Dagster has partitions."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from orchestration_kit import PIPELINE, QUICK, house

from memory_pipelines.orchestration import keys, sensor
from memory_pipelines.orchestration.here import run_here

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


def test_a_run_in_this_process_goes_over_the_limit_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "MAX_PARTITIONS", 2)
    with house(tmp_path, NOW, actors=3) as home:
        run = home.ask(launch=False)
        run_here(home.app, run, instance=home.instance, pace=QUICK)
        assert home.run_row().state == "SUCCEEDED"
        assert home.instance.get_dynamic_partitions(keys.partitions_name(PIPELINE)) == []
