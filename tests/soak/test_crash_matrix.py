"""The whole matrix of kills: every commit of a run, before and after, several times."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "acceptance"))
from test_crash import test_killed_and_run_again as killed_and_run_again
from test_crash import undisturbed as undisturbed

METHODS = (
    "begin",
    "record_call",
    "commit_window",
    "forget_calls",
    "stage_done",
    "commit_merge",
    "end_actor",
    "release",
)
MATRIX = [(method, when, number) for method in METHODS for when in ("before", "after") for number in (1, 3)]
ONCE = {"release"}  # called once in such a run


@pytest.mark.soak
@pytest.mark.parametrize(("method", "when", "number"), [one for one in MATRIX if one[0] not in ONCE or one[2] == 1])
def test_killed_anywhere(undisturbed: Path, tmp_path: Path, method: str, when: str, number: int) -> None:
    killed_and_run_again(undisturbed, tmp_path, method, when, number)
