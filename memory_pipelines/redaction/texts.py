"""Redacts a text, texts that follow each other, and JSON values."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import cast

from memory_pipelines.redaction.patterns import (
    OTHERS,
    TOKENS,
    Found,
    Rule,
    entropy,
    is_slug,
    library_rules,
    private_keys,
    wrapped_tokens,
)
from memory_pipelines.redaction.words import fold, is_secret_name, named_secrets, names_in

_MARKER = re.compile(r"\[redacted: [a-z0-9 ]{1,60}\]")
_REST = re.compile(r"[ \t]*\\?\r?\n[ \t]*([A-Za-z0-9+/_-]{8,}={0,2})[ \t]*(?=\r?\n|$)")


def find_secrets(text: str) -> list[Found]:
    """Find the secrets in a text.

    Knows tokens of many vendors, private keys, passwords in URLs, authorization headers, card numbers, and values
    that a naming word announces ("password is ...", "密码是...", `API_KEY=...`). Markers of earlier redactions are
    passed over.

    Args:
        text: any text, of any length; the cost is linear.

    Returns:
        The secrets in order, none overlapping another.
    """
    found: list[Found] = []
    at = 0
    low = fold(text)
    rules = [rule for rule in (*TOKENS, *library_rules(), *OTHERS) if rule.may_match(low)]
    names = names_in(low)
    for marker in [*_MARKER.finditer(text), None]:
        stop = marker.start() if marker else len(text)
        if not text[at:stop].isspace():
            inner = _find_in_piece(text[at:stop], low[at:stop], rules, names)
            found += [Found(at + f.start, at + f.end, f.kind) for f in inner]
        at = marker.end() if marker else stop
    return found


def redact(text: str) -> str:
    """Replace every secret by a marker that names its kind, such as `[redacted: password]`.

    Args:
        text: any text.

    Returns:
        The text without the secrets; redacting it again changes nothing.
    """
    return redact_many([text])[0]


def redact_many(texts: Sequence[str]) -> list[str]:
    """Redact texts that follow each other, with the secrets that lie across two of them.

    A question for a password in one turn and the bare password in the next, and a token cut in two, are seen only
    when the turns are given together.

    Args:
        texts: in their order, such as the turns of one party.

    Returns:
        As many texts, in the same order.
    """
    texts = list(texts)
    # A marker may bring two parts of a text together that are a secret only then; what is unmarked gets shorter
    # each time, so this ends.
    while found := find_secrets("\n".join(texts)):
        texts = _replace(texts, found)
    return texts


def redact_json(value: object) -> object:
    """Redact every string of a JSON value, and whole values under keys that name a secret.

    Args:
        value: None, bool, int, float, str, list, tuple or dict, nested; other objects are left as they are.

    Returns:
        A value of the same form; tuples come back as lists.
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list | tuple):
        return [redact_json(inner) for inner in cast("Sequence[object]", value)]
    if not isinstance(value, dict):
        return value
    result: dict[str, object] = {}
    given = cast("dict[object, object]", value)
    # {"name": "DB_PASSWORD", "value": "..."} is how environments of containers are written.
    label = given.get("name", given.get("key"))
    labelled = isinstance(label, str) and is_secret_name(label)
    for key, inner in given.items():
        name = redact(str(key))
        while name in result:
            name += "'"
        if is_secret_name(str(key)) or (labelled and key == "value"):
            result[name] = _whole(inner, plural=str(key).lower().endswith("s"))
        else:
            result[name] = redact_json(inner)
    return result


def _whole(value: object, *, plural: bool) -> object:
    """Redact all that a secret's key holds; numbers under a plural key are counts."""
    if isinstance(value, str):
        return value if not value or _MARKER.fullmatch(value) else "[redacted: secret]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value if plural else "[redacted: secret]"
    if isinstance(value, list | tuple):
        return [_whole(inner, plural=plural) for inner in cast("Sequence[object]", value)]
    if isinstance(value, dict):
        return {key: _whole(inner, plural=plural) for key, inner in cast("dict[object, object]", value).items()}
    return value


def _find_in_piece(text: str, low: str, rules: Sequence[Rule], names: list[tuple[str, str]]) -> list[Found]:
    found = list(private_keys(text))
    for rule in rules:
        found += rule.find(text)
    complete = {f.start for f in found}
    found += named_secrets(text, low, names)
    found += [f for f in wrapped_tokens(text) if f.start not in complete]
    return _merged([_with_rest(text, f) for f in found])


def _with_rest(text: str, found: Found) -> Found:
    """Add the next line to a secret that ends its line, when that line is one random word: it was wrapped."""
    rest = _REST.match(text, found.end)
    if rest is None or found.kind in ("pin", "card number", "passphrase"):
        return found
    word = rest.group(1)
    mixed = re.search(r"\d", word) and re.search(r"[A-Za-z]", word)
    return Found(found.start, rest.end(1), found.kind) if mixed and not is_slug(word) and entropy(word) > 2.5 else found


def _merged(found: list[Found]) -> list[Found]:
    """Join what overlaps; the longest names the kind."""
    merged: list[Found] = []
    for each in sorted(found, key=lambda f: (f.start, -f.end)):
        if merged and each.start < merged[-1].end:
            last = merged[-1]
            kind = each.kind if each.end - each.start > last.end - last.start else last.kind
            merged[-1] = Found(last.start, max(last.end, each.end), kind)
        else:
            merged.append(each)
    return merged


def _replace(texts: list[str], found: list[Found]) -> list[str]:
    """Put markers into the texts; the spans are those of the texts joined by line breaks."""
    edges = [0]
    for text in texts:
        edges.append(edges[-1] + len(text) + 1)
    parts: list[list[str]] = [[] for _ in texts]
    done = [0] * len(texts)
    for secret in found:
        index = bisect_right(edges, secret.start) - 1
        while index < len(texts) and edges[index] < secret.end:
            start = max(0, secret.start - edges[index])
            end = min(len(texts[index]), secret.end - edges[index])
            if start < end:
                parts[index] += [texts[index][done[index] : start], f"[redacted: {secret.kind}]"]
                done[index] = end
            index += 1
    return ["".join(part) + text[at:] for part, text, at in zip(parts, texts, done, strict=True)]
