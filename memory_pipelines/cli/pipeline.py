"""`pipeline`: create, list, get, update, delete, pause, resume."""

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from memory_pipelines.cli.output import (
    AsJson,
    Yes,
    confirm,
    counted,
    model_name,
    opened,
    print_deleted,
    print_json,
    print_parts,
    print_record,
    print_records,
)
from memory_pipelines.cli.policy import Line, budgets_in_words, line_of, model_in_words, trigger_in_words
from memory_pipelines.cli.program import command
from memory_pipelines.errors import InvalidInputError
from memory_pipelines.records import Pipeline, Trigger

app = typer.Typer(help="Memory pipelines and their runs.", no_args_is_help=True)

PipelineId = Annotated[str, typer.Argument(help="Id or full name of the pipeline.")]
Model = Annotated[
    str | None, typer.Option(help="Model as LiteLLM writes it, such as openai/gpt-5; 'offline' is rules, not an LLM.")
]
Instructions = Annotated[str | None, typer.Option(help="What to remember and where, in words; @FILE reads a file.")]
TriggerName = Annotated[str | None, typer.Option(help="manual, scheduled (daily) or continuous.")]
Cron = Annotated[str | None, typer.Option(help="When a scheduled pipeline runs; default daily, spread by id.")]
Timezone = Annotated[str | None, typer.Option(help="Time zone of --cron, such as Europe/Berlin.")]
Quiet = Annotated[int | None, typer.Option(help="Of a continuous pipeline: seconds after an actor's last item.")]
MaxCalls = Annotated[int | None, typer.Option(help="Budget of a run: model calls.")]
MaxTokens = Annotated[int | None, typer.Option(help="Budget of a run: tokens.")]
MaxCost = Annotated[float | None, typer.Option(help="Budget of a run: US dollars.")]
TRIGGERS = {"manual": "MANUAL_ONLY", "scheduled": "SCHEDULED", "continuous": "CONTINUOUS"}


def _trigger(name: str | None) -> Trigger | None:
    if name is None:
        return None
    known = {**TRIGGERS, **{value.lower(): value for value in TRIGGERS.values()}}
    if name.lower() not in known:
        raise InvalidInputError(f"trigger {name!r} is unknown; allowed are {', '.join(TRIGGERS)}", trigger=name)
    return cast("Trigger", known[name.lower()])


def _instructions(text: str | None) -> str | None:
    if text is None or not text.startswith("@"):
        return text
    path = Path(text[1:])
    if not path.is_file():
        raise InvalidInputError(f"--instructions @{path}: there is no such file", path=str(path))
    return path.read_text(encoding="utf-8")


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


@app.command(
    epilog="Example: memory-pipelines pipeline create --session-store support --memory-store support-memory"
    " --trigger scheduled"
)
def create(
    session_store: Annotated[str, typer.Option(help="Where conversations are read.")],
    memory_store: Annotated[str, typer.Option(help="Where memory is written.")],
    pipeline: Annotated[str | None, typer.Option("--id", help="Its id; default made from the session store's.")] = None,
    display_name: Annotated[str, typer.Option(help="For people.")] = "",
    model: Model = None,
    instructions: Instructions = None,
    trigger: TriggerName = None,
    cron: Cron = None,
    timezone: Timezone = None,
    quiet_seconds: Quiet = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    as_json: AsJson = False,
) -> None:
    """Create a pipeline that joins a session store to a memory store."""
    with opened() as context:
        made = context.pipelines.create(
            session_store=session_store,
            memory_store=memory_store,
            pipeline=pipeline,
            display_name=display_name,
            **_given(
                model=model, instructions=_instructions(instructions), trigger=_trigger(trigger), cron=cron,
                timezone=timezone, quiet_seconds=quiet_seconds, max_calls=max_calls, max_tokens=max_tokens,
                max_cost=max_cost,
            ),
        )  # fmt: skip
        model = model_name(context.pipelines.model_of(made))
        print_record(made, as_json=as_json, said=f"Created memory-pipelines/{made.id} with model {model}.")


@app.command("list", epilog="Example: memory-pipelines pipeline list")
def list_pipelines(as_json: AsJson = False) -> None:
    """List the pipelines."""
    with opened() as context:
        found = [(one, context.pipelines.model_of(one)) for one in context.pipelines.list()]
        if as_json:
            print_json([{**one.model_dump(), "model": model} for one, model in found])
            return
        print_records(
            [line_of(one, model) for one, model in found],
            list(Line.model_fields),
            as_json=False,
            empty="No pipelines. Create one: " + command("pipeline create --session-store S --memory-store M"),
        )


@app.command(epilog="Example: memory-pipelines pipeline get support")
def get(pipeline: PipelineId, as_json: AsJson = False) -> None:
    """Show a pipeline, what waits for it, and its last run."""
    with opened() as context:
        found = context.pipelines.get(pipeline)
        pending, runs = context.pipelines.pending(found.id), context.pipelines.runs(found.id, limit=1)
        model = context.pipelines.model_of(found)
        if as_json:
            print_json(
                {
                    **found.model_dump(),
                    "model": model,
                    "paused": found.policy.paused,
                    "pending_actors": len(pending),
                    "last_run": next(iter(runs), None),
                }
            )
            return
        _show(found, model, len(pending))
        for run in runs:
            print_parts(f"  last run      {run.number}: {run.state} {run.error or ''}".rstrip())


def _show(found: Pipeline, model: str, pending: int) -> None:
    policy = found.policy
    print_parts((f"memory-pipelines/{found.id}", "bold"), f"  {found.display_name}")
    rows = {
        "session store": found.session_store,
        "memory store": found.memory_store,
        "model": model_in_words(found, model),
        "trigger": trigger_in_words(policy),
        "budgets": budgets_in_words(policy),
        "instructions": policy.instructions or "none",
        "pending": counted(pending, "actor"),
    }
    for name, value in rows.items():
        print_parts(f"  {name:<13} {value}")


@app.command(epilog="Example: memory-pipelines pipeline update support --model openai/gpt-5 --max-cost 5")
def update(
    pipeline: PipelineId,
    display_name: Annotated[str | None, typer.Option(help="For people.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Model as LiteLLM writes it; '' for the configured default.")
    ] = None,
    instructions: Instructions = None,
    trigger: TriggerName = None,
    cron: Cron = None,
    timezone: Timezone = None,
    quiet_seconds: Quiet = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    as_json: AsJson = False,
) -> None:
    """Change the given fields and leave the others."""
    changes = _given(
        display_name=display_name, model=model, instructions=_instructions(instructions), trigger=_trigger(trigger),
        cron=cron, timezone=timezone, quiet_seconds=quiet_seconds, max_calls=max_calls, max_tokens=max_tokens,
        max_cost=max_cost,
    )  # fmt: skip
    if not changes:
        raise InvalidInputError("nothing to change; give at least one option, see --help")
    with opened() as context:
        changed = context.pipelines.update(pipeline, **changes)
        print_record(changed, as_json=as_json, said=f"Updated memory-pipelines/{changed.id}: {', '.join(changes)}.")


@app.command(epilog="Example: memory-pipelines pipeline delete support --yes")
def delete(pipeline: PipelineId, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a pipeline; its memory stays, a run in flight finishes."""
    with opened() as context:
        found = context.pipelines.get(pipeline)
        name = f"memory-pipelines/{found.id}"
        confirm(f"Delete {name}? Its memory stays.", yes=yes)
        context.pipelines.delete(found.id)
        print_deleted(name, as_json=as_json, stays=f"memory-stores/{found.memory_store}")


@app.command(epilog="Example: memory-pipelines pipeline pause support")
def pause(pipeline: PipelineId, as_json: AsJson = False) -> None:
    """Stop starting runs by itself; a run in flight goes on."""
    with opened() as context:
        paused = context.pipelines.pause(pipeline)
        print_record(paused, as_json=as_json, said=f"Paused memory-pipelines/{paused.id}.")


@app.command(epilog="Example: memory-pipelines pipeline resume support")
def resume(pipeline: PipelineId, as_json: AsJson = False) -> None:
    """Go back to the trigger that pause took away."""
    with opened() as context:
        resumed = context.pipelines.resume(pipeline)
        said = f"Resumed memory-pipelines/{resumed.id}: {resumed.policy.trigger}."
        print_record(resumed, as_json=as_json, said=said)
