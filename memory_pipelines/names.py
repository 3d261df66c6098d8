"""Resource names: `session-stores/<id>`, `memory-pipelines/<id>/runs/<n>` and the like; bare ids are accepted."""

import re
from dataclasses import dataclass

from memory_pipelines.errors import InvalidInputError
from memory_pipelines.text import clean_text

SESSION_STORES = "session-stores"
MEMORY_STORES = "memory-stores"
PIPELINES = "memory-pipelines"

_STORE_ID = re.compile(r"[a-z][a-z0-9-]{2,54}")
_MEMORY_STORE_ID = re.compile(r"[a-z][a-z0-9-]{1,54}[a-z0-9]")


@dataclass(frozen=True)
class Collection:
    """A top-level collection and the form of the ids in it."""

    prefix: str  # as in the name: session-stores
    noun: str  # for messages: session store
    pattern: re.Pattern[str]  # the whole id
    rule: str  # the pattern in words

    def format(self, identifier: str) -> str:
        """Return the full name of an id."""
        return f"{self.prefix}/{identifier}"

    def parse(self, name: str) -> str:
        """Return the id in a full name or a bare id.

        Args:
            name: `session-stores/support` or `support`.

        Raises:
            InvalidInputError: the id has not the required form, or the name is of another collection.
        """
        identifier = name.removeprefix(f"{self.prefix}/")
        if not self.pattern.fullmatch(identifier):
            raise InvalidInputError(
                f"{name!r} does not name a {self.noun}; expected {self.prefix}/<id> or a bare id: {self.rule}",
                name=name,
            )
        return identifier


SESSION_STORE = Collection(SESSION_STORES, "session store", _STORE_ID, "3 to 55 of a-z, 0-9 and hyphen, a letter first")
MEMORY_STORE = Collection(
    MEMORY_STORES,
    "memory store",
    _MEMORY_STORE_ID,
    "3 to 56 of a-z, 0-9 and hyphen, a letter first, a letter or digit last",
)
PIPELINE = Collection(
    PIPELINES,
    "memory pipeline",
    _MEMORY_STORE_ID,
    "3 to 56 of a-z, 0-9 and hyphen, a letter first, a letter or digit last",
)


def session_name(store: str, session_id: str) -> str:
    """Return the full name of a session."""
    return f"{SESSION_STORES}/{store}/sessions/{session_id}"


def entry_name(store: str, entry_id: str) -> str:
    """Return the full name of a memory entry."""
    return f"{MEMORY_STORES}/{store}/entries/{entry_id}"


def run_name(pipeline: str, number: int) -> str:
    """Return the full name of a run."""
    return f"{PIPELINES}/{pipeline}/runs/{number}"


def parse_run(name: str, *, pipeline: str | None = None) -> tuple[str, int]:
    """Return pipeline id and number of a run.

    Args:
        name: `memory-pipelines/<id>/runs/<n>`, or the bare number where `pipeline` is given.
        pipeline: the pipeline that a bare number belongs to.

    Raises:
        InvalidInputError: the name has another form.
    """
    found = re.fullmatch(rf"(?:{PIPELINES}/)?([^/]+)/runs/([0-9]{{1,12}})", name)
    if found:
        return PIPELINE.parse(found[1]), int(found[2])
    if pipeline is not None and re.fullmatch(r"[0-9]{1,12}", name):
        return pipeline, int(name)
    raise InvalidInputError(f"{name!r} does not name a run; expected {PIPELINES}/<id>/runs/<number>", name=name)


MAX_IDENTIFIER = 512
"""Characters of an actor's or a session's id."""


def check_identifier(value: str, noun: str) -> str:
    """Return the id of an actor or session unchanged, or refuse it; it is opaque, but neither empty nor endless.

    Args:
        value: as given.
        noun: whose id, for the message: an actor.

    Raises:
        InvalidInputError: it is empty, too long, or holds what no database can carry.
    """
    if not value or len(value) > MAX_IDENTIFIER or clean_text(value) != value:
        size = f" of {len(value)} characters" if len(value) > MAX_IDENTIFIER else ""
        raise InvalidInputError(
            f"{value[:80]!r}{size} cannot be the id of {noun}; allowed are 1 to {MAX_IDENTIFIER} characters, without"
            " NUL and without halves of surrogate pairs",
            value=value[:MAX_IDENTIFIER],
        )
    return value


_PATH_SEGMENT = re.compile(r"[^/\x00-\x1f\x7f]+")
MAX_PATH = 512  # characters


def check_path(path: str) -> str:
    """Return a path of an entry unchanged, or refuse it.

    Args:
        path: absolute, case-sensitive, no empty, `.` or `..` segment.

    Raises:
        InvalidInputError: the path breaks one of these rules.
    """
    segments = path.split("/")
    good = (
        path.startswith("/")
        and len(path) <= MAX_PATH
        and len(segments) >= 2
        and all(_PATH_SEGMENT.fullmatch(part) and part not in {".", ".."} for part in segments[1:])
    )
    if not good:
        raise InvalidInputError(
            f"{path[:80]!r} is not a path of an entry; expected for example /preferences/units.md: it starts with /,"
            f" has no empty, '.' or '..' segment and at most {MAX_PATH} characters",
            path=path[:MAX_PATH],
        )
    return path
