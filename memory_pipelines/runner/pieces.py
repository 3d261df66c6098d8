"""Pure steps between the stores and the stages: redaction on the way in, facts and untouched lines on the way out."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory_pipelines.guards.grounding import Grounding
from memory_pipelines.records import Change, Entry, Fact, Item, SessionNews, Source, Span, Tombstone, Window
from memory_pipelines.redaction import redact, redact_json, redact_many
from memory_pipelines.runner.work import ActorWork


def basis_of(model: str, instructions: str, prompt_version: str) -> str:
    """Return the hash of what a fact was made by; facts not yet merged are made anew when it changes."""
    return hashlib.sha256(json.dumps([model, instructions, prompt_version]).encode()).hexdigest()[:32]


def redact_news(news: Iterable[SessionNews]) -> list[SessionNews]:
    """Redact every string of every item; nothing else of a rollout sees the conversation."""

    def clean(items: Sequence[Item]) -> tuple[Item, ...]:
        return tuple(item.model_copy(update={"data": redact_json(item.data)}) for item in items)

    return [one.model_copy(update={"items": clean(one.items), "before": clean(one.before)}) for one in news]


def hash_items(news: Iterable[SessionNews]) -> dict[str, str]:
    """Return item id to the hash of its data, as it was said, for the memory of removals."""
    return {
        item.id: hashlib.sha256(json.dumps(item.data, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
        for one in news
        for item in (*one.before, *one.items)
    }


def redact_window(window: Window) -> Window:
    """Redact what only shows when the turns of a window are read in a row: a secret said in two halves."""
    turns = (*window.context, *window.turns)
    texts = redact_many([turn.text for turn in turns])
    clean = tuple(turn.model_copy(update={"text": text}) for turn, text in zip(turns, texts, strict=True))
    split = len(window.context)
    return window.model_copy(update={"context": clean[:split], "turns": clean[split:]})


def redact_entries(entries: Iterable[Entry]) -> list[Entry]:
    """Redact entries for a rollout, line by line where that keeps the lines.

    An entry in which a secret spans lines is left out: its lines could not be given back unchanged.
    """
    clean: list[Entry] = []
    for entry in entries:
        content = redact(entry.content)
        if content.count("\n") == entry.content.count("\n"):
            clean.append(entry.model_copy(update={"content": content, "description": redact(entry.description)}))
    return clean


def restore_lines(changes: Iterable[Change], originals: Iterable[Entry]) -> list[Change]:
    """Give lines that a stage left alone their original text, where redaction had changed what the stage saw."""
    back = {
        seen: original
        for entry in originals
        for seen, original in zip(redact(entry.content).split("\n"), entry.content.split("\n"), strict=False)
        if seen != original
    }
    if not back:
        return list(changes)
    bare = {_unmarked(seen): _unmarked(original) for seen, original in back.items()}
    return [
        change.model_copy(
            update={
                "content": "\n".join(back.get(line, line) for line in change.content.split("\n")),
                "ties": tuple(
                    tie.model_copy(update={"line": back.get(tie.line) or bare.get(_unmarked(tie.line), tie.line)})
                    for tie in change.ties
                ),
            }
        )
        for change in changes
    ]


def _unmarked(line: str) -> str:
    """Return a line without its list mark, as ties may name it."""
    return line.strip().removeprefix("- ").strip()


@dataclass(frozen=True)
class Known:
    """What is known of an actor before a window is read."""

    basis: str  # hash of model, instructions and prompt version
    hashes: Mapping[str, str]  # item id to the hash of its data
    buried: Sequence[Tombstone]  # what was removed by hand
    outdated: Sequence[Span]  # what was said and superseded; found again it is history, not news


def facts_of(
    found: Iterable[Grounding], window: Window, *, work: ActorWork, known: Known
) -> tuple[list[Fact], Counter[str]]:
    """Make facts of what was found with its evidence.

    Args:
        found: candidates with the turn and the verbatim quote that support them.
        window: where they were found.
        work: whose facts they are, in which run, found by which model.
        known: what is known before.

    Returns:
        The facts, and how many were left out because a person or agent had removed them.
    """
    facts: list[Fact] = []
    dropped: Counter[str] = Counter()
    for number, grounding in enumerate(found):
        candidate, turn, quote = grounding.candidate, grounding.turn, grounding.quote
        item_hash, start = known.hashes[turn.item_id], turn.text.index(quote)
        end = start + len(quote)
        if any(grave.meets(item_hash, start, end) for grave in known.buried):
            dropped["removed"] += 1
            continue
        name = json.dumps([work.pipeline.id, window.id, known.basis, number, candidate.text])
        facts.append(
            Fact(
                id=hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32],
                actor_id=work.actor_id,
                text=candidate.text,
                kind=candidate.kind,
                quote=quote,
                topic=candidate.topic,
                source=Source(
                    session_store=work.pipeline.session_store,
                    session_id=turn.session_id,
                    item_id=turn.item_id,
                    position=turn.position,
                    item_hash=item_hash,
                    start=start,
                    end=end,
                ),
                observed_at=turn.said_at,
                pipeline_id=work.pipeline.id,
                run=work.run.number,
                window_id=window.id,
                model=work.model,
                basis=known.basis,
                state="superseded" if any(span.meets(item_hash, start, end) for span in known.outdated) else "new",
            )
        )
    return facts, dropped
