"""Frames: every message survives the way, and nothing that a worker can send harms the host."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.memex.kernels.messages import Call, Done, Ready, decode, understand
from memory_pipelines.memex.kernels.wire import HEAD, FrameError, Frames, pack

LIMIT = 1 << 16
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    # surrogates can stand in text of a conversation, and pass from the host to the worker
    | st.text(st.characters(codec=None), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
messages = st.dictionaries(st.text(max_size=5), json_values, max_size=4)


def frame(body: bytes) -> bytes:
    return HEAD.pack(len(body)) + body


@given(st.lists(messages, max_size=4), st.integers(1, 50))
def test_messages_survive_any_cutting_of_the_stream(sent: list[dict[str, object]], step: int) -> None:
    stream = b"".join(pack(message, LIMIT) for message in sent)
    frames = Frames(LIMIT)
    pieces = (stream[at : at + step] for at in range(0, len(stream), step))
    assert [message for piece in pieces for message in frames.feed(piece)] == sent


def test_a_frame_starts_with_its_length_in_little_endian() -> None:
    assert pack({"a": 1}, LIMIT) == b'\x07\x00\x00\x00{"a":1}'


def test_a_message_above_the_limit_is_not_packed() -> None:
    assert pack({"a": "x" * 92}, 100)  # {"a":""} is 8 bytes
    with pytest.raises(FrameError, match="101 bytes are more than the 100"):
        pack({"a": "x" * 93}, 100)


def test_a_frame_above_the_limit_is_refused_before_its_body_came() -> None:
    with pytest.raises(FrameError, match=r"a frame of 4,294,967,295 bytes"):
        list(Frames(LIMIT).feed(b"\xff\xff\xff\xff"))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"junk", id="no JSON"),
        pytest.param(b"", id="empty"),
        pytest.param(b"[1]", id="not an object"),
        pytest.param(b'{"a":NaN}', id="NaN"),
        pytest.param(b'{"a":-Infinity}', id="infinity"),
        pytest.param(b'{"a":1e999}', id="a number that overflows to infinity"),
        pytest.param(b'{"a":"\\ud800"}', id="lone surrogate, escaped"),
        pytest.param(b'{"a":"\xed\xa0\x80"}', id="lone surrogate, raw"),
        pytest.param(b'{"a":"\xff"}', id="not UTF-8"),
        pytest.param(b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}", id="deep"),
        pytest.param(b'{"a":' + b"1" * 60_000 + b"}", id="huge integer"),
    ],
)
def test_what_is_not_plain_json_is_refused(body: bytes) -> None:
    with pytest.raises(FrameError):
        list(Frames(1 << 20, decode).feed(frame(body)))


@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_but_a_frame_error(data: bytes) -> None:
    try:
        for message in Frames(LIMIT, decode).feed(frame(data) + data):
            understand(message)
    except FrameError:
        pass


DONE = {
    "type": "done",
    "run": 1,
    "output": "3",
    "cut": 0,
    "error": None,
    "submitted": False,
    "value": None,
    "interrupted": False,
    "milliseconds": 0.5,
}


def test_messages_of_a_worker_are_understood() -> None:
    assert isinstance(understand({"type": "ready", "pid": 1, "confined": {}}), Ready)
    call = {"type": "call", "id": 1, "run": 1, "namespace": "m", "tool": "t", "arguments": {}}
    assert isinstance(understand(call), Call)
    done = understand(DONE)
    assert isinstance(done, Done)
    assert done.output == "3"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"type": "exec"}, "exec"),
        ({"run": "1"}, "run"),
        ({"output": 3}, "output"),
        ({"cut": -1}, "cut"),
        ({"error": "x" * 20_001}, "error"),
        ({"more": 1}, "more"),
    ],
)
def test_a_message_that_does_not_fit_is_refused_with_the_place(change: dict[str, object], where: str) -> None:
    with pytest.raises(FrameError, match=where):
        understand(json.loads(json.dumps({**DONE, **change})))
