"""A connection. The head of a request is refused with 431 when it grows beyond a limit, before the caller is known, and
the rest of a body that was answered already is read slowly (`http/drain.py`). The head of an answer goes out with its
body (`http/answers.py`). A connection that asks nothing gives way to a new one before the process has no file left to
open (`http/crowd.py`).

uvicorn drops the server that a target such as `http://name/path` names; here it is kept, for `http/origin.py`.

The parser collects a header value by copying it for every piece that arrives, on the event loop: without a limit, one
caller without a key makes all others wait. The parser of a machine without httptools has a limit of its own.
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
"""Bytes of a head beyond the piece that it begins in."""
_REFUSAL = f"The head of a request has at most {MAX_HEAD_BYTES} bytes."


class BoundedHead(HttpToolsProtocol):
    """Counts the bytes of a head while it is incomplete."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head: int | None = None
        """Bytes so far; None: no head is under way."""
        self._crowd = Crowd.of(self.server_state)

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A caller connects."""
        super().connection_made(transport)
        self._answers = Answers(transport)
        self._crowd.enter(transport, len(self.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._crowd.leave(self.transport)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """An answer is sent; a request that came in the meantime begins."""
        self._answers.flush()
        super().on_response_complete()
        if self.cycle.response_complete:
            self._crowd.wait(self.transport)

    def data_received(self, data: bytes) -> None:
        """Parse a piece, unless the head that it continues is too long."""
        if self._head is not None and self._head + len(data) > MAX_HEAD_BYTES:
            room = MAX_HEAD_BYTES - self._head
            self._parse(data[:room])
            data = data[room:]
            if self._head == MAX_HEAD_BYTES:  # the same head; one that ended and one that began are not
                self._refuse()
                return
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        if self._head is not None:
            self._head += len(data)
        if not self.transport.is_closing():
            super().data_received(data)

    def on_body(self, body: bytes) -> None:
        """A piece of a body: kept for the request, or thrown away when that is answered already."""
        super().on_body(body)
        if self.cycle.response_complete and not self.flow.read_paused:
            self.flow.pause_reading()
            Drain.here().wait(self._read_on)

    def _read_on(self) -> None:
        if not self.transport.is_closing():
            self.flow.resume_reading()

    def on_message_begin(self) -> None:
        """A head begins."""
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head has ended."""
        self._head = None
        self._crowd.leave(self.transport)
        if not self.url.startswith(b"/"):
            self.scope[TARGET] = self.url  # type: ignore[literal-required]  # a key of our own
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.transport = self._answers  # type: ignore[assignment]  # all that it uses of a transport

    def _refuse(self) -> None:
        lines = (
            b"content-type: text/plain; charset=utf-8\r\n",
            f"content-length: {len(_REFUSAL)}\r\nconnection: close\r\n\r\n{_REFUSAL}".encode(),
        )
        if not self.transport.is_closing():
            self.transport.write(b"".join((STATUS_LINE[431], *lines)))
            self.transport.close()
