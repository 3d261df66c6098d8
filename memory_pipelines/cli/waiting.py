"""Waiting for a run that an orchestrator works on, and the bar that shows how far a run is."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from memory_pipelines.cli.output import console, warn
from memory_pipelines.cli.program import command
from memory_pipelines.errors import DeadlineError
from memory_pipelines.names import run_name
from memory_pipelines.records import Run

if TYPE_CHECKING:
    from memory_pipelines.wiring import App

POLL_SECONDS = 0.5
REMIND_SECONDS = 30
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells count signals."""


def run_bar(*, quiet: bool) -> Progress:
    """Return a bar of actors or stages; it shows itself on terminals only."""
    return Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console, transient=True, disable=quiet or not console.is_terminal,
    )  # fmt: skip


def warn_of_silence(name: str) -> None:
    """Say that nobody is there to start a run, and what to do."""
    pipeline = name.split("/")[1]
    warn(
        f"no orchestrator has looked for work in the last minute, so {name} waits. Start one: `{command('dev')}`. Or"
        f" run in this process: `{command(f'pipeline cancel {name}')}`, then"
        f" `{command(f'pipeline run {pipeline} --here')}`."
    )


def wait_for(
    context: "App",
    asked: Run,
    *,
    quiet: bool,
    timeout: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until a run ends, saying from time to time that nobody works on it when that is so.

    Args:
        context: where the run was asked for.
        asked: which run.
        quiet: show no bar.
        timeout: seconds to wait at most; None for no limit.
        clock: seconds, never going back.
        sleep: waits that many seconds.

    Raises:
        DeadlineError: the time is up; the run goes on.
        typer.Exit: Ctrl-C was pressed; the run goes on.
    """
    name = run_name(asked.pipeline_id, asked.number)
    goes_on = f"{name} goes on. See it: `{command(f'pipeline runs {asked.pipeline_id}')}`." + (
        f" End it: `{command(f'pipeline cancel {name}')}`."
    )
    began = reminded = clock()
    try:
        with run_bar(quiet=quiet) as bar:
            task = bar.add_task("waiting for the orchestrator", total=None)
            while (seen := context.pipelines.get_run(name)).state == "RUNNING":
                results = context.pipelines.results(name)
                if results:
                    ended = sum(result.state in {"succeeded", "failed", "cancelled"} for result in results)
                    bar.update(task, total=len(results), completed=ended, description="actors")
                elif seen.start_time:
                    bar.update(task, description="started")
                if timeout is not None and clock() - began >= timeout:
                    raise DeadlineError(f"no end within {timeout:g} s; {goes_on}", run=name, seconds=timeout)
                if clock() - reminded >= REMIND_SECONDS:
                    reminded = clock()
                    if context.pipelines.orchestrator_silent():
                        context.pipelines.close_over(asked.pipeline_id)
                        if context.pipelines.get_run(name).state == "RUNNING":
                            warn_of_silence(name)
                sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        warn(goes_on)
        raise typer.Exit(INTERRUPTED) from None
