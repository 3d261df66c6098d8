"""Chat-completions files: the mapping of actor, session and time, and logs that repeat themselves."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.importers.base import ImportOptions
from memory_pipelines.importers.chat_completions import ChatCompletionsImporter, find
from memory_pipelines.records import ImportedSession

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


def chat(path: Path, **options: Any) -> list[ImportedSession]:
    return list(ChatCompletionsImporter().sessions(path, ImportOptions(**options)))


def texts(imported: ImportedSession) -> list[Any]:
    return [item.data["content"] for item in imported.items if isinstance(item.data, dict)]


def times(imported: ImportedSession) -> list[datetime | None]:
    return [item.said_at for item in imported.items]


def test_actor_session_and_time_are_found_where_the_mapping_says(write: Write):
    path = write(
        {"id": 41, "metadata": {"user_id": "u1", "n": 3}, "messages": [say("a", ts=NINE), say("b", ts=TEN)]},
        {"id": 42, "metadata": {"user_id": 7}, "messages": [say("c", ts=TEN)]},
    )

    first, second = chat(path, actor_field="metadata.user_id", session_field="id", time_field="ts")

    assert (first.actor_id, first.session_id) == ("u1", "41")
    assert (second.actor_id, second.session_id) == ("7", "42")
    assert first.metadata == {"user_id": "u1", "n": "3"}
    assert times(first) == [AT_NINE, AT_TEN]
    assert [item.data for item in first.items] == [say("a", ts=NINE), say("b", ts=TEN)]


def test_a_message_without_time_takes_that_before_it_or_of_the_line(write: Write):
    path = write(
        {"ts": NINE, "messages": [say("a"), say("b", ts=TEN), say("c", ts=None)]},
        {"messages": [say("d", ts=TEN), say("e")]},
    )

    first, second = chat(path, actor="ana", time_field="ts")

    assert times(first) == [AT_NINE, AT_TEN, AT_TEN]
    assert times(second) == [AT_TEN, AT_TEN]


@pytest.mark.parametrize(
    "value",
    [
        "2026-03-02T09:00:00Z",
        "2026-03-02 10:00:00+01:00",
        1772442000,
        1772442000.0,
        1772442000000,
        "1772442000",
        "1772442000000",
    ],
)
def test_times_are_read_as_rfc_3339_seconds_or_milliseconds(write: Write, value: Any):
    path = write({"ts": value, "messages": [say("a")]})

    # 20 514 days from 1970-01-01 to 2026-03-02, and nine hours.
    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=20_514, hours=9) == AT_NINE
    assert times(chat(path, actor="ana", time_field="ts")[0]) == [AT_NINE]


@pytest.mark.parametrize("value", [True, [], "soon", "2026-03-02", "20260302", "nan", 1e300, -5, "", 1772442000000000])
def test_what_is_no_time_is_an_error(write: Write, value: Any):
    path = write({"ts": value, "messages": [say("a")]})

    with pytest.raises(InvalidInputError, match=r"chats\.jsonl:1: the line: ts: .*(RFC 3339|years 1990)"):
        chat(path, actor="ana", time_field="ts")


def test_without_any_time_the_error_names_the_ways_out(write: Write):
    path = write({"messages": [say("a")]})

    with pytest.raises(InvalidInputError, match=r"message 1 has no time .*--time-field PATH, or --assume-time"):
        chat(path, actor="ana")
    with pytest.raises(InvalidInputError, match="no time at 'ts' in it or in the line"):
        chat(path, actor="ana", time_field="ts")
    assert times(chat(path, actor="ana", assume_time=AT_NINE)[0]) == [AT_NINE]


def test_file_and_line_stand_in_for_ids_that_are_not_there(write: Write):
    path = write({"messages": [say("a")]}, {"messages": [say("b")]}, name="leo.v2.jsonl")

    by_line = chat(path, actor_field="$file", assume_time=AT_NINE)
    (by_file,) = chat(path, actor="ana", session_field="$file", assume_time=AT_NINE)

    assert [(found.actor_id, found.session_id) for found in by_line] == [("leo.v2", "leo.v2:1"), ("leo.v2", "leo.v2:2")]
    assert by_file.session_id == "leo.v2"
    assert texts(by_file) == ["a", "b"]


def test_a_log_that_repeats_the_conversation_in_each_line_gives_it_once(write: Write):
    asked, answered, again = say("a"), {"role": "assistant", "content": "b"}, say("a")
    path = write(
        {"id": "s1", "ts": NINE, "messages": [asked]},
        {"id": "s1", "ts": TEN, "messages": [asked, answered, again]},
    )

    (found,) = chat(path, actor="ana", session_field="id", time_field="ts")

    assert texts(found) == ["a", "b", "a"]
    assert times(found) == [AT_NINE, AT_TEN, AT_TEN]


def test_a_log_with_one_message_a_line_keeps_repeated_words(write: Write):
    path = write(*({"id": "s1", "ts": time, "messages": [say("yes")]} for time in (NINE, TEN)))

    (found,) = chat(path, actor="ana", session_field="id", time_field="ts")

    assert texts(found) == ["yes", "yes"]
    assert times(found) == [AT_NINE, AT_TEN]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"prompt": "a"}, "no messages; expected an array"),
        ({"messages": {}}, "messages is an object"),
        ({"messages": ["a"]}, "message 1 is a string; expected an object with a role"),
        ({"messages": [say("a"), {"content": "b"}]}, "message 2 is an object without a role"),
    ],
)
def test_lines_without_messages_are_errors(write: Write, line: dict[str, Any], message: str):
    with pytest.raises(InvalidInputError, match=rf"chats\.jsonl:1: {message}"):
        chat(write(line), actor="ana", assume_time=AT_NINE)


@pytest.mark.parametrize("value", [None, "", True, 1.5, ["ana"]])
def test_an_actor_that_is_not_there_is_an_error_that_shows_what_the_line_has(write: Write, value: Any):
    path = write({"user": value, "messages": []})

    with pytest.raises(InvalidInputError, match=r"at 'user'; expected .* The line has messages, user: give --actor-"):
        chat(path, actor_field="user")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a", {"b": [{"c": 1}, 2]}),
        ("a.b.0.c", 1),
        ("a.b.1", 2),
        ("x.y", 3),
        ("a.b.2", None),
        ("a.b.-1", None),
        ("a.b.0.c.d", None),
        ("a.q", None),
        ("x.y.z", None),
        ("", None),
    ],
)
def test_dotted_paths(path: str, found: Any):
    assert find({"a": {"b": [{"c": 1}, 2]}, "x.y": 3}, path) == found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give --actor VALUE for the whole file, or --actor-field PATH"),
        ({"actor": "ana", "session_field": "$fil"}, r"--session-field is '\$fil'; expected a dotted path, \$file or"),
        ({"actor_field": "$user"}, r"--actor-field is '\$user'"),
    ],
)
def test_chat_completions_refuses_options_that_cannot_work(tmp_path: Path, options: dict[str, Any], message: str):
    for use in (ChatCompletionsImporter().sessions, ChatCompletionsImporter().check):
        with pytest.raises(InvalidInputError, match=message):
            use(tmp_path / "unread", ImportOptions(**options))
