"""Frames between host and worker: the length as four bytes, then one JSON object.

The worker imports this file, so it needs the standard library only. What the messages mean is in `messages.py`.
"""

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

HEAD = struct.Struct("<I")
CHUNK = 1 << 16
"""How many bytes are read at once."""
CARRIED, UNREAD = 4, 16
"""How many of the largest messages the arguments of calls under way may fill, and answers that wait to be read."""


class FrameError(ValueError):
    """The bytes are not a frame of ours, or the frame is larger than allowed."""


def pack(message: Mapping[str, Any], limit: int) -> bytes:
    """Make a frame.

    Args:
        message: values with a JSON form. Lone surrogates pass: the receiver decides.
        limit: the most bytes that the receiver takes.

    Returns:
        The bytes to send.

    Raises:
        FrameError: it would be larger than `limit`.
    """
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if len(body) > limit:
        raise FrameError(f"{len(body):,} bytes are more than the {limit:,} that one message may have")
    return HEAD.pack(len(body)) + body


class Frames:
    """Cuts a stream of bytes into messages."""

    def __init__(self, limit: int, decode: Callable[[bytes], Any] = json.loads) -> None:
        """Start with an empty buffer.

        Args:
            limit: the most bytes that a frame may have.
            decode: JSON bytes to a value; the host gives a strict one, the worker trusts the host.
        """
        self._limit = limit
        self._decode = decode
        self._buffer = bytearray()
        self.size = 0  # bytes of the message that was given last

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Take what came and give the messages that are complete now.

        Args:
            data: bytes as they came.

        Yields:
            Messages in order.

        Raises:
            FrameError: too large, not JSON, or not an object. The stream cannot be used after that.
        """
        self._buffer += data
        while len(self._buffer) >= HEAD.size:
            (size,) = HEAD.unpack_from(self._buffer)
            if size > self._limit:
                raise FrameError(f"a frame of {size:,} bytes, allowed are {self._limit:,}")
            end = HEAD.size + size
            if len(self._buffer) < end:
                return
            self.size = size
            body = bytes(self._buffer[HEAD.size : end])
            del self._buffer[:end]
            try:
                message = self._decode(body)
            except (ValueError, RecursionError) as error:
                raise FrameError(f"a frame that is not JSON: {error}") from error
            if not isinstance(message, dict):
                raise FrameError(f"a frame that holds a {type(message).__name__} in place of an object")
            yield message
