"""Finds candidate facts by fixed rules, without a language model: scored sentences of what the actor said.

A sentence is kept as it was said, but for what carries nothing at its start, and with dates added. Turning "I" into
"User" was left out: the verb must follow it, in every language, and a clumsy rewrite reads worse than what was said.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory_pipelines.records import Candidate, FactKind, Turn
from memory_pipelines.signs import REDACTED, is_live_value, looks_like_instruction
from memory_pipelines.stages.languages import TOPICS, Language, language, language_of
from memory_pipelines.stages.times import has_relative_time, resolve
from memory_pipelines.wording import LEFT_OUT, Span, is_question, question_of, sentences, words

RULES_VERSION = "2"
"""Changes when the rules find something else in the same conversation."""

MOST = 12
"""Candidates from one session."""

THRESHOLD = 2.5
_SHORTEST, _LONGEST = 4, 600  # characters of a candidate
_FEW_WORDS = 4
_ANSWER_WORDS = 8
_ALIKE = 0.8  # shared share of the words of both

_CUES = ("first", "second", "likes", "identity", "past", "plan", "lasting", "correction", "defines", "habit")
_VAGUE_TOPICS = ("preferences", "plans", "procedures")  # say nothing of what a sentence is about
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_START = re.compile(r"[\s,.;:!¡。，、；：！،؛-]*")
_PROPER = re.compile(r"(?<=[a-zà-ÿ,] )[A-ZÀ-Ý][\w'-]+|\w[._/]\w|[«“\"][^«»“”\"]{2,40}[»”\"]")
_STEP_LINE = re.compile(r"\s*(?:\d{1,2}[.)、]|[-*•])\s+\S")


@dataclass(frozen=True)
class _Found:
    """A candidate on its way."""

    candidate: Candidate
    turn: Turn
    score: float
    bag: frozenset[str]


def propose(turns: Sequence[Turn], *, context: Sequence[Turn] = (), most: int = MOST) -> list[Candidate]:
    """Find candidate facts in what the actor says.

    Args:
        turns: new ones, of one or more sessions.
        context: said before; only for the question that a short answer belongs to.
        most: candidates from one session.

    Returns:
        The best ones, in the order in which they were said.
    """
    found: list[_Found] = []
    asked = _last_question(context, "")
    for turn in turns:
        if turn.speaker == "other":
            asked = question_of(turn.text)
        if turn.speaker != "actor":
            continue
        for one in (*_of_answer(turn, asked), *_of_turn(turn)):
            if not any(_alike(one.bag, other.bag) for other in found):
                found.append(one)
        asked = ""
    kept = [one for session in dict.fromkeys(turn.session_id for turn in turns) for one in _best(found, session, most)]
    return [one.candidate for one in found if one in kept]


def _last_question(context: Sequence[Turn], otherwise: str) -> str:
    return next((question_of(turn.text) for turn in reversed(context) if turn.speaker == "other"), otherwise)


def _best(found: Sequence[_Found], session_id: str, most: int) -> list[_Found]:
    own = [one for one in found if one.turn.session_id == session_id]
    return sorted(own, key=lambda one: -one.score)[:most]


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    if any(char.isdigit() for word in one ^ other for char in word):
        return False  # "after 10 minutes, not 15" corrects what it is so like
    return bool(one) and len(one & other) >= _ALIKE * len(one | other)


def _of_turn(turn: Turn) -> Iterator[_Found]:
    text = _FENCE.sub(_blank, _QUOTED_LINE.sub(_blank, turn.text))
    for span in _units(text):
        sentence = text[span.start : span.end]
        code = language_of(sentence)
        if code is None or not _may_be_kept(sentence):
            continue
        cues = language(code)
        said = _without_filler(sentence, cues)
        score, kind = _judge(said, sentence, cues)
        if score >= THRESHOLD and len(said) >= _SHORTEST:
            yield _found(turn, said, sentence, kind, score, cues)


def _of_answer(turn: Turn, asked: str) -> Iterator[_Found]:
    """A few words that answer a question about the person say something only together with it."""
    code = language_of(turn.text)
    if not asked or code is None or len(turn.text.split()) > _ANSWER_WORDS or is_question(turn.text):
        return
    cues = language(code)
    answer = _without_filler(turn.text, cues)
    if cues.answered.search(_plain(asked)) and answer and _may_be_kept(f"{asked} {turn.text}") and any(words(answer)):
        yield _found(turn, f"{asked} {answer}", turn.text, "fact", THRESHOLD, cues)


def _found(turn: Turn, said: str, quote: str, kind: FactKind, score: float, cues: Language) -> _Found:
    plain = _plain(said)
    topic = "procedures" if kind == "procedure" else _topic(plain, cues)
    text = resolve(said, turn.said_at)
    return _Found(Candidate(text=text, kind=kind, quote=quote, topic=topic), turn, score, frozenset(words(said)))


def _topic(plain: str, cues: Language) -> str:
    hits = {name: len(cue.findall(plain)) for name, cue in cues.topics.items()}
    best = max(hits, key=lambda name: hits[name])  # the first of equals: the more specific one
    return best if hits[best] else TOPICS[-1]


def _may_be_kept(sentence: str) -> bool:
    return not (
        len(sentence) > _LONGEST
        or is_question(sentence)
        or REDACTED in sentence
        or LEFT_OUT.search(sentence)
        or is_live_value(sentence)
        or looks_like_instruction(sentence)
    )


def _blank(match: re.Match[str]) -> str:
    """White space of the same length, with a line end, so that positions stay and no sentence runs across."""
    return " " * (len(match[0]) - 1) + "\n" if match[0] else ""


def _units(text: str) -> Iterator[Span]:
    """Sentences, with the steps of a procedure as one."""
    spans = sentences(text)
    number = 0
    while number < len(spans):
        first = last = number
        while last + 1 < len(spans) and _continues(text, spans, last + 1):
            last += 1
        if last > first and _may_be_kept(text[spans[first].start : spans[last].end]):
            yield Span(spans[first].start, spans[last].end)
            number = last + 1
        else:
            yield spans[number]
            number += 1


def _continues(text: str, spans: Sequence[Span], number: int) -> bool:
    before, here = (text[span.start : span.end] for span in spans[number - 1 : number + 1])
    if _STEP_LINE.match(here):
        return before.endswith((":", "：")) or _STEP_LINE.match(before) is not None
    code = language_of(here)
    if code is None or is_question(here):
        return False
    step = language(code).step
    return step.match(_plain(here)) is not None and (step.search(_plain(before)) is not None or before.endswith(":"))


def _without_filler(sentence: str, cues: Language) -> str:
    """Cut greetings, thanks and connectives from the start, as long as something follows them."""
    rest = sentence
    while True:
        plain = _plain(rest)
        match = cues.filler.match(plain) or cues.courtesy.match(plain)
        if match is None:
            return rest
        end = _START.match(rest, match.end())
        cut = end.end() if end else match.end()
        if cues.courtesy.match(plain) and cut == match.end() + 1 and rest[match.end()] == " ":
            return rest  # "good coffee", "thanks to her": no greeting
        if cut >= len(rest):
            return ""
        rest = rest[cut:]


def _plain(text: str) -> str:
    lowered = "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
    return lowered.replace("’", "'").replace("ʼ", "'")


def _judge(said: str, sentence: str, cues: Language) -> tuple[float, FactKind]:
    """Score what a sentence has of a lasting fact, and say which kind it would be."""
    plain = _plain(said)
    bag = list(words(said))
    has = {
        name: getattr(cues, name).search(plain) is not None
        for name in (
            "first",
            "second",
            "likes",
            "identity",
            "past",
            "plan",
            "lasting",
            "correction",
            "defines",
            "habit",
        )
    }
    steps = len(cues.step.findall(plain))
    if cues.asks.match(plain) and not (has["lasting"] or has["correction"] or steps > 1):
        return 0, "fact"
    score = 3.0 * has["lasting"] + 3.0 * has["correction"] + 3.0 * has["defines"] + 4.0 * (steps > 1)
    if has["first"]:
        score += 1 + 2.0 * has["likes"] + 2.0 * has["identity"] + has["past"] + has["plan"]
    score += has["habit"] + (has_relative_time(said) or re.search(r"\d", said) is not None)
    score += _PROPER.search(said) is not None
    score += has["first"] and any(cues.topics[name].search(plain) for name in cues.topics if name not in _VAGUE_TOPICS)
    score -= 2.0 * (has["second"] and not has["first"] and not has["lasting"]) + (has["second"] and has["first"])
    score -= (cues.vague.match(plain) is not None) + 0.5 * (sentence.endswith(("!", "！")) and not has["likes"])
    score -= 2.0 * (cues.chatter.search(plain) is not None)
    score -= 2.0 * (len(bag) < 2) + (len(bag) < _FEW_WORDS and not (has["lasting"] or has["defines"] or has["likes"]))
    if steps > (2 if has["lasting"] else 1):  # "answer me first, then explain" is a wish
        return score, "procedure"
    if has["correction"]:
        return score, "correction"
    return score, "preference" if has["likes"] or has["lasting"] else "fact"
