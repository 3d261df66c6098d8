"""How this program was started, so that the commands it says to type next can be typed as they stand."""

import re
import shlex
import shutil
import sys
from pathlib import Path

NAME = "memory-pipelines"


def program() -> str:
    """Return the words that start this program from the current folder.

    Returns:
        The bare name where PATH leads to this very program, `python -m memory_pipelines` where that was typed, else
        the path of the program, relative when it is below the current folder.
    """
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return f"{_place(Path(sys.orig_argv[0]))} -m memory_pipelines"
    return _place(started)


def command(words: str) -> str:
    """Return a command to type next.

    Args:
        words: what follows the program's name, such as `pipeline list`.
    """
    return f"{program()} {words}"


def as_started(message: str) -> str:
    """Return a message whose commands are written as this program was started.

    Args:
        message: says `memory-pipelines pipeline list` in backquotes, as messages from below the command line do.
    """
    return re.sub(rf"`{NAME} (?=[a-z])", lambda _: f"`{program()} ", message)


def _place(started: Path) -> str:
    """The shortest way to write a program that the shell finds."""
    found = shutil.which(started.name)
    if started.parent == Path() or (found is not None and _same(Path(found), started)):
        return shlex.quote(started.name)
    absolute = started.absolute()
    below = absolute.is_relative_to(Path.cwd())
    return shlex.quote(str(absolute.relative_to(Path.cwd()) if below else absolute))


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
