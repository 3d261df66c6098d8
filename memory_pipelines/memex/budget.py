"""What a rollout may cost, and the counting of it."""

from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field

from memory_pipelines.errors import BudgetExceededError
from memory_pipelines.gateway.base import Usage

_NEAR = 0.8
"""The share of a budget from which on the model is told that it ends."""


class Budget(BaseModel):
    """Bounds of one rollout. What is None is not bounded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    turns: int = Field(default=30, gt=0)  # answers of the model, unreadable ones included
    seconds: float = Field(default=600.0, gt=0)  # from the start to the end, wall clock
    tokens: int | None = Field(default=None, gt=0)  # prompt and answer of all calls
    cost: float | None = Field(default=None, gt=0)  # US dollars of all calls
    calls: int | None = Field(default=None, gt=0)  # answers of the model, those of subagents included


class Meter:
    """Counts what one rollout spends of its budget."""

    def __init__(self, budget: Budget, *, clock: Callable[[], float], parent: "Meter | None" = None) -> None:
        """Start counting.

        Args:
            budget: the bounds.
            clock: seconds that only grow.
            parent: counts the same too, and whose bounds hold as well, but for its turns.
        """
        self.budget = budget
        self.turns = 0
        self._calls = 0
        self._parent = parent
        self.usage = Usage()
        self._clock = clock
        self._started = clock()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._started

    @property
    def last_turn(self) -> bool:
        """Whether the next answer is the last that may come."""
        return self.turns == self.budget.turns - 1

    @property
    def used_up(self) -> bool:
        """Whether no further answer may come."""
        return any(spent >= limit for spent, limit in self._bounded().values())

    def child(self, *, turns: int) -> "Meter":
        """A meter for a subagent: it has turns of its own; all else is counted and bounded here."""
        return Meter(Budget(turns=turns, seconds=self.budget.seconds), clock=self._clock, parent=self)

    def begin_turn(self) -> None:
        """Count one more answer of the model, before it is asked for.

        Raises:
            BudgetExceededError: something is used up; `budget` names it, `limit` and `spent` say how far.
        """
        for name, (spent, limit) in self._bounded().items():
            if spent >= limit:
                raise self.exceeded(name)
        self.turns += 1
        self._count()

    def _count(self) -> None:
        self._calls += 1
        if self._parent is not None:
            self._parent._count()

    def add(self, usage: Usage) -> None:
        """Count what a call cost."""
        self.usage = self.usage + usage
        if self._parent is not None:
            self._parent.add(usage)

    def notice(self) -> str | None:
        """One line for the model when a budget nears its end, else None."""
        if self.last_turn:
            return "[last turn: submit now]"
        near = [name for name, (spent, limit) in self._bounded().items() if spent >= _NEAR * limit]
        if not near:
            return None
        return f"[{' and '.join(near)} nearly used up: submit soon]"

    def exceeded(self, name: str) -> BudgetExceededError:
        """The error for one bound.

        Args:
            name: turns, seconds, tokens, cost or calls.

        Returns:
            The error, to be raised by the caller.
        """
        spent, limit = self._bounded()[name]
        return BudgetExceededError(
            f"the rollout ended without a result: {spent:,.6g} of {limit:,.6g} {name} are used. "
            f"Allow more by Budget({name}=...) or give it less to do.",
            budget=name,
            limit=limit,
            spent=spent,
        )

    def _bounded(self) -> dict[str, tuple[float, float]]:
        bounds: dict[str, tuple[float, float | None]] = {
            "turns": (self.turns, self.budget.turns),
            "seconds": (round(self.seconds, 3), self.budget.seconds),
            "tokens": (self.usage.tokens, self.budget.tokens),
            "cost": (self.usage.cost, self.budget.cost),
            "calls": (self._calls, self.budget.calls),
        }
        own = {name: (spent, limit) for name, (spent, limit) in bounds.items() if limit is not None}
        if self._parent is None:
            return own
        return {**self._parent._bounded(), "turns": own["turns"]}
