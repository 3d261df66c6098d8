"""`quickstart`: sample conversations to memories in one command."""

import contextlib
from typing import TYPE_CHECKING

from rich.console import Console

from memory_pipelines.cli.output import AsJson, console, counted, model_name, opened, print_json
from memory_pipelines.cli.program import command
from memory_pipelines.cli.report import print_memory, print_summary
from memory_pipelines.cli.runs import run_in_process
from memory_pipelines.errors import AlreadyExistsError, MemoryPipelinesError
from memory_pipelines.importers.base import ImportOptions
from memory_pipelines.names import run_name
from memory_pipelines.registry import IMPORTERS
from memory_pipelines.samples import conversations

if TYPE_CHECKING:
    from memory_pipelines.wiring import App

SESSIONS, MEMORY, PIPELINE = "sample-sessions", "sample-memory", "sample"


def quickstart(as_json: AsJson = False) -> None:
    """Import sample conversations, run a pipeline over them, and print what is remembered. Safe to repeat."""
    with opened() as app:
        said = Console(quiet=True) if as_json else console
        report = app.sessions.add_imported(
            SESSIONS, IMPORTERS.load("native")().sessions(conversations(), ImportOptions())
        )
        said.print(
            f"1. Conversations: {counted(report.sessions, 'session')} of {counted(report.actors, 'actor')} in"
            f" session-stores/{SESSIONS} ({counted(report.new_items, 'new item')})."
        )
        model = _pipeline(app)
        said.print(f"2. Pipeline: memory-pipelines/{PIPELINE} writes memory-stores/{MEMORY} with model {model}.")
        said.print("3. Run: the Dagster job, in this process ...")
        run = app.pipelines.run(PIPELINE, asked_by="here", launch=False)
        run_in_process(app, run, quiet=as_json)
        summary = app.pipelines.summary(run_name(run.pipeline_id, run.number))
        if as_json:
            print_json({"imported": report, "summary": summary, "entries": list(app.memory.list(MEMORY))})
        else:
            print_memory(app, MEMORY)
            console.print()
            print_summary(summary)
        if summary.run.state != "SUCCEEDED":
            raise MemoryPipelinesError(summary.run.error or f"the run ended {summary.run.state}")
        if not as_json:
            _what_next(app)


def _pipeline(app: "App") -> str:
    with contextlib.suppress(AlreadyExistsError):
        app.memory.create_store(MEMORY, description="What the sample pipeline remembers.")
    with contextlib.suppress(AlreadyExistsError):
        app.pipelines.create(
            session_store=SESSIONS,
            memory_store=MEMORY,
            pipeline=PIPELINE,
            display_name="Sample",
            trigger="CONTINUOUS",
            quiet_seconds=5,
        )
    return model_name(app.pipelines.model_of(app.pipelines.get(PIPELINE)))


def _what_next(app: "App") -> None:
    offline = app.pipelines.model_of(app.pipelines.get(PIPELINE)) == "offline"
    console.print("\nNext:")
    who = "--actor tom.becker@example.com"
    steps = [
        (command("dev"), "see the run in the Dagster UI, and new sessions flow"),
        (command(f"memory search {MEMORY} units {who}"), "find what is remembered"),
        (
            command(f"memory get {MEMORY} /preferences.md {who} --sources"),
            "see which sentence a line came from",
        ),
        (command(f"memory render {MEMORY} {who}"), "a block ready for a prompt"),
    ]
    if offline:
        steps.append(("export MEMORY_PIPELINES_MODEL=openai/gpt-5", "use an LLM: the memory above was made by rules"))
    for step, why in steps:
        console.print(f"  {step}\n      {why}", markup=False)
