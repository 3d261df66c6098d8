"""Hashes by which the lines of an entry are known: what a line says counts, how it is marked does not."""

import pytest

from memory_pipelines.stores.hashes import line_hash, lines_of


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("- I like tea.", "I like tea."),
        ("  * I like  tea. ", "i like tea."),
        ("12. I like tea.", "I like tea."),
        ("- [x] I like tea.", "I like tea."),
        ("- Ayer (2026-02-17) firmamos.", "Ayer (2026-02-17) firmamos."),
        ("- Left at 10. Came at 11.", "Left at 10. Came at 11."),
        ("- a - b", "a - b"),
    ],
)
def test_a_line_is_known_by_its_text_with_or_without_its_marker(line: str, text: str) -> None:
    assert line_hash(line) == line_hash(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ayer (2026-02-17) firmamos.", "Ayer (2026-02-18) firmamos."),
        ("Left at 10. Came at 11.", "Left at 12. Came at 11."),
        ("a - b", "a b"),
        ("- [ ] pay", "- [ ] paid"),
    ],
)
def test_lines_that_differ_after_the_marker_are_different_lines(one: str, other: str) -> None:
    assert line_hash(one) != line_hash(other)
    assert len(lines_of(f"- {one}\n- {other}\n")) == 2
