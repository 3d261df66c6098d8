"""Checks what a stage wants to change, whatever the model said. Pure; the runner applies what passes."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import Field

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.names import check_path
from memory_pipelines.records import Change, Entry, Fact, FactState, Record
from memory_pipelines.redaction import find_secrets
from memory_pipelines.stages.lines import normal, one_line, read
from memory_pipelines.stages.similarity import clauses, repeats, sense

LONGEST_ENTRY = 100_000
"""Characters of an entry's content, at most."""

MASS_SHARE = 0.3
"""Above this share of lines lost or characters shrunk, a person decides."""

MASS_LINES = 10
"""Memories of at most this many lines are small enough to change as a whole."""

_LONGEST_MARK = 80  # characters; a longer line is no mark
_ELISION = re.compile(
    r"\W*(?:\.{3,}|…+)\W*"
    r"|\W*(?:the )?(?:rest|remaining|remainder|other|previous|existing|everything else|all else|content|lines)\b"
    r".*\b(?:unchanged|as before|as above|the same|same as|omitted|elided|unmodified|kept|truncated|continues?)\W*"
    r"|\W*(?:unchanged|omitted|truncated|no changes|sin cambios|igual que antes|etc)\W*"
    r"|\W*(?:el )?resto\b.*\b(?:sin cambios|igual|omitido|no cambia)\W*"
    r"|\W*(?:其余|其他|剩余|以下|以上)(?:部分|内容|行|条目)?(?:均|都|保持)?(?:不变|省略|相同|略|未变)\W*"
    r"|\W*(?:باقي|بقية|الباقي).*(?:تغيير|كما هو|كما هي)\W*",
    re.IGNORECASE,
)

Stage = Literal["merge", "maintain"]


class Checked(Record):
    """What of the changes may be applied."""

    changes: tuple[Change, ...] = ()
    dropped: dict[str, int] = Field(default_factory=dict)  # reason to number of changes
    refused: tuple[str, ...] = ()  # ids of facts whose lines were dropped with their change
    proposal: str | None = None  # why a person must decide on the changes, None when they may be applied

    def settle(self, settled: Mapping[str, FactState]) -> dict[str, FactState]:
        """What became of the facts, after changes were dropped.

        Args:
            settled: what the stage said.

        Returns:
            The same with refused facts rejected; nothing is superseded when a change was dropped.
        """
        if not self.dropped:
            return dict(settled)
        states: dict[str, FactState] = {one: state for one, state in settled.items() if state != "superseded"}
        for one in self.refused:
            states[one] = "rejected"
        return states


def check(
    changes: Sequence[Change],
    entries: Sequence[Entry],
    facts: Sequence[Fact],
    *,
    stage: Stage | None = None,
    mass_share: float = MASS_SHARE,
    mass_lines: int = MASS_LINES,
    longest: int = LONGEST_ENTRY,
) -> Checked:
    """Check the changes of one actor.

    A change of merge that breaks a rule is dropped and counted; the changes of maintain belong together, so that one
    broken rule drops them all.

    Args:
        changes: what the stage wants.
        entries: of the actor, as the stage saw them.
        facts: that were merged; none for maintain.
        stage: which stage wants it; without it merge when there are facts, else maintain.
        mass_share: share of lines lost, or of characters shrunk, above which a person decides.
        mass_lines: a memory of at most so many lines is not guarded by share.
        longest: characters of an entry, at most.

    Returns:
        What may be applied, what was dropped and why, and the reason for a review if one is due.
    """
    stage = stage or ("merge" if facts else "maintain")
    by_id = {entry.id: entry for entry in entries}
    actor = entries[0].actor_id if entries else None
    known = _statements(entry.content for entry in entries)
    said = {normal(one_line(fact.text)) for fact in facts}
    taken = {entry.path for entry in entries if entry.session_id is None}
    passed: list[Change] = []
    dropped: Counter[str] = Counter()
    for change in changes:
        entry = by_id.get(change.entry_id or "")
        reason = (
            _wrong_place(change, entry, actor=actor, taken=taken)
            or _wrong_content(change, entry, {*known, *said}, longest=longest)
            or (_unsupported(change, known, facts) if stage == "merge" else None)
        )
        if reason is None and change.action == "create":
            taken.add(change.path)
        if reason:
            dropped[reason] += 1
        else:
            passed.append(change)
    if stage == "maintain":
        if not dropped and lost_lines(entries, apply(passed, entries)):
            dropped["lost"] += len(passed)
        if not dropped and _statements(change.content for change in passed).keys() - known.keys():
            dropped["support"] += len(passed)
        passed = [] if dropped else passed
    else:
        passed = _without_bare_removals(passed, by_id, dropped)
    refused = {tie.fact_id for change in changes if change not in passed for tie in change.ties}
    return Checked(
        changes=tuple(passed),
        dropped=dict(dropped),
        refused=tuple(sorted(refused)),
        proposal=_mass(entries, apply(passed, entries), share=mass_share, lines=mass_lines),
    )


def apply(changes: Iterable[Change], entries: Sequence[Entry]) -> dict[str, str]:
    """What the changes would make of memory.

    Args:
        changes: in order.
        entries: of the actor.

    Returns:
        Path to content.
    """
    contents = {entry.path: entry.content for entry in entries}
    for change in changes:
        if change.action == "delete":
            contents.pop(change.path, None)
        else:
            contents[change.path] = change.content
    return contents


def lost_lines(before: Sequence[Entry], after: Mapping[str, str]) -> tuple[str, ...]:
    """The lines that say something and are gone, without another line that says the same.

    Args:
        before: the entries as they were.
        after: path to content.

    Returns:
        The lost lines; empty when nothing is lost.
    """
    kept = _statements(after.values())
    gone = {text: shown for text, shown in _statements(entry.content for entry in before).items() if text not in kept}
    return tuple(shown for shown in gone.values() if not any(repeats(shown, other) for other in kept.values()))


def nothing_lost(before: Sequence[Entry], after: Mapping[str, str]) -> bool:
    """Whether every line before is a line after, or says nothing that one of them does not.

    Args:
        before: the entries as they were.
        after: path to content.

    Returns:
        True when `lost_lines` finds none.
    """
    return not lost_lines(before, after)


def _wrong_place(change: Change, entry: Entry | None, *, actor: str | None, taken: set[str]) -> str | None:
    try:
        check_path(change.path)
    except InvalidInputError:
        return "path"
    if change.action == "create":
        return "exists" if change.entry_id or change.path in taken else None
    if entry is None or entry.actor_id != actor or entry.path != change.path:
        return "entry"
    if entry.session_id is not None:
        return "bound"
    return "version" if change.version != entry.version else None


def _wrong_content(change: Change, entry: Entry | None, known: set[str], *, longest: int) -> str | None:
    if change.action == "delete":
        return None
    if len(change.content) > max(longest, len(entry.content) if entry else 0):
        return "size"
    if not change.content.strip():
        return "empty"
    lines = [line.text for line in read(change.content) if line.text]
    if any(len(text) <= _LONGEST_MARK and normal(text) not in known and _ELISION.fullmatch(text) for text in lines):
        return "elision"
    old = set(entry.content.split("\n")) if entry else set[str]()
    if find_secrets("\n".join([*(raw for raw in change.content.split("\n") if raw not in old), change.description])):
        return "secret"
    return None


def _unsupported(change: Change, known: Mapping[str, str], facts: Sequence[Fact]) -> str | None:
    given = {fact.id: fact for fact in facts}
    tied: dict[str, list[Fact]] = {}
    for tie in change.ties:
        if tie.fact_id in given:
            tied.setdefault(normal(tie.line), []).append(given[tie.fact_id])
    parts: set[str] = set()
    for line in (*known.values(), *(fact.text for fact in facts)):
        parts |= {normal(part) for part in clauses(line)}
    for text, shown in _statements([change.content]).items():
        if text not in known and text not in parts and not any(_supports(fact, shown) for fact in tied.get(text, ())):
            return "support"
    return None


def _supports(fact: Fact, line: str) -> bool:
    if normal(one_line(fact.text)) == normal(line):
        return True
    said, shown = sense(fact.text), sense(line)
    return (
        bool(shown.all)
        and shown.all <= said.all
        and shown.rejected <= said.rejected
        and (shown.negative, shown.past) == (said.negative, said.past)
    )


def _without_bare_removals(passed: Sequence[Change], by_id: Mapping[str, Entry], dropped: Counter[str]) -> list[Change]:
    """Leave out changes that take lines away while the line that should take their place is missing."""
    added = any(change.ties for change in passed)
    kept: list[Change] = []
    for change in passed:
        entry = by_id.get(change.entry_id or "")
        before = _statements([entry.content]) if entry else {}
        after = _statements([change.content])
        shrinks = len(before.keys() - after.keys()) > len(after.keys() - before.keys())
        if shrinks and (dropped or not added):
            dropped["removal"] += 1
        else:
            kept.append(change)
    return kept


def _mass(entries: Sequence[Entry], after: Mapping[str, str], *, share: float, lines: int) -> str | None:
    before = _statements(entry.content for entry in entries)
    if len(before) <= lines:
        return None
    now = _statements(after.values())
    gone = len(before.keys() - now.keys())
    lost = gone - min(gone, len(now.keys() - before.keys()))
    if lost > share * len(before):
        return f"{lost} of {len(before)} lines would be deleted, more than {share:.0%}"
    size, left = sum(map(len, before.values())), sum(map(len, now.values()))
    if size - left > share * size:
        return f"memory would shrink from {size} to {left} characters, by more than {share:.0%}"
    return None


def _statements(contents: Iterable[str]) -> dict[str, str]:
    """The lines that say something: the form to compare, to the text."""
    return {
        normal(line.text): line.text
        for content in contents
        for line in read(content)
        if line.kind != "other" and line.text
    }
