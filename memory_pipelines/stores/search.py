"""Ranks texts by words (BM25), in any script, on any database: an actor's entries are few, so they are read whole."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

_SATURATION = 1.2  # how soon a repeated word stops counting
_LENGTH = 0.75  # how much long texts are held back

# Accents of European scripts, points of Hebrew, vowel signs and tatweel of Arabic: written or not, it is the same word.
_OPTIONAL = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]")

# Scripts written without spaces: Thai to Lao, Myanmar, Khmer, kana, Han, and Hangul, which joins particles to words.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)


@lru_cache(maxsize=1)
def _word() -> re.Pattern[str]:
    # Vowel signs of Indic scripts are marks, which \w leaves out, so that it would cut their words.
    marks = "".join(chr(code) for code in range(0x0300, 0xABFF) if unicodedata.category(chr(code)) in {"Mn", "Mc"})
    return re.compile(rf"(?:[^\W_]|[{marks}])+")


def words_of(text: str) -> list[str]:
    """Return the words of a text, folded.

    Args:
        text: in any script.

    Returns:
        Words without case and optional marks; of scripts without spaces every character and every pair of them.
    """
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    plain = unicodedata.normalize("NFC", _OPTIONAL.sub("", folded))
    words: list[str] = []
    for word in _word().findall(plain):
        start = 0
        for run in _UNSPACED.finditer(word):
            if start < run.start():
                words.append(word[start : run.start()])
            words.extend(run[0])
            words.extend(a + b for a, b in pairwise(run[0]))
            start = run.end()
        if start < len(word):
            words.append(word[start:])
    return words


def rank(query: str, texts: Sequence[str]) -> list[tuple[int, float]]:
    """Rank texts by how well they answer a query.

    Args:
        query: words to look for.
        texts: to be ranked.

    Returns:
        Index and score of the texts with at least one of the words, the best first.
    """
    wanted = Counter(words_of(query))
    bags = [Counter(words_of(text)) for text in texts]
    lengths = [bag.total() for bag in bags]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    scores: dict[int, float] = {}
    for word, weight in wanted.items():
        holders = [index for index, bag in enumerate(bags) if word in bag]
        rarity = math.log(1 + (len(bags) - len(holders) + 0.5) / (len(holders) + 0.5))
        for index in holders:
            count = bags[index][word]
            damped = count + _SATURATION * (1 - _LENGTH + _LENGTH * lengths[index] / mean)
            scores[index] = scores.get(index, 0.0) + weight * rarity * count * (_SATURATION + 1) / damped
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
