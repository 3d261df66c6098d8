"""Entries as lines: what counts as a line that says something, and that edits leave the rest alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.stages.lines import edit, normal, one_line, read

PAGE = """---
tags: [a]
---
# Work

This page is kept by hand,
and wraps over lines.

- Owns the pipeline
* Runs Dagster\t
1. Reviews first
- Steps of a deploy:
  - pause the sensor
  - run it
- An item
  that goes on

User likes tea
User lives in Graz

| a | b |
|---|---|

```sql
- not a line
```
***
"""


def kinds(content: str) -> dict[str, str]:
    return {line.text: line.kind for line in read(content) if line.text}


def test_kinds_of_lines() -> None:
    found = kinds(PAGE)

    facts = {text for text, kind in found.items() if kind == "fact"}
    assert facts == {
        "Owns the pipeline", "Runs Dagster", "Reviews first", "pause the sensor", "run it",
        "User likes tea", "User lives in Graz",
    }  # fmt: skip
    assert {text for text, kind in found.items() if kind == "other"} == {"# Work", "***"}


def test_headings_are_known() -> None:
    found = {line.text: line.heading for line in read("- a\n# One #\n- b\n\n## Two\n- c\n")}

    assert (found["a"], found["b"], found["c"]) == ("", "One", "Two")


@pytest.mark.parametrize(
    ("one", "other"),
    [("- Likes  TEA ", "* likes tea"), ("1. Cafe\u0301", "Café"), ("- [x] Done", "done"), ("Straße", "STRASSE")],
)
def test_the_same_line_in_other_dress(one: str, other: str) -> None:
    assert normal(one) == normal(other)


def test_one_line_has_no_breaks_and_no_marker() -> None:
    assert one_line("- First\r\nthen\x0bthat\u2028now") == "First then that now"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "- New\n"),
        ("# Work\n", "# Work\n- New\n"),
        ("- a\n\nOutro by hand, it\ngoes on here.\n", "- a\n- New\n\nOutro by hand, it\ngoes on here.\n"),
        ("* a", "* a\n* New\n"),
        ("User likes tea\nUser has a dog\n", "User likes tea\nUser has a dog\nNew\n"),
        ("3. a\n", "3. a\n- New\n"),
        ("- a\r\n- b\r\n", "- a\r\n- b\r\n- New\r\n"),
    ],
)
def test_a_line_is_added_after_the_last_one_and_looks_like_it(content: str, expected: str) -> None:
    assert edit(content, replace={}, add=[(None, "New")]) == expected


@pytest.mark.parametrize("text", ["# no heading", "in small letters", "as follows:", "> quote", "```"])
def test_an_added_line_never_becomes_something_else(text: str) -> None:
    content = edit("User likes tea\nUser has a dog\n", replace={}, add=[(None, text)])

    assert {"User likes tea", "User has a dog", text} == {line.text for line in read(content) if line.kind == "fact"}


ROW = st.sampled_from(
    ["- a", "* b  ", "# H", "", "plain text", "Plain", "  - nested", "```", "> q", "1. x", "- c\r", "\t", "---"]
)


@given(st.lists(ROW, max_size=12), st.data())
@settings(max_examples=150)
def test_lines_that_are_not_named_keep_their_bytes(rows: list[str], data: st.DataObject) -> None:
    content = "\n".join(rows)
    lines = read(content)
    assert "\n".join(line.raw for line in lines) == content
    facts = [line.number for line in lines if line.kind == "fact"]
    gone = data.draw(st.sets(st.sampled_from(facts))) if facts else set[int]()

    left = edit(content, replace=dict.fromkeys(gone))

    assert left == "\n".join(row for number, row in enumerate(content.split("\n")) if number not in gone)
    assert edit(content, replace={}) == content
