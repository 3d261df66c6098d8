"""The names by which Dagster knows our pipelines, runs and actors."""

import re
from collections.abc import Sequence
from urllib.parse import unquote

import dagster as dg

from memory_pipelines.records import Batch, Run

JOB = "memory_pipeline_batch"

PIPELINE_TAG = "memory-pipelines/pipeline"
RUN_TAG = "memory-pipelines/run"
BATCH_TAG = "memory-pipelines/batch"
ASKED_TAG = "memory-pipelines/asked"  # create time of our run: numbers start again when a pipeline is made again
ADOPTED_TAG = "memory-pipelines/adopted-by"  # the Dagster run whose first op made our run; copied by a re-execution
BACKFILL_TAG = "dagster/backfill"  # Dagster's own

MAX_PARTITIONS = 100_000
"""Dagster's own limit for the partitions of one asset."""

# Dagster refuses "..." (its ranges) and characters that do not show; its UI reads , [ ] * " \ as syntax and trims.
_SPECIAL = re.compile(r'[%\x00-\x1f\x7f-\x9f\u2028\u2029,\[\]*"\\]|(?<=\.)\.|^\s|\s$')


def partition_key(actor_id: str) -> str:
    """Return the partition key of an actor: the id itself where Dagster can carry it, else with %XX escapes."""
    return _SPECIAL.sub(lambda found: "".join(f"%{byte:02X}" for byte in _bytes(found[0])), actor_id)


def actor_of(key: str) -> str:
    """Return the actor of a partition key."""
    return unquote(key, errors="surrogatepass")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def memory_key(pipeline_id: str) -> dg.AssetKey:
    """Return the key of a pipeline's asset."""
    return dg.AssetKey([pipeline_id, "memory"])


def partitions_name(pipeline_id: str) -> str:
    """Return the name of a pipeline's dynamic partitions."""
    return f"{pipeline_id}_actors"


def identifier(pipeline_id: str) -> str:
    """Return the id as a Dagster name; unambiguous, since ids have hyphens and no underscores."""
    return pipeline_id.replace("-", "_")


def run_tags(run: Run, batch: int) -> dict[str, str]:
    """Return the tags that tie a Dagster run to a batch of our run."""
    return {
        PIPELINE_TAG: run.pipeline_id,
        RUN_TAG: str(run.number),
        BATCH_TAG: str(batch),
        ASKED_TAG: run.create_time.isoformat(),
    }


def run_config(batch: Batch) -> dict[str, str | int]:
    """Return the config of the job for one batch."""
    return {"pipeline": batch.pipeline_id, "run": batch.run, "batch": batch.number}


def add_partitions(instance: dg.DagsterInstance, pipeline_id: str, actors: Sequence[str]) -> bool:
    """Make the actors partitions of the pipeline's asset, in bulk; known ones are left as they are.

    Returns:
        False when the asset would have more than Dagster's limit: nothing is added, and the run goes on without.
    """
    name = partitions_name(pipeline_id)
    known = set(instance.get_dynamic_partitions(name))
    new = [key for key in map(partition_key, actors) if key not in known]
    if len(known) + len(new) > MAX_PARTITIONS:
        return False
    if new:
        instance.add_dynamic_partitions(name, new)
    return True
