import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.text import clean_json, clean_text

KEPT = ["👩‍👩‍👧‍👦", "e\u0301", "\u202eabc\u202c", "مرحبا", "𝕏", "\ufeff", "line\r\n\ttab", "\x1b[0m", "\ufffd", ""]


@pytest.mark.parametrize("text", KEPT)
def test_text_that_can_be_stored_is_kept(text: str) -> None:
    assert clean_text(text) == text


def test_nul_and_lone_surrogates_are_replaced() -> None:
    assert clean_text("a\x00b\ud800c\udfffd") == "a\ufffdb\ufffdc\ufffdd"


@given(st.text(st.characters(exclude_categories=[])))
def test_cleaned_text_can_always_be_encoded_and_keeps_its_length(text: str) -> None:
    cleaned = clean_text(text)

    assert len(cleaned) == len(text)
    assert "\x00" not in cleaned
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned


def test_json_is_cleaned_in_keys_and_values() -> None:
    value = {"a\x00": ["\ud800", 1, 2.5, None, True, {"b": ("x\x00",)}]}

    assert clean_json(value) == {"a\ufffd": ["\ufffd", 1, 2.5, None, True, {"b": ["x\ufffd"]}]}


def test_what_is_not_json_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="bytes") as caught:
        clean_json({"a": b"x"})

    assert caught.value.kind == "bytes"
