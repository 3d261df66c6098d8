"""Secrets that are told by the word that names them, in several languages: "password is ...", API_KEY=... Pure."""

import re
from collections.abc import Iterator

from memory_pipelines.redaction.patterns import Found, is_random, is_slug
from memory_pipelines.redaction.vocabulary import AS, COMMON, FOR, IS, NAMES, PASSWORD, SECRET, SHORT, STOP

_SUFFIX = re.compile(r"[A-Za-z0-9_-]{0,40}")
_NOT_THE_VALUE = re.compile(  # password_length, token_type, secret_name: they describe it
    r"(?:[_-]?(?:id|name|type|count|length|len|min|max|limit|url|uri|path|file|field|policy|prompt|column|expiry|"
    r"expires|ttl|at|age|version|hint|size|budget|usage|rate|reset|manager|ref|arn|kind|status|endpoint))+$",
    re.IGNORECASE,
)
_ASSIGN = re.compile(
    r"(?:\\?[\"'`\])*]){0,3}[ \t]{0,8}(:=|=>|->|→|===?|!==?|[=:：＝|])\*{0,2}[ \t]{0,8}(\r?\n[ \t]{0,8}(?:[-*>] ?)?)?"
)
_PROSE = re.compile(
    rf"([ \t]{{1,3}}(?:{FOR})[ \t][^\n:=.?!]{{1,50}}?|[ \t]?[(（][^)）\n]{{1,30}}[)）]|"
    r"[ \t](?:\S{1,20}[ \t])?(?=—|–))?"
    rf"(?:[ \t]{{1,3}}(?:{IS})(?=[ \t:])(?:[ \t]{{1,3}}(?:now|still|just|currently|ahora|jetzt|set to|maintenant))?|"
    r"[ \t]?(?:是|为|為|は|が|은|는|이|가)|[ \t]*[:：=]|[ \t]*[—–]|[ \t]+-(?=[ \t]))[ \t]{0,3}[:：]?[ \t]{0,4}",
    re.IGNORECASE,
)
_NEXT_LINE = re.compile(  # a question or an unfinished sentence, and one word on the next line
    rf"(?:[^\n]{{0,60}}[?？:：]|[^\n]{{0,60}}[ \t](?:{IS})|[^\n]{{0,30}}[是は])[ \t]*(?:\r?\n[ \t]*){{1,3}}"
    r"(\S{4,128})[ \t]*(?=\r?\n|$)"
)
_BARE = re.compile(r"[ \t]{1,4}(?=[!-~])")
_CHANGED = re.compile(
    r"(?:[ \t]+[A-Za-z]{2,12}){0,4}?[ \t]+(?:from[ \t]+(?P<old>[^\s]{4,128})[ \t]+)?to[ \t]+(?P<new>[^\s]{4,128})",
    re.IGNORECASE,
)
_CHANGE = re.compile(r"chang|reset|updat|rotat|\bset\b|\bfrom\b", re.IGNORECASE)
_REVERSED = re.compile(
    r"(?:(?<![!-~¡-֏])|(?<=[\"'`(]))([!-~¡-֏]{5,128}?)[\"'`]?[ \t]+"
    r"(?:is|was|as|es|como|ist|als|est|comme|é|è|как)[ \t]+(?:[^\W\d_]{1,12}[ \t]+){0,3}$",
    re.IGNORECASE,
)
_FLAG = re.compile(r"(?<!\S)--(?:[A-Za-z]+-)*$")
_NEARBY = re.compile(r"(?<![A-Za-z0-9+/_=.-])[A-Za-z0-9+/_-]{20,}={0,2}")
_HASH_OF = re.compile(r"(?:commit|sha\d*|hash|digest|revision|rev|checksum|etag)\W{0,3}\w{0,8}\W{0,3}$", re.IGNORECASE)
_PIN_TAIL = re.compile(
    rf"(?:[ \t]+(?:{FOR})[ \t][^\n:=\d]{{1,40}}?)?[ \t]*(?:(?:{IS})\b|[:：=是は은는—-])?[ \t]*"
    r"(\d{3,8})(?![\w.]|[-/:]\d)",
    re.IGNORECASE,
)
_PHRASE_TAIL = re.compile(
    r"[ \t]{0,3}(?:(?:is|es|ist|est)[ \t]|[:：=是])[ \t]{0,3}[\"'`]?((?:[^\W\d_]{2,15}[ \t]+){3,23}[^\W\d_]{2,15})"
)

_CLOSERS = {'"': '"', "'": "'", "`": "`", "“": "”", "„": "“", "«": "»", "‘": "’", "「": "」", "『": "』", "**": "**"}
_OPEN = re.compile(r"\\?([\"'`“„«‘「『]|\*\*)")
_RUN = re.compile(r"(?:(?![;,&][ \t]?[A-Za-z_][\w .-]{0,30}=)[!#-&(-_a-~¡-֏])+")
_SENTENCE_END = re.compile(
    r"[.,;!?:)\]]*[\"'`*]*(?:\s*$|[ \t]*[\r\n]|[.!?,;][ \t]|[。，、！？；؟،]|[ \t]+(?:です|입니다))"
)

_REFERENCE = re.compile(
    r"\$\{.*|\$\(.*|\$[A-Z_][A-Z0-9_]*$|%\w+%$|%\(.*|<[^>]*>?$|\{\{.*|\{[\w.]*\}$|[*x•.…_#-]+$|\[redacted.*|"
    r"[A-Za-z_][\w.]*(?:\(|\[).*|[a-z_]+(?:\.[a-z_]+)+$|"
    r"(?:self|os|env|process|config|settings|args|this|request|cfg)\.\w.*",
    re.IGNORECASE,
)
_NAME_OF_ONE = re.compile(r"\$?(?:[a-z]+_)*(?:password|passwd|pwd|token|secret|key)(?:_[a-z]+)*$")
_MEASURE = re.compile(
    r"v?\d+(?:[.,:/-]\d+)*[A-Za-z%€$]{0,3}$|\d+-?[A-Za-z]{1,10}$|[\w.+-]+@[\w-]+(?:\.[\w-]+)+$|\w+://.*|"
    r"\d{4}-\d\d-\d\dT[\d:.Z+-]+$"
)


def fold(text: str) -> str:
    """Lower-case a text without moving a character."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(c if len(c.lower()) != 1 else c.lower() for c in text)


def is_secret_name(name: str) -> bool:
    """Whether a key or variable of this name holds a secret, such as `db_password` or `clientSecret`.

    Args:
        name: the bare name.
    """
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_").replace(" ", "_").strip("_")
    snake = re.sub(r"(?<=[a-z])s$|_?\d+$", "", snake)
    if snake in _EXACT:
        return True
    return any(snake.endswith(word) for word in _ENDINGS)


_EXACT = frozenset(("pass", "pw", "pin", "otp", "cvv", "cvc", "mdp", "authorization", "cookie", "set_cookie", "bearer"))
_ENDINGS = tuple(
    word.replace("-", "_").replace(" ", "_")
    for word in (*PASSWORD, *SECRET)
    if word not in {*SHORT, "llave", "chave", "chiave", "clé", "ключ", "مفتاح", "schlüssel", "clave"} or word == "pwd"
)


def names_in(low: str) -> list[tuple[str, str]]:
    """List the naming words that occur in a text, each with the kind of secret it names.

    Args:
        low: the text, folded.
    """
    return [(word, kind) for word, kind in NAMES if word in low]


def named_secrets(text: str, low: str, names: list[tuple[str, str]]) -> Iterator[Found]:
    """Yield the values that a naming word announces.

    Args:
        text: where to look.
        low: `fold(text)`.
        names: `names_in` of this text or of a longer one.
    """
    for word, kind in names:
        for at in _occurrences(low, word):
            end = at + len(word)
            if kind == "pin":
                tail = _PIN_TAIL.match(text, end)
                least = 3 if word in ("cvv", "cvc") else 4
                if tail and len(tail.group(1)) >= least and _stands_alone(text, at, end):
                    yield Found(tail.start(1), tail.end(1), kind)
            elif kind == "passphrase":
                tail = _PHRASE_TAIL.match(text, end)
                if tail and tail.group(1).split(maxsplit=1)[0].lower() not in STOP:
                    yield Found(tail.start(1), tail.end(1), kind)
            else:
                yield from _named(text, at, end, word, kind)


def _occurrences(low: str, word: str) -> Iterator[int]:
    at = low.find(word)
    while at >= 0:
        yield at
        at = low.find(word, at + len(word))


def _joins(char: str) -> bool:
    """Whether the character would make one word with a Latin or Cyrillic letter beside it."""
    return char == "_" or (char.isalnum() and ord(char) < 0x590)


def _stands_alone(text: str, start: int, end: int) -> bool:
    before = start > 0 and _joins(text[start - 1]) and _joins(text[start])
    after = end < len(text) and _joins(text[end]) and _joins(text[end - 1])
    return not before and not after


def _named(text: str, start: int, end: int, word: str, kind: str) -> Iterator[Found]:
    alone = start == 0 or not (_joins(text[start - 1]) and _joins(text[start]))
    identifier = start > 0 and text[start - 1] in "_-." and text[start - 1 : start + 1].isascii()
    if not alone and not identifier and word in SHORT and not text[start].isupper():
        return
    tail = _SUFFIX.match(text, end)
    suffix = tail.group() if tail else ""
    if not word[-1].isascii() and suffix:
        suffix = ""  # a Latin value directly behind a CJK or Arabic name
    after = end + len(suffix)
    if suffix in ("s", "S") or suffix.isdigit():
        suffix = ""
    if suffix and not (suffix[0] in "_-" or suffix[0].isdigit() or suffix[0].isupper()):
        return
    prose = alone and not suffix
    for found in (
        _assigned(text, start, after, suffix, word, kind),
        _told(text, after, word, kind) if prose else None,
        _bare(text, start, after, kind) if prose else None,
    ):
        if found:
            yield found
            break
    if prose:
        yield from _around(text, start, after, kind)


def _assigned(text: str, start: int, at: int, suffix: str, word: str, kind: str) -> Found | None:
    match = _ASSIGN.match(text, at)
    if not match or (suffix and _NOT_THE_VALUE.search(suffix)):
        return None
    value = _value(text, match.end())
    if value is None:
        return None
    first, last, quoted = value
    inner = text[first:last]
    if _REFERENCE.match(inner) or inner.lower() in STOP or (not quoted and _NAME_OF_ONE.match(inner)):
        return None
    if kind == "secret" and " " in inner:
        return None
    constant = text[start:at].isupper() and match.group(1) == "="
    if suffix or match.group(2):
        sure = _strong(inner) and len(inner) >= (8 if suffix or kind == "secret" else 5)
    elif constant:
        sure = len(inner) >= 3 and not (kind == "secret" and inner.isdigit())
    elif kind == "secret" or word in SHORT:
        sure = (_strong(inner) and len(inner) >= 6) or (
            quoted and len(inner) >= 6 and inner.isalpha() and text[at - 1] not in "sS"
        )
    elif match.group(1) in ("=", ":=", "=>", "＝") or quoted:
        sure = len(inner) >= 3
    else:
        sure = _told_value(text, last, inner, kind)
    return Found(first, last, kind) if sure else None


def _told(text: str, at: int, word: str, kind: str) -> Found | None:
    match = _PROSE.match(text, at)
    value = _value(text, match.end()) if match else None
    if value is None:
        return None
    first, last, quoted = value
    inner = text[first:last]
    if _REFERENCE.match(inner) or inner.lower() in STOP or (word == "pass" and not _strong(inner)):
        return None
    sure = _told_value(text, last, inner, kind) or (quoted and kind == "password" and len(inner) >= 3)
    return Found(first, last, kind) if sure else None


def _told_value(text: str, end: int, inner: str, kind: str) -> bool:
    """Whether what follows "password is" or "password:" is a value and not the rest of a sentence."""
    if kind == "secret":
        return _strong(inner) and len(inner) >= 8
    if _strong(inner) or (inner.isdigit() and 4 <= len(inner) <= 16):
        return True
    return len(inner) >= 4 and bool(re.search(r"[^\W\d_]", inner)) and bool(_SENTENCE_END.match(text, end))


def _bare(text: str, start: int, at: int, kind: str) -> Found | None:
    match = _BARE.match(text, at)
    value = _value(text, match.end()) if match else None
    if value is None:
        return None
    first, last, _ = value
    inner = text[first:last]
    flag = bool(_FLAG.search(text[max(0, start - 40) : start])) and text[at - 1] not in "sS"
    if _REFERENCE.match(inner) or inner.startswith("-") or inner.lower() in STOP:
        return None
    if text[start:at].lower() == "pass" and not re.match(r"[A-Za-z]+\d", inner):
        return None  # "pass x=1", where it is a verb
    sure = flag or (_strong(inner) and (len(inner) >= 6 if kind == "password" else is_random(inner)))
    return Found(first, last, kind) if sure else None


def _around(text: str, start: int, at: int, kind: str) -> Iterator[Found]:
    before = text[max(0, start - 160) : start]
    reverse = None if AS.isdisjoint(before[-60:].lower().split()) else _REVERSED.search(before)
    if reverse and _strong(reverse.group(1)) and (kind == "password" or is_random(reverse.group(1))):
        offset = start - len(before)
        yield Found(offset + reverse.start(1), offset + reverse.end(1), kind)
    change = _CHANGED.match(text, at) if text.find(" to ", at, at + 200) >= 0 else None
    if change and _CHANGE.search(before[-40:] + change.group()):
        for name in ("old", "new"):
            value = (change.group(name) or "").rstrip(".,;:?)\"'")
            if _strong(value.strip("\"'`")):
                yield Found(change.start(name), change.start(name) + len(value), kind)
    line_end = text.find("\n", at, at + 80)
    answer = _NEXT_LINE.match(text, at) if line_end >= 0 else None
    if answer:
        value = answer.group(1).rstrip(".,;:?)\"'`")
        if _strong(value) and len(value) >= (4 if kind == "password" else 8) and not re.match(r"\w+=", value):
            yield Found(answer.start(1), answer.start(1) + len(value), kind)
    for near in _NEARBY.finditer(text, at, line_end if line_end >= 0 else min(len(text), at + 80)):
        whole = _NEARBY.match(text, near.start())  # the window may have cut it
        if whole and _is_key(whole.group()) and not _HASH_OF.search(text[max(0, near.start() - 16) : near.start()]):
            yield Found(whole.start(), whole.end(), kind)


def _is_key(value: str) -> bool:
    if re.fullmatch(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", value, re.IGNORECASE) or not is_random(value):
        return False
    hexadecimal = re.fullmatch(r"[0-9a-f]{32,}", value, re.IGNORECASE)
    return bool(hexadecimal or (re.search(r"[a-z]", value) and re.search(r"[A-Z]", value)))


def _strong(value: str) -> bool:
    """Whether the value is unlike a word, a name of a thing, a number, a date, an address or an e-mail address."""
    if len(value) < 4 or value.lower() in COMMON or _MEASURE.match(value):
        return False
    if is_slug(value):
        return False
    letter, digit = re.search(r"[^\W\d_]", value), re.search(r"\d", value)
    symbol = re.search(r"[!#$%^&*+=~?@|\\<>]", value)
    return bool((letter and digit) or (letter and symbol) or (digit and symbol and len(value) >= 6))


def _value(text: str, at: int) -> tuple[int, int, bool] | None:
    """Find the value that starts here: its span without quotes, and whether it is quoted."""
    opened = _OPEN.match(text, at)
    if opened:
        closer = _CLOSERS[opened.group(1)]
        end = text.find(closer, opened.end(), opened.end() + 400)
        if end > opened.end() and "\n" not in text[opened.end() : end]:
            return opened.end(), end - (text[end - 1] == "\\"), True
        at = opened.end()
    run = _RUN.match(text, at)
    if not run:
        return None
    value = run.group().rstrip(".,;:?)]}>*_\\")
    return (at, at + len(value), False) if value else None
