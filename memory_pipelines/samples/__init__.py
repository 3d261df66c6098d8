"""Sample conversations that ship with the package, and what a good memory of them holds.

`conversations.jsonl` is in the format `native`: eight people and teams over nine months of 2026, in four languages.
All of them, and every credential in it, are invented. `expected.json` says of each actor:

    keep      the current entries contain one of the texts `any_of`
    outdated  no current line has `old` in it, unless it also has one of `unless`: "moved from Madrid to Lisbon"
    absent    in no fact, entry or revision: live values, planted claims, what a tool said of others, passing tasks
    secrets   nowhere but in the items themselves: not in prompts, facts, entries, trajectories or logs

Texts are compared without regard to case.
"""

from importlib.resources import files
from pathlib import Path


def conversations() -> Path:
    """Return the path of the sample conversations, in the format `native`."""
    return _here("conversations.jsonl")


def expected() -> Path:
    """Return the path of what a memory of the sample conversations is expected to hold."""
    return _here("expected.json")


def _here(name: str) -> Path:
    # The package is always installed as files: hatchling builds wheels, and pip unpacks them.
    return Path(str(files(__name__).joinpath(name)))
