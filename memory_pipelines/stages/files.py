"""An actor's entries as files whose lines can be moved and dropped; every line stays, or names the one that says it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict

from memory_pipelines.stages.lines import Line, normal, read
from memory_pipelines.stages.similarity import repeats


@dataclass(frozen=True, kw_only=True)
class File:
    """An entry, existing or to be made."""

    path: str
    content: str
    rank: tuple[int, ...] = (9,)  # the lower, the sooner it is kept when it overlaps with another

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Its lines that say something."""
        return tuple(line for line in read(self.content) if line.kind != "other" and line.text)


Key = tuple[str, int]
"""A line: the path of its file and its number there."""


class Operation(BaseModel):
    """One step of reorganising."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    op: Literal["move", "drop"]
    lines: tuple[str, ...]  # labels, such as L3
    to: str  # for move the path of an entry; for drop the label of the line that says the same


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Steps on lines, checked."""

    moves: dict[Key, str] = field(default_factory=dict[Key, str])  # line to the path it goes to
    drops: dict[Key, Key] = field(default_factory=dict[Key, Key])  # line to the line that says the same

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.moves or self.drops)

    def kept(self, key: Key) -> Key:
        """The line that stands for a line in the end."""
        while key in self.drops:
            key = self.drops[key]
        return key

    def paths(self) -> set[str]:
        """The files that are touched, also those to be made."""
        ends = {path for pair in self.drops.items() for path, _ in pair}
        return ends | {path for path, _ in self.moves} | set(self.moves.values())

    def within(self, paths: set[str]) -> "Plan":
        """The steps on lines of some files."""
        return Plan(
            moves={key: path for key, path in self.moves.items() if key[0] in paths},
            drops={key: kept for key, kept in self.drops.items() if key[0] in paths},
        )

    def plus(self, other: "Plan") -> "Plan":
        """Both, this one first where they disagree."""
        return Plan(moves={**other.moves, **self.moves}, drops={**other.drops, **self.drops})


def labels_of(files: Iterable[File]) -> dict[str, Key]:
    """Labels for the lines of files.

    Args:
        files: in the order in which they are shown.

    Returns:
        L1, L2, ... to the lines.
    """
    keys = [(file.path, line.number) for file in files for line in file.lines]
    return {f"L{number}": key for number, key in enumerate(keys, 1)}


def plan_of(
    operations: Iterable[Operation],
    *,
    files: Sequence[File],
    labels: Mapping[str, Key],
    paths: Iterable[str],
    after: Plan | None = None,
) -> Plan:
    """Check the steps that a model wants; what cannot be done is left out.

    A line is dropped only where the rules see that the other line says all of it, and moved only to a path that is
    offered.

    Args:
        operations: as answered.
        files: the files.
        labels: label to line, as shown.
        paths: where lines may go.
        after: steps that are taken anyway.

    Returns:
        The steps that can be taken, with those.
    """
    found = {(file.path, line.number): line for file in files for line in file.lines}
    allowed = set(paths)
    plan = Plan(moves=dict(after.moves), drops=dict(after.drops)) if after else Plan()
    for step in operations:
        for label in step.lines:
            key = labels.get(label.strip())
            if key is None or key in plan.drops or key in plan.moves or found[key].kind != "fact":
                continue
            if step.op == "move" and step.to in allowed and step.to != key[0]:
                plan.moves[key] = step.to
            elif step.op == "drop" and step.to.strip() in labels:
                kept = plan.kept(labels[step.to.strip()])
                if kept != key and repeats(found[key].text, found[kept].text):
                    plan.drops[key] = kept
    return sound(plan, files)


def sound(plan: Plan, files: Sequence[File]) -> Plan:
    """Leave out drops of lines that the line which stands in the end does not say all of.

    Args:
        plan: steps, each right for itself; a line that was to be kept may have been dropped for a third.
        files: the files.

    Returns:
        Steps that lose nothing.
    """
    texts = {(file.path, line.number): line.text for file in files for line in file.lines}
    drops = dict(plan.drops)
    checked = Plan(moves=plan.moves, drops=drops)
    while bad := [key for key in drops if not repeats(texts[key], texts[checked.kept(key)])]:
        del drops[bad[0]]
    return checked


def operations_of(plan: Plan, labels: Mapping[str, Key]) -> list[Operation]:
    """Steps in the form in which a model gives them.

    Args:
        plan: the steps.
        labels: label to line.

    Returns:
        One move for each path, then one drop for each line.
    """
    named = {key: label for label, key in labels.items()}
    by_path: dict[str, list[str]] = {}
    for key, path in plan.moves.items():
        by_path.setdefault(path, []).append(named[key])
    moves = [Operation(op="move", lines=tuple(lines), to=path) for path, lines in by_path.items()]
    drops = [Operation(op="drop", lines=(named[key],), to=named[kept]) for key, kept in plan.drops.items()]
    return [*moves, *drops]


def carry_out(plan: Plan, files: Sequence[File]) -> list[File]:
    """Take the steps.

    Args:
        plan: the steps.
        files: as they are.

    Returns:
        The files as they become, emptied ones left out; files without a step keep their bytes. A line that moves
        takes the heading along that it stands under.
    """
    left: dict[str, File] = {}
    moved: dict[str, list[Line]] = {}
    for file in files:
        gone = {line.number for line in file.lines if (file.path, line.number) in {**plan.moves, **plan.drops}}
        for line in file.lines:
            if (file.path, line.number) in plan.moves and (file.path, line.number) not in plan.drops:
                moved.setdefault(plan.moves[file.path, line.number], []).append(line)
        if len(gone) < len(file.lines) or not gone:
            left[file.path] = replace(file, content=_without(file.content, gone)) if gone else file
    for path, lines in moved.items():
        file = left.get(path, File(path=path, content=""))
        left[path] = replace(file, content=_with(file.content, lines))
    return list(left.values())


def _without(content: str, gone: set[int]) -> str:
    """Take lines out, and headings under which nothing is left."""
    lines = read(content)
    for at, line in enumerate(lines):
        if line.kind == "other" and line.raw.lstrip().startswith("#"):
            section: list[Line] = []
            for other in lines[at + 1 :]:
                if other.kind == "other" and other.raw.lstrip().startswith("#"):
                    break
                section.append(other)
            said = [one.number for one in section if one.kind != "other" and one.text]
            if said and all(number in gone for number in said):
                gone = gone | {line.number, *(one.number for one in section)}
    return "\n".join(line.raw for line in lines if line.number not in gone)


def _with(content: str, new: Sequence[Line]) -> str:
    by_heading: dict[str, list[Line]] = {}
    for line in new:
        by_heading.setdefault(line.heading, []).append(line)
    for heading, lines in by_heading.items():
        texts = [f"- {line.text}" for line in lines]
        content = _insert(content, heading, texts)
    return content


def _insert(content: str, heading: str, texts: Sequence[str]) -> str:
    raws = content.split("\n") if content.strip() else []
    end = "\r" if any(raw.endswith("\r") for raw in raws) else ""
    lines = read(content) if raws else ()
    under = [line for line in lines if normal(line.heading) == normal(heading)]
    said = [line.number for line in under if line.kind != "other" and line.text]
    if not said and not heading:  # the first heading is the title of the file
        first = next((line.heading for line in lines if line.heading), "")
        said = [line.number for line in lines if line.heading == first and line.kind != "other" and line.text]
    if said:
        at = said[-1] + 1
    elif not heading:
        at = next((line.number for line in lines if line.heading), 0)
    else:
        while raws and not raws[-1].strip():
            raws.pop()
        texts = [*([""] if raws else []), f"## {heading}", "", *texts]
        at = len(raws)
    raws[at:at] = [text + end for text in texts]
    joined = "\n".join(raws)
    return joined if joined.endswith("\n") else joined + "\n"
