"""Reads items: who says what, whichever of the usual message forms the data has. What nobody said is cut out."""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from pydantic import JsonValue

from memory_pipelines.records import Item, Speaker, Turn
from memory_pipelines.wording import elide

SPEECH_TOKENS = 1000
"""What is kept of one turn of a person or agent; pastes are longer. About 4,000 Latin characters."""

RESULT_TOKENS = 150
"""What is kept of a tool's result. About 600 Latin characters."""

CALL_TOKENS = 40
"""What is kept of the arguments of a tool call."""

_SPEAKERS: dict[str, Speaker] = {
    "user": "actor",
    "assistant": "other",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
}
_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal"})
_CALLS = frozenset({"function_call", "custom_tool_call", "mcp_call", "tool_use"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_result"})

# Software marks what it adds with tags of its own. Markup that people write seldom has "_" or "-" in a tag.
_OPENING = re.compile(
    r"<([A-Za-z]\w*[-_][\w-]*|memory|memories|context|instructions|documents?|environment)(?:\s[^<>]*)?>", re.IGNORECASE
)
_CLOSING = re.compile(r"</([A-Za-z][\w-]*)")
_NEVER_TYPED = frozenset({"system-reminder", "system_reminder", "environment_context", "relevant_memories"})
"""Tags after which nothing is a person's, even when the closing one is missing."""
_WRAPPED = re.compile(r"</?(?:user|human)[-_](?:query|message|input|prompt|request|question)(?:\s[^<>]*)?>", re.I)
_RECALLED = re.compile(
    r"^[ \t]*(?:[#>*_\[]+[ \t]*)?(?:here (?:are|is)[ \w]{0,20} )?"
    r"(?:(?:relevant|related|recalled|retrieved|stored|saved|known|past|previous|long-?term|user'?s?|your)[ _-]+)*"
    r"(?:memory|memories|facts (?:about|known about) the user|user profile|memory context"
    r"|(?:memorias|recuerdos)(?: relevantes| relacionad[oa]s| guardad[oa]s)?"
    r"|(?:相关|用户|历史)?(?:记忆|回忆)|(?:الذكريات|ذكريات)(?: ذات الصلة| ذات صلة)?)"
    r"(?: (?:from|about|of|for) [^\n:]{0,40})?[\]*_ \t]*[:：]?[\]*_ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_LISTED = re.compile(r"[ \t]*(?:[-*•·]|\d{1,3}[.)、]|\[[^\]\n]*\])[ \t]*\S|[ \t]{2,}\S")
_NOT_TYPED = re.compile(
    r"\s*(?:\[request interrupted by user[^\]]*\]|caveat: the messages below were generated"
    r"|this session is being continued from a previous conversation|# agents\.md instructions)",
    re.IGNORECASE,
)
_CUT = "\n[...]\n"


def turns_of(items: Sequence[Item]) -> tuple[Turn, ...]:
    """Read what items say.

    Args:
        items: in order.

    Returns:
        Turns in order. An item may give two, when a message of the person carries tool results as well, or none:
        reasoning, images and whatever else is no message. All text is a stretch of the item's own text, but for
        the marks where something was left out.
    """
    return tuple(turn for item in items for turn in _turns(item))


def own_words(text: str) -> str:
    """Cut out of a person's message what software put there: reminders, recalled memories, descriptions of a machine.

    Args:
        text: the message.

    Returns:
        What is left, with a mark where something was cut from the middle; empty when nobody typed any of it.
    """
    if _NOT_TYPED.match(text):
        return ""
    text = _WRAPPED.sub("", text)
    text = _without_recalled(_without_tagged(text))
    parts = [part.strip() for part in text.split(_CUT.strip())]
    return _CUT.join(part for part in parts if part)


def _without_tagged(text: str) -> str:
    closings: dict[str, list[int]] = {}  # tag to where it closes, in order: a hostile text opens thousands
    for closing in _CLOSING.finditer(text):
        closings.setdefault(closing[1].lower(), []).append(closing.start())
    kept: list[str] = []
    start = 0
    while (opening := _OPENING.search(text, start)) is not None:
        tag = opening[1].lower()
        places = closings.get(tag, [])
        later = bisect_left(places, opening.end())
        if later == len(places) and tag not in _NEVER_TYPED:
            kept.append(text[start : opening.end()])
            start = opening.end()
            continue
        kept += [text[start : opening.start()], _CUT]
        end = text.find(">", places[later]) if later < len(places) else -1
        start = end + 1 if end >= 0 else len(text)
    kept.append(text[start:])
    return "".join(kept)


def _without_recalled(text: str) -> str:
    kept: list[str] = []
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        if not _RECALLED.match(lines[number]) or not _announces(lines, number):
            kept.append(lines[number])
            number += 1
            continue
        number = _end_of_block(lines, number + 1)
        kept.append(_CUT.strip())
    return "\n".join(kept)


def _announces(lines: Sequence[str], number: int) -> bool:
    """A heading needs a colon or a mark of its own, or a list below it: "memories" alone may be a word of a poem."""
    line = lines[number].strip()
    following = next((one for one in lines[number + 1 :] if one.strip()), "")
    return bool(following) and (line[-1] in ":：" or line[0] in "#[*" or _LISTED.match(following) is not None)


def _end_of_block(lines: Sequence[str], number: int) -> int:
    while number < len(lines) and not lines[number].strip():
        number += 1
    listed = number < len(lines) and _LISTED.match(lines[number]) is not None
    while number < len(lines):
        if not lines[number].strip():
            following = next((n for n in range(number, len(lines)) if lines[n].strip()), len(lines))
            if not (listed and following < len(lines) and _LISTED.match(lines[following])):
                return following
            number = following
        elif listed and not _LISTED.match(lines[number]):
            return number
        number += 1
    return number


def _turns(item: Item) -> Iterator[Turn]:
    data = item.data
    if not isinstance(data, dict):
        return
    kind = data.get("type")
    if kind in _CALLS:
        yield from _turn(item, "other", _call(data), name=_text(data.get("name")))
    elif kind in _RESULTS:
        yield from _turn(item, "tool", _result(data), name=_text(data.get("name")))
    elif isinstance(kind, str) and kind != "message":
        return
    else:
        yield from _message(item, data)


def _message(item: Item, data: Mapping[str, JsonValue]) -> Iterator[Turn]:
    role = data.get("role")
    speaker = _SPEAKERS.get(role) if isinstance(role, str) else None
    if speaker is None:
        return
    name = _text(data.get("name"))
    content = data.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    results = [_result(part) for part in parts if part.get("type") in _RESULTS]
    if results:
        yield from _turn(item, "tool", "\n".join(results), name=None)
    text = content if isinstance(content, str) else "\n".join(_text(part.get("text")) or "" for part in _spoken(parts))
    if speaker == "tool":
        yield from _turn(item, "tool", elide(text.strip(), tokens=RESULT_TOKENS), name=name)
        return
    if speaker == "actor":
        text = own_words(text)
    calls = [_call(part) for part in parts if part.get("type") in _CALLS]
    asked = data.get("tool_calls")
    calls += [_call(call) for call in asked if isinstance(call, dict)] if isinstance(asked, list) else []
    spoken = elide(text.strip(), tokens=SPEECH_TOKENS)
    yield from _turn(item, speaker, "\n".join(filter(None, [spoken, *calls])), name=name)


def _spoken(parts: Sequence[dict[str, JsonValue]]) -> list[dict[str, JsonValue]]:
    return [part for part in parts if part.get("type", "text") in _TEXT_PARTS]


def _turn(item: Item, speaker: Speaker, text: str, *, name: str | None) -> Iterator[Turn]:
    if text.strip():
        yield Turn(
            session_id=item.session_id,
            item_id=item.id,
            position=item.position,
            speaker=speaker,
            name=name,
            text=text,
            said_at=item.said_at,
        )


def _call(call: Mapping[str, JsonValue]) -> str:
    function = call.get("function")
    inner = cast("Mapping[str, JsonValue]", function) if isinstance(function, dict) else call
    given = next((inner[key] for key in ("arguments", "input") if inner.get(key) is not None), "")
    return f"[calls {_text(inner.get('name')) or 'a tool'}({elide(_json(given), tokens=CALL_TOKENS)})]"


def _result(result: Mapping[str, JsonValue]) -> str:
    given = next((result[key] for key in ("output", "content") if result.get(key) is not None), "")
    if isinstance(given, list):
        texts = [_text(part.get("text")) for part in given if isinstance(part, dict)]
        given = "\n".join(text for text in texts if text)
    return elide(_json(given).strip(), tokens=RESULT_TOKENS)


def _json(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None
