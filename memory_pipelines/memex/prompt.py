"""What the model reads: the system prompt, the task, observations and feedback."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, Literal

from memory_pipelines.memex.kernels.base import Observation
from memory_pipelines.memex.kernels.describing import described
from memory_pipelines.memex.stubs import stubs
from memory_pipelines.memex.tools import Tool

KEPT_CHARS = 600
"""How much of an unusable answer stays in the conversation."""


Form = Literal["code", "json", "call", "tools"]
"""What an answer should be: a fenced block, JSON, a native call with code, or native calls of tools."""


def system_prompt(
    tools: Sequence[Tool],
    *,
    result: Mapping[str, Any],
    instructions: str = "",
    output_chars: int = 10_000,
    channel: Literal["text", "tool"] = "text",
    subagents: bool = False,
) -> str:
    """The rules of the work with a kernel, then what can be called, then the instructions.

    The same arguments give the same bytes, so that a provider's cache serves every task of an agent.

    Args:
        tools: in the order in which they are shown.
        result: JSON schema of what `submit` takes.
        instructions: of the agent's owner.
        output_chars: where an observation is cut.
        channel: how code travels.
        subagents: whether the code may start some.

    Returns:
        The text.
    """
    callable_parts = [stubs(tools, result=result), *([_file("spawn.md").strip()] if subagents else [])]
    text = Template(_file("memex.md")).substitute(
        action=_sections("action.md")[channel],
        output_chars=f"{output_chars:,}",
        stubs="\n\n".join(callable_parts),
        instructions=f"\n{instructions.strip()}" if instructions.strip() else "",
    )
    return text.strip()


def tools_prompt(*, instructions: str = "", output_chars: int = 10_000) -> str:
    """The rules of the work with native tool calls; what can be called travels beside the messages.

    Args:
        instructions: of the agent's owner.
        output_chars: where a result is cut.

    Returns:
        The text; the same arguments give the same bytes.
    """
    text = Template(_file("tools.md")).substitute(
        output_chars=f"{output_chars:,}", instructions=f"\n{instructions.strip()}" if instructions.strip() else ""
    )
    return text.strip()


def python_tool() -> dict[str, Any]:
    """The native tool that code travels by."""
    parameters = {
        "type": "object",
        "properties": {"code": {"type": "string"}},
        "required": ["code"],
        "additionalProperties": False,
    }
    return native_tool("python", _sections("action.md")["python"], parameters)


def native_tool(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as a gateway takes it.

    Args:
        name: of the tool.
        description: for the model.
        parameters: JSON schema of the arguments, an object.

    Returns:
        Its OpenAI form.
    """
    function = {"name": name, "description": description, "parameters": dict(parameters)}
    return {"type": "function", "function": function}


def json_prompt(schema: Mapping[str, Any], *, instructions: str = "") -> str:
    """The rules for an answer that is bound by a schema, without code.

    Args:
        schema: JSON schema of the answer.
        instructions: of the agent's owner.

    Returns:
        The text; the same arguments give the same bytes.
    """
    compact = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return Template(_file("json.md")).substitute(schema=compact, instructions=instructions.strip()).strip()


def task_message(task: str, scope: Mapping[str, object], *, look: str = "", notice: str | None = None) -> str:
    """The task and a table of what is in scope; never the contents, but for a look that was asked for.

    Args:
        task: in words.
        scope: the variables that the kernel starts with.
        look: lines that show some of the contents.
        notice: a last line.

    Returns:
        The text.
    """
    parts = [task.strip(), *_table({name: described(value) for name, value in scope.items()})]
    if look:
        parts.append(f"A first look, cut short:\n{look}")
    if notice:
        parts.append(notice)
    return "\n\n".join(parts)


def spawned_message(
    task: str, scope: Mapping[str, str], *, result: Mapping[str, Any] | None, notice: str | None = None
) -> str:
    """The task of a subagent; its system prompt is that of the agent, so what it submits is said here.

    Args:
        task: in words.
        scope: names of the objects that it was given, and what each is.
        result: JSON schema of its result, None for anything.
        notice: a last line.

    Returns:
        The text.
    """
    given = stubs((), result={} if result is None else result)
    how = f"This is a part of a larger work, and all of it that is yours. Its `submit` is another one:\n\n{given}"
    parts = [task.strip(), *_table(scope), how]
    if notice:
        parts.append(notice)
    return "\n\n".join(parts)


def _table(rows: Mapping[str, str]) -> list[str]:
    lines = "\n".join(f"- {name}: {what}" for name, what in rows.items())
    return [f"In scope:\n{lines}"] if rows else []


def observation_text(seen: Observation, *, number: int, blocks: int) -> str:
    """What one block showed.

    Args:
        seen: from the kernel.
        number: of the block in its answer, from 1.
        blocks: how many the answer had.

    Returns:
        The text, with the error if there was one, and a word about the variables if they are not as they were.
    """
    parts = ["[observation]" if blocks == 1 else f"[observation of block {number}]"]
    if seen.output.strip():
        parts.append(seen.output.rstrip("\n"))
    elif seen.error is None:
        parts.append("(nothing was printed)")
    if seen.error is not None:
        parts.append(f"[error]\n{seen.error}")
    if seen.state == "lost":
        parts.append("[the kernel was started anew: variables of earlier blocks are gone; scope and tools are there]")
    elif seen.state == "restored":
        parts.append("[the kernel was started anew: its variables were rebuilt by running earlier blocks again]")
    return "\n".join(parts)


def feedback(problem: str, *, form: Form) -> str:
    """What the model is told of an answer that holds nothing that can be run.

    Args:
        problem: malformed, truncated, empty or repetition.
        form: what the answer should have been.

    Returns:
        The text.
    """
    return _sections("feedback.md")[f"{form}.{problem}"]


def refused_submit(lines: str, *, form: Form) -> str:
    """What the model is told of a value that is not accepted.

    Args:
        lines: what is wrong with it: `path: message`, one a line.
        form: what the answer should have been.

    Returns:
        The text.
    """
    again = "Mend the value and submit it again."
    if form == "json":
        again = "Answer again with JSON that matches the schema."
    return f"[the submitted value was not accepted]\n{lines}\n{again}"


def unread_submit(line: str) -> str:
    """What the model is told once when it submits before it has looked at anything.

    Args:
        line: code that would be a first look.

    Returns:
        The text.
    """
    return (
        "[the submitted value was not accepted]\nNothing of what is in scope was looked at yet. "
        f"Look first, for example by `{line}`, then submit what you found."
    )


def rebound_text(names: Sequence[str]) -> str:
    """What the model is told when a block assigned to names that it was given.

    Args:
        names: of the scope.

    Returns:
        The text.
    """
    return f"[this block assigned to {', '.join(names)}, which you were given: what was there may be gone from it]"


def shortened(answer: str) -> str:
    """An unusable answer as it stays in the conversation: its beginning, never nothing."""
    if not answer:
        return "(no answer)"
    return answer if len(answer) <= KEPT_CHARS else f"{answer[:KEPT_CHARS]}\n[...]"


@cache
def _file(name: str) -> str:
    return (files("memory_pipelines.memex") / "prompts" / name).read_text(encoding="utf-8")


@cache
def _sections(name: str) -> dict[str, str]:
    sections = [part.partition("\n") for part in _file(name).split("# ") if part.strip()]
    return {name.strip(): text.strip() for name, _, text in sections}
