"""The whole matrix of kills: every call and every commit of a run, before, inside and after; and kills by the clock."""

import random
import signal
import sys
from itertools import product
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "acceptance"))
from crash_child import Point, run
from test_crash import LATER, begin, check, killed_and_run_again
from test_crash import undisturbed as undisturbed

STAGES = ("distill", "merge", "maintain")
MATRIX = [
    *(Point("complete", when, number, stage) for stage, when, number in product(STAGES, ("before", "after"), (1, 3))),
    *(
        Point(method, when, number, stage)
        for method, stage, when, number in product(
            ("record_call", "forget_calls"), STAGES, ("before", "inside", "after"), (1, 3)
        )
    ),
    *(
        Point(method, when, number)
        for method, when, number in product(
            ("begin", "commit_window", "commit_merge", "commit_maintain", "end_actor"),
            ("before", "inside", "after"),
            (1, 3),
        )
    ),
    *(
        Point("stage_done", when, number)
        for when, number in product(("before", "inside", "after"), (1, 4, 5, 8, 9, 12))
    ),
    *(
        Point(method, when)
        for method, when in product(("cut", "claim", "discard", "release", "close"), ("before", "inside", "after"))
    ),
]
pytestmark = pytest.mark.soak


@pytest.mark.parametrize("point", MATRIX, ids=str)
def test_killed_anywhere(undisturbed: Path, tmp_path: Path, point: Point) -> None:
    killed_and_run_again(undisturbed, tmp_path, point)


@pytest.mark.parametrize("point", [one for one in MATRIX if one.number == 3], ids=str)
def test_killed_with_four_actors_at_work(undisturbed: Path, tmp_path: Path, point: Point) -> None:
    killed_and_run_again(undisturbed, tmp_path, point, concurrency=4)


def test_killed_again_and_again(undisturbed: Path, tmp_path: Path) -> None:
    begin(tmp_path, undisturbed)
    kills = 0
    for number, point in enumerate(
        [
            Point("record_call", "before", 3, "distill"),
            Point("commit_window", "inside", 4),
            Point("stage_done", "after", 3),
            Point("complete", "after", 2, "merge"),
            Point("commit_merge", "inside", 4),
            Point("record_call", "after", 1, "maintain"),
            Point("commit_maintain", "before", 1),
            Point("end_actor", "inside", 1),
        ]
    ):
        assert run(tmp_path, point, late=number * LATER) == -signal.SIGKILL, point
        kills += 1
    assert run(tmp_path, late=kills * LATER) == 0
    check(tmp_path, undisturbed, kills=kills)


@pytest.mark.parametrize("seed", range(5))
def test_killed_by_the_clock(undisturbed: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    begin(tmp_path, undisturbed)
    kills = 0
    for number in range(50):
        code = run(tmp_path, late=number * LATER, after=chance.uniform(0.5, 2.5), concurrency=4)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        kills += 1
    else:
        assert run(tmp_path, late=50 * LATER, concurrency=4) == 0
    check(tmp_path, undisturbed, kills=kills, concurrency=4)
