"""What a block shows: its output in bounded memory, a guarded repr, and errors told by the lines of the block.

Part of the worker: standard library only.
"""

import asyncio
import reprlib
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import TracebackType

CUT = "\n... [{cut:,} of {total:,} characters cut: keep it in a variable and print a slice] ...\n"
MESSAGE_CHARS = 1_500
"""How much of an exception's own message is shown."""


class Output:
    """Takes any amount of text and keeps the first three quarters and the last quarter of what is allowed."""

    def __init__(self, limit: int) -> None:
        """Start empty.

        Args:
            limit: how many characters are kept.
        """
        self._tail_limit = limit // 4
        self._room = limit - self._tail_limit
        self._head: list[str] = []
        self._tail: list[str] = []
        self._tail_chars = 0
        self.total = 0

    def write(self, text: str) -> None:
        """Add text."""
        self.total += len(text)
        if self._room > 0:
            self._head.append(text[: self._room])
            text = text[len(self._head[-1]) :]
            self._room -= len(self._head[-1])
        if text and self._tail_limit:
            self._tail.append(text[-self._tail_limit :])
            self._tail_chars += len(self._tail[-1])
            # Joining at every write would make many small writes slow; twice the limit is the most that is held.
            if self._tail_chars > 2 * self._tail_limit:
                self._tail = ["".join(self._tail)[-self._tail_limit :]]
                self._tail_chars = self._tail_limit

    def close(self) -> tuple[str, int]:
        """Give the text without a newline at its end.

        Returns:
            The text and the number of characters that were cut from its middle.
        """
        head, tail = "".join(self._head), "".join(self._tail)[-self._tail_limit :] if self._tail else ""
        cut = self.total - len(head) - len(tail)
        text = head + (CUT.format(cut=cut, total=self.total) if cut else "") + tail
        # What cannot be written as UTF-8 would end the kernel at the host's strict reader.
        return text.encode("utf-8", "backslashreplace").decode().removesuffix("\n"), cut


def shown(value: object) -> str:
    """The repr of a value, whatever its `__repr__` does short of running for ever.

    Args:
        value: of any type.

    Returns:
        Its repr, or what went wrong with it.
    """
    try:
        return repr(value)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the boundary to `__repr__` of anybody's making
        return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"


def told(error: BaseException, sources: Mapping[str, str]) -> str:
    """An exception as the model needs it: the lines of its own blocks, then the exception.

    Args:
        error: what the block raised.
        sources: code by file name, of all blocks.

    Returns:
        A few lines of text.
    """
    if isinstance(error, SyntaxError) and error.filename and error.filename in sources:
        text = "".join(traceback.format_exception_only(error))
        return _clean(text.replace(f'File "{error.filename}"', error.filename.strip("<>")).strip())
    lines = [
        f"{name.strip('<>')}, line {number}{where}: {source}"
        for name, number, where, source in _block_lines(error.__traceback__, sources)
    ]
    if len(lines) > 6:
        lines[3:-2] = [f"... {len(lines) - 5} more"]
    lines.append(f"{type(error).__name__}{_message(error)}")
    if isinstance(error, RuntimeError) and "event loop" in lines[-1] and "running" in lines[-1]:
        lines.append("blocks run inside an event loop: use `await` directly")
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and not isinstance(cause, asyncio.CancelledError):
        lines.append(f"caused by {type(cause).__name__}{_message(cause)[:300]}")
    return _clean("\n".join(lines))


def _block_lines(trace: TracebackType | None, sources: Mapping[str, str]) -> Iterator[tuple[str, int, str, str]]:
    library: tuple[str, int] | None = None
    for frame, number in traceback.walk_tb(trace):
        code = frame.f_code
        if code.co_filename in sources:
            library = None
            rows = sources[code.co_filename].splitlines()
            source = rows[number - 1].strip()[:200] if 0 < number <= len(rows) else ""
            where = "" if code.co_name == "<module>" else f" in {code.co_name}"
            yield code.co_filename, number, where, source
        else:
            library = (code.co_filename, number)
    if library is not None and not library[0].startswith(_OWN_FOLDER):
        yield library[0].rpartition("/")[2], library[1], "", "(library)"


_OWN_FOLDER = __file__.rpartition("/")[0]


def _message(error: BaseException) -> str:
    text = "(its message cannot be read)"
    with suppress(BaseException):  # the boundary to `__str__` of anybody's making, a deadline inside it included
        text = str(error)
    if len(text) > MESSAGE_CHARS:
        text = f"{text[:MESSAGE_CHARS]}... ({len(text):,} characters)"
    return f": {text}" if text else ""


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()[-8_000:]


def short(limit: int = 160) -> Callable[[object], str]:
    """A repr that stays short: long strings and lists are cut and say so.

    Args:
        limit: characters of one value.

    Returns:
        The function.
    """
    cutter = reprlib.Repr()
    cutter.maxstring = cutter.maxother = limit // 2
    cutter.maxlevel, cutter.maxlist, cutter.maxdict, cutter.maxtuple, cutter.maxset = 3, 4, 6, 4, 4
    return cutter.repr
