"""The head of an answer goes out with the start of its body.

Each write to a socket costs as much as a dozen calls of Python, and wakes the caller, who can do nothing with a head
alone.
"""

from __future__ import annotations

from asyncio import Transport

_MOST_COPIED = 65_536
"""Bytes of a body that are copied behind its head."""


class Answers:
    """The transport of a connection, for those who answer: it keeps back a head that announces a body."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._head = b""

    def write(self, data: bytes) -> None:
        """Send, or keep a head until the next piece comes or the answer ends."""
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
        """Send what is kept."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""

    def close(self) -> None:
        """Send what is kept, and close the connection."""
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether the connection is closed or about to be."""
        return self._transport.is_closing()
