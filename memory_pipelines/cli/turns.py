"""How the turns of a trajectory are printed for people."""

import json
import re
from pathlib import Path

from rich.padding import Padding
from rich.syntax import Syntax

from memory_pipelines.cli.output import console, model_name, print_parts, shown
from memory_pipelines.memex.answers import Origin
from memory_pipelines.memex.events import Block, Failed, Feedback, Observed, Spawned, Submitted, ToolCalled
from memory_pipelines.memex.fences import scan
from memory_pipelines.memex.trajectory import Trajectory, Turn

LINES, CHARS = 40, 4_000
"""How much of one text is shown unless its turn was asked for."""

# What moves the cursor or turns text round: the model's words must not write on the reader's terminal.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_WRITERS: dict[Origin, str] = {"wrapped": "written by the host round the answer", "repaired": "repaired by the host"}


def print_opening(trajectory: Trajectory, file: Path) -> None:
    """Print what was asked of whom, and behind which wall."""
    print_parts((f"Trajectory {_safe(str(file))}", "bold"))
    header = trajectory.header
    if header is None:
        console.print("  (it ended before the kernel was there)")
        return
    rows = {
        "started": shown(header.at),
        "model": f"{model_name(header.model)}, for {header.purpose}",
        "acts by": "code" if header.action_space == "memex" else header.action_space,
        "kernel": header.kernel,
        "isolation": ", ".join(f"{name} {_plain(value)}" for name, value in header.isolation.items()),
        "tools": ", ".join(header.tools),
        "scope": ", ".join(header.scope),
    }
    for name, value in rows.items():
        if value:
            print_parts(f"  {name:<9} {_safe(value)}")
    if header.task:
        _print_part("task", header.task, number=None)


def print_turn(turn: Turn, *, whole: bool) -> None:
    """Print one turn.

    Args:
        turn: to print.
        whole: leave nothing out of long texts.
    """
    usage = turn.usage
    tokens = f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens"
    console.print(f"\n[bold]Turn {turn.number}[/]  {tokens}, {turn.seconds:.2f} s")
    number = None if whole else turn.number
    # What the fences held is shown as code; an answer in another form is shown as it came.
    fenced = all(block.origin == "model" for block in turn.blocks) and bool(turn.blocks)
    _print_part("said", scan(turn.text).prose if fenced else turn.text, number=number)
    for event in turn.events:
        match event:
            case Block():
                writer = _WRITERS.get(event.origin)
                _print_part(f"code, {writer}" if writer else "code", event.code, number=number, python=True)
            case ToolCalled():
                _print_part("tool", _call(event), number=number)
            case Observed():
                cut = f", {event.cut:,} characters cut by the kernel" if event.cut else ""
                state = "" if event.state == "kept" else f", variables {event.state}"
                _print_part(f"output{cut}{state}", event.output, number=number)
                _print_part("error", event.error or "", number=number, style="red")
            case Submitted():
                _print_part("submitted" if event.ok else "refused", _plain(event.value), number=number, style="green")
                _print_part("because", "\n".join(event.errors), number=number, style="red")
            case Feedback():
                _print_part(f"told, {event.reason}", event.text, number=number, style="red")
            case Spawned():
                given = f" (scope: {', '.join(event.scope)})" if event.scope else ""
                _print_part(f"subagent {event.child}", event.task + given, number=number)
            case _:
                pass


def print_ending(trajectory: Trajectory) -> None:
    """Print how it ended and what all of it cost."""
    for event in trajectory.events:
        if isinstance(event, Failed):
            _print_part(f"failed, {event.error}", event.message, number=None, style="red")
    usage, end = trajectory.usage, trajectory.end
    state = "no end: it is going on or was killed" if end is None else "succeeded" if end.ok else "failed"
    total = f"{usage.tokens:,} ({usage.prompt_tokens:,} prompt, {usage.completion_tokens:,} completion)"
    rows = {
        "turns": f"{len(trajectory.turns)}",
        "calls": f"{usage.calls}",
        "tokens": total,
        "cost": f"${usage.cost:.4f}",
        "seconds": f"{sum(turn.seconds for turn in trajectory.turns) if end is None else end.seconds:.2f}",
    }
    console.print(f"\n[bold]End[/]  {state}")
    for name, value in rows.items():
        console.print(f"  {name:<9} {value}")


def _print_part(name: str, text: str, *, number: int | None, python: bool = False, style: str = "") -> None:
    if not text.strip():
        return
    print_parts((f"  {_safe(name)}", "cyan"))
    kept, left = _shortened(_safe(text.rstrip("\n")), number)
    if python and console.is_terminal:
        console.print(Padding(Syntax(kept, "python", background_color="default", word_wrap=True), (0, 0, 0, 4)))
    else:
        for line in kept.split("\n"):
            console.print(f"    {line}".rstrip(), markup=False, style=style)
    if left:
        console.print(f"    ... {left:,} more characters: --turn {number} shows all", style="dim")


def _shortened(text: str, number: int | None) -> tuple[str, int]:
    if number is None:
        return text, 0
    kept = "\n".join(text.split("\n")[:LINES])[:CHARS]
    return kept, len(text) - len(kept)


def _call(event: ToolCalled) -> str:
    args = ", ".join(f"{name}={_plain(value)}" for name, value in event.args.items())
    came = f"error: {event.error}" if event.error is not None else _plain(event.result)
    return f"{event.name}({args})  {event.milliseconds:.1f} ms\n-> {came}"


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _safe(text: str) -> str:
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\r\n", "\n"))
