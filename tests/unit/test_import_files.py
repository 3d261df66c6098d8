"""Files of one JSON object a line, as they arrive: marked, compressed, cut off, damaged, too long."""

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.importers import jsonl
from memory_pipelines.importers.base import ImportOptions
from memory_pipelines.importers.native import NativeImporter
from memory_pipelines.records import ImportedSession

NINE = "2026-03-02T09:00:00Z"


def say(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def session(actor: str, identifier: str, *items: Any) -> dict[str, Any]:
    return {"actor_id": actor, "session_id": identifier, "items": list(items)}


def native(path: Path) -> list[ImportedSession]:
    return list(NativeImporter().sessions(path, ImportOptions()))


def texts(imported: ImportedSession) -> list[Any]:
    return [item.data["content"] for item in imported.items if isinstance(item.data, dict)]


def _nothing(path: Path) -> None:
    pass


def _directory(path: Path) -> None:
    path.mkdir()


def test_marks_blank_lines_and_carriage_returns_do_no_harm(tmp_path: Path):
    first, second = json.dumps(session("ana", "s1")), json.dumps(session("ana", "s2"))
    path = tmp_path / "windows.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + f"{first}\r\n\r\n  \r\n{second}".encode())

    assert [found.session_id for found in native(path)] == ["s1", "s2"]


def test_a_compressed_file_is_read_whatever_its_name(tmp_path: Path):
    data = gzip.compress((json.dumps(session("ana", "s1", say("¿qué?", at=NINE))) + "\n").encode())
    for name in ("a.jsonl.gz", "a.jsonl"):
        path = tmp_path / name
        path.write_bytes(data)
        assert texts(native(path)[0]) == ["¿qué?"]


def test_a_compressed_file_that_is_cut_off_is_an_error(tmp_path: Path):
    lines = [json.dumps(session("ana", f"s{n}", say(str(n) * 50, at=NINE))) for n in range(200)]
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode())[:-40])

    with pytest.raises(InvalidInputError, match=r"cannot be read after line .*; give a file that is whole"):
        native(path)


def test_a_compressed_file_that_is_damaged_is_an_error(tmp_path: Path):
    lines = [json.dumps(session("ana", f"s{n}", say(str(n * 7919), at=NINE))) for n in range(2000)]
    data = bytearray(gzip.compress("\n".join(lines).encode()))
    data[len(data) // 2 : len(data) // 2 + 64] = bytes(64)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(data)

    report = NativeImporter().check(path, ImportOptions())

    assert report.error_count >= 1
    assert report.sessions < 2000


@pytest.mark.parametrize("make", [_nothing, _directory])
def test_a_path_that_is_no_file_is_an_error(tmp_path: Path, make: Callable[[Path], None]):
    path = tmp_path / "nothing"
    make(path)

    with pytest.raises(InvalidInputError, match=r"nothing: cannot be read: (No such file|Is a directory)"):
        native(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"actor_id": "ana"', "not JSON at column"),
        (b'{\n  "actor_id": "ana"\n}\n', "several lines; `jq -c`"),
        (b'[{"actor_id": "ana"}]', "an array; expected one JSON object"),
        (b'"text"', "a string; expected one JSON object"),
        (b'{"actor_id": "Jos\xe9"}', "byte 18 is not UTF-8"),
        ('{"actor_id": "ana"}'.encode("utf-16"), "the file is UTF-16; save it as UTF-8"),
        (b"\xfe\xff" + '{"actor_id": "ana"}'.encode("utf-16-be"), "the file is UTF-16; save it as UTF-8"),
        ('{"actor_id": "ana"}'.encode("utf-16-le"), "the file is UTF-16; save it as UTF-8"),
        ('{"actor_id": "ana"}'.encode("utf-16-be"), "the file is UTF-16; save it as UTF-8"),
        ('{"actor_id": "ana"}'.encode("utf-32"), "the file is UTF-32; save it as UTF-8"),
        (b"\x00\x00\xfe\xff" + '{"actor_id": "ana"}'.encode("utf-32-be"), "the file is UTF-32; save it as UTF-8"),
        ('{"actor_id": "ana"}'.encode("utf-32-le"), "the file is UTF-32; save it as UTF-8"),
        ('{"actor_id": "ana"}'.encode("utf-32-be"), "the file is UTF-32; save it as UTF-8"),
        (b'{"actor_id": NaN}', "NaN is not JSON"),
        (b'{"actor_id": -Infinity}', "-Infinity is not JSON"),
        (b'{"actor_id": 1e999}', "the number 1e999 is too large"),
        (b'{"actor_id": ' + b"9" * 5000 + b"}", "a whole number has 5000 digits; allowed are 1000"),
        (b'{"actor_id": "a", "actor_id": "b"}', "the key 'actor_id' stands 2 times in one object; keep one of them"),
        (
            b'{"actor_id":"a","session_id":"s","items":[{"role":"user","content":"yes","content":"no"}]}',
            "the key 'content' stands 2 times in one object",
        ),
        (b"[" * 100_000, "nested too deeply"),
        (
            b'{"actor_id":"a","session_id":"s","items":[{"at":"2026-03-02T09:00:00Z","x":%s1%s}]}'
            % (b"[" * 600, b"]" * 600),
            "nested too deeply",
        ),
    ],
)
def test_a_line_that_is_no_json_object_is_named(tmp_path: Path, content: bytes, message: str):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)

    with pytest.raises(InvalidInputError, match=rf"a\.jsonl:1: .*{message}"):
        native(path)


def test_a_file_in_another_encoding_is_one_error_and_not_one_a_line(tmp_path: Path):
    lines = "\n".join(json.dumps(session("ana", f"s{n}")) for n in range(5))
    path = tmp_path / "wide.jsonl"
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"):
        path.write_bytes(lines.encode(encoding))
        report = NativeImporter().check(path, ImportOptions())
        assert report.errors == (f"{path}:1: the file is {encoding[:6].upper()}; save it as UTF-8",)


def test_whole_numbers_of_any_usual_length_are_kept(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    number = -(10**999 - 1)
    path.write_text(json.dumps(session("ana", "s1", say("hi", at=NINE, number=number))))

    assert native(path)[0].items[0].data["number"] == number


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jsonl, "MAX_LINE", 1000)
    path = tmp_path / "bomb.jsonl"
    path.write_bytes(gzip.compress(b" " * 5_000_000))

    report = NativeImporter().check(path, ImportOptions())

    assert report.errors == (f"{path}:1: longer than 1000 bytes; reading stops here, split the line",)


def test_reading_holds_one_session_in_memory(tmp_path: Path):
    path = tmp_path / "big.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(300):
            file.write(json.dumps(session("ana", f"s{number}", say("x" * 50_000, at=NINE))) + "\n")
    sessions = NativeImporter().sessions(path, ImportOptions())
    next(sessions)

    tracemalloc.start()
    count = sum(1 for _ in sessions)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert count == 299
    assert peak < path.stat().st_size / 10


def test_what_comes_before_a_broken_line_is_yielded_first(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(session('ana', 's1'))}\n{json.dumps(session('ana', 's2'))}\n{{broken\n")
    sessions = NativeImporter().sessions(path, ImportOptions())

    assert next(sessions).session_id == "s1"
    with pytest.raises(InvalidInputError, match=r"a\.jsonl:3: not JSON"):
        next(sessions)
