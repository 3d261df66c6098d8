"""How a pipeline's policy is said to people."""

from pydantic import BaseModel

from memory_pipelines.cli.output import model_name
from memory_pipelines.records import Pipeline, Policy


class Line(BaseModel):
    """A pipeline in one line of a table."""

    id: str
    session_store: str
    memory_store: str
    trigger: str
    model: str


def line_of(pipeline: Pipeline, model: str) -> Line:
    """Return a pipeline as a line of a table.

    Args:
        pipeline: which.
        model: that its runs use.
    """
    policy = pipeline.policy
    return Line(
        id=pipeline.id,
        session_store=pipeline.session_store,
        memory_store=pipeline.memory_store,
        trigger=f"paused ({policy.resume_trigger})" if policy.paused else policy.trigger,
        model=model_name(model),
    )


def model_in_words(pipeline: Pipeline, model: str) -> str:
    """Return the model that a pipeline's runs use, and whether the pipeline names it itself."""
    return model_name(model) if pipeline.policy.model else f"{model_name(model)}, by default"


def trigger_in_words(policy: Policy) -> str:
    """Return what starts runs, with its details; of a paused pipeline what `resume` restores."""
    trigger = policy.resume_trigger if policy.paused else policy.trigger
    details: list[str] = []
    if policy.cron is not None:
        details.append(f"cron {policy.cron} {policy.timezone}")
    if trigger == "CONTINUOUS":
        details.append(f"after {policy.quiet_seconds} quiet seconds")
    said = f"{trigger} ({', '.join(details)})" if details else f"{trigger}"
    return f"paused; resume restores {said}" if policy.paused else said


def budgets_in_words(policy: Policy) -> str:
    """Return the limits of a run."""
    limits = {
        "calls": None if policy.max_calls is None else f"{policy.max_calls} calls",
        "tokens": None if policy.max_tokens is None else f"{policy.max_tokens} tokens",
        "cost": None if policy.max_cost is None else f"${policy.max_cost:g}",
    }
    given = ", ".join(limit for limit in limits.values() if limit)
    return f"{given} a run" if given else "none"
