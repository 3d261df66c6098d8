"""`pipeline run`, `runs`, `results` and `cancel`."""

from typing import TYPE_CHECKING, Annotated

import typer

from memory_pipelines.cli.output import AsJson, console, counted, opened, print_json, print_record, print_records
from memory_pipelines.cli.pipeline import PipelineId
from memory_pipelines.cli.program import command
from memory_pipelines.cli.report import print_summary
from memory_pipelines.cli.waiting import run_bar, wait_for, warn_of_silence
from memory_pipelines.errors import InvalidInputError
from memory_pipelines.names import run_name
from memory_pipelines.records import Run

if TYPE_CHECKING:
    from memory_pipelines.wiring import App

app = typer.Typer()
RunName = Annotated[str, typer.Argument(help="memory-pipelines/<id>/runs/<n>, or the number with --pipeline.")]
OfPipeline = Annotated[str | None, typer.Option("--pipeline", help="The pipeline that a bare number belongs to.")]

WhoseWindows = Annotated[str, typer.Option("--actor", help="Whose conversation.")]
OfSession = Annotated[str | None, typer.Option("--session", help="Only windows of this session.")]


@app.command(epilog="Example: memory-pipelines pipeline run support --wait")
def run(
    pipeline: PipelineId,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress until the run ends.")] = False,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="How long --wait waits at most; the run goes on.")
    ] = None,
    here: Annotated[bool, typer.Option("--here", help="Run in this process; needs no daemon.")] = False,
    actor: Annotated[list[str] | None, typer.Option(help="Only this actor; may be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """Process every actor with unprocessed conversation.

    Without --here the orchestrator (memory-pipelines dev, or your Dagster daemon) starts the run within seconds.
    """
    if timeout is not None and not wait:
        raise InvalidInputError("--timeout goes with --wait: nothing else waits for an orchestrator")
    if wait and here:
        raise InvalidInputError("--wait and --here exclude each other: a run in this process is waited for anyway")
    with opened() as context:
        asked = context.pipelines.run(pipeline, asked_by="here" if here else "cli", launch=not here, actors=actor)
        if here:
            run_in_process(context, asked, quiet=as_json)
        elif context.pipelines.orchestrator_silent():
            warn_of_silence(run_name(asked.pipeline_id, asked.number))
        if wait:
            wait_for(context, asked, quiet=as_json, timeout=timeout)
        if not (wait or here):
            name = run_name(asked.pipeline_id, asked.number)
            print_record(
                asked, as_json=as_json, said=f"Asked for {name}. Watch it: {command(f'pipeline runs {pipeline}')}"
            )
            return
        finish(context, asked, as_json=as_json)


def finish(context: "App", asked: Run, *, as_json: bool) -> None:
    """Print a run that ended, and end the command with its exit code."""
    summary = context.pipelines.summary(run_name(asked.pipeline_id, asked.number))
    if as_json:
        print_json(summary)
    else:
        print_summary(summary)
    if summary.run.state != "SUCCEEDED":
        raise typer.Exit(1)


def run_in_process(context: "App", asked: Run, *, quiet: bool) -> None:
    """Execute a run's Dagster job in this process, with a progress bar."""
    # Imported here: Dagster takes a second to import, and no other command needs it.
    from memory_pipelines.orchestration.here import run_here

    with run_bar(quiet=quiet) as bar:
        total = 3 * len(context.pipelines.pending(asked.pipeline_id))
        task = bar.add_task("starting", total=total or None)

        def show(actor: str, stage: str, state: str) -> None:
            ended = state not in {"started", "again"}
            bar.update(task, advance=1 if ended else 0, description=f"{stage} {actor[:32]}: {state}")

        run_here(context, asked, on_event=show)


@app.command(epilog="Example: memory-pipelines pipeline runs support --limit 5")
def runs(
    pipeline: PipelineId,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, newest first.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the runs of a pipeline, newest first."""
    with opened() as context:
        print_records(
            context.pipelines.runs(pipeline, limit=limit),
            ["number", "state", "kind", "asked_by", "create_time", "end_time", "error"],
            as_json=as_json,
            empty=f"No runs yet. Start one: {command(f'pipeline run {pipeline}')}",
        )


@app.command(epilog="Example: memory-pipelines pipeline results 3 --pipeline support")
def results(run: RunName, pipeline: OfPipeline = None, as_json: AsJson = False) -> None:
    """Show what a run did, for each actor."""
    with opened() as context:
        summary, rows = (
            context.pipelines.summary(run, pipeline=pipeline),
            context.pipelines.results(run, pipeline=pipeline),
        )
        if as_json:
            print_json({"summary": summary, "actors": rows})
            return
        print_summary(summary)
        print_records(
            rows,
            ["actor_id", "state", "sessions", "facts", "created", "updated", "deleted", "error"],
            as_json=False,
            empty="No actor had anything to process.",
        )


@app.command(epilog="Example: memory-pipelines pipeline cancel memory-pipelines/support/runs/3")
def cancel(run: RunName, pipeline: OfPipeline = None, as_json: AsJson = False) -> None:
    """Stop a run within seconds; what is finished stays, the rest resumes with the next run."""
    with opened() as context:
        asked = context.pipelines.cancel(run, pipeline=pipeline)
        said = (
            f"{run_name(asked.pipeline_id, asked.number)}: {'stopping' if asked.state == 'RUNNING' else asked.state}."
        )
        print_record(asked, as_json=as_json, said=said)


@app.command(epilog="Example: memory-pipelines pipeline backfill support --made-by offline --here")
def backfill(
    pipeline: PipelineId,
    actor: Annotated[list[str] | None, typer.Option(help="Only this actor; may be repeated. Default: all.")] = None,
    made_by: Annotated[str | None, typer.Option(help="Only actors with facts found by this model.")] = None,
    here: Annotated[bool, typer.Option("--here", help="Run in this process; needs no daemon.")] = False,
    as_json: AsJson = False,
) -> None:
    """Read the whole history of actors again; what memory holds already is not doubled."""
    with opened() as context:
        actors = context.pipelines.backfill(pipeline, actors=actor, made_by=made_by)
        if not actors:
            print_json({"actors": []}) if as_json else console.print("No actor to read again.")
            return
        asked = context.pipelines.run(pipeline, asked_by="here" if here else "cli", launch=not here, actors=actors)
        if here:
            run_in_process(context, asked, quiet=as_json)
            finish(context, asked, as_json=as_json)
            return
        name = run_name(asked.pipeline_id, asked.number)
        print_record(
            asked, as_json=as_json, said=f"Asked for {name} over {counted(len(actors), 'actor')}, from the beginning."
        )


@app.command(epilog="Example: memory-pipelines pipeline retry support --actor u1")
def retry(pipeline: PipelineId, actor: WhoseWindows, session: OfSession = None, as_json: AsJson = False) -> None:
    """Have windows that were set aside after three failures read again by the next run."""
    with opened() as context:
        number = context.pipelines.retry(pipeline, actor_id=actor, session_id=session)
        print_json({"windows": number}) if as_json else console.print(
            f"{counted(number, 'window')} will be read again."
        )


@app.command(epilog="Example: memory-pipelines pipeline skip support --actor u1 --session s9")
def skip(pipeline: PipelineId, actor: WhoseWindows, session: OfSession = None, as_json: AsJson = False) -> None:
    """Leave windows that were set aside after three failures out for good."""
    with opened() as context:
        number = context.pipelines.skip(pipeline, actor_id=actor, session_id=session)
        _windows(number, "Left out for good", as_json=as_json)


def _windows(number: int, what: str, *, as_json: bool) -> None:
    print_json({"windows": number}) if as_json else console.print(f"{what}: {counted(number, 'window')}.")
