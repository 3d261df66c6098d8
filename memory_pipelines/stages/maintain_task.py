"""How maintain asks a model: a small one by a text and a schema, a strong one by objects in scope and tools."""

from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

from pydantic import BaseModel, ConfigDict

from memory_pipelines.memex.tools import tool_of
from memory_pipelines.stages.base import Desk, StageSettings
from memory_pipelines.stages.effort import effort_of
from memory_pipelines.stages.files import File, Key, Operation, Plan, operations_of
from memory_pipelines.stages.layout import Layout
from memory_pipelines.stages.scope import EntryLines, Line
from memory_pipelines.stages.similarity import likeness, sense
from memory_pipelines.wording import tokens_of

_LONGEST = 400  # characters of a line in the task
_FIXED = 500  # tokens of the task beside lines and instructions
_LABEL = 5  # tokens of a label in the answer
_PORTION = 40  # lines that a strong model goes through in one go


class Operations(BaseModel):
    """The steps to take; none when the entries are well as they are."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    operations: tuple[Operation, ...] = ()


async def ask(
    desk: Desk,
    files: Sequence[File],
    labels: Mapping[str, Key],
    rules: Plan,
    layout: Layout,
    settings: StageSettings,
) -> Operations | None:
    """Have files reorganised.

    Args:
        desk: where the model is asked.
        files: that have to do with each other.
        labels: of their lines.
        rules: what fixed rules would do.
        layout: where lines may go.
        settings: of the pipeline and the model.

    Returns:
        The steps as answered, unchecked; None when the files are too long to ask a small model about.
    """

    def suggest_maintenance() -> Operations:
        """What fixed rules would do."""
        return Operations(operations=tuple(operations_of(rules, labels)))

    answer: Operations
    if settings.profile == "small":
        task = _small_task(files, labels, rules, layout, settings)
        room = settings.context_tokens - settings.answer_tokens
        if tokens_of(task) > room - _FIXED or len(labels) * _LABEL > settings.answer_tokens:
            return None
        answer = await desk.ask(
            purpose="maintain",
            task=task,
            result=Operations,
            tools=[tool_of(suggest_maintenance)],
            answer_schema=_schema(labels),
        )
        return answer

    lines = _lines(files, labels)

    def similar_entries(path: str, limit: int = 20) -> list[Line]:
        """Lines of other entries that say things like lines of this one, the most alike first."""
        own = [sense(line.text) for line in lines if line.path == path]
        others = [line for line in lines if line.path != path]
        scored = [(max((likeness(sense(line.text), one) for one in own), default=0.0), line) for line in others]
        close = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: -pair[0])
        return [line for _, line in close[: max(1, min(limit, 50))]]

    over = [file for file in files if len(file.content) > settings.max_entry_chars]
    entries = [
        EntryLines(path=file.path, lines=tuple(line for line in lines if line.path == file.path)) for file in files
    ]
    answer = await desk.ask(
        purpose="maintain",
        task=Template(_prompt("maintain_strong.md")).substitute(
            longest=settings.max_entry_chars,
            over="".join(f"Too long: {file.path}, {len(file.content)} characters.\n" for file in over),
            paths=_paths(rules, layout),
            instructions=_wishes(settings.instructions),
        ),
        result=Operations,
        scope={"entries": entries, "instructions": settings.instructions.strip()},
        tools=[tool_of(suggest_maintenance), tool_of(similar_entries)],
        effort=effort_of(
            sum(tokens_of(one.model_dump_json()) for one in entries),
            settings,
            parts=-(-len(lines) // _PORTION),
            look=True,
        ),
    )
    return answer


def _lines(files: Sequence[File], labels: Mapping[str, Key]) -> list[Line]:
    texts = {(file.path, line.number): line.text for file in files for line in file.lines}
    return [Line(label=label, path=key[0], text=texts[key]) for label, key in labels.items()]


def _small_task(
    files: Sequence[File], labels: Mapping[str, Key], rules: Plan, layout: Layout, settings: StageSettings
) -> str:
    shown: list[str] = []
    for file in files:
        over = (
            f", more than {settings.max_entry_chars}: split it" if len(file.content) > settings.max_entry_chars else ""
        )
        shown.append(f"{file.path} ({len(file.content)} characters{over})")
        heading = ""
        headings = {line.number: line.heading for line in file.lines}
        for one in _lines([file], {label: key for label, key in labels.items() if key[0] == file.path}):
            above = headings[labels[one.label][1]]
            if above != heading:
                heading = above
                shown.append(f"# {heading}")
            flat = " ".join(one.text.split())
            shown.append(f"{one.label}: {flat if len(flat) <= _LONGEST else flat[:_LONGEST] + '…'}")
        shown.append("")
    return Template(_prompt("maintain.md")).substitute(
        longest=settings.max_entry_chars,
        entries="\n".join(shown).strip(),
        paths=_paths(rules, layout),
        instructions=_wishes(settings.instructions),
    )


def _prompt(name: str) -> str:
    return resources.files("memory_pipelines.stages").joinpath("prompts", name).read_text("utf-8")


def _paths(rules: Plan, layout: Layout) -> str:
    return ", ".join(dict.fromkeys([*rules.moves.values(), *layout.paths()[:40]]))


def _wishes(instructions: str) -> str:
    return f"\nInstructions of the pipeline:\n{instructions.strip()}\n" if instructions.strip() else ""


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
