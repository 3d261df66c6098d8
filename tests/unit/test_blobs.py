"""Large values of trajectories: once beside the lines, whole when looked at, and free of secrets."""

import hashlib
import json
from pathlib import Path

import pytest

from memory_pipelines.errors import InvalidInputError, NotFoundError
from memory_pipelines.memex.events import Observed, Submitted, ToolCalled
from memory_pipelines.memex.recorder import Recorder
from memory_pipelines.memex.trajectory import Trajectory

LARGE = "tea \U0001f375 " * 3_000


def seen(output: str) -> Observed:
    return Observed(turn=1, number=1, output=output, cut=0, error=None, state="kept", milliseconds=1.0)


def test_a_large_text_is_one_file_named_by_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with Recorder(path) as recorder:
        recorder.add(seen(LARGE))
        recorder.add(seen(LARGE))
        assert recorder.trajectory.outputs[0].output == LARGE

    (file,) = (tmp_path / "t.jsonl.d").iterdir()
    assert file.name == hashlib.sha256(LARGE.encode()).hexdigest() + ".txt"
    assert file.read_text() == LARGE
    assert path.stat().st_size < 3_000
    loaded = Trajectory.load(path)
    assert [event.output for event in loaded.outputs] == [LARGE, LARGE]
    assert loaded.events == recorder.trajectory.events


def test_values_come_back_as_they_were(tmp_path: Path) -> None:
    rows = [{"n": number, "sha256": "0" * 64} for number in range(500)]
    with Recorder(tmp_path / "t.jsonl") as recorder:
        recorder.add(ToolCalled(turn=1, name="f", args={"rows": rows}, result=rows, milliseconds=1))
        recorder.add(Submitted(turn=1, ok=True, value={"rows": rows}))

    loaded = Trajectory.load(tmp_path / "t.jsonl")
    assert loaded.tool_calls[0].args == {"rows": rows}
    assert loaded.tool_calls[0].result == rows
    assert loaded.value == {"rows": rows}
    assert len(list((tmp_path / "t.jsonl.d").iterdir())) == 2  # args and value are the same


@pytest.mark.parametrize(("size", "files"), [(8_192, 0), (8_193, 1)])
def test_only_what_is_above_eight_kilobytes_leaves_the_line(tmp_path: Path, size: int, files: int) -> None:
    with Recorder(tmp_path / "t.jsonl") as recorder:
        recorder.add(seen("x" * size))

    assert len(list(tmp_path.glob("t.jsonl.d/*"))) == files


def test_it_is_read_when_it_is_looked_at(tmp_path: Path) -> None:
    with Recorder(tmp_path / "t.jsonl") as recorder:
        recorder.add(seen(LARGE))
        recorder.add(seen("small"))
    loaded = Trajectory.load(tmp_path / "t.jsonl")
    (file,) = (tmp_path / "t.jsonl.d").iterdir()
    file.unlink()

    assert loaded.outputs[1].output == "small"
    with pytest.raises(NotFoundError, match="keep the two together"):
        loaded.outputs[0]


def test_a_changed_file_is_not_believed(tmp_path: Path) -> None:
    with Recorder(tmp_path / "t.jsonl") as recorder:
        recorder.add(seen(LARGE))
    (file,) = (tmp_path / "t.jsonl.d").iterdir()
    file.write_text("something else")

    with pytest.raises(InvalidInputError, match="was changed"):
        list(Trajectory.load(tmp_path / "t.jsonl").outputs)


def test_a_line_cannot_name_a_file_elsewhere(tmp_path: Path) -> None:
    line = seen("").model_dump(mode="json") | {
        "blobs": {"output": {"sha256": "../secret", "chars": 1, "is_json": False}}
    }
    (tmp_path / "t.jsonl").write_text(json.dumps(line) + "\n")

    with pytest.raises(InvalidInputError, match="line 1"):
        Trajectory.load(tmp_path / "t.jsonl")


def test_what_is_secret_is_replaced_before_it_is_hashed(tmp_path: Path) -> None:
    with Recorder(tmp_path / "t.jsonl", redact=lambda text: text.replace("hunter2", "***")) as recorder:
        recorder.add(seen(LARGE + "hunter2"))

    (file,) = (tmp_path / "t.jsonl.d").iterdir()
    assert file.read_text() == LARGE + "***"
    assert file.name == hashlib.sha256((LARGE + "***").encode()).hexdigest() + ".txt"


def test_grep_looks_into_large_texts(tmp_path: Path) -> None:
    with Recorder(tmp_path / "t.jsonl") as recorder:
        recorder.add(seen(LARGE + "needle"))

    assert [event.output for event in Trajectory.load(tmp_path / "t.jsonl").grep("needle")] == [LARGE + "needle"]


def test_a_new_trajectory_of_the_same_name_leaves_nothing_of_the_old(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with Recorder(path) as recorder:
        recorder.add(seen(LARGE))
    (tmp_path / "t.jsonl.d" / "mine.txt").write_text("not a large value")
    with Recorder(path) as recorder:
        recorder.add(seen("small"))

    assert [file.name for file in (tmp_path / "t.jsonl.d").iterdir()] == ["mine.txt"]
