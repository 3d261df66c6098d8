"""What is compared by hash: items, and lines of entries."""

import hashlib
import json
import re
import unicodedata
from typing import Any

_MARKER = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")


def item_hash(data: Any) -> str:
    """Return the hash of an item's data: the same words imported again hash alike, whatever the order of keys."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def token_estimate(data: Any) -> int:
    """Return about how many tokens an item has: a quarter of its bytes, which is fair to scripts of wide characters."""
    return len(json.dumps(data, ensure_ascii=False).encode()) // 4 + 1


def line_hash(line: str) -> str:
    """Return the hash of what a line says, whatever its list marker, blanks and case."""
    words = " ".join(_MARKER.sub("", line, count=1).split())
    return hashlib.sha256(unicodedata.normalize("NFC", words.casefold()).encode()).hexdigest()


def lines_of(content: str) -> dict[str, str]:
    """Return the lines of an entry that say something, by hash, in order."""
    found: dict[str, str] = {}
    for line in content.splitlines():
        if line.strip():
            found.setdefault(line_hash(line), line.strip())
    return found
