"""What is written to a socket when an application answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from reverie.http.head import BoundedHead

BODY = b"x" * 100_000


class Line:
    """A transport that keeps every piece that is written."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.closed = False

    def get_extra_info(self, _: str) -> None:
        return None

    def write(self, data: bytes) -> None:
        self.pieces.append(data)

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def start(length: int | None = None) -> dict[str, Any]:
    headers = [] if length is None else [(b"content-length", str(length).encode())]
    return {"type": "http.response.start", "status": 200, "headers": headers}


def body(data: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


def pieces(messages: list[dict[str, Any]], method: bytes = b"GET", after: int | None = None) -> Line:
    """What is written when an application sends these; `after`: of the first so many, while the others are held back."""

    async def run() -> Line:
        held = asyncio.Event()

        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            for number, message in enumerate(messages):
                if number == after:
                    await held.wait()
                await send(message)

        config = Config(app, log_config=None, access_log=False)
        config.load()
        protocol, line = BoundedHead(config=config, server_state=ServerState(), app_state={}), Line()
        protocol.connection_made(line)  # type: ignore[arg-type]
        protocol.data_received(method + b" / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(5):
            await asyncio.sleep(0)
        seen = list(line.pieces)
        held.set()
        for _ in range(5):
            await asyncio.sleep(0)
        if after is not None:
            line.pieces = seen
        return line

    return asyncio.run(run())


def test_a_head_and_its_body_are_one_write() -> None:
    (whole,) = pieces([start(5), body(b"hello")]).pieces
    assert whole.startswith(b"HTTP/1.1 200")
    assert whole.endswith(b"content-length: 5\r\n\r\nhello")


def test_a_large_body_is_not_copied() -> None:
    head, rest = pieces([start(len(BODY)), body(BODY)]).pieces
    assert head.endswith(b"\r\n\r\n")
    assert rest is BODY


def test_the_head_of_a_stream_does_not_wait_for_its_first_piece() -> None:
    (head,) = pieces([start(), body(b"later")], after=1).pieces
    assert head.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(("method", "messages"), [(b"HEAD", [start(5), body(b"")]), (b"GET", [start(0), body(b"")])])
def test_a_head_without_a_body_goes_out_when_the_answer_ends(method: bytes, messages: list[dict[str, Any]]) -> None:
    assert b"".join(pieces(messages, method).pieces).endswith(b"\r\n\r\n")


def test_an_answer_that_breaks_off_shows_its_head() -> None:
    line = pieces([start(5)])  # the application returns without a body
    assert b"".join(line.pieces).startswith(b"HTTP/1.1 200")
    assert line.closed


def test_pieces_of_a_body_stay_pieces() -> None:
    first, second = pieces([start(10), body(b"hello", more=True), body(b"again")]).pieces
    assert first.endswith(b"\r\n\r\nhello")
    assert second == b"again"
