"""Compares what two lines say, by rules: no model, any script.

The rules see words, numbers, days, names, negation and what a text declares to hold no longer. They do not see meaning:
synonyms, translations and conclusions are beyond them, and those are what the model is asked for.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import sqrt
from typing import Literal

from memory_pipelines.stages.lines import normal, one_line
from memory_pipelines.stages.vocabulary import (
    CHANGES,
    CJK_DAY,
    CJK_DIGITS,
    CJK_NEGATORS,
    CJK_NUMBER,
    CJK_STOP,
    DAYS,
    DEPENDENT,
    FILLERS,
    JOINTS,
    NEGATORS,
    NUMBERS,
    PAST,
    REJECTIONS,
    STOP,
    TIME,
    TURNS,
)

ALIKE = 0.35
"""From this likeness on two texts may be about the same thing."""

_FEWEST = 2  # words that two texts must share before the rules call one covered by the other
_SHARE = 0.4  # of the longer text that the covered one must make up
_LONGEST = 2000  # characters compared; longer lines are told apart by their beginning

_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0640\u06d6-\u06ed\u200b-\u200f]")
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff"
_WORD = f"[^\\W\\d_{_UNSPACED}]"
_TOKEN = re.compile(
    r"(?P<name>[a-z]\w*://[^\s\"'<>]+|[\w-]+@[\w.-]+\w|(?<!\w)[a-z0-9_]+(?:[._]+[a-z0-9_]*[a-z_][a-z0-9_]*)+)"
    r"|(?P<number>(?<![^\W_])\d+(?:[.,:/-]\d+)*(?:%|(?![a-z])))"
    rf"|(?P<run>[{_UNSPACED}]+)"
    rf"|(?P<word>{_WORD}[\w\u0900-\u0dff]*?(?:'{_WORD}+)*(?![^\W{_UNSPACED}])|\d\w*?(?![^\W{_UNSPACED}]))"
)
_CAPITAL = re.compile(r"(?<=[^\s.!?:;¿¡\"'(\[-])\s+[\"'(]?([^\W\d_]*[A-ZÀ-ÖØ-Þ][\w]*)")
_SUFFIXES = re.compile(
    r"(?:mente|aciones|acion|ations?|ings?|edly|ied|ies|ed|ly|es|s|ando|iendo|ados?|adas?|idos?|idas?)$"
)
_ARABIC_LEAD = re.compile(r"^(?:وال|بال|كال|فال|لل|ال|و(?=\w{4}))")
_ARABIC_TAIL = re.compile(r"(?:ات|ون|ين|ها|هم|نا|ية|ة|ه|ي)$")


_ARABIC_AND = re.compile(r"^[وف](?=[\u0600-\u06ff]{3})")


@dataclass(frozen=True, kw_only=True)
class Sense:
    """What the rules see in a text."""

    words: tuple[str, ...]  # content words in order, as stems; pairs of characters where words are not spaced
    bag: frozenset[str]
    numbers: frozenset[str]  # also days and months
    names: frozenset[str]  # as stems: capitalised words, identifiers
    negative: bool
    past: bool  # "used to"
    rejected: frozenset[str]  # stems and numbers that are said to hold no longer
    change: bool  # says that it takes the place of something

    @cached_property
    def all(self) -> frozenset[str]:
        """Words and numbers together."""
        return self.bag | self.numbers

    @property
    def turns(self) -> tuple[frozenset[str], bool, bool]:
        """What must be equal in texts that say the same."""
        return self.numbers, self.negative, self.past


def fold(text: str) -> str:
    """One form for what is written in several ways: case, width, accents, Arabic vowel marks and letter forms, digits.

    Args:
        text: any text.

    Returns:
        The folded text, to compare and not to show.
    """
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    text = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", text)))
    text = text.replace("ى", "ي").replace("ؤ", "و").replace("ئ", "ي")
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)


_NEGATORS = frozenset(map(fold, NEGATORS))
_EMPTY = frozenset(map(fold, STOP | TIME)) | _NEGATORS
_DAYS = {fold(word): day for word, day in DAYS.items()}
_NUMBERS = {fold(word): number for word, number in NUMBERS.items()}


@lru_cache(maxsize=16384)
def sense(text: str) -> Sense:
    """Read a text as the rules see it.

    Args:
        text: a line or a fact, in any language.

    Returns:
        Its words, numbers, names and turns.
    """
    plain = one_line(text)[:_LONGEST]
    folded = FILLERS.sub(" ", fold(plain))
    change = bool(CHANGES.search(folded))
    past = bool(PAST.search(folded))
    rejected: set[str] = set()
    kept = folded
    for pattern in REJECTIONS:
        for found in reversed(list(pattern.finditer(kept))):
            words, numbers, _, _ = _tokens(found["off"])
            if words or numbers:
                rejected |= {*words, *numbers}
                around = kept[found.start() : found.start("off")] + " " + kept[found.end("off") : found.end()]
                kept = kept[: found.start()] + TURNS.sub(" ", around) + kept[found.end() :]
    words, numbers, names, negative = _tokens(kept)
    capitals = {stem(fold(found)) for found in _CAPITAL.findall(plain)}
    return Sense(
        words=tuple(words),
        bag=frozenset(words),
        numbers=frozenset(numbers),
        names=frozenset(capitals & set(words)) | names,
        negative=negative,
        past=past,
        rejected=frozenset(rejected) - frozenset(words) - frozenset(numbers),
        change=change or bool(rejected),
    )


def stem(word: str) -> str:
    """The part of a folded word that its forms share, roughly; English, Spanish and Arabic endings.

    Args:
        word: one folded word.

    Returns:
        The stem; words of other languages lose at most an ending that looks alike.
    """
    if "\u0600" <= word[:1] <= "\u06ff":
        bare = _ARABIC_LEAD.sub("", word) if len(word) > 4 else word
        return _ARABIC_TAIL.sub("", bare) if len(bare) > 3 else bare
    if len(word) <= 3 or not word.isascii():
        return word
    short = _SUFFIXES.sub("", word)
    if len(short) < 3:
        short = word
    bare = short.rstrip("aeiou")
    short = bare if len(bare) >= 3 else short
    return short[:-1] if len(short) > 3 and short[-1] == short[-2] else short


def likeness(one: Sense, other: Sense) -> float:
    """How much of their words two texts share.

    Args:
        one: a text.
        other: another.

    Returns:
        From 0 to 1: shared words over the geometric mean of both counts.
    """
    first, second = one.all, other.all
    if not first or not second:
        return 0.0
    return len(first & second) / sqrt(len(first) * len(second))


Relation = Literal["equal", "covered", "contrary", "corrected", "near", "apart"]
"""How a new text stands to a line, as far as rules can tell.

equal: the same words in the same order; covered: the line says it already; contrary: the same words turned round;
corrected: the new text declares that what the line says holds no longer; near: maybe the same thing; apart: not.
"""


def relate(new: Sense, line: Sense, *, preference: bool = False, correction: bool = False) -> Relation:
    """Say how a new text stands to a line.

    Args:
        new: the new text.
        line: the line.
        preference: whether the new text is a preference, so that a line that is more general covers it.
        correction: whether the new text is known to correct something.

    Returns:
        The relation; texts that differ in a number, a day, a name or a negation are never equal or covered.
    """
    shared = new.all & line.all
    if not differs(new, line):
        if new.words == line.words and new.all and new.rejected == line.rejected:
            return "equal"
        if covers(line, new) or (preference and covers(new, line)):
            return "covered"
    if _corrects(new, line, correction=correction):
        return "corrected"
    if new.bag and new.bag == line.bag and (new.negative, new.past) != (line.negative, line.past):
        return "contrary"
    return "near" if shared and likeness(new, line) >= ALIKE else "apart"


def differs(one: Sense, other: Sense, *, names: bool = True) -> bool:
    """Whether two texts differ in what makes them different statements, however alike they are.

    Args:
        one: a text.
        other: another.
        names: whether a name in only one of them counts.

    Returns:
        True when they differ in a number, a day, a negation or a name, or one takes back what the other says.
    """
    return (
        one.turns != other.turns
        or (names and bool((one.names - other.bag) | (other.names - one.bag)))
        or bool(one.rejected & other.all)
        or bool(other.rejected & one.all)
    )


def covers(wide: Sense, narrow: Sense) -> bool:
    """Whether all words of one text are in another, and are enough of it.

    Args:
        wide: the text that says more.
        narrow: the text that may be said by it.

    Returns:
        True when nothing of the narrow text's words is missing.
    """
    return narrow.bag <= wide.bag and len(narrow.bag) >= _FEWEST and len(narrow.bag) >= _SHARE * len(wide.bag)


def repeats(line: str, kept: str) -> bool:
    """Whether a line says nothing that another does not say, so that it may go.

    Args:
        line: the line that would go.
        kept: the line that would stay.

    Returns:
        True for the same line, and for one whose words are all in the other with nothing that sets them apart.
    """
    if normal(line) == normal(kept):
        return True
    one, other = sense(line), sense(kept)
    return not differs(one, other) and (covers(other, one) or (len(one.words) > 1 and one.words == other.words))


def clauses(text: str) -> tuple[str, ...]:
    """The statements that a line joins, where they can be told apart.

    Args:
        text: a line.

    Returns:
        The line itself when it makes one statement; else its parts, as they stand in it.
    """
    parts = [part.strip(" ,،，;；؛") for part in JOINTS.split(one_line(text))]
    whole = len(parts) > 1 and all(parts) and not any(DEPENDENT.match(fold(part)) for part in parts)
    return tuple(parts) if whole else (one_line(text),)


def remainder(line: str, new: str) -> str | None:
    """What of a line still holds when a new text takes back one of the statements that it joins.

    Args:
        line: the line that goes.
        new: the text that takes its place.

    Returns:
        The statement that is left, as it stands in the line; None when nothing is left, or more than one.
    """
    parts = clauses(line)
    own = sense(new)
    left = [part for part in parts if not (sense(part).all & own.rejected)]
    if len(parts) < 2 or len(left) != 1 or len(left) == len(parts) or len(sense(left[0]).bag) < _FEWEST:
        return None
    return None if relate(own, sense(left[0])) in ("equal", "covered", "corrected", "contrary") else left[0]


def _corrects(new: Sense, line: Sense, *, correction: bool) -> bool:
    """Whether the new text takes back something that the line says."""
    off = new.rejected & line.all
    shared = new.all & line.all
    if off and (shared or len(off) >= _FEWEST):
        return True
    # "From now on imperial units in my reports": most words as in the line, and another one in place of a missing one.
    return (
        (new.change or correction) and len(shared) >= _FEWEST and likeness(new, line) >= 0.5 and not line.all <= new.all
    )


def _tokens(folded: str) -> tuple[list[str], list[str], frozenset[str], bool]:
    words: list[str] = []
    numbers: list[str] = []
    names: set[str] = set()
    negations = 0
    for found in _TOKEN.finditer(folded):
        text = found[0]
        if found["name"]:
            words.append(text)
            names.add(text)
        elif found["number"]:
            numbers.append(text)
        elif found["run"]:
            negations += len(CJK_NEGATORS.findall(text))
            numbers += [f"weekday-{'一二三四五六日'.find(day) % 7 + 1}" for day in CJK_DAY.findall(text)]
            numbers += [_cjk_number(number) for number in CJK_NUMBER.findall(text)]
            text = CJK_NUMBER.sub(" ", CJK_DAY.sub(" ", CJK_NEGATORS.sub(" ", text)))
            for run in CJK_STOP.sub(" ", text).split():
                words += [run] if len(run) == 1 else [first + second for first, second in pairwise(run)]
        else:
            negations += text in _NEGATORS or text.endswith("n't")
            bare = text.split("'")[0]
            if text in _DAYS or text in _NUMBERS:
                numbers.append(_DAYS.get(text) or _NUMBERS[text])
            elif not ({text, bare, _ARABIC_AND.sub("", bare)} & _EMPTY or text.endswith("n't")):
                words.append(stem(bare))
                if any(char.isdigit() for char in bare):
                    names.add(stem(bare))
    return (
        [word for word in words if len(word) > 1 or not word.isascii()],
        numbers,
        frozenset(names),
        negations % 2 == 1,
    )


def _cjk_number(text: str) -> str:
    total, digit = 0, 0
    for char in text:
        if char == "十":
            total += (digit or 1) * 10
            digit = 0
        else:
            digit = CJK_DIGITS[char]
    return str(total + digit)
