"""Trajectories: what is written is what is read, a crash leaves what was, and secrets stay out."""

import json
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import ValidationError

from memory_pipelines.errors import InvalidInputError, NotFoundError, UnavailableError
from memory_pipelines.gateway.base import Usage
from memory_pipelines.memex.events import (
    Block,
    End,
    Event,
    Failed,
    Header,
    LlmRequest,
    LlmResponse,
    Observed,
    Spawned,
    Submitted,
    ToolCalled,
    recordable,
)
from memory_pipelines.memex.recorder import Recorder
from memory_pipelines.memex.trajectory import Trajectory

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def header() -> Header:
    return Header(
        at=AT, model="m", purpose="distill", action_space="memex", kernel="subprocess", isolation={"env": "empty"}
    )


def two_turns() -> list[Event]:
    return [
        header(),
        LlmRequest(turn=1, messages=2, prefix="aa"),
        LlmResponse(turn=1, text="look", finish="stop", usage=Usage(calls=1, prompt_tokens=10, completion_tokens=2)),
        Block(turn=1, number=1, namespace="main", code="print(x)", origin="model"),
        ToolCalled(turn=1, name="search", args={"query": "tea"}, milliseconds=2.5),
        Observed(turn=1, number=1, output="7\n", cut=0, error=None, state="kept", milliseconds=1.0),
        LlmRequest(turn=2, messages=4, prefix="bb"),
        LlmResponse(turn=2, text="done", finish="stop", usage=Usage(calls=1, prompt_tokens=20, completion_tokens=3)),
        Block(turn=2, number=1, namespace="main", code="submit(7)", origin="model"),
        Observed(turn=2, number=1, output="", cut=0, error=None, state="kept", milliseconds=1.0),
        Submitted(turn=2, ok=True, value=7),
        End(ok=True, turns=2, usage=Usage(calls=2, prompt_tokens=30, completion_tokens=5), seconds=0.5),
    ]


def write(path: Path, events: list[Event]) -> None:
    with Recorder(path) as recorder:
        for event in events:
            recorder.add(event)


def test_a_loaded_trajectory_is_the_recorded_one(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "t.jsonl", two_turns())

    loaded = Trajectory.load(tmp_path / "deep" / "t.jsonl")

    assert list(loaded.events) == two_turns()


def test_its_parts_can_be_looked_at() -> None:
    trajectory = Trajectory(two_turns())

    assert trajectory.header == header()
    assert [block.code for block in trajectory.blocks] == ["print(x)", "submit(7)"]
    assert [seen.output for seen in trajectory.outputs] == ["7\n", ""]
    assert [call.name for call in trajectory.tool_calls] == ["search"]
    assert trajectory.usage == Usage(calls=2, prompt_tokens=30, completion_tokens=5)
    first, second = trajectory.turns
    assert (first.number, first.text, first.submitted) == (1, "look", None)
    assert (second.text, second.blocks[0].code) == ("done", "submit(7)")
    assert second.submitted is not None
    assert second.submitted.value == 7


def test_grep_looks_into_every_string() -> None:
    trajectory = Trajectory(two_turns())

    assert [event.kind for event in trajectory.grep("^tea$")] == ["tool_call"]
    assert [event.kind for event in trajectory.grep(r"submit\(")] == ["block"]
    assert list(trajectory.grep("coffee")) == []
    with pytest.raises(InvalidInputError, match="not a regular expression"):
        trajectory.grep("(")


def test_every_line_is_there_as_soon_as_it_is_added(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with Recorder(path) as recorder:
        for count, event in enumerate(two_turns(), start=1):
            recorder.add(event)
            assert len(Trajectory.load(path).events) == count


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_a_line_that_a_crash_cut_off_is_left_out(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "t.jsonl"
    write(path, [header(), Failed(error="E", status="", message="größer 🙂")])
    first, second, _ = path.read_bytes().split(b"\n")
    path.write_bytes(first + b"\n" + second[:kept])

    assert list(Trajectory.load(path).events) == [header()]


def test_a_line_cut_inside_a_character_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, [header(), Failed(error="E", status="", message="🙂")])
    content = path.read_bytes()
    path.write_bytes(content[: content.index("🙂".encode()) + 2])

    assert list(Trajectory.load(path).events) == [header()]


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f"{header().model_dump_json()}\nnot json\n{header().model_dump_json()}\n")

    with pytest.raises(InvalidInputError, match="line 2") as raised:
        Trajectory.load(path)

    assert raised.value.line == 2


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="absent"):
        Trajectory.load(tmp_path / "absent.jsonl")


def test_redaction_reaches_every_string_and_no_word_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    secret = "hunter2"
    with Recorder(path, redact=lambda text: text.replace(secret, "***").replace("kept", "XXX")) as recorder:
        recorder.add(LlmResponse(turn=1, text=f"it is {secret}", finish="stop", usage=Usage(calls=1)))
        recorder.add(Block(turn=1, number=1, namespace="main", code=f"p = {secret!r}", origin="model"))
        recorder.add(ToolCalled(turn=1, name="f", args={"a": [{secret: secret}]}, error=secret, milliseconds=0))
        recorder.add(Observed(turn=1, number=1, output=secret, cut=0, error=secret, state="kept", milliseconds=0))
        recorder.add(Submitted(turn=1, ok=False, value={"deep": [secret]}, errors=(secret,)))
        recorder.add(Failed(error="E", status="", message=secret))

    written = path.read_text()
    assert secret not in written
    assert secret not in str(recorder.trajectory.events)
    assert len(Trajectory.load(path).grep(r"\*\*\*")) == 6
    assert Trajectory.load(path).outputs[0].state == "kept"


def test_a_file_is_for_its_owner_only(tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", [header()])

    assert stat.S_IMODE((tmp_path / "t.jsonl").stat().st_mode) == 0o600


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UnavailableError, match="cannot be written"):
        Recorder(tmp_path / "file" / "t.jsonl")


def test_a_header_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValidationError, match="timezone"):
        Header(
            at=AT.replace(tzinfo=None),
            model="m",
            purpose="p",
            action_space="memex",
            kernel="k",
            isolation={},
        )


def test_lines_are_plain_json_objects_with_a_kind(tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", two_turns())

    lines = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]

    assert [line["kind"] for line in lines[:3]] == ["header", "llm_request", "llm_response"]
    assert lines[0]["at"] == "2026-03-01T09:30:00Z"


def test_a_turn_says_what_it_ran_what_failed_and_what_it_cost() -> None:
    events = two_turns()
    events.insert(6, Submitted(turn=1, ok=False, value="x", errors=("value: not a number",)))
    first, second = Trajectory(events).turns

    assert (first.code, first.usage.tokens, first.seconds) == ("print(x)", 12, 0.001)
    assert first.errors == ("value: not a number",)
    assert [call.name for call in first.tool_calls] == ["search"]
    assert (second.code, second.errors) == ("submit(7)", ())
    assert Trajectory(events).value == 7


def test_subagents_are_children() -> None:
    child = Spawned(turn=1, child="1.1", task="Look into it.", scope=("rows",))

    assert list(Trajectory([header(), child]).children) == [child]
    assert list(Trajectory(two_turns()).children) == []


def test_a_cut_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, two_turns())
    assert not Trajectory.load(path).cut
    path.write_bytes(path.read_bytes()[:-9])

    loaded = Trajectory.load(path)

    assert loaded.cut
    assert loaded.end is None
    assert loaded.usage.tokens == 35


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"hello\n", "line 1 is not an event"),
        (b"hello", "line 1 is not an event"),
        (b'{"role": "user"}\n', "line 1 is not an event"),
        (b"\xff\xfe\x00", "line 1 is not an event"),
    ],
)
def test_a_file_of_somebody_else_is_one_clear_error(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "t.jsonl").write_bytes(content)

    with pytest.raises(InvalidInputError, match=says):
        Trajectory.load(tmp_path / "t.jsonl")


def test_a_folder_is_no_trajectory(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read"):
        Trajectory.load(tmp_path)


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    line = header().model_copy(update={"format": 99}).model_dump_json()
    (tmp_path / "t.jsonl").write_text(line + "\n")

    with pytest.raises(InvalidInputError, match="newer"):
        Trajectory.load(tmp_path / "t.jsonl")


def test_what_is_no_json_is_kept_by_its_type() -> None:
    deep: list[object] = []
    for _ in range(300):
        deep = [deep]

    assert recordable({"a": float("nan"), 1: (object(), "\ud800")}) == {"a": "nan", "1": ["<object>", "\ufffd"]}
    assert "<list>" in str(recordable(deep))
