"""The size of a request body."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reverie.core.errors import TooLarge
from reverie.http.body import BodyLimit, length_of
from reverie.http.door import Doors
from reverie.http.limits import Limits
from reverie.settings import Settings


def request(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http", "path": "/", "headers": list(headers), "state": {}}


@pytest.mark.parametrize(
    ("headers", "length"),
    [
        ([], None),
        ([(b"content-length", b"10")], 10),
        ([(b"content-length", b"ten")], -1),
        ([(b"content-length", b"10"), (b"transfer-encoding", b"chunked")], None),
        ([(b"transfer-encoding", b"chunked"), (b"content-length", b"10")], None),
    ],
)
def test_a_length_counts_unless_there_are_chunks(headers: list[tuple[bytes, bytes]], length: int | None) -> None:
    assert length_of(request(*headers)) == length


def test_chunks_with_a_small_length_are_counted_as_they_arrive() -> None:
    scope = request((b"content-length", b"10"), (b"transfer-encoding", b"chunked"))
    limit = BodyLimit(100, limits=Limits.of(Settings.load({})), doors=Doors([]))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"a" * 60, "more_body": True}

    async def read() -> None:
        counted = limit.count(scope, length_of(scope), receive)
        for _ in range(2):
            await counted()

    with pytest.raises(TooLarge):
        asyncio.run(read())
