"""What rules see when two lines are compared, in four languages."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.stages.similarity import clauses, fold, likeness, relate, remainder, repeats, sense, stem


@pytest.mark.parametrize(
    "forms",
    [
        ("report", "reports", "reported", "reporting"),
        ("walk", "walks", "walked", "walking"),
        ("unidad", "unidades"),
        ("métrico", "métrica", "métricos", "métricas"),
        ("prefer", "preferred"),
        ("تقرير", "التقرير", "والتقرير", "بالتقرير"),
        ("مختصر", "مختصرة", "المختصرة"),
    ],
)
def test_forms_of_a_word_share_a_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(fold(form)) for form in forms}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＡＢＣ １２", "abc 12"),
        ("Café", "CAFE"),
        ("أُحِبُّ الشاي", "احب الشاي"),
        ("الساعة ٩", "الساعة 9"),
        ("don’t", "don't"),
    ],
)
def test_ways_of_writing_fold_into_one(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("The standup is at 9:30 on Mondays", {"9:30", "weekday-1"}),
        ("Keep it to three bullet points", {"3"}),
        ("Para los últimos noventa días, cada lunes", {"90", "weekday-1"}),
        ("我每周五跑三次检查", {"weekday-5", "3"}),
        ("يعني من اشترى مرتين خلال ستة أشهر", {"2", "6"}),
        ("Uses finance.gold_v2 and S3", set[str]()),
    ],
)
def test_numbers_and_days_are_read(text: str, numbers: set[str]) -> None:
    assert sense(text).numbers == numbers


@pytest.mark.parametrize(
    ("text", "negative"),
    [
        ("I do not eat meat", True),
        ("I don't eat meat", True),
        ("Never call before nine", True),
        ("I don't hate meat", False),
        ("Use tables, not charts", False),
        ("Don't forget that I eat meat", False),
        ("No como carne", True),
        ("No, usa tablas", False),
        ("我不吃肉", True),
        ("别忘了我吃肉", False),
        ("لا آكل اللحم", True),
        ("آكل اللحم", False),
    ],
)
def test_negation_is_read_where_it_turns_the_statement(text: str, negative: bool) -> None:
    assert sense(text).negative is negative


@pytest.mark.parametrize(
    ("text", "rejected"),
    [
        ("Use finance.gold, not finance.silver.", "finance.silver"),
        ("Use tables instead of charts", "chart"),
        ("I'm on the Platform team now, no longer in Payments", "payment"),
        ("We moved the office from Graz to Vienna", "graz"),
        ("Usa la tabla nueva en vez de la antigua", stem("antigua")),
        ("El mes pasado (2026-04) me mudé de Madrid a Lisboa", "madrid"),
        ("库存要用 scm.daily，不要用 scm.snapshot", "scm.snapshot"),
        ("我从上海搬到了杭州", "上海"),
        ("استخدم spend_final وليس spend_raw", "spend_raw"),
        ("انتقلت الأسبوع الماضي (2026-07-27) من عمّان إلى دبي", stem("عمان")),
    ],
)
def test_what_a_text_takes_back_is_read(text: str, rejected: str) -> None:
    assert rejected in sense(text).rejected
    assert rejected not in sense(text).bag


@pytest.mark.parametrize(
    ("new", "line", "expected"),
    [
        ("Please always use metric units in my reports", "I prefer metric units in all my reports.", "equal"),
        ("I want metric units in the reports for Rotterdam, too", "I prefer metric units in reports", "near"),
        ("I want metric units in my weekly reports every time", "I prefer metric units in reports", "covered"),
        ("Prefiero unidades métricas en los informes", "Usa siempre unidades métricas en mis informes", "equal"),
        ("报告请用公制单位", "我希望报告一律用公制单位", "equal"),
        ("أفضّل الوحدات المترية في التقارير", "استخدم دائماً الوحدات المترية في التقارير", "equal"),
        ("I hate jazz", "I love jazz", "contrary"),
        ("Odio el jazz", "Me gusta el jazz", "contrary"),
        ("我讨厌爵士乐", "我喜欢爵士乐", "contrary"),
        ("I used to play chess at school", "I play chess at school", "contrary"),
        ("From now on, use imperial units in my reports", "I prefer metric units in reports", "corrected"),
        ("Use finance.gold, not finance.silver, for revenue", "Revenue comes from finance.silver", "corrected"),
        ("Likes long walks at the sea", "Runs the settlements pipeline", "apart"),
    ],
)
def test_relations(new: str, line: str, expected: str) -> None:
    assert relate(sense(new), sense(line), preference=True) == expected


@pytest.mark.parametrize(
    ("new", "line"),
    [
        ("The report is due at 9 on Fridays", "The report is due at 10 on Fridays"),
        ("The report is due at nine on Mondays", "The report is due at nine on Fridays"),
        ("Alice owns the settlements pipeline", "The settlements pipeline has an owner"),
        ("Eats fish and meat at lunch", "Does not eat fish and meat at lunch"),
        ("cliente activo: compra en 60 días", "cliente activo: compra en 90 días"),
        ("我不喝咖啡和茶", "我喝咖啡和茶"),
        ("每周五发周报给运营", "每周一发周报给运营"),
        ("لا آكل السمك واللحم", "آكل السمك واللحم"),
    ],
)
def test_what_differs_in_a_number_day_name_or_negation_is_never_the_same(new: str, line: str) -> None:
    for preference in (False, True):
        assert relate(sense(new), sense(line), preference=preference) not in ("equal", "covered")
    assert not repeats(new, line)
    assert not repeats(line, new)


def test_a_fact_that_says_more_is_not_covered_but_a_preference_that_is_narrower_is() -> None:
    wide, narrow = sense("Works with sensor data of trucks"), sense("Works with sensor data of late trucks at night")

    assert relate(narrow, wide) == "near"
    assert relate(narrow, wide, preference=True) == "covered"


@pytest.mark.parametrize(
    ("line", "new", "left"),
    [
        (
            "I'm on the Payments team and I own the settlements pipeline.",
            "I'm on the Platform team now, no longer in Payments.",
            "I own the settlements pipeline.",
        ),
        ("أسكن في عمّان، وأفضّل الإجابات المختصرة.", "انتقلت من عمّان إلى دبي.", "وأفضّل الإجابات المختصرة."),
        ("Vivo en Madrid, así que usa la hora peninsular.", "Me mudé a Lisboa, ya no vivo en Madrid.", None),
        ("I live in Madrid", "I moved from Madrid to Lisbon", None),
        ("Likes tea and my dog likes long walks", "I hate coffee", None),
    ],
)
def test_what_is_left_of_a_corrected_line(line: str, new: str, left: str | None) -> None:
    assert remainder(line, new) == left


TEXT = st.text(alphabet=st.sampled_from("aé bB .,-/'9٣中文再不 لاعربي\u200f\u0301not🙂_:()"), max_size=60)


@given(TEXT, TEXT)
@settings(max_examples=150)
def test_any_text_can_be_compared(one: str, other: str) -> None:
    assert repeats(one, one)
    assert 0 <= likeness(sense(one), sense(other)) == likeness(sense(other), sense(one)) <= 1.0001
    relate(sense(one), sense(other))
    assert "".join("".join(clauses(one)).split()) in "".join(one.split()) or len(clauses(one)) > 1


def test_long_lines_are_compared_in_time_that_does_not_explode() -> None:
    hostile = "move from " * 20_000 + "," * 20_000 + "de a " * 20_000

    assert sense(hostile).bag <= sense("move from de a").bag | {"mov"}
