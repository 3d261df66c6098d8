"""Times: what "last week" meant when it was said, in four languages, and which words are no time at all."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.stages.times import has_relative_time, resolve

SAID = datetime(2023, 5, 10, 13, 56, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("We met yesterday.", "We met yesterday (2023-05-09)."),
        ("Today I start.", "Today (2023-05-10) I start."),
        ("I fly tomorrow", "I fly tomorrow (2023-05-11)"),
        ("It broke the day before yesterday", "It broke the day before yesterday (2023-05-08)"),
        ("I moved last week.", "I moved last week (2023-05-01 – 2023-05-07)."),
        ("I moved last month.", "I moved last month (2023-04)."),
        ("I married last year.", "I married last year (2022)."),
        ("We sail this weekend", "We sail this weekend (2023-05-13 – 2023-05-14)"),
        ("We sailed last weekend", "We sailed last weekend (2023-05-06 – 2023-05-07)"),
        ("I ran last Friday", "I ran last Friday (2023-05-05)"),
        ("I run next Friday", "I run next Friday (2023-05-12)"),
        ("We met two months ago", "We met two months ago (2023-03)"),
        ("We met 3 days ago", "We met 3 days ago (2023-05-07)"),
        ("I'm leaving in two weeks", "I'm leaving in two weeks (2023-05-22 – 2023-05-28)"),
        ("Ayer firmamos.", "Ayer (2023-05-09) firmamos."),
        ("Mañana viajo", "Mañana (2023-05-11) viajo"),
        ("El mes pasado me mudé", "El mes pasado (2023-04) me mudé"),
        ("La próxima semana viajo", "La próxima semana (2023-05-15 – 2023-05-21) viajo"),
        ("Nos vimos hace dos semanas", "Nos vimos hace dos semanas (2023-04-24 – 2023-04-30)"),
        ("El viernes pasado corrí", "El viernes pasado (2023-05-05) corrí"),
        ("昨天我去了北京", "昨天（2023-05-09）我去了北京"),
        ("上周我搬家了", "上周（2023-05-01 – 2023-05-07）我搬家了"),
        ("上周五开会", "上周五（2023-05-05）开会"),
        ("两个月前认识的", "两个月前（2023-03）认识的"),
        ("去年结婚", "去年（2022）结婚"),
        ("سافرت أمس", "سافرت أمس (2023-05-09)"),
        ("انتقلت الأسبوع الماضي", "انتقلت الأسبوع الماضي (2023-05-01 – 2023-05-07)"),
        ("التقينا قبل شهرين", "التقينا قبل شهرين (2023-03)"),
        ("قبل ثلاثة أيام", "قبل ثلاثة أيام (2023-05-07)"),
    ],
)
def test_relative_time_gets_its_date(text: str, resolved: str) -> None:
    assert has_relative_time(text)
    assert resolve(text, SAID) == resolved
    assert resolve(resolved, SAID + timedelta(days=400)) == resolved


@pytest.mark.parametrize(
    "text",
    [
        "I may march on in a second.",
        "Now I live in Oslo.",
        "I finished it in two weeks.",
        "Over the last year I read a lot.",
        "I jog every Friday and every day.",
        "My friend Friday likes May and August.",
        "I met her on 3 May 2022.",
        "The last week of the course is hard.",
        "Trabajo por la mañana y hoy en día vivo aquí.",
        "Vivo aquí desde 2020.",
        "我每天早上跑步，每周五开会。",
        "以后请用公制单位。",
        "مرتين في اليوم وكل يوم",
        "We met yesterday (May 9, 2023).",
        "Ayer (9 de mayo de 2023) firmamos.",
    ],
)
def test_other_words_stay_as_they_are(text: str) -> None:
    assert resolve(text, SAID) == text


def test_the_speakers_own_day_counts() -> None:
    late = datetime(2023, 5, 10, 23, 30, tzinfo=timezone(timedelta(hours=-7)))

    assert resolve("We met today.", late) == "We met today (2023-05-10)."


def test_a_month_or_year_back_may_have_fewer_days() -> None:
    assert resolve("Last month I slept.", datetime(2023, 3, 31, tzinfo=UTC)) == "Last month (2023-02) I slept."
    assert resolve("a year ago", datetime(2024, 2, 29, tzinfo=UTC)) == "a year ago (2023)"


def test_weeks_run_over_the_turn_of_the_year() -> None:
    assert resolve("last week", datetime(2024, 1, 3, tzinfo=UTC)) == "last week (2023-12-25 – 2023-12-31)"


def test_several_times_in_one_text_are_all_resolved() -> None:
    assert (
        resolve("Yesterday I ran, tomorrow I rest.", SAID)
        == "Yesterday (2023-05-09) I ran, tomorrow (2023-05-11) I rest."
    )


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no time zone"):
        resolve("yesterday", datetime(2023, 5, 10))  # noqa: DTZ001 - that is the point
