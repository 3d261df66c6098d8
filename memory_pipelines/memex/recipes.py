"""Short recipes over agents: several rollouts of one task, and labels for what went wrong."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, create_model

from memory_pipelines.errors import InvalidInputError, MemoryPipelinesError
from memory_pipelines.gateway.base import Gateway, Usage
from memory_pipelines.memex.agent import Agent, Outcome
from memory_pipelines.memex.kernels.reading import texts
from memory_pipelines.memex.trajectory import Trajectory

ResultT = TypeVar("ResultT")

AGGREGATE = (
    "`trajectories` holds {n} independent attempts at the task below. Look at what each did and submitted "
    "(t.value, t.turns, t.outputs, t.grep(regex)), trust what they found over what they claim, and submit the best "
    "answer.\n\nTask:\n{task}"
)

AUDIT = (
    "`trajectories` is a list of rollouts. Find where each went wrong. Submit a list of findings: `trajectory` is the "
    "index in the list, `turn` the number of the turn, `evidence` words of that turn, verbatim. Submit [] when "
    "nothing went wrong.\n\nLabels:\n{labels}"
)


@dataclass(frozen=True)
class Parallel(Generic[ResultT]):
    """What came of several rollouts of one task."""

    value: ResultT  # the aggregator's
    usage: Usage  # of all rollouts, failed ones and the aggregator's included
    outcomes: tuple[Outcome[Any], ...]  # of the rollouts that ended well
    errors: tuple[MemoryPipelinesError, ...]  # of those that did not
    trajectory: Trajectory  # of the aggregator


class Finding(BaseModel):
    """One thing that went wrong in a rollout."""

    trajectory: int = Field(ge=0)  # index in the list
    turn: int = Field(ge=1)
    label: str  # of the taxonomy
    evidence: str = Field(min_length=1)  # words of that turn


async def parallel(
    agent: Agent[Any],
    task: str,
    n: int,
    *,
    aggregator: Agent[ResultT],
    scope: Mapping[str, Any] | None = None,
    folder: Path | str | None = None,
) -> Parallel[ResultT]:
    """Run a task several times at once, and let an aggregator answer with the trajectories in its scope.

    Args:
        agent: does the task; a temperature above 0 makes the attempts differ. Give it no `trajectory` of its own,
            which its attempts would share.
        task: in words.
        n: how many rollouts.
        aggregator: answers; the scope of the task is its scope too.
        scope: variables of the task.
        folder: where rollouts write their trajectories, `rollout-1.jsonl` and so on; None for memory alone.

    Returns:
        The aggregator's value, and what came of the rollouts.

    Raises:
        InvalidInputError: `n` is below 1, or `scope` holds `trajectories`.
        MemoryPipelinesError: every rollout failed: the error of the first one; or the aggregator's.
    """
    given = dict(scope or {})
    if n < 1 or "trajectories" in given:
        raise InvalidInputError(
            f"n is {n} and the scope holds {', '.join(given) or 'nothing'}: n must be at least 1, and `trajectories` "
            "is the aggregator's; give the variable another name"
        )
    files = [None if folder is None else Path(folder) / f"rollout-{number}.jsonl" for number in range(1, n + 1)]
    ended = await asyncio.gather(*(_attempt(agent, task, given, file) for file in files))
    outcomes = tuple(one for one in ended if isinstance(one, Outcome))
    errors = tuple(one for one in ended if isinstance(one, MemoryPipelinesError))
    if not outcomes:
        raise errors[0]
    trajectories = [outcome.trajectory for outcome in outcomes]
    asked = AGGREGATE.format(n=len(trajectories), task=task)
    best = await aggregator.run(asked, scope={**given, "trajectories": trajectories})
    spent = [outcome.usage for outcome in outcomes] + [Usage(**error.facts.get("usage", {})) for error in errors]
    return Parallel(
        value=best.value,
        usage=sum(spent, start=best.usage),
        outcomes=outcomes,
        errors=errors,
        trajectory=best.trajectory,
    )


async def audit(
    trajectories: Sequence[Trajectory],
    taxonomy: Mapping[str, str],
    *,
    model: str,
    gateway: Gateway,
    **options: Any,
) -> Outcome[list[Finding]]:
    """Label what went wrong in rollouts.

    Args:
        trajectories: to look through.
        taxonomy: label to what it means; other labels are not accepted.
        model: as the gateway names it.
        gateway: asks the model.
        options: further ones of the `Agent`.

    Returns:
        The findings; the evidence of each stands in the turn that it names.

    Raises:
        InvalidInputError: there is no label.
        MemoryPipelinesError: from the rollout.
    """
    if not taxonomy:
        raise InvalidInputError("the taxonomy is empty; give at least one label with its meaning")
    label: Any = Literal[tuple(taxonomy)]
    kind = create_model("Finding", __base__=Finding, label=(label, ...))

    def supported(findings: list[Finding]) -> list[Finding]:
        for at, finding in enumerate(findings):
            if finding.trajectory >= len(trajectories):
                raise ValueError(f"[{at}].trajectory: there are {len(trajectories)}, counted from 0")
            turns = [turn for turn in trajectories[finding.trajectory].turns if turn.number == finding.turn]
            if not any(finding.evidence in text for turn in turns for event in turn.events for text in texts(event)):
                raise ValueError(f"[{at}].evidence: these words do not stand in turn {finding.turn}")
        return findings

    result: Any = Annotated[list[kind], AfterValidator(supported)]
    auditor: Agent[list[Finding]] = Agent(model=model, gateway=gateway, result=result, **options)
    labels = "\n".join(f"- {name}: {meaning}" for name, meaning in taxonomy.items())
    return await auditor.run(AUDIT.format(labels=labels), scope={"trajectories": list(trajectories)})


async def _attempt(
    agent: Agent[Any], task: str, scope: Mapping[str, Any], file: Path | None
) -> Outcome[Any] | MemoryPipelinesError:
    try:
        return await agent.run(task, scope=scope, trajectory=file)
    except MemoryPipelinesError as error:
        return error
