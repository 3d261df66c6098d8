"""Cron lines are refused before they are stored; what is taken Dagster takes too."""

import pytest
from dagster._utils.schedules import is_valid_cron_string
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.service.cron import check_cron


@pytest.mark.parametrize(
    "cron",
    ["30 4 * * *", "*/5 * * * *", "0 0 1,15 * *", "0 8-18/2 * JAN-mar Mon,Fri", "0 0 * * 7", "@daily", " 0  3 * * * "],
)
def test_what_people_write_is_taken(cron: str) -> None:
    assert check_cron(cron) == cron
    assert is_valid_cron_string(cron)


@pytest.mark.parametrize(
    ("cron", "says"),
    [
        ("99 * * * *", "'99' is no minute; allowed are 0 to 59"),
        ("0 24 * * *", "no hour"),
        ("0 0 0 * *", "no day of month"),
        ("0 0 * 13 *", "no month"),
        ("0 0 * * 8", "no day of week"),
        ("0 0 * * someday", "no day of week"),
        ("*/0 * * * *", "no minute"),
        ("1,,2 * * * *", "no minute"),
        ("every day", "2 fields; give five"),
        ("0 3 * * * *", "6 fields; give five"),
        ("", "0 fields; give five"),
        ("@reboot", "give five"),
        ("0 0 31 2 *", "February"),
    ],
)
def test_what_would_never_fire_is_refused_with_the_field(cron: str, says: str) -> None:
    assert not is_valid_cron_string(cron)
    with pytest.raises(InvalidInputError, match=says):
        check_cron(cron)


def fields(least: int, most: int) -> st.SearchStrategy[str]:
    """A cron field, good or a little off."""
    number = st.integers(least - 1, most + 1)
    pair = st.tuples(number, number).map(lambda ends: f"{ends[0]}-{ends[1]}")
    part = st.one_of(st.just("*"), number.map(str), pair)
    step = st.tuples(part, st.integers(0, 70)).map(lambda both: f"{both[0]}/{both[1]}")
    return st.lists(st.one_of(part, step), min_size=1, max_size=3).map(",".join)


@settings(deadline=None, max_examples=100)
@given(st.tuples(fields(0, 59), fields(0, 23), fields(1, 31), fields(1, 12), fields(0, 7)).map(" ".join))
def test_what_is_taken_dagster_takes_too(cron: str) -> None:
    try:
        check_cron(cron)
    except InvalidInputError:
        return
    assert is_valid_cron_string(cron)
