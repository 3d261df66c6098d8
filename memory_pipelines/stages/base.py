"""What the runner gives a stage and gets back: values in, values out. A stage knows no store and no gateway."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from pydantic import Field

from memory_pipelines.memex.tools import Tool
from memory_pipelines.records import Candidate, Change, FactState, Moment, Record

Profile = Literal["small", "strong"]
"""small: conversation in the prompt, answer bound by a schema; strong: code as action over live objects."""


class StageSettings(Record):
    """What a stage needs to know of the pipeline and the model."""

    profile: Profile = "small"
    context_tokens: int = 8192  # of the model, prompt and answer together
    answer_tokens: int = 1024  # reserved for the answer
    instructions: str = ""  # of the pipeline; reach every stage
    max_entry_chars: int = Field(default=4000, ge=200)  # above it maintain splits
    now: Moment


class Effort(Record):
    """What one rollout may take, where that depends on its work. The desk's own budget bounds it too."""

    turns: int  # answers of the model
    tokens: int  # prompt and answer of all calls
    answer_tokens: int  # of one answer
    look_tokens: int = 0  # of the scope in the first message; 0 shows names, types and sizes


class Desk(Protocol):
    """Where a stage has its rollouts done: the runner makes one per actor and stage, with model, kernel and budgets."""

    async def ask(
        self,
        *,
        purpose: str,
        task: str,
        result: Any,
        scope: Mapping[str, Any] | None = None,
        tools: Sequence[Tool] = (),
        answer_schema: Mapping[str, Any] | None = None,
        effort: Effort | None = None,
    ) -> Any:
        """Run one rollout.

        Args:
            purpose: distill, merge or maintain; the offline model answers by it.
            task: what the model is asked, with everything it needs in the `small` profile.
            result: type of what `submit` takes; the value is checked against it.
            scope: live objects for the `strong` profile and the tools.
            tools: what code may call; read-only.
            answer_schema: JSON schema that binds the answer in the `small` profile.
            effort: bounds of this rollout in the `strong` profile; default the desk's own.

        Returns:
            The submitted value, of type `result`.

        Raises:
            StageError: the output could not be read, or the model refused; nothing was changed.
            GatewayError: the provider failed.
            BudgetExceededError: a limit was reached.
        """
        ...


class Distilled(Record):
    """What distill found in one window, without evidence yet."""

    candidates: tuple[Candidate, ...] = ()


class Merged(Record):
    """What merge wants to change, and what became of each fact."""

    changes: tuple[Change, ...] = ()
    settled: dict[str, FactState] = Field(default_factory=dict)  # fact id to merged, duplicate, superseded or skipped
