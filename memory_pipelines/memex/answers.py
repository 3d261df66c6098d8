"""Reads a model's answer: which code to run, or why there is none."""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import json_repair

from memory_pipelines.gateway.base import Finish
from memory_pipelines.memex.fences import Piece, Scan, scan
from memory_pipelines.text import clean_json

Problem = Literal["malformed", "truncated", "empty", "repetition"]
"""Why an answer holds nothing that can be run."""

Origin = Literal["model", "wrapped", "repaired"]
"""Who wrote a block: the model, or the host around the model's JSON, which was valid or had to be repaired."""

_TAIL = 1_600  # characters at the end of an answer in which a loop is looked for
_LONGEST_CYCLE = 400  # characters; four rounds of it fit into the tail
_ROUNDS = 4
_STARTS = 50  # places at which JSON is tried inside prose; an answer with more brackets is not JSON in prose
_CANNOT = r"(?:can't|can ?not|couldn't|could not|won't|will not|(?:'m| am) (?:not able|unable))"
_WORK = r"(?:help|assist|comply|fulfil+|participate|engage|do (?:this|that)|process (?:this|that|the|your))"
_REFUSAL = re.compile(
    r"^\W*(?:(?:i'm |i am )?(?:very |so )?sorry|i apologi[sz]e|unfortunately|as an ai\b[^,.]*)?[\s,.;:!—-]*(?:but )?"
    rf"(?:i|we) ?{_CANNOT} (?:to )?{_WORK}\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Answer:
    """What an answer comes to."""

    kept: str  # the answer for the history: without thoughts and imitated observations
    blocks: tuple[str, ...] = ()  # code to run, in order
    origin: Origin = "model"
    problem: Problem | None = None  # set when there are no blocks
    refused: bool = False
    cut: bool = False  # a further block was cut off and is not among `blocks`
    imitated: bool = False  # what pretended to be an observation was dropped


def read_answer(
    text: str, finish: Finish, *, bound: bool = False, fits: Callable[[object], bool] | None = None
) -> Answer:
    """Find the code in an answer.

    Args:
        text: the model's answer.
        finish: why the model stopped.
        bound: the answer should be JSON; Python fences are taken all the same.
        fits: whether a JSON value is of the wanted type; finds it among several.

    Returns:
        Blocks to run; a problem when there are none; or a refusal. An answer that ended at the token limit inside a
        block or a value is truncated, however well it could be mended.
    """
    found = scan(text)
    kept = found.text
    if finish == "refusal":
        return Answer(kept, refused=True)
    code = _code(found, bound=bound, truncated=finish == "length")
    if code.blocks:
        return code
    if bound and not code.cut:
        value, origin = _value(found, finish, fits)
        if origin is not None:
            # Small models write broken escapes of emoji; half a character is no reason to lose an answer.
            return Answer(kept, blocks=(f"submit({clean_json(value)!r})",), origin=origin)
    if _refuses(found, finish):
        return Answer(kept, refused=True)
    return Answer(kept, problem=_problem(found, finish, cut=code.cut, bound=bound), imitated=found.imitated)


def repeats(text: str) -> bool:
    """Say whether a text ends in a loop: the same stretch at least four times, numbers aside.

    Args:
        text: an answer.

    Returns:
        True for a loop of some length; short runs such as a rule of dashes are none.
    """
    tail = re.sub(r"\d+", "0", re.sub(r"\s+", " ", text[-4 * _TAIL :]))[-_TAIL:]
    if len(set(tail)) < 3:
        return len(tail) >= 200
    for cycle in range(3, _LONGEST_CYCLE + 1):
        length = max(_ROUNDS * cycle, 120)
        if length > len(tail):
            break
        end = tail[-length:]
        if end[cycle:] == end[:-cycle]:
            return True
    return False


def _code(found: Scan, *, bound: bool, truncated: bool) -> Answer:
    pieces = [piece for piece in found.fences if piece.labelled_python]
    if bound:
        # A fence called Python that holds nothing but JSON is the answer in another dress.
        pieces = [piece for piece in pieces if not _is_json(piece.body)]
    elif not pieces:
        pieces = [piece for piece in found.fences if piece.language == ""]
    # At the token limit, a fence that closes on incomplete code closed inside one of its strings.
    whole = [piece for piece in pieces if piece.closed and (piece.compiles or not truncated)]
    blocks = tuple(piece.body for piece in whole if piece.body.strip())
    return Answer(found.text, blocks=blocks, cut=len(whole) < len(pieces), imitated=found.imitated)


def _problem(found: Scan, finish: Finish, *, cut: bool, bound: bool) -> Problem:
    text = found.text
    if (finish == "length" or cut) and repeats(text):
        return "repetition"
    if finish == "length" or cut or found.thinking:
        return "truncated"
    if not text:
        return "empty"
    if bound and _unfinished(text):
        return "repetition" if repeats(text) else "truncated"
    return "malformed"


def _refuses(found: Scan, finish: Finish) -> bool:
    return finish != "length" and not found.fences and bool(_REFUSAL.match(found.prose[:300].replace("’", "'")))


def _value(found: Scan, finish: Finish, fits: Callable[[object], bool] | None) -> tuple[Any, Origin | None]:
    """The JSON value of an answer and where it comes from, or None for the latter."""
    text = found.text
    try:
        return loads(text), "wrapped"
    except ValueError:
        pass
    values = [loads(piece.body) for piece in found.fences if piece.closed and _is_json(piece.body)]
    if finish != "length" and not values:
        values = list(_inside(text))
    if values:
        good = [value for value in values if fits is None or fits(value)] or values[-1:]
        # Of several that would do, none is taken: each alone might be only a part of what the model meant.
        return (good[0], "wrapped") if all(value == good[0] for value in good) else (None, None)
    if finish == "length":
        return None, None
    return _repaired([*(piece.body for piece in found.fences if _may_hold_json(piece)), text])


def loads(text: str, *, raw_breaks: bool = False) -> Any:
    """Read strict JSON, no more: without NaN and infinities, which have no Python literal.

    Args:
        text: JSON.
        raw_breaks: strings may hold line breaks and tabs as they are.

    Returns:
        The value.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
    """
    try:
        return (_RAW_DECODER if raw_breaks else _DECODER).decode(text.strip())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is too large")
    return number


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
_RAW_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, strict=False)


def _is_json(text: str) -> bool:
    try:
        loads(text)
    except ValueError:
        return False
    return True


def _may_hold_json(piece: Piece) -> bool:
    return piece.closed and not piece.labelled_python


def _inside(text: str) -> Iterator[Any]:
    """Objects and lists in the middle of prose.

    A value inside another one that did not parse is never taken for the answer: that would lose the rest silently.
    """
    at = 0
    for _ in range(_STARTS):
        start = _first_bracket(text, at)
        if start < 0 or not _balanced(text[:start]):
            return
        try:
            value, at = _DECODER.raw_decode(text, start)
        except ValueError:
            at = start + 1
            continue
        except RecursionError:
            return
        yield value


def _repaired(sources: list[str]) -> tuple[Any, Origin | None]:
    for source in sources:
        part = _bracketed(source)
        if not part or _unfinished(part):
            continue
        try:
            mended = json.dumps(json_repair.loads(part, skip_json_loads=True), allow_nan=False)
            value = loads(mended)
        except (ValueError, TypeError, RecursionError):
            continue
        if mended[0] == part[0] and mended not in ("{}", "[]"):
            return value, "repaired"
    return None, None


def _unfinished(text: str) -> bool:
    """Whether JSON-like text stops short of its end: repairing it would close brackets over what is missing.

    Brackets inside strings count too. That can call a finished text unfinished, hardly ever the other way round.
    """
    part = _bracketed(text)
    if not part:
        return "{" in text or "[" in text
    return not _balanced(part) or not part.endswith("}" if part[0] == "{" else "]")


def _bracketed(text: str) -> str:
    start = _first_bracket(text, 0)
    end = max(text.rfind("}"), text.rfind("]")) + 1
    return text[start:end] if start >= 0 else ""


def _balanced(text: str) -> bool:
    return text.count("{") == text.count("}") and text.count("[") == text.count("]")


def _first_bracket(text: str, at: int) -> int:
    found = [place for place in (text.find("{", at), text.find("[", at)) if place >= 0]
    return min(found, default=-1)
