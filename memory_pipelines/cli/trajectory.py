"""`trajectory show`."""

from pathlib import Path
from typing import Annotated

import typer

from memory_pipelines.cli.output import AsJson, print_json
from memory_pipelines.cli.turns import print_ending, print_opening, print_turn
from memory_pipelines.errors import NotFoundError
from memory_pipelines.memex import Trajectory
from memory_pipelines.memex.events import Event
from memory_pipelines.memex.trajectory import Turn

app = typer.Typer(help="What a model did, turn by turn.", no_args_is_help=True)


@app.command(epilog="Example: memory-pipelines trajectory show rollout.jsonl --turn 2")
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSONL of one rollout, as an agent wrote it.")],
    turn: Annotated[int | None, typer.Option(min=1, help="Only this turn, whole.")] = None,
    grep: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Only turns with text that this regular expression finds.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a rollout: what was asked, code, output, tools, errors, what was submitted, and what it cost."""
    trajectory = Trajectory.load(file)
    turns = _chosen(trajectory, turn, grep)
    if trajectory.cut:
        typer.echo(f"Note: {file} ends in the middle of a line; this is what can be read.", err=True)
    if as_json:
        print_json(list(_events(trajectory, turns)))
        return
    if turns is None:
        print_opening(trajectory, file)
    for one in trajectory.turns if turns is None else turns:
        print_turn(one, whole=turn is not None)
    if turns is None:
        print_ending(trajectory)
    elif not turns:
        typer.echo("No turn matches.")


def _chosen(trajectory: Trajectory, number: int | None, pattern: str | None) -> list[Turn] | None:
    """The turns that were asked for; None for the whole trajectory."""
    if number is None and pattern is None:
        return None
    turns = list(trajectory.turns)
    if number is not None:
        count = len(turns)
        turns = [one for one in turns if one.number == number]
        if not turns:
            raise NotFoundError(f"there is no turn {number}: the trajectory has {count}", turn=number)
    if pattern is not None:
        found = {getattr(event, "turn", None) for event in trajectory.grep(pattern).stored}
        turns = [one for one in turns if one.number in found]
    return turns


def _events(trajectory: Trajectory, turns: list[Turn] | None) -> list[Event]:
    if turns is None:
        return list(trajectory.events)
    return [event for one in turns for event in one.events]
