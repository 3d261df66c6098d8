"""Finds expressions like "last week" and adds the date they meant when they were said.

Finding is done by patterns of our own: a date parser set loose on prose takes "may", "second" and "now" for dates.
What is found is put into plain English and handed to dateparser, which knows the calendar.
"""

import itertools
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Literal, NamedTuple

from memory_pipelines.records import aware

Grain = Literal["day", "week", "weekend", "month", "year"]


class _Meaning(NamedTuple):
    """What an expression means: words that dateparser reads, and how exact they are."""

    words: str
    grain: Grain
    weekday: int | None = None  # of that week, Monday is 0


_EN_NUMBERS = "a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_ES_NUMBERS = "un|una|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce"
_ZH_NUMBERS = "一二三四五六七八九十"
_AR_NUMBERS = {"ثلاث": 3, "أربع": 4, "خمس": 5, "ست": 6, "سبع": 7, "ثماني": 8, "تسع": 9, "عشر": 10}
_NUMBERS: dict[str, int] = {
    **{word: number for number, word in enumerate(_EN_NUMBERS.split("|")[1:], start=0)},
    **{word: number for number, word in enumerate(_ES_NUMBERS.split("|")[1:], start=1)},
    **{word: number for number, word in enumerate(_ZH_NUMBERS, start=1)},
    **_AR_NUMBERS,
    **{word + "ة": number for word, number in _AR_NUMBERS.items()},
    "a": 1,
    "an": 1,
    "un": 1,
    "两": 2,
    "ثمانية": 8,
}
_FARTHEST = 200  # units; beyond it nothing is a memory of a person

_EN_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_ES_DAYS = "lunes|martes|miércoles|jueves|viernes|sábado|domingo"
_AR_DAYS = "الاثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|السبت|الأحد"
_DAYS = {
    word: number
    for names in (_EN_DAYS, _ES_DAYS, "一|二|三|四|五|六|日", _AR_DAYS)
    for number, word in enumerate(names.split("|"))
} | {"天": 6, "miercoles": 2, "sabado": 5, "الإثنين": 0}

_UNITS: dict[str, Grain] = {
    "day": "day", "week": "week", "weekend": "weekend", "month": "month", "year": "year",
    "día": "day", "dia": "day", "semana": "week", "fin de semana": "weekend", "mes": "month", "año": "year",
    "天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "周末": "weekend",
    "月": "month", "年": "year",
    "يوم": "day", "يوما": "day", "أيام": "day", "أسبوع": "week", "أسابيع": "week", "شهر": "month", "أشهر": "month",
    "شهور": "month", "سنة": "year", "سنوات": "year", "عام": "year", "أعوام": "year",
    "يومين": "day", "أسبوعين": "week", "شهرين": "month", "سنتين": "year", "عامين": "year",
}  # fmt: skip

_PHRASES: dict[str, _Meaning] = {
    **dict.fromkeys(("yesterday", "last night", "ayer", "anoche", "昨天", "昨晚", "أمس", "البارحة", "امبارح"),
                    _Meaning("yesterday", "day")),
    **dict.fromkeys(("today", "tonight", "this morning", "this afternoon", "this evening", "hoy", "esta mañana",
                     "esta tarde", "esta noche", "今天", "今晚", "今早", "اليوم", "الليلة"), _Meaning("today", "day")),
    **dict.fromkeys(("tomorrow", "mañana", "明天", "明早", "明晚", "غدا", "غداً", "غدًا", "بكرة"),
                    _Meaning("tomorrow", "day")),
    **dict.fromkeys(("the day before yesterday", "day before yesterday", "anteayer", "antier", "antes de ayer", "前天",
                     "أول أمس", "أول من أمس"), _Meaning("2 days ago", "day")),
    **dict.fromkeys(("the day after tomorrow", "day after tomorrow", "pasado mañana", "后天", "بعد غد"),
                    _Meaning("in 2 days", "day")),
    "去年": _Meaning("1 year ago", "year"), "今年": _Meaning("today", "year"), "明年": _Meaning("in 1 year", "year"),
    "前年": _Meaning("2 years ago", "year"), "后年": _Meaning("in 2 years", "year"), "本月": _Meaning("today", "month"),
}  # fmt: skip
_STEPS = {
    "last": "1 {} ago", "past": "1 {} ago", "this": "today", "next": "in 1 {}", "coming": "in 1 {}",
    "pasado": "1 {} ago", "pasada": "1 {} ago", "este": "today", "esta": "today",
    "próximo": "in 1 {}", "próxima": "in 1 {}", "proximo": "in 1 {}", "proxima": "in 1 {}", "que viene": "in 1 {}",
    "上": "1 {} ago", "这": "today", "本": "today", "下": "in 1 {}",
    "الماضي": "1 {} ago", "الماضية": "1 {} ago", "المنصرم": "1 {} ago", "هذا": "today", "هذه": "today",
    "القادم": "in 1 {}", "القادمة": "in 1 {}", "المقبل": "in 1 {}", "المقبلة": "in 1 {}",
}  # fmt: skip


def resolve(text: str, said_at: datetime) -> str:
    """Add to each relative expression of time the date or period it meant, in brackets.

    The words stay, since replacing them would need the grammar of every language: "we met yesterday (2023-05-07)".
    A week or weekend is given by its first and last day, a month as 2023-04, a year as 2022. Doing it twice changes
    nothing.

    Args:
        text: one or more sentences in English, Spanish, Chinese or Arabic.
        said_at: when they were said; its own time zone decides which day that was.

    Returns:
        The text with dates.

    Raises:
        InvalidInputError: `said_at` has no time zone.
    """
    base = aware(said_at).replace(tzinfo=None)
    parts: list[str] = []
    end = 0
    for match in _EXPRESSION.finditer(text):
        meaning = _meaning(match)
        if meaning is None or _DATED.match(text, match.end()):
            continue
        when = _parse(meaning.words, base)
        if when is None:
            continue
        wide = any("\u4e00" <= char <= "\u9fff" for char in match[0])
        bracketed = f"（{_form(when, meaning)}）" if wide else f" ({_form(when, meaning)})"
        parts += [text[end : match.end()], bracketed]
        end = match.end()
    return "".join([*parts, text[end:]])


def has_relative_time(text: str) -> bool:
    """Say whether a text holds an expression that `resolve` understands."""
    return any(_meaning(match) is not None for match in _EXPRESSION.finditer(text))


def _parse(words: str, base: datetime) -> date | None:
    import dateparser  # slow to import, and most texts need none of it

    found = dateparser.parse(words, languages=["en"], settings={"RELATIVE_BASE": base, "TIMEZONE": "UTC"})
    return found.date() if found else None


def _form(day: date, meaning: _Meaning) -> str:
    monday = day - timedelta(days=day.weekday())
    if meaning.weekday is not None:
        return (monday + timedelta(days=meaning.weekday)).isoformat()
    match meaning.grain:
        case "day":
            return day.isoformat()
        case "week":
            return f"{monday.isoformat()} – {(monday + timedelta(days=6)).isoformat()}"
        case "weekend":
            return f"{(monday + timedelta(days=5)).isoformat()} – {(monday + timedelta(days=6)).isoformat()}"
        case "month":
            return day.isoformat()[:7]
        case "year":
            return day.isoformat()[:4]


# Reading what was found: the named groups of one pattern, without the digits that keep the names apart

_Groups = dict[str, str]


def _phrase(groups: _Groups) -> _Meaning:
    return _PHRASES[groups["phrase"]]


def _step(groups: _Groups) -> _Meaning:
    """Last week, el mes pasado, 上个月, الأسبوع الماضي, last Friday, 上周五."""
    words, unit, day = _STEPS[groups["step"]], groups.get("unit"), groups.get("day")
    if day is None:
        grain = _UNITS[unit or "week"]
        return _Meaning(words.format("week" if grain == "weekend" else grain), grain)
    number = _DAYS[day]
    if unit is not None or words == "today":  # 上周五 is the Friday of last week
        return _Meaning(words.format("week"), "day", number)
    side = "last" if words.endswith("ago") else "next"
    return _Meaning(f"{side} {_EN_DAYS.split('|')[number]}", "day")


def _count(groups: _Groups) -> _Meaning | None:
    """Two weeks ago, hace dos semanas, 两周前, قبل أسبوعين; in two weeks, dentro de dos semanas."""
    unit, given = groups["unit"], groups.get("number", "")
    grain: Grain = next(
        _UNITS[form] for form in (unit, unit.removesuffix("s"), unit.removesuffix("es")) if form in _UNITS
    )
    if given == "半":
        return _Meaning("6 months ago" if "back" in groups else "in 6 months", "month")
    number = _NUMBERS[given] if given in _NUMBERS else int(given or (2 if unit.endswith("ين") else 1))
    if number > _FARTHEST:
        return None
    return _Meaning(f"{number} {grain}s ago" if "back" in groups else f"in {number} {grain}s", grain)


def _phrases(first: str, last: str) -> str:
    found = (word for word in _PHRASES if first <= word[0] <= last)
    return "|".join(sorted(map(re.escape, found), key=len, reverse=True))


_EN_COUNT = rf"(?P<number>{_EN_NUMBERS}|\d{{1,3}}) (?P<unit>days?|weeks?|months?|years?)"
_ES_COUNT = rf"(?P<number>{_ES_NUMBERS}|\d{{1,3}}) (?P<unit>días?|dias?|semanas?|mes|meses|años?)\b"
_ZH_COUNT = rf"(?:(?P<number>[{_ZH_NUMBERS}两]|\d{{1,3}})个?(?P<unit>天|周|星期|礼拜|月|年)|(?P<number>半)(?P<unit>年))"
_AR_UNITS = "يومين|أسبوعين|شهرين|سنتين|عامين|يوما?|أيام|أسبوع|أسابيع|شهر|أشهر|شهور|سنة|سنوات|عام|أعوام"
_AR_WORDS = "|".join(word for word in _NUMBERS if "ء" <= word[0] <= "ي")
_AR_COUNT = rf"(?:(?P<number>{_AR_WORDS}|\d{{1,3}}) )?(?P<unit>{_AR_UNITS})"
_ES_UNITS = "fin de semana|semana|mes|año"

# "Over the last year" is no year of the calendar, "por la mañana" no tomorrow, "hoy en día" and "في اليوم" no today,
# "done in two weeks" no date at all.
_PATTERNS: tuple[tuple[str, Callable[[_Groups], _Meaning | None]], ...] = (
    (rf"\b(?<!la )(?P<phrase>{_phrases('a', 'z')})\b(?! en d[ií]a)", _phrase),
    (rf"(?P<phrase>{_phrases('一', '龥')})", _phrase),
    (rf"(?<!\w)(?<!في )(?<!هذا )[وف]?(?P<phrase>{_phrases('ء', 'ي')})(?!\w)", _phrase),
    (
        rf"(?<!\bthe )\b(?P<step>last|this|next) "
        rf"(?:(?P<unit>weekend|week|month|year)|(?P<day>{_EN_DAYS}))\b",
        _step,
    ),
    (
        rf"\b(?:(?P<unit>{_ES_UNITS})|(?P<day>{_ES_DAYS})) (?P<step>pasad[oa]|pr[óo]xim[oa]|que viene)\b",
        _step,
    ),
    (rf"\b(?P<step>pr[óo]xim[oa]|est[ea]) (?:(?P<unit>{_ES_UNITS})|(?P<day>{_ES_DAYS}))\b", _step),
    (r"(?P<step>上|这|本|下)个?(?:(?P<unit>周末|月)|(?P<unit>周|星期|礼拜)(?P<day>[一二三四五六日天])?)", _step),
    (
        rf"(?<!\w)[وف]?(?:ال(?P<unit>أسبوع|شهر|عام|سنة)|(?P<day>{_AR_DAYS})) "
        r"(?P<step>الماضية?|المنصرم|القادمة?|المقبلة?)(?!\w)",
        _step,
    ),
    (r"(?<!\w)[وف]?(?P<step>هذا|هذه) ال(?P<unit>أسبوع|شهر|عام|سنة)(?!\w)", _step),
    (rf"\b{_EN_COUNT} (?P<back>ago)\b", _count),
    (rf"\b(?:(?<=will |oing |ving |ting )|(?<=due |ack |rip ))in {_EN_COUNT}\b", _count),
    (rf"\b(?P<back>hace) {_ES_COUNT}(?! que)", _count),
    (rf"\bdentro de {_ES_COUNT}", _count),
    (rf"{_ZH_COUNT}(?:以|之)?(?P<back>前)", _count),
    (rf"{_ZH_COUNT}(?:以|之)?后", _count),
    (rf"(?<!\w)[وف]?(?P<back>قبل|منذ) {_AR_COUNT}(?!\w)", _count),
)
_READERS = tuple(reader for _, reader in _PATTERNS)


def _joined() -> str:
    """One pattern out of all, each as group p0, p1 ..., the names of its own groups made different by digits."""
    counter = itertools.count()
    return "|".join(
        f"(?P<p{number}>{re.sub(r'[?]P<([a-z]+)[0-9]*>', lambda group: f'?P<{group[1]}{next(counter)}>', pattern)})"
        for number, (pattern, _) in enumerate(_PATTERNS)
    )


_EXPRESSION = re.compile(_joined(), re.IGNORECASE)
_DATED = re.compile(r"\s*[（(]\s*(?:\d{4}|[A-Za-z]+ \d|\d{1,2}[ ./])")
"""A date in brackets right behind: the expression was resolved before."""


def _meaning(match: re.Match[str]) -> _Meaning | None:
    found = {name: value.lower() for name, value in match.groupdict().items() if value is not None}
    pattern = next(int(name[1:]) for name in found if re.fullmatch(r"p\d+", name))
    return _READERS[pattern]({name.rstrip("0123456789"): value for name, value in found.items()})
