"""Cue words by which the rules see, without a language model, what a sentence is about: one data file a language.

Adding a language is adding a file to `cues/` and its script, or its commonest words, here.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

TOPICS = (
    "preferences",
    "work",
    "home",
    "travel",
    "health",
    "people",
    "data",
    "procedures",
    "food",
    "hobbies",
    "education",
    "plans",
    "about",
)
"""Where a fact may belong; the last one when nothing else fits."""


@dataclass(frozen=True, kw_only=True)
class Language:
    """The cues of one language; each pattern finds one kind of hint in a sentence in lower case."""

    first: re.Pattern[str]  # the speaker
    second: re.Pattern[str]  # who is spoken to
    likes: re.Pattern[str]  # a preference
    identity: re.Pattern[str]  # who somebody is, where they live and work, whom they have
    past: re.Pattern[str]  # something happened
    plan: re.Pattern[str]
    lasting: re.Pattern[str]  # holds always, or from now on
    correction: re.Pattern[str]  # takes something back
    defines: re.Pattern[str]  # says what a word means, or a rule
    habit: re.Pattern[str]  # how often
    step: re.Pattern[str]  # begins a step of a procedure
    asks: re.Pattern[str]  # a request or question without a question mark, at the start
    courtesy: re.Pattern[str]  # greeting, thanks or praise, at the start
    chatter: re.Pattern[str]  # small talk, anywhere
    vague: re.Pattern[str]  # points back, at the start: cannot stand alone
    answered: re.Pattern[str]  # a question about the person: its short answer is worth keeping
    filler: re.Pattern[str]  # carries nothing, at the start
    topics: Mapping[str, re.Pattern[str]]  # specific ones first


_ARABIC = re.compile("[\u0600-\u06ff]+")
_HAN = re.compile("[\u4e00-\u9fff]")
_KANA_OR_HANGUL = re.compile("[\u3040-\u30ff\uac00-\ud7af]")
_LATIN = re.compile(r"[A-Za-z][\w.]*")
_SPANISH = re.compile(
    r"[¿¡ñ]|(?<!\w)(?:el|la|los|las|de|del|que|en|un|una|para|por|con|mi|mis|es|soy|y|no|se|lo|su|al|muy|pero|como|cada"
    r"|siempre|vivo|trabajo|prefiero|gracias|hola)(?!\w)"
)
_ENGLISH = re.compile(
    r"(?<!\w)(?:the|a|an|i|i'm|is|are|to|of|and|in|my|for|it|that|you|we|on|with|was|have|not|but|at|be|this|please)(?!\w)"
)


@cache
def language(code: str) -> Language:
    """Return the cues of a language: `en`, `es`, `zh` or `ar`."""
    data = tomllib.loads((files("memory_pipelines.stages") / "cues" / f"{code}.toml").read_text(encoding="utf-8"))
    spaced = code != "zh"
    topics: dict[str, str] = data.pop("topics")
    cues: dict[str, str] = data
    return Language(
        **{name: _pattern(text, spaced=spaced) for name, text in cues.items()},
        topics={name: _pattern(text, spaced=spaced) for name, text in topics.items()},
    )


def language_of(text: str) -> str | None:
    """Guess the language of a sentence, None when the rules do not know it.

    Args:
        text: one or a few sentences.

    Returns:
        The code for `language`.
    """
    if _KANA_OR_HANGUL.search(text):
        return None
    lowered = text.lower()
    # Words against words, so that names of tables and columns do not make a sentence English.
    counts = {"ar": len(_ARABIC.findall(text)), "zh": len(_HAN.findall(text)), "": len(_LATIN.findall(text))}
    code = max(counts, key=lambda one: counts[one])
    if code:
        return code
    return "es" if len(_SPANISH.findall(lowered)) > len(_ENGLISH.findall(lowered)) else "en"


def _pattern(text: str, *, spaced: bool) -> re.Pattern[str]:
    """Alternatives stand on lines, or on one line between ` | `; whole words where a language has spaces."""
    cues = [cue.strip() for line in text.strip().splitlines() for cue in line.split(" | ")]
    body = "|".join(cue for cue in cues if cue)
    return re.compile(rf"(?<!\w)(?:{body})(?![\w\u064b-\u0652])" if spaced else f"(?:{body})")
