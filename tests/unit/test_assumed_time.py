"""`--assume-time`: the common forms of ISO 8601, and no zone of the machine."""

import time
from collections.abc import Iterator

import pytest

from memory_pipelines.cli.importing import assumed_time
from memory_pipelines.errors import InvalidInputError


@pytest.fixture(autouse=True)
def far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-02", "2026-03-02T00:00:00+00:00"),
        ("20260302", "2026-03-02T00:00:00+00:00"),
        ("2026-W10-1", "2026-03-02T00:00:00+00:00"),
        ("2026-03-02T09:30", "2026-03-02T09:30:00+00:00"),
        ("2026-03-02 09:30:15", "2026-03-02T09:30:15+00:00"),
        ("2026-03-02T09:30:15Z", "2026-03-02T09:30:15+00:00"),
        ("2026-03-02t09:30:15z", "2026-03-02T09:30:15+00:00"),
        ("2026-03-02T09:30:15.5Z", "2026-03-02T09:30:15.500000+00:00"),
        ("2026-03-02T09:30:15,123Z", "2026-03-02T09:30:15.123000+00:00"),
        ("20260302T093015Z", "2026-03-02T09:30:15+00:00"),
        ("2026-03-02T09:30:15+02:00", "2026-03-02T09:30:15+02:00"),
        ("2026-03-02T09:30:15-0330", "2026-03-02T09:30:15-03:30"),
        ("2026-03-02T09:30+05", "2026-03-02T09:30:00+05:00"),
    ],
)
def test_common_forms_are_taken(text: str, moment: str) -> None:
    assert assumed_time(text).isoformat() == moment


@pytest.mark.parametrize("text", ["", "yesterday", "02.03.2026", "2026-13-01", "2026-02-30T10:00Z", "0001-01-01"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"2026-03-02T09:30Z.* UTC"):
        assumed_time(text)
