"""Cuts a model's answer into prose and fenced pieces, by lines."""

import ast
import re
import warnings
from dataclasses import dataclass
from itertools import islice

PYTHON = frozenset({"python", "py", "python3", "py3", "tool_code"})
"""Labels of fences that hold code for the kernel."""

_TRIES = 40
"""At how many closing lines a block is tried for being complete: compiling at each of thousands would take minutes."""

_OPEN = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[^\s`]*)[^`]*$")
_CODE_TAG = re.compile(r"^[ \t]*<code>(?P<rest>.*)$")
_THOUGHT = re.compile(r"^[ \t]*<(?P<tag>think|thinking)>", re.IGNORECASE)
_THOUGHT_END = re.compile(r"^[ \t]*</think(?:ing)?>[ \t]*$", re.IGNORECASE | re.MULTILINE)
_IMITATION = re.compile(r"^\W{0,4}(?:observations?|outputs?|execution results?|stdout)\b[\s*_]*(?:[:\]].*)?$", re.I)
_IMITATED_FENCES = frozenset({"output", "outputs", "observation", "stdout", "result", "tool_output"})


@dataclass(frozen=True)
class Piece:
    """A stretch of an answer: prose, or what one fence holds."""

    text: str  # as the model wrote it, fence lines included
    language: str | None = None  # None for prose, "" for a fence without a label
    body: str = ""  # inside of the fence
    closed: bool = True  # False when the answer ended inside the fence
    compiles: bool = False  # whether `body` is complete Python; looked at only where it may be code

    @property
    def fenced(self) -> bool:
        """Whether the piece is a fence."""
        return self.language is not None

    @property
    def labelled_python(self) -> bool:
        """Whether the model called it Python."""
        return self.language in PYTHON


@dataclass(frozen=True)
class Scan:
    """An answer, cut into pieces."""

    pieces: tuple[Piece, ...]  # in order, without thoughts and without imitated observations
    imitated: bool = False  # something was left out because it pretended to be an observation
    thinking: bool = False  # the answer ended inside a thought

    @property
    def text(self) -> str:
        """What is kept of the answer."""
        return "\n".join(piece.text for piece in self.pieces).strip()

    @property
    def prose(self) -> str:
        """What stands outside the fences."""
        return "\n".join(piece.text for piece in self.pieces if not piece.fenced).strip()

    @property
    def fences(self) -> tuple[Piece, ...]:
        """The fenced pieces."""
        return tuple(piece for piece in self.pieces if piece.fenced)


def scan(text: str) -> Scan:
    """Cut an answer into prose and fences.

    A fence opens at the start of a line and closes with the same character, at least as many times. Where the fence may
    hold Python, it closes at the first such line at which the code is complete, so that fences inside strings are safe.

    Args:
        text: the model's answer.

    Returns:
        The pieces; thoughts (`<think>`) and what pretends to be an observation after a block are left out.
    """
    lines = _without_leading_thought(text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    pieces: list[Piece] = []
    prose: list[str] = []
    thinking = False
    at = 0
    while at < len(lines):
        line = lines[at]
        if thought := _THOUGHT.match(line):
            after = _after_thought(lines, at, thought["tag"])
            if after is None:
                thinking = True
                break
            at, lines[after[0]] = after
            continue
        piece, at = _fence(lines, at)
        if piece is None:
            prose.append(line)
            continue
        _flush(prose, pieces)
        pieces.append(piece)
    _flush(prose, pieces)
    kept = _without_imitation(pieces)
    return Scan(pieces=tuple(kept), imitated=kept != pieces, thinking=thinking)


def complete(code: str) -> bool:
    """Say whether code is complete Python, top-level await allowed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the code's invalid escapes are the model's affair, not the host's
            compile(code, "<answer>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return False
    return True


def _without_leading_thought(text: str) -> str:
    # Some servers put the opening tag into the prompt, so that the answer holds the closing one alone.
    end = _THOUGHT_END.search(text)
    if end is None or re.search(r"<think(?:ing)?>", text[: end.start()], re.IGNORECASE):
        return text
    return text[end.end() :]


def _after_thought(lines: list[str], at: int, tag: str) -> tuple[int, str] | None:
    closing = re.compile(rf"</{tag}>", re.IGNORECASE)
    for number in range(at, len(lines)):
        if end := closing.search(lines[number]):
            return number, lines[number][end.end() :]
    return None


def _fence(lines: list[str], at: int) -> tuple[Piece | None, int]:
    """The fence that opens at this line and the line after it; without one, None and the next line."""
    if tag := _CODE_TAG.match(lines[at]):
        return _code_tag(lines, at, tag["rest"])
    opening = _OPEN.match(lines[at])
    if opening is None:
        return None, at + 1
    language = opening["language"].lower()
    fence = opening["fence"]
    closing = re.compile(rf"^ {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$")
    indent = opening["indent"]
    closings = (number for number in range(at + 1, len(lines)) if closing.match(lines[number]))
    ends = list(islice(closings, _TRIES))
    for end in ends if language in PYTHON or not language else ():
        if complete(_dedented(lines[at + 1 : end], indent)):
            return _closed(lines, at, end, language, indent, compiles=True), end + 1
    if ends:
        return _closed(lines, at, ends[0], language, indent, compiles=False), ends[0] + 1
    rest = Piece("\n".join(lines[at:]), language, _dedented(lines[at + 1 :], indent), closed=False)
    return rest, len(lines)


def _closed(lines: list[str], at: int, end: int, language: str, indent: str, *, compiles: bool) -> Piece:
    body = _dedented(lines[at + 1 : end], indent)
    return Piece("\n".join(lines[at : end + 1]), language, body, compiles=compiles)


def _dedented(lines: list[str], indent: str) -> str:
    return "\n".join(line.removeprefix(indent) for line in lines)


def _code_tag(lines: list[str], at: int, rest: str) -> tuple[Piece, int]:
    inside = [rest, *lines[at + 1 :]]
    ends = list(islice((number for number, line in enumerate(inside) if "</code>" in line), _TRIES))
    bodies = [("\n".join([*inside[:end], inside[end].partition("</code>")[0]]).strip("\n"), end) for end in ends]
    body, end = next((found for found in bodies if complete(found[0])), bodies[0] if bodies else (rest, -1))
    if end < 0:
        return Piece("\n".join(lines[at:]), "python", "\n".join(inside), closed=False), len(lines)
    after = at + end + 1
    return Piece("\n".join(lines[at:after]), "python", body, compiles=complete(body)), after


def _flush(prose: list[str], pieces: list[Piece]) -> None:
    if prose:
        pieces.append(Piece("\n".join(prose)))
        prose.clear()


def _without_imitation(pieces: list[Piece]) -> list[Piece]:
    kept: list[Piece] = []
    seen_code = False
    for piece in pieces:
        if not seen_code:
            kept.append(piece)
            seen_code = piece.labelled_python or piece.language == ""
            continue
        if piece.language in _IMITATED_FENCES:
            return kept
        if piece.fenced:
            kept.append(piece)
            continue
        lines = piece.text.split("\n")
        imitated = next((number for number, line in enumerate(lines) if _IMITATION.match(line)), None)
        if imitated is None:
            kept.append(piece)
            continue
        if before := "\n".join(lines[:imitated]).rstrip():
            kept.append(Piece(before))
        return kept
    return kept
