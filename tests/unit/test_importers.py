"""Our own format, sessions over several lines, options, and the check before an import."""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.importers.base import MAX_ERRORS, ImportCheck, Importer, ImportOptions
from memory_pipelines.importers.native import NativeImporter
from memory_pipelines.records import ImportedSession
from memory_pipelines.registry import IMPORTERS

NINE = "2026-03-02T09:00:00Z"
TEN = "2026-03-02T10:00:00Z"
AT_NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
AT_TEN = datetime(2026, 3, 2, 10, tzinfo=UTC)

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writer(*lines: dict[str, Any] | str, name: str = "chats.jsonl") -> Path:
        path = tmp_path / name
        texts = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        return path

    return writer


def say(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def session(actor: str = "ana", identifier: str = "s1", *items: Any, **more: Any) -> dict[str, Any]:
    return {"actor_id": actor, "session_id": identifier, "items": list(items), **more}


def native(path: Path, **options: Any) -> list[ImportedSession]:
    return list(NativeImporter().sessions(path, ImportOptions(**options)))


def texts(imported: ImportedSession) -> list[Any]:
    return [item.data["content"] for item in imported.items if isinstance(item.data, dict)]


def times(imported: ImportedSession) -> list[datetime | None]:
    return [item.said_at for item in imported.items]


# Our own format


def test_a_line_becomes_a_session_and_every_key_of_an_item_is_kept(write: Write):
    call = {"id": "c1", "type": "function", "function": {"name": "run_sql", "arguments": '{"q": 1}'}}
    path = write(
        session(
            "team/ops bot",
            "s 1/ü",
            say("hi", at=NINE, name="Ana", mood={"nested": [1, None, 2.5]}),
            {"role": "assistant", "content": None, "tool_calls": [call], "at": TEN},
            {"type": "reasoning", "at": TEN},
            metadata={"channel": "slack"},
            parent_id="s0",
        )
    )

    (found,) = native(path)

    assert (found.actor_id, found.session_id, found.parent_id) == ("team/ops bot", "s 1/ü", "s0")
    assert found.metadata == {"channel": "slack"}
    assert [item.data for item in found.items] == [
        {"role": "user", "content": "hi", "name": "Ana", "mood": {"nested": [1, None, 2.5]}},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"type": "reasoning"},
    ]
    assert times(found) == [AT_NINE, AT_TEN, AT_TEN]


def test_a_missing_time_is_that_of_the_item_before_or_of_the_session(write: Write):
    path = write(session("ana", "s1", say("a"), say("b", at=TEN), say("c"), created_at=NINE))

    assert times(native(path)[0]) == [AT_NINE, AT_TEN, AT_TEN]


def test_a_time_that_is_nowhere_is_an_error_unless_one_is_assumed(write: Write):
    path = write(session("ana", "s1", say("a"), say("b", at=TEN)))

    with pytest.raises(InvalidInputError, match=r"chats\.jsonl:1: item 1 has no time; .*--assume-time") as caught:
        native(path)
    assert (caught.value.file, caught.value.line) == (str(path), 1)
    assert times(native(path, assume_time=AT_NINE)[0]) == [AT_NINE, AT_TEN]


def test_the_offset_of_a_time_is_understood(write: Write):
    path = write(session("ana", "s1", say("a", at="2026-03-02T09:00:00+02:00"), say("b", at="2026-03-02t09:00:00.5z")))

    assert times(native(path)[0]) == [
        datetime(2026, 3, 2, 7, tzinfo=UTC),
        datetime(2026, 3, 2, 9, 0, 0, 500_000, tzinfo=UTC),
    ]


def test_a_session_without_items_is_a_session(write: Write):
    (found,) = native(write(session()))

    assert found.items == ()


def test_an_actor_can_be_given_for_lines_that_name_none(write: Write):
    unnamed = session("x", "s1")
    del unnamed["actor_id"]
    path = write(unnamed, session("leo", "s2"))

    assert [found.actor_id for found in native(path, actor="ana")] == ["ana", "leo"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"actor_id": None}, "actor_id is null; expected a string"),
        ({"actor_id": " "}, "actor_id is a blank string"),
        ({"actor_id": 7}, "actor_id is a number"),
        ({"session_id": ["s"]}, "session_id is an array"),
        ({"items": None}, "items is null; expected an array of objects"),
        ({"items": ["hello"]}, "item 1 is a string; expected an object"),
        ({"metadata": ["a"]}, "metadata is an array; expected an object of strings"),
        ({"metadata": {"n": 1}}, r"metadata\.n is a number; expected a string"),
        ({"metdata": {}}, "unknown key 'metdata'; allowed are actor_id, session_id"),
        ({"items": [say("a", at="2026-03-02T09:00:00")]}, "item 1: at: .*has no time zone"),
        ({"items": [say("a", at="yesterday")]}, "item 1: at: 'yesterday' is not an RFC 3339 time"),
        ({"items": [say("a", at=1767225600)]}, "item 1: at: a number is not an RFC 3339 time"),
        ({"items": [say("a", at="1767225600")]}, "item 1: at: '1767225600' is not an RFC 3339 time"),
        ({"items": [say("a", at="0001-01-01T00:00:00+14:00")]}, ".*outside the years"),
        ({"created_at": {}}, "created_at: an object is not an RFC 3339 time"),
    ],
)
def test_a_line_that_breaks_the_format_says_what_is_allowed(write: Write, change: dict[str, Any], message: str):
    path = write(json.dumps(session() | change))

    with pytest.raises(InvalidInputError, match=rf"chats\.jsonl:1: {message}"):
        native(path)


def test_what_people_said_is_not_repeated_in_errors(write: Write):
    for broken in ('{"actor_id": "ana", "items": ["my secret"]}', '{"session_id": "my secret', '["my secret"]'):
        report = NativeImporter().check(write(broken), ImportOptions())
        assert report.error_count == 1
        assert "my secret" not in report.errors[0]


@pytest.mark.parametrize("key", ["actor_id", "session_id", "items"])
def test_a_missing_key_is_named(write: Write, key: str):
    line = session()
    del line[key]

    with pytest.raises(InvalidInputError, match=f"no {key}"):
        native(write(line))


# Sessions over several lines


def test_adjacent_lines_of_a_session_are_joined_in_order(write: Write):
    path = write(
        session("ana", "s1", say("a", at=NINE), metadata={"x": "1", "y": "1"}),
        session("ana", "s1", say("b", at=TEN), metadata={"x": "2"}, parent_id="s0"),
        session("ana", "s2", say("c", at=TEN)),
    )

    first, second = native(path)

    assert texts(first) == ["a", "b"]
    assert first.metadata == {"x": "2", "y": "1"}
    assert first.parent_id == "s0"
    assert texts(second) == ["c"]


def test_a_session_that_comes_again_later_is_yielded_again(write: Write):
    path = write(session("ana", "s1"), session("ana", "s2"), session("ana", "s1"))

    assert [found.session_id for found in native(path)] == ["s1", "s2", "s1"]
    assert NativeImporter().check(path, ImportOptions()).sessions == 2


def test_the_same_words_in_two_lines_are_two_items(write: Write):
    path = write(session("ana", "s1", say("yes", at=NINE)), session("ana", "s1", say("yes", at=TEN)))

    assert texts(native(path)[0]) == ["yes", "yes"]


@pytest.mark.parametrize("between", [[], [session("leo", "s2")]])
def test_a_session_of_two_actors_is_an_error(write: Write, between: list[dict[str, Any]]):
    path = write(session("ana", "s1"), *between, session("leo", "s1"))

    with pytest.raises(InvalidInputError, match="session 's1' is given to actor 'leo', but line 1 gave it to 'ana'"):
        native(path)


# Options


def test_options_that_mean_nothing_to_a_format_are_refused_at_once(tmp_path: Path):
    with pytest.raises(InvalidInputError, match="native has no use for --time-field; it takes --actor, --assume-time"):
        NativeImporter().sessions(tmp_path / "unread", ImportOptions(time_field="ts"))


def test_options_that_contradict_each_other_are_refused():
    with pytest.raises(InvalidInputError, match="given twice, as 'ana' and by the field 'user'"):
        ImportOptions(actor="ana", actor_field="user")
    with pytest.raises(InvalidInputError, match="not blank"):
        ImportOptions(actor=" ")
    with pytest.raises(InvalidInputError, match="no time zone"):
        ImportOptions(assume_time=datetime(2026, 3, 2))  # noqa: DTZ001


# The check before an import


def test_a_check_counts_and_goes_on_after_errors(write: Write):
    path = write(
        session("ana", "s1", say("b", at=TEN), say("a", at=NINE)),
        "{broken",
        session("leo", "s2"),
        session("leo", "s1"),
        session("ana", "s1", say("c", at=TEN)),
    )

    report = NativeImporter().check(path, ImportOptions())

    assert (report.sessions, report.actors, report.items) == (2, 2, 3)
    assert (report.first_at, report.last_at) == (AT_NINE, AT_TEN)
    assert report.error_count == 2
    assert [error.split(": ")[0] for error in report.errors] == [f"{path}:2", f"{path}:4"]


def test_a_check_lists_the_first_errors_and_counts_all(write: Write):
    report = NativeImporter().check(write(*["{"] * 50), ImportOptions())

    assert report.error_count == 50
    assert len(report.errors) == MAX_ERRORS == 20
    assert ":20: " in report.errors[-1]


def test_checks_of_files_add_up(write: Write):
    one = NativeImporter().check(write(session("ana", "s1", say("a", at=NINE)), name="1"), ImportOptions())
    two = NativeImporter().check(write(session("ana", "s2", say("a", at=TEN)), *["{"] * 15, name="2"), ImportOptions())

    total = sum([two, one, two], ImportCheck())

    assert (total.sessions, total.actors, total.items) == (2, 1, 3)
    assert (total.first_at, total.last_at) == (AT_NINE, AT_TEN)
    assert (len(total.errors), total.error_count) == (20, 30)


# The port


@pytest.mark.parametrize("name", ["native", "chat-completions"])
def test_the_registry_leads_to_importers(name: str, write: Write):
    importer: Importer = IMPORTERS.load(name)()

    assert importer.check(write(""), ImportOptions(actor="ana")) == ImportCheck()
    with pytest.raises(InvalidInputError, match=r"chats\.jsonl:1: not JSON"):
        list(importer.sessions(write("{"), ImportOptions(actor="ana")))


moments = st.datetimes(datetime(1990, 1, 2), datetime(2100, 1, 1), timezones=st.just(timezone(timedelta(hours=5))))  # noqa: DTZ001
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    scalars | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
items = st.lists(st.tuples(st.dictionaries(st.text(max_size=8), json_values, max_size=4), moments), max_size=4)


@given(written=items)
def test_whatever_is_written_comes_back(tmp_path_factory: pytest.TempPathFactory, written: Iterable[Any]):
    pairs = [({key: value for key, value in data.items() if key != "at"}, moment) for data, moment in written]
    path = tmp_path_factory.mktemp("round") / "a.jsonl"
    line = session("ana", "s1", *({**data, "at": moment.isoformat()} for data, moment in pairs))
    path.write_text(json.dumps(line), encoding="utf-8")

    (found,) = native(path)

    assert [(item.data, item.said_at) for item in found.items] == pairs
