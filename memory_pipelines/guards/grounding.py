"""Finds the evidence of candidates in what the actor said, and drops what has none. Pure.

Whatever a model says, a fact needs words of the actor's own: what another person, an agent or a tool said supports
nothing, and a quote that the model gives is only a hint where to look.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rapidfuzz import fuzz

from memory_pipelines.records import Candidate, Turn, Window
from memory_pipelines.signs import REDACTED, is_live_value, looks_like_instruction
from memory_pipelines.wording import (
    LEFT_OUT,
    Span,
    find_verbatim,
    fold,
    is_question,
    question_of,
    sentences,
    without_dates,
    words,
)

SUPPORT = 0.5
"""Share of a candidate's words that the evidence must hold."""

SUPPORT_CJK = 0.35
"""The same for Chinese, Japanese and Korean, where pairs of characters that bridge two words count as words too."""

MARGIN = 0.1
"""So much better may the other party's words fit before the statement counts as theirs."""

LONGEST = 600
"""Characters of a fact; procedures may take twice as much."""

_NEAR = 84  # likeness of two forms of a word, 0 to 100
_NEAR_FROM = 4  # letters; shorter words must be equal
_SAME_TEXT = 96  # likeness of two candidates that say the same
_HEAVY = 2.0  # weight of names and numbers
_SECOND_SHARE = 1 / 3  # what the best turn must hold before a second one may help
_SHORT_ANSWER_WORDS = 4
_LONGEST_RUN = 8  # sentences of one quote
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_NO = re.compile(r"^\W*(?:no|nope|nah|never|not|nunca|tampoco|不|没|别|لا|كلا|ليس|لم)(?!\w{3})")
_COURTESY = """
    thank thanks you thx so much a lot cheers lol haha hi hello hey bye wow cool nice great ok okay
    gracias hola adios vale 谢谢 你好 再见 哈哈 好的 شكرا لك مرحبا
"""
_NO_ANSWER = frozenset(_COURTESY.split())
_NEGATION = re.compile(
    r"(?<!\w)(?:no|not|never|none|without|dislikes?|hates?|avoids?|isn't|doesn't|don't|didn't|won't|can't|wasn't|nor|nunca|sin"
    r"|tampoco|ningun\w*)(?!\w)|不|没|别|(?<!\w)(?:لا|ليس|لم|لن|بدون)(?!\w)"
)
_FIGURE = re.compile(r"\d+")
_GROUPED = re.compile(r"(?<=\d)[,.\u066c ](?=\d{3}(?!\d))")  # between thousands
_CJK_WORD = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_NUMBER_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve",
    "un dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "一 二 三 四 五 六 七 八 九 十 十一 十二",
    "واحد اثن ثلاث اربع خمس ست سبع ثمان تسع عشر",
    "a twice triple",
    "first second third fourth fifth",
)
_NUMBERS = {word: str(n) for line in _NUMBER_WORDS for n, word in enumerate(line.split(), start=1)} | {"两": "2"}
_TOKEN = re.compile(r"\w+")
_NAME = re.compile(r"(?<=[^\s.!?:;\"“(])\s+([A-ZÀ-Þ][\w'-]+)|(?<![\w])(\w+[._/]\w[\w._/]*|[A-Z]{2,})")


@dataclass(frozen=True)
class Grounding:
    """A candidate with its evidence."""

    candidate: Candidate
    turn: Turn
    quote: str  # a stretch of the turn's text


@dataclass(frozen=True)
class Grounded:
    """What became of the candidates of a window."""

    facts: tuple[Grounding, ...] = ()
    dropped: Counter[str] = field(default_factory=Counter[str])  # reason to number


@dataclass(frozen=True)
class _Text:
    """A text and the words in it."""

    text: str
    bag: frozenset[str]


@dataclass(frozen=True)
class _Evidence:
    """What a turn holds for a candidate."""

    turn: Turn
    quote: str
    share: float


def ground(candidates: Iterable[Candidate], window: Window, *, longest: int = LONGEST) -> Grounded:
    """Find each candidate's evidence in the actor's own new turns.

    Args:
        candidates: as a model or the rules gave them.
        window: where they were found.
        longest: characters of a fact; procedures may take twice as much.

    Returns:
        The candidates that stand, with turn and verbatim quote, and the reasons for which the others were dropped:
        empty, question, too_long, secret, instruction, live_value, duplicate, other_party, unsupported.
    """
    own = _OwnWords(window)
    kept: list[Grounding] = []
    dropped: Counter[str] = Counter()
    for candidate in candidates:
        reason = _unfit(candidate, longest) or _repeats(candidate, kept)
        found = None if reason else own.find(candidate)
        if isinstance(found, _Evidence):
            reason = _taints(candidate, found.quote)
        elif found:
            reason = found
        if reason:
            dropped[reason] += 1
        elif isinstance(found, _Evidence):
            kept.append(Grounding(candidate, found.turn, found.quote))
    return Grounded(tuple(kept), dropped)


def _unfit(candidate: Candidate, longest: int) -> str | None:
    text = candidate.text
    if not any(char.isalnum() for char in text):
        return "empty"
    if is_question(text):
        return "question"
    if len(text) > longest * (2 if candidate.kind == "procedure" else 1):
        return "too_long"
    if REDACTED in text.lower():
        return "secret"
    if looks_like_instruction(text):
        return "instruction"
    return "live_value" if is_live_value(text) else None


def _taints(candidate: Candidate, quote: str) -> str | None:
    if looks_like_instruction(quote):
        return "instruction"
    numbered = any(char.isdigit() for char in candidate.text)
    return "live_value" if numbered and is_live_value(quote) else None


def _repeats(candidate: Candidate, kept: Sequence[Grounding]) -> str | None:
    text = fold(candidate.text).text
    numbers = re.findall(r"\d+", text)
    for one in kept:
        other = fold(one.candidate.text).text
        if text == other or (fuzz.ratio(text, other) >= _SAME_TEXT and numbers == re.findall(r"\d+", other)):
            return "duplicate"
    return None


class _OwnWords:
    """The window, read once for all candidates."""

    def __init__(self, window: Window) -> None:
        self._turns = [turn for turn in window.turns if turn.speaker == "actor"]
        self._texts = {id(turn): _text(_QUOTED_LINE.sub("", turn.text)) for turn in self._turns}
        self._names = frozenset(
            word for turn in window.turns if turn.speaker == "actor" and turn.name for word in words(turn.name)
        )
        everything = (*window.context, *window.turns)
        self._others = [_text(turn.text) for turn in everything if turn.speaker in ("other", "tool")]
        self._asked = _questions(everything)
        self._figures = _figures(" ".join([*(turn.text for turn in self._turns), *self._asked.values()]), told=True)

    def find(self, candidate: Candidate) -> _Evidence | str:
        """Return the evidence, or why there is none."""
        weights = self._weights(candidate.text)
        if not weights:
            return "empty"
        if not _figures(candidate.text) <= self._figures:
            return "unsupported"
        quoted = self._quoted(candidate, weights)
        if quoted is not None:
            return quoted
        needed = SUPPORT_CJK if all(_CJK_WORD.match(word) for word in weights) else SUPPORT
        best = max((self._evidence(turn, candidate, weights) for turn in self._turns), key=_share, default=None)
        others = [_covered(weights, text.bag) for text in self._others]
        others.sort(key=lambda covered: -sum(covered.values()))
        other = _weighed(weights, *others[:2])
        own = best.share if best else 0.0
        if best is not None and needed > own >= _SECOND_SHARE:
            own = self._with_second(best, weights)
        if best is None or own < needed:
            return "other_party" if other >= needed else "unsupported"
        return "other_party" if other - own > MARGIN else best

    def _weights(self, text: str) -> dict[str, float]:
        names = {word for match in _NAME.finditer(text) for word in words(match[1] or match[2])}
        weights = {
            word: _HEAVY if word in names or any(char.isdigit() for char in word) else 1.0
            for word in words(text)
            if word not in self._names
        }
        return weights or dict.fromkeys(words(text), 1.0)

    def _quoted(self, candidate: Candidate, weights: dict[str, float]) -> _Evidence | None:
        """Trust a quote that is there word for word and says something by itself."""
        if not candidate.quote:
            return None
        for turn in self._turns:
            span = find_verbatim(candidate.quote, turn.text)
            if span is None or not _own(turn.text, span):
                continue
            quote = turn.text[span.start : span.end]
            bag = set(words(quote))
            if len(bag) > 1 or _covered(weights, frozenset(bag)):
                return _Evidence(turn, quote, 1.0)
            answer = self._answer(turn, candidate, weights)
            if answer is not None and answer.share >= SUPPORT:
                return answer
        return None

    def _evidence(self, turn: Turn, candidate: Candidate, weights: dict[str, float]) -> _Evidence:
        answer = self._answer(turn, candidate, weights)
        share = _weighed(weights, _covered(weights, self._texts[id(turn)].bag))
        if answer is not None and answer.share > share:
            return answer
        return _Evidence(turn, _shortest(turn.text, weights, share), share) if share else _Evidence(turn, "", 0.0)

    def _answer(self, turn: Turn, candidate: Candidate, weights: dict[str, float]) -> _Evidence | None:
        """A short answer says what was asked: "Metric or imperial?" - "The first"."""
        asked = self._asked.get(id(turn), "")
        bag = self._texts[id(turn)].bag
        said = fold(turn.text).text
        if not asked or len(bag) > _SHORT_ANSWER_WORDS or _NO_ANSWER.issuperset(_TOKEN.findall(said)):
            return None
        if _NO.match(said) and not _NEGATION.search(fold(candidate.text).text):
            return None
        share = _weighed(weights, _covered(weights, frozenset(words(asked)) | bag))
        return _Evidence(turn, turn.text.strip(), share)

    def _with_second(self, best: _Evidence, weights: dict[str, float]) -> float:
        """What the best turn holds together with another one of the actor's."""
        first = _covered(weights, self._texts[id(best.turn)].bag)
        rest = [_covered(weights, text.bag) for text in self._texts.values()]
        return max(_weighed(weights, first, other) for other in rest)


def _questions(turns: Sequence[Turn]) -> dict[int, str]:
    """What each turn of the actor answers: the question of the other party just before it in its session."""
    asked: dict[int, str] = {}
    last = ""
    session = ""
    for turn in turns:
        if turn.session_id != session:
            last, session = "", turn.session_id
        if turn.speaker == "other":
            last = question_of(turn.text)
        elif turn.speaker == "actor":
            asked[id(turn)] = last
            last = ""
    return asked


def _figures(text: str, *, told: bool = False) -> frozenset[str]:
    """Return the numbers of a text, dates left out; with `told`, also those that are written as words."""
    folded = _GROUPED.sub("", without_dates(text))
    figures = set(_FIGURE.findall(folded))
    if told:
        said = set(_TOKEN.findall(folded))
        figures |= {n for word, n in _NUMBERS.items() if word in said or (not word.isascii() and word in folded)}
    return frozenset(figures)


def _text(text: str) -> _Text:
    return _Text(text, frozenset(words(text)))


def _share(evidence: _Evidence) -> float:
    return evidence.share


def _covered(weights: dict[str, float], bag: frozenset[str]) -> dict[str, float]:
    return {word: weight for word, weight in weights.items() if word in bag or _near(word, bag)}


def _near(word: str, bag: Iterable[str]) -> bool:
    if len(word) < _NEAR_FROM or not word.isalpha():
        return False
    return any(
        len(other) >= _NEAR_FROM and (fuzz.ratio(word, other) >= _NEAR or _same_root(word, other)) for other in bag
    )


def _same_root(word: str, other: str) -> bool:
    shorter, longer = sorted((word, other), key=len)
    return len(shorter) > _NEAR_FROM and longer.startswith(shorter)


def _weighed(weights: dict[str, float], *covered: dict[str, float]) -> float:
    total = sum(weights.values())
    return sum({word: weight for part in covered for word, weight in part.items()}.values()) / total if total else 0.0


def _own(text: str, span: Span) -> bool:
    """Say whether a stretch is the actor's own and not a line quoted from somebody else."""
    return not any(match.start() < span.end and span.start < match.end() for match in _QUOTED_LINE.finditer(text))


def _shortest(text: str, weights: dict[str, float], share: float) -> str:
    """Return the shortest run of whole sentences that holds nearly all that the turn holds for a candidate."""
    spans = [span for span in sentences(text) if _own(text, span)]
    held = [_covered(weights, frozenset(words(text[span.start : span.end]))) for span in spans]
    for length in range(1, min(len(spans), _LONGEST_RUN) + 1):
        runs = [
            (_weighed(weights, *held[first : first + length]), Span(spans[first].start, spans[first + length - 1].end))
            for first in range(len(spans) - length + 1)
        ]
        fit = [(got, span) for got, span in runs if _whole(text, span)]
        got, span = max(fit, key=lambda run: run[0], default=(0.0, Span(0, 0)))
        if got and got >= min(share, max(SUPPORT, share - MARGIN)):
            return text[span.start : span.end]
    best = max(range(len(spans)), key=lambda number: sum(held[number].values()), default=None)
    return "" if best is None else text[spans[best].start : spans[best].end]


def _whole(text: str, span: Span) -> bool:
    return not LEFT_OUT.search(text, span.start, span.end) and _own(text, span)
