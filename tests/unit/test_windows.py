"""Windows: every position is read exactly once, budgets hold, and no answer is cut from its question."""

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.records import Item, Session, SessionNews, Window
from memory_pipelines.stages.windows import join, plan, shown_tokens, stretches
from memory_pipelines.wording import tokens_of

DAY = datetime(2026, 3, 1, 9, tzinfo=UTC)
PROFILES: list[Literal["small", "strong"]] = ["small", "strong"]


def news(
    session_id: str, data: list[Any], *, first: int = 1, day: int = 0, before: list[Any] | None = None, **more: Any
) -> SessionNews:
    at = DAY + timedelta(days=day)
    earlier = before or []
    made = [
        Item(
            session_id=session_id,
            id=f"{session_id}-{first + n}",
            position=first + n,
            data=one,
            said_at=at,
            create_time=at,
            context=first + n in more.get("copied", ()),
        )
        for n, one in enumerate([*earlier, *data], start=-len(earlier))
    ]
    session = Session(
        store="s",
        id=session_id,
        actor_id="a",
        root_id=session_id,
        create_time=at,
        update_time=at,
        last_activity_time=at,
    )
    return SessionNews(session=session, items=tuple(made[len(earlier) :]), before=tuple(made[: len(earlier)]))


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def agent(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def planned(*all_news: SessionNews, budget: int = 100, profile: Literal["small", "strong"] = "small") -> list[Window]:
    return plan(all_news, pipeline_id="p", actor_id="a", budget_tokens=budget, profile=profile)


datum = st.one_of(
    st.builds(user, st.text(alphabet="ab ?。我", max_size=120)),
    st.builds(agent, st.sampled_from(["Fine.", "Why is that? Tell me.", "x" * 300])),
    st.just({"role": "tool", "content": "rows"}),
    st.just({"type": "reasoning"}),
    st.none(),
)
sessions = st.lists(
    st.tuples(st.lists(datum, min_size=1, max_size=15), st.integers(1, 50), st.integers(0, 5)), max_size=4
)


@given(sessions, st.integers(1, 120), st.sampled_from(PROFILES))
def test_every_position_is_in_exactly_one_segment_in_order(
    made: list[tuple[list[Any], int, int]], budget: int, profile: Literal["small", "strong"]
) -> None:
    all_news = [news(f"s{n}", data, first=first, day=day) for n, (data, first, day) in enumerate(made)]
    windows = planned(*all_news, budget=budget, profile=profile)

    covered = [
        (segment.session_id, position)
        for window in windows
        for segment in window.segments
        for position in range(segment.first, segment.last + 1)
    ]
    wanted = [(item.session_id, item.position) for one in all_news for item in one.items]
    assert sorted(covered) == sorted(wanted)
    for one in all_news:
        here = [position for session, position in covered if session == one.session.id]
        assert here == sorted(here)
    for window in windows:
        inside = {(s.session_id, p) for s in window.segments for p in range(s.first, s.last + 1)}
        assert {(turn.session_id, turn.position) for turn in window.turns} <= inside


@given(sessions, st.integers(1, 120), st.sampled_from(PROFILES))
def test_the_budget_is_kept_unless_one_item_alone_exceeds_it(
    made: list[tuple[list[Any], int, int]], budget: int, profile: Literal["small", "strong"]
) -> None:
    all_news = [news(f"s{n}", data, first=first, day=day) for n, (data, first, day) in enumerate(made)]

    for window in planned(*all_news, budget=budget, profile=profile):
        shown = sum(shown_tokens(turn, profile) for turn in window.turns)
        assert window.tokens == shown
        assert shown <= budget or len({turn.item_id for turn in window.turns}) == 1


@given(sessions, st.integers(1, 120))
def test_planning_the_rest_gives_the_same_windows(made: list[tuple[list[Any], int, int]], budget: int) -> None:
    all_news = [news(f"s{n}", data, first=first, day=day) for n, (data, first, day) in enumerate(made)]
    windows = planned(*all_news, budget=budget)
    if not windows:
        return
    done = windows[0].segments[-1]
    rest = [
        one.model_copy(update={"items": tuple(i for i in one.items if i.position > done.last)})
        if one.session.id == done.session_id
        else one
        for one in all_news
    ]

    assert [window.id for window in planned(*rest, budget=budget)] == [window.id for window in windows[1:]]


def test_ids_tell_pipelines_and_actors_apart() -> None:
    one = news("s", [user("Hello there.")])
    ids = {
        plan([one], pipeline_id=pipeline, actor_id=actor, budget_tokens=9)[0].id
        for pipeline in ("p", "q")
        for actor in ("a", "b")
    }

    assert len(ids) == 4


def test_sessions_come_in_the_order_in_which_things_were_said() -> None:
    windows = planned(news("late", [user("Second.")], day=3), news("early", [user("First.")], day=1))

    assert [window.turns[0].text for window in windows] == ["First.", "Second."]


def test_short_sessions_share_a_window_for_a_strong_model_only() -> None:
    two = (news("one", [user("First.")]), news("two", [user("Second.")], day=1))

    assert [len(window.segments) for window in planned(*two)] == [1, 1]
    assert [len(window.segments) for window in planned(*two, profile="strong")] == [2]


def test_an_answer_at_the_start_of_a_window_has_its_question_as_context() -> None:
    filler = [user("word " * 60), agent("Which units do you prefer?"), user("Metric. " + "word " * 60)]
    first, second = planned(news("s", filler), budget=90)

    assert [turn.speaker for turn in first.turns] == ["actor", "other"]
    assert second.turns[0].text.startswith("Metric.")
    assert second.context[-1].text == "Which units do you prefer?"


def test_the_question_is_reached_over_calls_and_results() -> None:
    before = [agent("Where do you live?"), *[{"role": "tool", "content": f"row {n}"} for n in range(6)]]
    (window,) = planned(news("s", [user("In Oslo.")], first=8, before=before))

    assert window.context[0].text == "Where do you live?"
    assert window.segments[0].first == 8


def test_items_copied_by_a_fork_are_context_and_still_covered() -> None:
    one = news("fork", [user("I live in Rome."), agent("Since when?"), user("Since May.")], copied={1, 2})
    (window,) = planned(one)

    assert [turn.text for turn in window.turns] == ["Since May."]
    assert [turn.text for turn in window.context] == ["I live in Rome.", "Since when?"]
    assert (window.segments[0].first, window.segments[0].last) == (1, 3)


def test_items_without_turns_at_either_end_are_covered() -> None:
    (window,) = planned(news("s", [None, {"type": "reasoning"}, user("Hi, I am Ana."), None], first=5))

    assert [(s.first, s.last) for s in window.segments] == [(5, 8)]


def test_positions_that_were_removed_leave_no_gap() -> None:
    whole = news("s", [user("word " * 60) for _ in range(6)])
    holed = whole.model_copy(update={"items": tuple(i for i in whole.items if i.position not in (3, 4))})
    segments = [window.segments[0] for window in planned(holed, budget=90)]

    assert [(s.first, s.last) for s in segments] == [(1, 1), (2, 2), (3, 5), (6, 6)]


def test_nothing_unread_gives_no_window() -> None:
    empty = news("s", [user("x")]).model_copy(update={"items": ()})

    assert planned(empty) == []


def test_a_budget_must_be_positive() -> None:
    with pytest.raises(InvalidInputError, match="budget_tokens is 0"):
        planned(budget=0)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("word", 1), ("words", 2), ("我喜欢茶", 4), ("مرحبا", 3), ("我喜欢 tea", 4), ("naïve café", 3)],
)
def test_tokens_are_counted_by_script(text: str, tokens: int) -> None:
    assert tokens_of(text) == tokens


@given(sessions, st.integers(1, 60), st.integers(1, 5))
def test_joined_windows_hold_what_each_holds(made: list[tuple[list[Any], int, int]], budget: int, most: int) -> None:
    all_news = [news(f"s{n}", data, first=first, day=day) for n, (data, first, day) in enumerate(made)]
    windows = planned(*all_news, budget=budget, profile="strong")
    parts = stretches(windows, most=most)

    assert [one for part in parts for one in part] == windows
    assert all(1 <= len(part) <= most for part in parts)
    assert not parts or max(map(len, parts)) - min(map(len, parts)) <= 1
    for part in parts:
        joined = join(part)
        assert joined.turns == tuple(turn for one in part for turn in one.turns)
        assert joined.tokens == sum(one.tokens for one in part)
        assert not set(joined.context) & set(joined.turns)
        assert set(joined.context) | set(joined.turns) >= {turn for one in part for turn in one.context}
        covered = [(s.session_id, p) for one in part for s in one.segments for p in range(s.first, s.last + 1)]
        assert [(s.session_id, p) for s in joined.segments for p in range(s.first, s.last + 1)] == covered


def test_windows_of_one_session_become_one_segment_with_the_context_before_the_first() -> None:
    before = [agent("Where do you live?")]
    windows = planned(news("s", [user("word " * 60), user("word " * 61)], first=3, before=before), budget=90)
    joined = join(windows)

    assert [(one.first, one.last) for window in windows for one in window.segments] == [(3, 3), (4, 4)]
    assert [(one.first, one.last) for one in joined.segments] == [(3, 4)]
    assert [turn.text for turn in joined.context] == ["Where do you live?"]
    assert joined.id not in {window.id for window in windows}
    assert join(windows[:1]) is windows[0]
    assert stretches([], most=3) == []
