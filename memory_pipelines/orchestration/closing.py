"""Ends actors and runs of ours, wherever their Dagster run ended."""

from collections.abc import Sequence
from datetime import datetime

from memory_pipelines.records import ActorResult, Batch, Pipeline, Run
from memory_pipelines.redaction import redact
from memory_pipelines.stores.base import Stores

NAMED = 20
"""How many failed actors a message names."""


def failures_in_words(failed: Sequence[ActorResult], total: int) -> str:
    """Return counts, names and status words; never what an actor or a model said."""
    named = ", ".join(f"{one.actor_id} ({one.error_status or 'INTERNAL'})" for one in failed[:NAMED])
    more = f" and {len(failed) - NAMED} more" if len(failed) > NAMED else ""
    return f"{len(failed)} of {total} actors failed: {named}{more}"


def close_run(stores: Stores, run: Run, *, now: datetime, reason: str | None = None) -> Run | None:
    """Close a run whose actors have all ended, or with a reason in any case.

    Args:
        stores: where the run is.
        run: stays as it is when it has ended already.
        now: the time of the end.
        reason: why the run ends before its actors did; it FAILED then, or was CANCELLED when that was asked.

    Returns:
        The closed run, or None when actors of it have still to end.
    """
    # Counted, not read: every batch that ends asks, and the results are those of all.
    states = stores.pipelines.states(run.pipeline_id, run.number)
    if reason is None and (states.get("waiting") or states.get("running")):
        return None
    total, cancelled = sum(states.values()), states.get("cancelled", 0)
    results = stores.pipelines.results(run.pipeline_id, run.number) if states.get("failed") else []
    failed = [one for one in results if one.state == "failed"]
    asked = stores.pipelines.get_run(run.pipeline_id, run.number).cancel_requested
    parts = [redact(reason)] if reason else []
    if failed:
        parts.append(failures_in_words(failed, total))
    if cancelled and not reason:
        parts.append(f"{cancelled} of {total} actors cancelled")
    state = "CANCELLED" if asked or (cancelled and not reason) else "FAILED" if parts else "SUCCEEDED"
    return stores.pipelines.close(run.pipeline_id, run.number, state=state, error="; ".join(parts) or None, now=now)


def end_rest(
    stores: Stores,
    pipeline: Pipeline,
    run: Run,
    batch: Batch | None = None,
    *,
    cancelled: bool,
    reason: str,
    now: datetime,
) -> list[str]:
    """End those actors of a batch, or of the whole run, that have not ended, because whoever worked on them is gone.

    Returns:
        The actors that were ended.
    """
    return stores.progress.end_open(
        pipeline,
        run.number,
        batch=None if batch is None else batch.number,
        state="cancelled" if cancelled else "failed",
        error=reason,
        error_status="CANCELLED" if cancelled else "UNAVAILABLE",
        now=now,
    )
