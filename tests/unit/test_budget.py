"""What a rollout may cost."""

import pytest

from memory_pipelines.errors import BudgetExceededError
from memory_pipelines.gateway.base import Usage
from memory_pipelines.memex.budget import Budget, Meter


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_as_many_turns_as_allowed_and_no_more() -> None:
    meter = Meter(Budget(turns=2), clock=Clock())
    meter.begin_turn()
    meter.begin_turn()

    with pytest.raises(BudgetExceededError, match="2 of 2 turns"):
        meter.begin_turn()

    assert meter.turns == 2


@pytest.mark.parametrize(
    ("budget", "usage", "name"),
    [
        (Budget(tokens=100), Usage(prompt_tokens=90, completion_tokens=10), "tokens"),
        (Budget(cost=0.5), Usage(cost=0.5), "cost"),
    ],
)
def test_a_bound_that_is_reached_stops_the_next_turn(budget: Budget, usage: Usage, name: str) -> None:
    meter = Meter(budget, clock=Clock())
    meter.begin_turn()
    meter.add(usage)

    with pytest.raises(BudgetExceededError) as raised:
        meter.begin_turn()

    assert raised.value.budget == name


def test_time_is_measured_from_the_start() -> None:
    clock = Clock()
    meter = Meter(Budget(seconds=60), clock=clock)
    clock.now += 59
    meter.begin_turn()
    clock.now += 1

    with pytest.raises(BudgetExceededError) as raised:
        meter.begin_turn()

    assert (raised.value.budget, raised.value.spent) == ("seconds", 60)


def test_the_end_is_announced_once_four_fifths_are_gone() -> None:
    meter = Meter(Budget(turns=30, tokens=100), clock=Clock())
    meter.begin_turn()
    meter.add(Usage(prompt_tokens=79))
    assert meter.notice() is None

    meter.add(Usage(prompt_tokens=1))

    assert meter.notice() == "[tokens nearly used up: submit soon]"


def test_the_last_turn_has_a_notice_of_its_own() -> None:
    meter = Meter(Budget(turns=2), clock=Clock())
    assert not meter.last_turn

    meter.begin_turn()

    assert meter.notice() == "[last turn: submit now]"


def test_unbounded_is_unbounded() -> None:
    meter = Meter(Budget(), clock=Clock())
    meter.add(Usage(prompt_tokens=10**9, cost=10**6))

    meter.begin_turn()

    assert meter.usage.tokens == 10**9
