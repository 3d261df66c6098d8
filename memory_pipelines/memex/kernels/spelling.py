"""How names and places of JSON are spelt in Python; the same wherever the model reads them, and in the objects it gets.

Part of the worker: standard library only.
"""

import keyword
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

SHOWN_ERRORS = 10
"""How many complaints about one value are shown; a model mends the first ones first."""


def identifier(name: str) -> str:
    """The nearest Python identifier; keywords get an underscore.

    Args:
        name: any text.

    Returns:
        The name itself where it can be used.
    """
    # Python reads names in this form of Unicode: another one would be shown and then not be found.
    form = unicodedata.normalize("NFKC", name)
    plain = "".join(character if f"a{character}".isidentifier() else "_" for character in form)
    if plain != name and not name.startswith("_"):
        plain = plain.lstrip("_")  # `$id` and `@type` are no private names
    plain = plain or "x"
    if not plain.isidentifier():
        plain = f"x{plain}"
    return f"{plain}_" if keyword.iskeyword(plain) or plain == "__debug__" else plain


def identifiers(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Spell several names so that no two become one.

    Args:
        names: any texts, each once.
        taken: identifiers that must not be used.

    Returns:
        Identifier to name, in the order of the names. A name that can be used keeps itself; others that would be
        spelt alike get a number.
    """
    given = list(dict.fromkeys(names))
    refused = frozenset(taken)
    used = set(refused)
    spelt = {name: name for name in given if identifier(name) == name and name not in refused}
    used.update(spelt)
    for name in given:
        if name not in spelt:
            base = identifier(name)
            base = wanted = f"{base}_" if base in refused else base
            number = 1
            while wanted in used:
                number += 1
                wanted = f"{base}{number}"
            spelt[name] = wanted
            used.add(wanted)
    return {spelt[name]: name for name in given}


def dotted(path: Iterable[int | str]) -> str:
    """A place inside a value.

    Args:
        path: keys and indices from the outside in.

    Returns:
        Text such as `facts[0].at`; empty for the value itself.
    """
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def complaints(error: "ValidationError") -> str:
    """What pydantic holds against a value.

    Args:
        error: what pydantic raised.

    Returns:
        Lines `path: message`, at most ten, and how many more there are.
    """
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return first_ten([f"{dotted(one['loc']) or 'value'}: {one['msg']}" for one in found])


def first_ten(lines: Sequence[str]) -> str:
    """The first of many complaints, and how many more there are."""
    more = len(lines) - SHOWN_ERRORS
    return "\n".join([*lines[:SHOWN_ERRORS], *([f"... and {more} more"] if more > 0 else [])])
