"""Builds Dagster's definitions from the pipelines there are."""

import functools
import json
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from memory_pipelines.errors import StoreUnavailableError
from memory_pipelines.orchestration.assets import batch_job, memory_asset
from memory_pipelines.orchestration.crew import RESOURCE, Pace, crew_resource
from memory_pipelines.orchestration.schedules import daily_schedule
from memory_pipelines.orchestration.sensor import Watch, asked_runs
from memory_pipelines.records import Pipeline
from memory_pipelines.settings import Settings, read_settings
from memory_pipelines.stores.sql import open_stores
from memory_pipelines.wiring import App, open_app, utc_now

logger = logging.getLogger(__name__)

_PIPELINES = TypeAdapter(list[Pipeline])


def build_definitions(
    settings: Settings | None = None,
    *,
    make_app: Callable[[], App] | None = None,
    pace: Pace | None = None,
) -> dg.Definitions:
    """Return one asset for each pipeline and a schedule for each scheduled one, the job and the sensor.

    Args:
        settings: default read from the environment.
        make_app: how a run opens its app; default from the settings. Tests give a scripted model with it.
        pace: delays and leases.
    """
    given, by_clock = settings or read_settings(), pace or Pace()

    @functools.cache
    def watch() -> Watch:
        return Watch(open_stores(given.database), utc_now, given.model, by_clock.lease_seconds)

    pipelines = _pipelines(given, watch)
    schedules = [
        daily_schedule(one, watch) for one in pipelines if one.policy.trigger == "SCHEDULED" and one.delete_time is None
    ]
    return dg.Definitions(
        assets=[memory_asset(one, default_model=given.model) for one in pipelines],
        jobs=[batch_job()],
        schedules=[one for one in schedules if one is not None],
        sensors=[asked_runs(watch)],
        resources={RESOURCE: crew_resource(make_app or (lambda: open_app(given)), by_clock)},
        executor=dg.in_process_executor,  # for runs from an asset's page too: else a process for each op
    )


def _pipelines(settings: Settings, watch: Callable[[], Watch]) -> Sequence[Pipeline]:
    """Return all pipelines, or those of last time while the database is away: an empty list would take assets away."""
    last = settings.home.absolute() / "dagster-pipelines.json"
    try:
        pipelines = watch().stores.pipelines.list_all()
    except StoreUnavailableError as error:
        known = _read(last)
        logger.warning("The database is away (%s); going on with the %d pipelines known last.", error, len(known))
        return known
    _write(last, pipelines)
    return pipelines


def _read(path: Path) -> list[Pipeline]:
    try:
        return _PIPELINES.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return []


def _write(path: Path, pipelines: Sequence[Pipeline]) -> None:
    text = json.dumps([one.model_dump(mode="json") for one in pipelines], ensure_ascii=False)
    try:
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        written = path.with_name(f"{path.name}.{os.getpid()}")
        written.write_text(text, encoding="utf-8")
        written.replace(path)
    except OSError as error:
        logger.warning("The list of pipelines could not be kept in %s: %s", path, error)
