"""The head of an answer is sent together with the start of its body.

A write to a socket costs as much as a dozen Python calls and wakes the client, which can do nothing with a head alone.
"""

from __future__ import annotations

from asyncio import Transport

_MOST_COPIED = 65_536
"""A piece of a body up to this many bytes is copied behind its head; a longer one is written separately."""


class Answers:
    """A transport for writing answers. It holds back a head that announces a body."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._head = b""

    def write(self, data: bytes) -> None:
        """Send `data`, or hold back a head until the next piece or the end of the answer."""
        if not self._head:
            if data.startswith(b"HTTP/1.1 ") and b"\r\ncontent-length: " in data:
                self._head = data
            else:
                self._transport.write(data)
        elif len(data) <= _MOST_COPIED:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        else:
            self.flush()
            self._transport.write(data)

    def flush(self) -> None:
        """Send a head that is held back."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""

    def close(self) -> None:
        """Send a head that is held back, and close the connection."""
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether the connection is closed or about to be."""
        return self._transport.is_closing()
