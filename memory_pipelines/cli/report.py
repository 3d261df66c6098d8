"""How runs and memories are printed for people."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memory_pipelines.cli.output import console, counted, model_name, print_parts
from memory_pipelines.names import run_name
from memory_pipelines.records import Entry, RunSummary

if TYPE_CHECKING:
    from memory_pipelines.wiring import App

COLOURS = {"SUCCEEDED": "green", "FAILED": "red", "CANCELLED": "yellow", "RUNNING": "cyan"}


def print_summary(summary: RunSummary) -> None:
    """Print what a run did and cost."""
    run = summary.run
    usage = summary.usage
    calls = sum(stage.calls for stage in usage)
    prompt = sum(stage.prompt_tokens for stage in usage)
    completion = sum(stage.completion_tokens for stage in usage)
    cost = sum(stage.cost for stage in usage)
    colour = COLOURS[run.state]
    console.print(f"[bold]Run {run_name(run.pipeline_id, run.number)}[/]  [{colour}]{run.state}[/]")
    rows = [
        ("model", model_name(run.model)),
        ("actors", f"{summary.actors} ({summary.succeeded} succeeded, {summary.failed} failed)"),
        ("sessions", f"{summary.sessions} ({counted(summary.items, 'item')})"),
        ("facts", f"{summary.facts} kept{_dropped(summary.dropped)}"),
        ("entries", f"{summary.created} created, {summary.updated} updated, {summary.deleted} deleted"),
        ("calls", f"{calls}"),
        ("tokens", f"{prompt + completion} ({prompt} prompt, {completion} completion)"),
        ("cost", f"${cost:.4f}"),
        ("seconds", f"{summary.seconds:.1f}"),
    ]
    for name, value in rows:
        print_parts(f"  {name:<9} {value}")
    if summary.actors == 0 and run.state == "SUCCEEDED":
        console.print("  Nothing new: every session was processed before.")
    if run.error:
        print_parts("  ", (run.error, "red"))
    for actor, error in summary.failures.items():
        print_parts("  ", (actor, "red"), f": {error}")


def print_entries(entries: Iterable[Entry]) -> None:
    """Print an actor's entries with their paths."""
    for entry in entries:
        print_parts("  ", (entry.path, "cyan"))
        for line in entry.content.splitlines():
            if line.strip():
                print_parts(f"    {line}")


def print_memory(app: "App", store: str) -> None:
    """Print every actor's entries of a memory store."""
    for actor in app.memory.actors(store):
        print_parts("\n", (actor, "bold"))
        print_entries(app.memory.list(store, actor_id=actor))


def _dropped(dropped: dict[str, int]) -> str:
    if not dropped:
        return ""
    reasons = ", ".join(f"{number} {reason.replace('_', ' ')}" for reason, number in sorted(dropped.items()))
    return f"; left out: {reasons}"
