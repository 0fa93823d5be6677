"""The head of a request, and the rest of a body that was answered before it was read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from reverie.http import crowd, drain
from reverie.http.head import MAX_HEAD_BYTES, BoundedHead

PIECE = b"x" * 256_000


class Line:
    """A transport that notes what is done to it."""

    def __init__(self) -> None:
        self.sent = b""
        self.reading = True
        self.closed = False

    def get_extra_info(self, _: str) -> None:
        return None

    def write(self, data: bytes) -> None:
        self.sent += data

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


async def refuse(_scope: Any, _receive: Any, send: Any) -> None:
    """Answers without reading the body."""
    await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def connect(server: ServerState | None = None, app: Any = refuse) -> tuple[BoundedHead, Line]:
    config = Config(app, log_config=None, access_log=False)
    config.load()
    protocol, line = BoundedHead(config=config, server_state=server or ServerState(), app_state={}), Line()
    protocol.connection_made(line)  # type: ignore[arg-type]
    return protocol, line


def head(length: int, more: bytes = b"") -> bytes:
    return b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s\r\n" % (length, more)


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def test_the_rest_of_an_answered_body_is_read_a_piece_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "PIECE_SECONDS", 0)  # the order counts, not the clock

    async def run() -> list[tuple[bool, bool]]:
        (first, one), (second, other) = connect(), connect()
        for protocol in (first, second):
            protocol.data_received(head(3 * len(PIECE)))
        await turns(5)
        assert one.sent.startswith(b"HTTP/1.1 413")
        assert one.reading
        first.data_received(PIECE)
        second.data_received(PIECE)
        seen = [(one.reading, other.reading)]
        for _ in range(2):
            while (one.reading, other.reading) == seen[-1]:
                await asyncio.sleep(0)
            seen.append((one.reading, other.reading))
        for _ in range(2):
            first.data_received(PIECE)
            while not one.reading:
                await asyncio.sleep(0)
        first.data_received(head(0))
        await turns(5)
        assert one.sent.count(b"HTTP/1.1 413") == 2  # the connection serves the next request
        return seen

    assert asyncio.run(run()) == [(False, False), (True, False), (True, True)]


def test_a_connection_that_is_gone_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "PIECE_SECONDS", 0)

    async def run() -> bool:
        (first, one), (second, other) = connect(), connect()
        for protocol in (first, second):
            protocol.data_received(head(3 * len(PIECE)))
        await turns(5)
        first.data_received(PIECE)
        second.data_received(PIECE)
        one.close()
        await asyncio.wait_for(until_read(other), 10)
        return one.reading

    async def until_read(line: Line) -> None:
        while not line.reading:
            await asyncio.sleep(0)

    assert asyncio.run(run()) is False


def test_a_head_in_two_pieces_before_a_large_body() -> None:
    """The second piece is larger than any head may be; the head in it is short."""

    async def run() -> bytes:
        protocol, line = connect()
        first, second = head(len(PIECE))[:20], head(len(PIECE))[20:]
        protocol.data_received(first)
        protocol.data_received(second + PIECE)
        await turns(5)
        return line.sent

    assert asyncio.run(run()).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("step", [1_000, MAX_HEAD_BYTES, 5 * MAX_HEAD_BYTES])
def test_a_head_that_is_too_long_is_refused_and_the_line_closed(step: int) -> None:
    async def run() -> Line:
        protocol, line = connect()
        protocol.data_received(b"GET / HTTP/1.1\r\nX: ")
        for _ in range(0, 2 * MAX_HEAD_BYTES, step):
            protocol.data_received(b"a" * step)
        return line

    line = asyncio.run(run())
    assert line.sent.startswith(b"HTTP/1.1 431")
    assert line.closed
    assert line.sent.count(b"HTTP/1.1") == 1


def test_connections_that_ask_nothing_give_way_to_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "most_connections", lambda: 4)

    async def never(_scope: Any, receive: Any, _send: Any) -> None:
        while True:
            await receive()
            await asyncio.sleep(3600)

    async def run() -> None:
        server = ServerState()
        (busy, first), (_, silent), (half, second), (asked, third) = (
            connect(server, app) for app in (never, refuse, refuse, refuse)
        )
        busy.data_received(head(10))  # a request under way, as a stream is
        half.data_received(head(0)[:20])
        asked.data_received(head(0))
        await turns(5)
        assert third.sent.startswith(b"HTTP/1.1 413")
        lines = [first, silent, second, third]
        more = []
        for number in range(1, 4):
            more.append(connect(server)[1])
            assert [line.closed for line in lines] == [False] + [at < number for at in range(3)]
            gone = next(one for one in list(server.connections) if one.transport.is_closing())
            gone.connection_lost(None)  # type: ignore[union-attr]
        connect(server)
        assert [line.closed for line in more] == [True, False, False]
        assert not first.closed

    asyncio.run(run())


def test_a_new_connection_is_closed_where_all_others_are_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "most_connections", lambda: 1)

    async def never(_scope: Any, _receive: Any, _send: Any) -> None:
        await asyncio.sleep(3600)

    async def run() -> tuple[bool, bool]:
        server = ServerState()
        (busy, first), app = connect(server, never), never
        busy.data_received(head(0))
        return connect(server, app)[1].closed, first.closed

    assert asyncio.run(run()) == (True, False)
