"""Reads an entry's Markdown as lines, and changes single lines of it without touching the others."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

LineKind = Literal["fact", "held", "other"]
"""fact: says one thing and may be replaced or moved; held: says something but stays where it is (prose, an item with
lines of its own, code); other: headings, rules and blank lines."""

_MARKER = re.compile(r"(\s*)((?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?)?")
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+(.*)")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_RULE = re.compile(r"\s{0,3}([-*_=])(?:\s*\1){2,}\s*")
_END = "\r"
_LONGEST_PLAIN = 300  # characters; an unmarked line above it is a paragraph


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of an entry."""

    number: int  # from 0, in the split content
    raw: str  # as it stands, without the newline
    lead: str  # white space and list marker before the text
    text: str  # what it says
    kind: LineKind
    heading: str = ""  # the heading it stands under


@lru_cache(maxsize=16384)
def normal(text: str) -> str:
    """The form in which two lines are the same line: no list marker, single spaces, one case, NFC.

    Args:
        text: a line or what it says.

    Returns:
        The form to compare, not to show.
    """
    return " ".join(unicodedata.normalize("NFC", _split(text)[1]).casefold().split())


def one_line(text: str) -> str:
    """What a text says on one line, without a list marker of its own.

    Args:
        text: any text.

    Returns:
        The text with runs of white space made single spaces.
    """
    return " ".join(_split(" ".join(text.split()))[1].split())


@lru_cache(maxsize=512)
def read(content: str) -> tuple[Line, ...]:
    """Read the content of an entry.

    Args:
        content: Markdown.

    Returns:
        Every line, so that joining `raw` by newlines gives the content back.
    """
    raws = content.split("\n")
    kinds = _kinds(raws)
    lines: list[Line] = []
    heading = ""
    for number, (raw, kind) in enumerate(zip(raws, kinds, strict=True)):
        found = _HEADING.fullmatch(raw.rstrip()) if kind == "other" else None
        if found:
            heading = found[2].strip(" #")
        lead, text = _split(raw.rstrip(_END))
        lines.append(Line(number=number, raw=raw, lead=lead, text=text.strip(), kind=kind, heading=heading))
    return tuple(lines)


def edit(content: str, *, replace: Mapping[int, str | None], add: Sequence[tuple[int | None, str]] = ()) -> str:
    """Change lines of an entry; all others keep their bytes.

    Args:
        content: the entry as it is.
        replace: line number to its new text, which takes over the list marker, or to None to take the line out.
        add: (line number to stand after, text); None for after the last fact. Added lines look like their neighbours.

    Returns:
        The new content.
    """
    lines = read(content)
    end = _END if any(line.raw.endswith(_END) for line in lines) else ""
    last = next((line.number for line in reversed(lines) if line.kind == "fact"), None)
    if last is None:
        last = next((line.number for line in reversed(lines) if line.raw.strip()), -1)
    after: dict[int, list[str]] = {}
    for number, text in add:
        at = last if number is None else number
        after.setdefault(at, []).append(_marked(_lead(lines, at), text) + text + end)
    result = after.pop(-1, [])
    for line in lines:
        if line.number not in replace:
            result.append(line.raw)
        elif (new := replace[line.number]) is not None:
            result.append(_marked(line.lead, new) + new + (_END if line.raw.endswith(_END) else ""))
        result += after.get(line.number, [])
    text = "\n".join(result)
    return text if text.endswith("\n") or not add else text + "\n"


def _split(raw: str) -> tuple[str, str]:
    found = _MARKER.match(raw)
    lead = found[0] if found else ""
    return lead, raw[len(lead) :]


def _lead(lines: Sequence[Line], at: int) -> str:
    near = [line for line in lines if line.kind == "fact" and line.number <= at] or [
        line for line in lines if line.kind == "fact"
    ]
    lead = near[-1].lead if near else "- "
    number = re.fullmatch(r"(\s*)\d{1,3}([.)]\s+)", lead)
    return f"{number[1]}- " if number else lead  # a numbered list would have to be numbered anew


def _marked(lead: str, text: str) -> str:
    """The lead, or a list marker where the text without one would be a heading, a quote or the rest of a paragraph."""
    plain = lead.strip() or (_kinds([text]) == ["fact"] and not _is_prose(text, 1))
    return lead if plain else "- "


def _kinds(raws: Sequence[str]) -> list[LineKind]:
    kinds: list[LineKind] = []
    fence = ""
    for raw in raws:
        found = _FENCE.match(raw)
        if fence or found:
            kinds.append("held")
            if found and not fence:
                fence = found[1]
            elif found and found[1].startswith(fence) and raw.strip() == found[1]:
                fence = ""
            continue
        text = raw.strip()
        plain = not text or _HEADING.fullmatch(raw.rstrip()) or _RULE.fullmatch(raw.rstrip())
        kinds.append("other" if plain else "fact")
    if raws and raws[0].strip() == "---" and "---" in (raw.strip() for raw in raws[1:40]):
        closing = next(at for at, raw in enumerate(raws[1:], 1) if raw.strip() == "---")
        _hold(kinds, 0, closing + 1)  # front matter
    _hold_prose(raws, kinds)
    return kinds


def _hold_prose(raws: Sequence[str], kinds: list[LineKind]) -> None:
    """Hold paragraphs wrapped over lines, tables, quotes, and items that have lines of their own."""
    start = 0
    while start < len(raws):
        stop = start
        while stop < len(raws) and kinds[stop] == "fact" and not _split(raws[stop])[0].strip():
            stop += 1
        run = [raw.strip() for raw in raws[start:stop]]
        if any(_is_prose(text, at) for at, text in enumerate(run)):
            _hold(kinds, start, stop)
            if start and kinds[start - 1] == "fact" and raws[start][:1].isspace():
                kinds[start - 1] = "held"  # the run goes on with the item above it
        start = max(stop, start + 1)
    for at in range(len(raws) - 1):
        if kinds[at] == "fact" and raws[at + 1].strip() and _indent(raws[at + 1]) > _indent(raws[at]):
            kinds[at] = "held"
            if not _split(raws[at + 1])[0].strip() and kinds[at + 1] == "fact":
                kinds[at + 1] = "held"


def _hold(kinds: list[LineKind], start: int, stop: int) -> None:
    for at in range(start, stop):
        kinds[at] = "held"


def _indent(raw: str) -> int:
    return len(raw) - len(raw.lstrip())


def _is_prose(text: str, at: int) -> bool:
    return (
        len(text) > _LONGEST_PLAIN
        or text.endswith((":", "：", "\\"))
        or text.startswith(("|", ">", "<"))
        or (at > 0 and text[:1].islower())
    )
