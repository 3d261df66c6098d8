"""Reorganises an actor's entries: overlapping ones are joined, oversized ones split, and no line is lost."""

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

from pydantic import BaseModel, ConfigDict

from memory_pipelines.memex.tools import tool_of
from memory_pipelines.records import Change, Entry, Tie
from memory_pipelines.stages.base import Desk, StageSettings
from memory_pipelines.stages.files import (
    File,
    Key,
    Operation,
    Plan,
    carry_out,
    labels_of,
    operations_of,
    plan_of,
)
from memory_pipelines.stages.layout import Layout, describe, layout_of
from memory_pipelines.stages.lines import normal
from memory_pipelines.stages.upkeep import files_of, fold_exact, settle, shorten, suggest
from memory_pipelines.wording import tokens_of

PROMPT_VERSION = "maintain-2"
"""Changes when the task or the answer's form does."""

_LONGEST = 400  # characters of a line in the task
_FIXED = 500  # tokens of the task beside lines and instructions
_LABEL = 5  # tokens of a label in the answer
_ROUNDS = 3  # a split may have to be split again


class Operations(BaseModel):
    """The steps to take; none when the entries are well as they are."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    operations: tuple[Operation, ...] = ()


class Shown(BaseModel):
    """A line as tools show it."""

    model_config = ConfigDict(frozen=True)

    label: str
    path: str
    text: str


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
        for group in _groups(wanted):
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
    task = _task(involved, labels, rules, layout, settings)
    room = settings.context_tokens - settings.answer_tokens
    if tokens_of(task) > room - _FIXED or len(labels) * _LABEL > settings.answer_tokens:
        return after.plus(rules)

    def suggest_maintenance() -> Operations:
        """What fixed rules would do."""
        return Operations(operations=tuple(operations_of(rules, labels)))

    def similar_entries(path: str) -> list[Shown]:
        """The lines of the entries that have to do with this one."""
        return [shown for shown in _shown(involved, labels) if shown.path != path]

    strong = settings.profile == "strong"
    paths = [*layout.paths(), *rules.moves.values()]
    answer: Operations = await desk.ask(
        purpose="maintain",
        task=task,
        result=Operations,
        scope={"lines": [shown.model_dump() for shown in _shown(involved, labels)]} if strong else {},
        tools=[tool_of(suggest_maintenance), *([tool_of(similar_entries)] if strong else [])],
        answer_schema=None if strong else _schema(labels),
    )
    named = [step.to for step in answer.operations if step.op == "move" and layout.allows(step.to)]
    plan = plan_of(answer.operations, files=files, labels=labels, paths=[*paths, *named], after=after)
    if not strong:
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


def _shown(files: Sequence[File], labels: Mapping[str, Key]) -> list[Shown]:
    texts = {(file.path, line.number): line.text for file in files for line in file.lines}
    return [Shown(label=label, path=key[0], text=texts[key]) for label, key in labels.items()]


def _task(
    files: Sequence[File], labels: Mapping[str, Key], rules: Plan, layout: Layout, settings: StageSettings
) -> str:
    name = "maintain_strong.md" if settings.profile == "strong" else "maintain.md"
    template = Template(resources.files("memory_pipelines.stages").joinpath("prompts", name).read_text("utf-8"))
    shown: list[str] = []
    for file in files:
        over = (
            f", more than {settings.max_entry_chars}: split it" if len(file.content) > settings.max_entry_chars else ""
        )
        shown.append(f"{file.path} ({len(file.content)} characters{over})")
        heading = ""
        headings = {line.number: line.heading for line in file.lines}
        for one in _shown([file], {label: key for label, key in labels.items() if key[0] == file.path}):
            above = headings[labels[one.label][1]]
            if above != heading:
                heading = above
                shown.append(f"# {heading}")
            flat = " ".join(one.text.split())
            shown.append(f"{one.label}: {flat if len(flat) <= _LONGEST else flat[:_LONGEST] + '…'}")
        shown.append("")
    instructions = settings.instructions.strip()
    return template.substitute(
        longest=settings.max_entry_chars,
        entries="\n".join(shown).strip(),
        paths=", ".join(dict.fromkeys([*rules.moves.values(), *layout.paths()[:40]])),
        instructions=f"\nInstructions of the pipeline:\n{instructions}\n" if instructions else "",
    )


def _schema(labels: Mapping[str, Key]) -> dict[str, Any]:
    step = {
        "type": "object",
        "properties": {
            "op": {"type": "string", "enum": ["move", "drop"]},
            "lines": {"type": "array", "items": {"type": "string", "enum": list(labels)}, "minItems": 1},
            "to": {"type": "string"},
        },
        "required": ["op", "lines", "to"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"operations": {"type": "array", "items": step, "maxItems": len(labels)}},
        "required": ["operations"],
        "additionalProperties": False,
    }


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
