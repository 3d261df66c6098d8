"""Data frames in the host: what the model is told of them, and what they are without a kernel."""

import asyncio
from typing import Any

import pytest

from memory_pipelines.memex.events import recordable
from memory_pipelines.memex.frames import expected, rows
from memory_pipelines.memex.kernels.arrow import Unopened, opened
from memory_pipelines.memex.kernels.describing import frame_text, kind_of
from memory_pipelines.memex.looking import look
from memory_pipelines.memex.prompt import task_message
from memory_pipelines.memex.stubs import stubs
from memory_pipelines.memex.tools import Tool, tool_of

pd = pytest.importorskip("pandas", reason="the extra `frames` is not installed")
pa = pytest.importorskip("pyarrow", reason="the extra `frames` is not installed")

FRAME = pd.DataFrame({"n": [1, 2], "secret word": ["hush", "hush"]})
TABLE = pa.table({"n": [1, 2]})
PACKED = {"$arrow": "AAAA", "as": "DataFrame", "is": "DataFrame of shape 2 x 1"}


def frame() -> pd.DataFrame:
    """Give rows."""
    return FRAME


def test_frames_are_told_apart() -> None:
    assert [kind_of(one) for one in (FRAME, TABLE, FRAME.n, [1], None)] == ["DataFrame", "Table", None, None, None]


def test_the_model_sees_shape_and_columns_and_no_content() -> None:
    text = task_message("Do it.", {"df": FRAME, "t": TABLE})
    assert "- df: DataFrame of shape 2 x 2, columns: n (int64), secret word (str)" in text
    assert "- t: Table of shape 2 x 1, columns: n (int64)" in text
    assert "hush" not in text


def test_many_and_long_columns_are_cut() -> None:
    wide = pd.DataFrame({f"c{number}": [1] for number in range(40)} | {"line\nbreak " + "x" * 100: [1]})
    text = frame_text(wide)
    assert text.endswith("c29 (int64), and 11 more")
    assert "\n" not in frame_text(wide[[wide.columns[-1]]])
    assert len(frame_text(wide[[wide.columns[-1]]])) < 120


def test_stubs_name_the_kind() -> None:
    def both(first: int) -> list[pd.DataFrame | pa.Table]:
        return []

    assert "-> pandas.DataFrame:" in stubs([tool_of(frame)])
    assert "-> list[pandas.DataFrame | pyarrow.Table]:" in stubs([tool_of(both)])


def test_without_a_kernel_frames_are_rows() -> None:
    plain = {"columns": ["n", "secret word"], "data": [[1, "hush"], [2, "hush"]]}
    assert rows(FRAME) == plain
    assert rows(TABLE) == {"columns": ["n"], "data": [[1], [2]]}
    tool = tool_of(frame)
    fields = {name: getattr(tool, name) for name in Tool.__dataclass_fields__}
    assert asyncio.run(Tool(**{**fields, "plain": True}).call({})) == plain


def test_trajectories_keep_what_a_frame_was_and_not_its_content() -> None:
    kept: Any = recordable(asyncio.run(tool_of(frame).call({})))
    assert kept == "<DataFrame of shape 2 x 2, columns: n (int64), secret word (str)>"


def test_what_cannot_be_opened_says_why_it_is_missing() -> None:
    missing = opened(PACKED)
    assert isinstance(missing, Unopened)
    assert "the DataFrame of shape 2 x 1 could not be opened here" in repr(missing)
    with pytest.raises(AttributeError, match="could not be opened"):
        _ = missing.columns
    with pytest.raises(TypeError, match="could not be opened"):
        _ = missing["n"]


def test_values_that_only_look_packed_are_left_alone() -> None:
    for value in ({"$arrow": 1, "as": "x", "is": "y"}, {"$arrow": "AAAA"}, [{"$arrow": None}], "$arrow"):
        assert opened(value) == value


def test_a_first_look_at_a_frame_is_never_all_of_it() -> None:
    text, whole = look({"df": FRAME}, 500)
    assert text.startswith("- df =")
    assert not whole


@pytest.mark.parametrize(
    ("scope", "tool", "likely"),
    [
        ({"df": FRAME}, None, True),
        ({"a": 1, "tables": [1, TABLE]}, None, True),
        ({"by": {"day": FRAME}}, None, True),
        ({}, frame, True),
        ({"a": [1, "x-arrow"], "b": {}, "text": "DataFrame"}, None, False),
        ({}, len, False),
    ],
)
def test_frames_are_expected_where_scope_or_tools_have_them(scope: dict[str, Any], tool: Any, likely: bool) -> None:
    schemas = [None] if tool in (None, len) else [tool_of(tool).returns]

    assert expected(scope.values(), schemas) is likely
