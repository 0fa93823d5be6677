"""Parser for server-sent events in a stream that is passed on unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterator

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
MOST = 64 * 2**20


class Events:
    """Takes the pieces of a stream as they come, and yields the events that are complete."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._from = 0

    def feed(self, piece: bytes) -> Iterator[str]:
        """The data of the events that `piece` completes."""
        self._rest += piece
        while found := _END.search(self._rest, max(0, self._from - 4)):
            block = bytes(self._rest[: found.start()])
            del self._rest[: found.end()]
            self._from = 0
            lines = re.split(rb"\r\n|\n|\r", block)
            data = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
            if data:
                yield b"\n".join(data).decode("utf-8", "replace")
        self._from = len(self._rest)
        if len(self._rest) > MOST:  # not a stream of events
            self._rest.clear()
            self._from = 0
