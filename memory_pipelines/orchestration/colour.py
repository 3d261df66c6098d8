"""Turns the partition of a failed actor red. The only file with a private import of Dagster."""

from collections.abc import Iterable

import dagster as dg

# Nothing public plans a materialization, and Dagster calls a partition failed when its newest materialization is
# planned by a run that FAILED. Held in place by `dagster<1.14` and by a test.
from dagster._core.events import AssetMaterializationPlannedData, DagsterEvent

from memory_pipelines.orchestration.keys import memory_key, partition_key


def mark_failed(instance: dg.DagsterInstance, run: dg.DagsterRun, pipeline_id: str, actors: Iterable[str]) -> None:
    """Plan a materialization of each actor's partition, which is red once the Dagster run has failed.

    For runs without a partition tag only: with one, Dagster has planned all its partitions itself. It also works after
    the run has ended, from any process.
    """
    for actor_id in actors:
        planned = AssetMaterializationPlannedData(memory_key(pipeline_id), partition=partition_key(actor_id))
        event = DagsterEvent.build_asset_materialization_planned_event(run.job_name, "maintain", planned)
        instance.report_dagster_event(event, run.run_id)
