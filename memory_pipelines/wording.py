"""Takes written speech apart, in any script: size, normal form, sentences, questions, and the words that carry meaning.

Pure; knows no records, so that both stages and guards can stand on it.
"""

import math
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

LEFT_OUT = re.compile(r"\n?\[\.\.\.[^\[\]\n]{0,60}\]\n?")
"""The mark that stands where text was left out; nothing that spans it was said in one piece."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_CJK_CHARS = re.compile(f"[{_CJK}]")
_LATIN_CHARS = re.compile("[\u0000-\u024f]")

_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s|$)|[。！？；][\"'”’」』）]*|[؟؛](?=\s|$)|\n+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|approx|incl|Mr|Mrs|Ms|Dr|Prof|St|Sr|Sra|Dra|Ud|p\.ej|a\.m|p\.m)$|^\s*\d{1,2}$",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？؟][\"'”’»)\]」』]*$")
_LIST_LINE = re.compile(r"\s*(?:[-*•]|\(?\w{1,2}[.)])\s+\S")


class Span(NamedTuple):
    """A stretch of a text, `text[start:end]`."""

    start: int
    end: int


def tokens_of(text: str) -> int:
    """Estimate how many tokens a text costs: 4 Latin characters, 2 of other alphabets or 1 CJK character a token."""
    if text.isascii():
        return math.ceil(len(text) / 4)
    cjk = len(_CJK_CHARS.findall(text))
    latin = len(_LATIN_CHARS.findall(text))
    return cjk + math.ceil(latin / 4 + (len(text) - cjk - latin) / 2)


def elide(text: str, *, tokens: int) -> str:
    """Leave out the middle of a text that costs more than some tokens, at white space where there is some near.

    Args:
        text: any text.
        tokens: what may be kept, as `tokens_of` estimates.

    Returns:
        The text, or its head and tail with a mark between them that `LEFT_OUT` finds.
    """
    cost = tokens_of(text)
    if cost <= tokens:
        return text
    kept = len(text) * tokens // cost
    head = _break_before(text, kept * 2 // 3)
    tail = _break_after(text, len(text) - (kept - kept * 2 // 3))
    return f"{text[:head].rstrip()}\n[... {tail - head:,} characters left out ...]\n{text[tail:].lstrip()}"


def _break_before(text: str, at: int) -> int:
    found = max(text.rfind(space, at - 80, at) for space in (" ", "\n"))
    return found if found > 0 else at


def _break_after(text: str, at: int) -> int:
    found = [place for space in (" ", "\n") if (place := text.find(space, at, at + 80)) >= 0]
    return min(found) if found else at


# Normal form

_SAME = str.maketrans(
    dict.fromkeys("‘’‚‛`´ʼ′", "'")
    | dict.fromkeys("“”„‟«»「」『』″", '"')
    | dict.fromkeys("‐‑‒–—―−", "-")
    | {"أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ة": "ه", "ـ": None}
)


def _fold(char: str) -> str:
    if char.isascii():
        return char.lower()
    if unicodedata.category(char) in ("Cf", "Mn", "Me"):
        return ""
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    parts = unicodedata.normalize("NFKD", char.translate(_SAME)).casefold()
    return "".join(part.translate(_SAME) for part in parts if not unicodedata.combining(part))


class Folded(NamedTuple):
    """A text in the form in which quotes are compared, and where each of its characters came from."""

    text: str
    origin: tuple[int, ...]  # index in the source of each character of `text`


def fold(text: str) -> Folded:
    """Bring a text to the form in which the same words are the same characters.

    Case, compatibility forms, accents, invisible characters, kinds of quotation mark and dash, and the amount of
    white space make no difference.
    """
    chars: list[str] = []
    origin: list[int] = []
    for index, char in enumerate(text):
        for part in " " if char.isspace() else _fold(char):
            if part == " " and (not chars or chars[-1] == " "):
                continue
            chars.append(part)
            origin.append(index)
    while chars and chars[-1] == " ":
        chars.pop()
        origin.pop()
    return Folded("".join(chars), tuple(origin))


def find_verbatim(quote: str, text: str) -> Span | None:
    """Find where a text says a quote, by whole words, whatever its case, spacing and typography.

    Args:
        quote: as somebody repeated it; marks of omission or quotation round it are ignored.
        text: where it should be.

    Returns:
        The span in `text`, None when it does not say that in one piece.
    """
    exact = text.find(quote.strip())
    if exact >= 0 and quote.strip() and not LEFT_OUT.search(quote) and not _cuts_word(text, exact, len(quote.strip())):
        return Span(exact, exact + len(quote.strip()))
    wanted = fold(quote).text.strip(" \"'.…")
    if not wanted:
        return None
    folded = fold(text)
    at = folded.text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        if not _cuts_word(folded.text, at, len(wanted)):
            start, last = folded.origin[at], folded.origin[end - 1] + 1
            while last < len(text) and unicodedata.combining(text[last]):
                last += 1
            return None if LEFT_OUT.search(text[start:last]) else Span(start, last)
        at = folded.text.find(wanted, at + 1)
    return None


def _cuts_word(text: str, at: int, length: int) -> bool:
    return _inside_word(text, at) or _inside_word(text, at + length)


def _inside_word(text: str, at: int) -> bool:
    if at <= 0 or at >= len(text):
        return False
    before, after = text[at - 1], text[at]
    return before.isalnum() and after.isalnum() and not (_CJK_CHARS.match(before) or _CJK_CHARS.match(after))


# Sentences and questions


def sentences(text: str) -> list[Span]:
    """Split a text into sentences, list items and lines; `finance.gold`, `3.5` and `e.g.` stay whole.

    Returns:
        Spans without white space at their ends, in order; none is blank.
    """
    spans: list[Span] = []
    start = 0
    for match in _END.finditer(text):
        if match[0].startswith(".") and len(match[0]) == 1 and _ABBREVIATION.search(text[start : match.start()]):
            continue
        spans.append(Span(start, match.end()))
        start = match.end()
    spans.append(Span(start, len(text)))
    return [span for span in (_trim(text, span) for span in spans) if span.start < span.end]


def _trim(text: str, span: Span) -> Span:
    part = text[span.start : span.end]
    return Span(span.start + len(part) - len(part.lstrip()), span.end - len(part) + len(part.rstrip()))


def is_question(sentence: str) -> bool:
    """Say whether a sentence ends as a question."""
    return _QUESTION.search(sentence.strip()) is not None


def question_of(text: str) -> str:
    """Return what a turn asks: its last questions, with what they cannot be understood without; empty if nothing.

    A question without a topic of its own ("Do you?") needs the sentence before it, one that offers choices the list
    round it.
    """
    spans = sentences(text)
    asked = [number for number, span in enumerate(spans) if is_question(text[span.start : span.end])]
    if not asked:
        return ""
    chosen = set(asked[-2:])
    for number in asked[-2:]:
        if number and not any(words(text[spans[number].start : spans[number].end])):
            chosen.add(number - 1)
    for step in (1, -1):
        number = asked[-1] + step
        while 0 <= number < len(spans) and _LIST_LINE.match(text[spans[number].start : spans[number].end]):
            chosen.add(number)
            number += step
    return elide(" ".join(text[spans[n].start : spans[n].end] for n in sorted(chosen)), tokens=120)


# Words that carry meaning

_EMPTY = frozenset(
    fold(
        """
    a about actually after all also always am an and any are as at be because been before being but by can could did do
    does doing don done for from get gets got had has have having he her here hers him his how i if in into is it its
    just like ll m me more most much my no not now of off on one only or our ours out over own please re really s she
    should so some such t than that the their them then there these they this those through to too under until up us
    user user's users ve very was we were what when where which while who why will with would you your yours
    el la los las un una unos unas de del al a en y o u que qué se su sus mi mis me te tu tus yo es son era fue ser
    estar está estoy ha he han con por para como más muy no sí si lo le les nos ya pero porque cuando usuario usuaria
    في من على الى عن ان انا هو هي هذا هذه ذلك التي الذي ما لا نعم لم لن قد كان كانت كل مع او و ثم المستخدم
        """
    ).text.split()
)
_CJK_EMPTY = frozenset("我你您他她它们的了是在有和与也都就要会能把被这那个吗呢吧啊请很不没")
_WORD = re.compile(r"[^\W_]+(?:[._/-][^\W_]+)*")
_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|enero|febrero|marzo|abril|mayo"
    "|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|يناير|فبراير|مارس|ابريل|مايو|يونيو|يوليو|اغسطس|سبتمبر"
    "|اكتوبر|نوفمبر|ديسمبر"
)
_DATE = re.compile(
    r"\d{4}-\d\d(?:-\d\d)?(?:\s*-\s*\d{4}-\d\d-\d\d)?|\d{4}年(?:\d{1,2}月)?(?:\d{1,2}[日号])?|\d{1,2}月\d{1,2}[日号]"
    rf"|(?<!\w)\d{{1,2}}(?:st|nd|rd|th)?(?: of| de)? (?:{_MONTHS})(?:,?(?: de| of)? \d{{4}})?(?!\w)"
    rf"|(?<!\w)(?:{_MONTHS}) (?:\d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|(?:de |of )?\d{{4}})(?!\w)"
    r"|(?<!\w)(?:19|20)\d\d(?!\w)"
)
_ENDINGS = ("ingly", "edly", "ings", "ing", "ied", "ies", "ed", "es", "ly", "s")


def words(text: str) -> Iterator[str]:
    """Yield the words of a text that carry meaning: folded, without endings, CJK as pairs of characters.

    Dates are left out: a model resolves them from relative ones, so that they need not have been said.
    """
    for match in _WORD.finditer(without_dates(text).replace("用户", " ")):
        word = match[0]
        if _CJK_CHARS.search(word):
            yield from _pairs(word)
        elif word not in _EMPTY and (len(word) > 1 or word.isdigit()):
            yield stem(word)


def without_dates(text: str) -> str:
    """Return a text folded and without its dates."""
    return _DATE.sub(" ", fold(text).text)


def _pairs(word: str) -> Iterator[str]:
    for run in re.split(f"([{_CJK}]+)", word):
        if not _CJK_CHARS.match(run):
            if run:
                yield run
            continue
        for part in "".join(" " if char in _CJK_EMPTY else char for char in run).split():
            if len(part) == 1:
                yield part
            else:
                yield from (part[i : i + 2] for i in range(len(part) - 1))


def stem(word: str) -> str:
    """Cut the ending of a folded word lightly, so that most forms of it meet."""
    if "\u0600" <= word[0] <= "\u06ff":
        for prefix in ("وال", "بال", "لل", "ال"):
            if word.startswith(prefix) and len(word) - len(prefix) >= 3:
                return word[len(prefix) :]
        return word[1:] if word[0] in "ايتن" and len(word) > 3 else word
    if not word.isalpha():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
