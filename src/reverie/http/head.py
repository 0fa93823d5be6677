"""A connection with a limit for the head of a request. A longer head is refused with 431, before the caller is known.

The parser collects a header value by copying it for every piece that arrives, on the event loop: without a limit, one
client without a key makes all others wait. uvicorn's own parser, used where httptools is missing, has a limit already.

A body that still arrives after its answer is read slowly (`http/drain.py`). The head of an answer is sent with its body
(`http/answers.py`). An idle connection is closed before the process runs out of file descriptors (`http/crowd.py`).
uvicorn drops the server that a target such as `http://name/path` names; here it is kept for `http/origin.py`.
"""

from __future__ import annotations

from asyncio import Transport
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from reverie.http.answers import Answers
from reverie.http.crowd import Crowd
from reverie.http.drain import Drain
from reverie.http.origin import TARGET

MAX_HEAD_BYTES = 65_536
"""Limit of a head, not counting the piece of data that it begins in."""
_REFUSAL = f"The head of a request has at most {MAX_HEAD_BYTES} bytes."


class BoundedHead(HttpToolsProtocol):
    """A connection that counts the bytes of an incomplete head."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head: int | None = None
        """Bytes of the head that is arriving; None: no head is."""
        self._crowd = Crowd.of(self.server_state)

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Register a new connection."""
        super().connection_made(transport)
        self._answers = Answers(transport)
        self._crowd.enter(transport, len(self.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove a connection that was lost."""
        self._crowd.leave(self.transport)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Finish an answer. A request that was pipelined behind it begins."""
        self._answers.flush()
        super().on_response_complete()
        if self.cycle.response_complete:
            self._crowd.wait(self.transport)

    def data_received(self, data: bytes) -> None:
        """Parse a piece of data, unless it makes a head too long."""
        if self._head is not None and self._head + len(data) > MAX_HEAD_BYTES:
            room = MAX_HEAD_BYTES - self._head
            self._parse(data[:room])
            data = data[room:]
            if self._head == MAX_HEAD_BYTES:  # still the same head: a new one would start again at 0
                self._refuse()
                return
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        if self._head is not None:
            self._head += len(data)
        if not self.transport.is_closing():
            super().data_received(data)

    def on_body(self, body: bytes) -> None:
        """Pass a piece of a body to its request, or discard it when the request was answered already."""
        super().on_body(body)
        if self.cycle.response_complete and not self.flow.read_paused:
            self.flow.pause_reading()
            Drain.here().wait(self._read_on)

    def _read_on(self) -> None:
        if not self.transport.is_closing():
            self.flow.resume_reading()

    def on_message_begin(self) -> None:
        """Begin to count the bytes of a head."""
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop counting at the end of a head, and begin its request."""
        self._head = None
        self._crowd.leave(self.transport)
        if not self.url.startswith(b"/"):
            self.scope[TARGET] = self.url  # type: ignore[literal-required]  # a key of our own
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.transport = self._answers  # type: ignore[assignment]  # has every method that the cycle calls

    def _refuse(self) -> None:
        lines = (
            b"content-type: text/plain; charset=utf-8\r\n",
            f"content-length: {len(_REFUSAL)}\r\nconnection: close\r\n\r\n{_REFUSAL}".encode(),
        )
        if not self.transport.is_closing():
            self.transport.write(b"".join((STATUS_LINE[431], *lines)))
            self.transport.close()
