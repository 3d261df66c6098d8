"""The stages merge and maintain of one actor: bounded sets of facts in time order, then the entries once."""

from collections.abc import Mapping, Sequence

from memory_pipelines.errors import StageError
from memory_pipelines.guards.changes import check
from memory_pipelines.records import Change, Fact, FactState
from memory_pipelines.runner.pieces import redact_entries, restore_lines
from memory_pipelines.runner.work import ActorWork, again_on_conflict, beside, refuse_mass_change
from memory_pipelines.stages import maintain, merge

MERGE_FACTS = 24
"""Facts in one merge: bounded, so that a prompt does not grow with the history."""


async def merge_actor(work: ActorWork) -> None:
    """Bring the actor's facts together with what is known, set by set.

    Raises:
        StageError: a set failed; those before it are committed and its facts wait.
    """
    while True:
        facts = (await beside(work.progress.unmerged, work.pipeline, work.actor_id))[:MERGE_FACTS]
        try:
            await again_on_conflict(lambda: _merge_facts(work, facts))  # noqa: B023 - awaited in this turn of the loop
        except StageError:
            await work.forget("merge")  # the same answer would fail again
            raise
        if not facts:
            return


async def _merge_facts(work: ActorWork, facts: Sequence[Fact]) -> None:
    progress, pipeline, actor_id = work.progress, work.pipeline, work.actor_id
    changes: Sequence[Change] = ()
    settled: Mapping[str, FactState] = {}
    dropped: Mapping[str, int] = {}
    if facts:
        originals = await beside(progress.entries, pipeline, actor_id)
        entries = redact_entries(originals)
        merged = await merge.merge(
            facts,
            entries,
            ties=await beside(progress.ties, pipeline, actor_id),
            earlier=await beside(progress.tied_facts, pipeline, actor_id),
            desk=work.desk("merge"),
            settings=work.settings(),
        )
        checked = check(merged.changes, entries, facts, stage="merge")
        refuse_mass_change(checked.proposal)
        changes = restore_lines(checked.changes, originals)
        # Every fact of the set is settled, whatever the stage forgot: else the same set would come again for ever.
        settled = {**{fact.id: "skipped" for fact in facts}, **checked.settle(merged.settled)}
        dropped = checked.dropped
    await beside(
        progress.commit_merge,
        pipeline,
        work.run.number,
        actor_id,
        changes,
        settled,
        dropped=dict(dropped),
        now=work.clock(),
    )
    await work.forget("merge")


async def maintain_actor(work: ActorWork) -> None:
    """Put the actor's entries in order, where there is need.

    Raises:
        StageError: nothing was changed.
    """
    try:
        await again_on_conflict(lambda: _maintain_entries(work))
    except StageError:
        await work.forget("maintain")  # the same answer would fail again
        raise
    await work.forget("maintain")


async def _maintain_entries(work: ActorWork) -> None:
    progress, pipeline, actor_id = work.progress, work.pipeline, work.actor_id
    originals = await beside(progress.entries, pipeline, actor_id)
    entries = redact_entries(originals)
    changes = await maintain.maintain(
        entries,
        ties=await beside(progress.ties, pipeline, actor_id),
        desk=work.desk("maintain"),
        settings=work.settings(),
    )
    if not changes:
        return
    checked = check(changes, entries, (), stage="maintain")
    refuse_mass_change(checked.proposal)
    restored = restore_lines(checked.changes, originals)
    await beside(progress.commit_maintain, pipeline, work.run.number, actor_id, restored, now=work.clock())
