"""Reorganises an actor's entries: overlapping ones are joined, oversized ones split, and no line is lost."""

from collections import Counter
from collections.abc import Mapping, Sequence

from memory_pipelines.records import Change, Entry, Tie
from memory_pipelines.stages.base import Desk, StageSettings
from memory_pipelines.stages.files import (
    File,
    Plan,
    carry_out,
    labels_of,
    plan_of,
)
from memory_pipelines.stages.layout import Layout, describe, layout_of
from memory_pipelines.stages.lines import normal
from memory_pipelines.stages.maintain_task import ask
from memory_pipelines.stages.upkeep import files_of, fold_exact, settle, shorten, suggest

PROMPT_VERSION = "maintain-3"
"""Changes when the task or the answer's form does."""

_ROUNDS = 3  # a split may have to be split again


async def maintain(
    entries: Sequence[Entry], *, ties: Mapping[str, Sequence[tuple[str, str]]], desk: Desk, settings: StageSettings
) -> tuple[Change, ...]:
    """Reorganise entries where there is need; without need nothing is asked and nothing changes.

    Args:
        entries: of one actor, none bound to a session; those that an agent saved too.
        ties: entry id to (line, fact id); facts of a folded line come to rest on the line that is kept.
        desk: where the model is asked.
        settings: of the pipeline and the model.

    Returns:
        The changes, which belong together; every line before is a line after, or says nothing that one of them does
        not.

    Raises:
        StageError: the model's answer could not be read; nothing was changed.
    """
    layout = layout_of(entries, instructions=settings.instructions)
    before = files_of(entries, layout)
    longest = settings.max_entry_chars
    wanted = suggest(before, layout=layout, longest=longest)
    if not wanted:
        return ()
    certain = fold_exact(before)
    if wanted == certain:
        after, done = settle(before, layout=layout, longest=longest)
    else:
        plan = certain
        # A strong model sees all entries at once: it may find that two belong together where the rules see nothing.
        everything = {file.path for file in before}
        for group in [everything] if settings.profile == "strong" else _groups(wanted):
            plan = await _decide(before, group, wanted.within(group), layout, desk, settings, after=plan)
        after, done = carry_out(plan, before), [plan]
        for _ in range(_ROUNDS):
            more = shorten(after, longest=longest)
            if not more:
                break
            after = carry_out(more, after)
            done.append(more)
    return _changes(entries, before, after, done, ties)


async def _decide(
    files: Sequence[File],
    group: set[str],
    rules: Plan,
    layout: Layout,
    desk: Desk,
    settings: StageSettings,
    *,
    after: Plan,
) -> Plan:
    """Ask about one group of files that have to do with each other; the rules decide what is too long to ask."""
    involved = [file for file in files if file.path in group]
    labels = labels_of(involved)
    answer = await ask(desk, involved, labels, rules, layout, settings)
    if answer is None:
        return after.plus(rules)
    paths = [*layout.paths(), *rules.moves.values()]
    named = [step.to for step in answer.operations if step.op == "move" and layout.allows(step.to)]
    plan = plan_of(answer.operations, files=files, labels=labels, paths=[*paths, *named], after=after)
    if settings.profile == "small":
        plan = _without_renames(plan, involved, rules)
    return after.plus(rules) if answer.operations and plan == after else plan


def _without_renames(plan: Plan, files: Sequence[File], rules: Plan) -> Plan:
    """Leave out moves of most of an entry to one path, which the rules do not see as one topic.

    A small model that is asked to split an entry may move all of it to the first path that it reads.
    """
    sizes = {file.path: len(file.lines) for file in files}
    counts = Counter((key[0], path) for key, path in plan.moves.items() if rules.moves.get(key) != path)
    moves = {key: path for key, path in plan.moves.items() if 2 * counts[key[0], path] <= sizes.get(key[0], 0)}
    return Plan(moves=moves, drops=plan.drops)


def _groups(plan: Plan) -> list[set[str]]:
    """Files that have to do with each other, each in one group."""
    pairs = [(key[0], path) for key, path in plan.moves.items()]
    pairs += [(key[0], kept[0]) for key, kept in plan.drops.items()]
    groups: list[set[str]] = []
    for pair in pairs:
        joined = set(pair)
        apart: list[set[str]] = []
        for group in groups:
            if group & joined:
                joined |= group
            else:
                apart.append(group)
        groups = [*apart, joined]
    return groups


def _changes(
    entries: Sequence[Entry],
    before: Sequence[File],
    after: Sequence[File],
    done: Sequence[Plan],
    ties: Mapping[str, Sequence[tuple[str, str]]],
) -> tuple[Change, ...]:
    """The difference as changes, with the facts of folded lines tied to the lines that are kept."""
    contents = {file.path: file.content for file in after}
    by_path = {entry.path: entry for entry in entries}
    fresh = _fresh_ties(entries, before, done, ties)
    changes: list[Change] = []
    for entry in entries:
        content = contents.pop(entry.path, None)
        if content is None:
            changes.append(
                Change(
                    action="delete",
                    path=entry.path,
                    entry_id=entry.id,
                    version=entry.version,
                    reason="its lines stand in other entries",
                )
            )
            continue
        new = _standing(fresh, content)
        if content == entry.content and not new:
            continue
        own = describe(entry.path, entry.content)
        changes.append(
            Change(
                action="update",
                path=entry.path,
                content=content,
                description=entry.description if entry.description not in ("", own) else describe(entry.path, content),
                entry_id=entry.id,
                version=entry.version,
                ties=new,
                reason="reorganised",
            )
        )
    for path, content in contents.items():
        if path not in by_path:
            changes.append(
                Change(
                    action="create",
                    path=path,
                    content=content,
                    description=describe(path, content),
                    ties=_standing(fresh, content),
                    reason="split",
                )
            )
    return tuple(changes)


def _fresh_ties(
    entries: Sequence[Entry],
    before: Sequence[File],
    done: Sequence[Plan],
    ties: Mapping[str, Sequence[tuple[str, str]]],
) -> dict[str, list[Tie]]:
    """Ties of folded lines, by the form of the line that is kept."""
    facts: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        for line, fact in ties.get(entry.id, ()):
            facts.setdefault((entry.path, normal(line)), []).append(fact)
    fresh: dict[str, list[Tie]] = {}
    files = list(before)
    for plan in done:
        texts = {(file.path, line.number): line.text for file in files for line in file.lines}
        for key in plan.drops:
            kept = plan.kept(key)
            text = texts[kept]
            carried = facts.get((key[0], normal(texts[key])), []) + [
                tie.fact_id for tie in fresh.get(normal(texts[key]), [])
            ]
            rests = facts.get((kept[0], normal(text)), [])
            fresh.setdefault(normal(text), []).extend(
                Tie(line=text, fact_id=fact) for fact in dict.fromkeys(carried) if fact not in rests
            )
        files = carry_out(plan, files)
    return fresh


def _standing(fresh: Mapping[str, Sequence[Tie]], content: str) -> tuple[Tie, ...]:
    lines = {normal(line.text) for line in File(path="/", content=content).lines}
    return tuple(dict.fromkeys(tie for text, found in fresh.items() if text in lines for tie in found))
