"""The first stage: a piece of conversation in, candidate facts out. The host looks for their evidence afterwards."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from memory_pipelines.memex.tools import Tool, tool_of
from memory_pipelines.records import Candidate, Entry, Turn, Window
from memory_pipelines.stages.base import Desk, Distilled, StageSettings
from memory_pipelines.stages.candidates import MOST, RULES_VERSION, propose
from memory_pipelines.stages.effort import effort_of, reads_alone
from memory_pipelines.stages.languages import TOPICS, language_of
from memory_pipelines.stages.scope import WindowSpan, remembered, said, spans
from memory_pipelines.stages.times import has_relative_time, resolve
from memory_pipelines.wording import find_verbatim, question_of, words


@cache
def _prompt(name: str) -> str:
    return (files("memory_pipelines.stages") / "prompts" / f"distill_{name}.md").read_text(encoding="utf-8")


ANSWER_SCHEMA: Mapping[str, Any] = {
    "type": "array",
    "maxItems": MOST,
    "items": {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "kind": {"enum": ["fact", "preference", "correction", "procedure"]},
            "topic": {"enum": list(TOPICS)},
        },
        "required": ["text", "kind", "topic"],
        "additionalProperties": False,
    },
}
"""What binds a small model's answer. No quote: small models cite badly, and the host finds the evidence itself."""


_LANGUAGES = {"es": "español", "zh": "中文", "ar": "العربية"}


def _version() -> str:
    made_by = [_prompt("small"), _prompt("strong"), _prompt("long"), repr(ANSWER_SCHEMA), RULES_VERSION]
    return f"distill-{hashlib.sha256(chr(0).join(made_by).encode()).hexdigest()[:12]}"


PROMPT_VERSION = _version()
"""Changes with the prompts, the schema or the rules, so that facts made by an older one can be told apart."""


def needs_model(window: Window) -> bool:
    """Say whether the actor says anything in a window; one without is committed without a call."""
    return any(turn.speaker == "actor" and any(char.isalpha() for char in turn.text) for turn in window.turns)


async def distill(
    window: Window,
    *,
    entries: Sequence[Entry],
    desk: Desk,
    settings: StageSettings,
    parts: Sequence[WindowSpan] = (),
) -> Distilled:
    """Extract candidate facts from one window, or from several that were joined for a strong model.

    Args:
        window: new turns of one actor with what was said before; already redacted.
        entries: what is remembered of the actor, for the `strong` profile.
        desk: does the rollout.
        settings: of the pipeline and the model.
        parts: the windows that were joined; none for a window that is read whole.

    Returns:
        Candidates with dates resolved. Their evidence is not checked yet.

    Raises:
        StageError: the output could not be read, or the model refused.
        GatewayError: the provider failed.
        BudgetExceededError: a limit was reached.
    """
    if not needs_model(window):
        return Distilled()
    if settings.profile == "small":
        found = await desk.ask(
            purpose="distill",
            task=small_task(window, instructions=settings.instructions),
            result=list[Candidate],
            tools=[rules_of(window)],
            answer_schema=ANSWER_SCHEMA,
        )
    else:
        parts = parts or spans([window])
        found = await desk.ask(
            purpose="distill",
            task=strong_task(parts, settings=settings),
            result=list[Candidate],
            scope={
                "items": said(window.turns),
                "windows": list(parts),
                "earlier": said(window.context),
                "entries": remembered(entries),
                "instructions": settings.instructions.strip(),
            },
            tools=[rules_of(window), quotes_of(window)],
            effort=effort_of(window.tokens, settings, parts=len(parts)),
        )
    candidates: list[Candidate] = list(found)
    return Distilled(candidates=tuple(_dated(candidate, window) for candidate in candidates))


def rules_of(window: Window) -> Tool:
    """Make the tool `candidate_facts`, which finds candidates in a window by fixed rules.

    Args:
        window: what the rules read.
    """

    def candidate_facts(start: int = 0, stop: int | None = None) -> list[Candidate]:
        """Find candidate facts in items[start:stop] by fixed rules: the actor's sentences that look lasting. No LLM."""
        first, last, _ = slice(start, stop).indices(len(window.turns))
        return propose(window.turns[first:last], context=(*window.context, *window.turns[:first]))

    return tool_of(candidate_facts)


def quotes_of(window: Window) -> Tool:
    """Make the tool `missing_quotes`, which holds quotes against what the actor said.

    Args:
        window: where the quotes should stand.
    """
    texts = [turn.text for turn in window.turns if turn.speaker == "actor"]

    def missing_quotes(quotes: list[str]) -> list[str]:
        """Give those of the quotes that no new item of the actor holds word for word."""
        return [quote for quote in quotes if not any(find_verbatim(quote, text) for text in texts)]

    return tool_of(missing_quotes)


def strong_task(parts: Sequence[WindowSpan], *, settings: StageSettings) -> str:
    """Write the task for the `strong` profile: how to work, and what to keep; the conversation is in scope.

    Args:
        parts: the windows that there are to read.
        settings: of the pipeline and the model.
    """
    tokens = sum(part.tokens for part in parts)
    long = "" if reads_alone(len(parts), tokens, settings) else _prompt("long")
    task = Template(_prompt("strong")).substitute(
        long=Template(long).substitute(windows=len(parts), tokens=f"{tokens:,}"),
        topics=", ".join(TOPICS),
        instructions=_wishes(settings.instructions),
    )
    return task.strip()


def small_task(window: Window, *, instructions: str = "") -> str:
    """Write the whole task for the `small` profile: the actor's turns, and the questions they answer.

    Other parties' statements are left out: small models take them for the actor's.

    Args:
        window: what to read.
        instructions: of the pipeline.
    """
    lines: list[str] = []
    said_on = ""
    asked = next((question_of(turn.text) for turn in reversed(window.context) if turn.speaker == "other"), "")
    for turn in window.turns:
        if turn.speaker == "other":
            asked = question_of(turn.text)
        if turn.speaker != "actor":
            continue
        day = f"[{turn.said_at:%Y-%m-%d}, {_weekday(turn.said_at)}]"
        if day != said_on:
            lines.append(day)
            said_on = day
        if asked:
            lines.append(f"Other: {' '.join(asked.split())}")
            asked = ""
        lines.append(f"User{f' ({turn.name})' if turn.name else ''}: {turn.text}")
    task = Template(_prompt("small")).substitute(
        instructions=_wishes(instructions), conversation="\n".join(lines), language=_language(window)
    )
    return "\n".join(line for line in task.splitlines() if line.strip())


def _language(window: Window) -> str:
    """Name the language of most of the actor's words: told "the user's language" a small model answers in English."""
    said = " ".join(turn.text for turn in window.turns if turn.speaker == "actor")
    return _LANGUAGES.get(language_of(said) or "", "the language of the user's words")


def _weekday(moment: datetime) -> str:
    return ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")[moment.weekday()]


def _wishes(instructions: str) -> str:
    return f"The owner of this memory also wants: {instructions.strip()}\n" if instructions.strip() else ""


def _dated(candidate: Candidate, window: Window) -> Candidate:
    if not has_relative_time(candidate.text):
        return candidate
    return candidate.model_copy(update={"text": resolve(candidate.text, _said_at(candidate, window))})


def _said_at(candidate: Candidate, window: Window) -> datetime:
    """When what a candidate most likely rests on was said: its quote, else the turn that shares most words."""
    turns = [turn for turn in window.turns if turn.speaker == "actor"]
    quoting = (turn for turn in turns if candidate.quote and find_verbatim(candidate.quote, turn.text))
    bag = set(words(candidate.text))

    def shared(turn: Turn) -> int:
        return len(bag & set(words(turn.text)))

    return next(quoting, max(turns, key=shared)).said_at
