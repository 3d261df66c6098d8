"""Checks when a scheduled pipeline runs, before it is stored: a schedule that nobody can read would never fire."""

import re

from memory_pipelines.errors import InvalidInputError

_NICKNAMES = {"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(?:\*|([a-z]{3}|[0-9]{1,2})(?:-([a-z]{3}|[0-9]{1,2}))?)(?:/([0-9]{1,2}))?")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (  # name, least, most, names that stand for numbers
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)


def check_cron(cron: str) -> str:
    """Return a cron line unchanged, or refuse it.

    Args:
        cron: five fields with numbers, ranges, lists, steps and English names, or a nickname such as @daily.

    Raises:
        InvalidInputError: it is none, or its day never comes; says which field and what is allowed.
    """
    line = cron.strip().lower()
    if line in _NICKNAMES:
        return cron
    given = line.split()
    if len(given) != len(_FIELDS):
        raise InvalidInputError(
            f"cron {cron!r} has {len(given)} fields; give five (minute hour day month weekday), for example"
            f" '30 4 * * *', or one of {', '.join(sorted(_NICKNAMES))}",
            cron=cron,
        )
    for text, (name, least, most, names) in zip(given, _FIELDS, strict=True):
        if not all(_is_part(part, least, most, names) for part in text.split(",")):
            raise InvalidInputError(
                f"cron {cron!r}: {text!r} is no {name}; allowed are {least} to {most}"
                f"{', names such as ' + names[1] if names else ''}, *, ranges a-b, lists a,b and steps /n",
                cron=cron,
            )
    if re.fullmatch(r"30|31", given[2]) and given[3] in {"2", "02", "feb"} and given[4] == "*":
        raise InvalidInputError(f"cron {cron!r} names a day that February never has", cron=cron)
    return cron


def _is_part(part: str, least: int, most: int, names: tuple[str, ...]) -> bool:
    found = _PART.fullmatch(part)
    if found is None or (found[3] is not None and int(found[3]) < 1):
        return False
    ends = [_number(one, least, names) for one in (found[1], found[2]) if one is not None]
    return all(least <= one <= most for one in ends) and ends == sorted(ends)


def _number(text: str, least: int, names: tuple[str, ...]) -> int:
    if text.isdigit():
        return int(text)
    return names.index(text) + least if text in names else -1
