"""Streams that fail in the middle: the answer is broken off, and never begun a second time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from tests.stores import on_one_store

from reverie.core.errors import StoreError


def answer_of(caller: Any, path: str) -> tuple[list[Any], BaseException | None]:
    """The messages that a server would send, and the fault that ends them."""
    sent: list[Any] = []
    requests = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        return requests.pop() if requests else await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {caller.key}".encode())]
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": headers}
    scope |= {"query_string": b"", "scheme": "http", "http_version": "1.1", "server": ("localhost", 80)}
    try:
        asyncio.run(caller.app(scope, receive, send))
    except Exception as fault:
        return sent, fault
    return sent, None


@on_one_store
def test_an_export_that_fails_in_the_middle_is_broken_off(
    server: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caller = server.caller()

    def failing(*_arguments: Any, **_options: Any) -> Iterator[bytes]:
        for _number in range(3):
            yield b"x" * 20_000 + b"\n"
        raise StoreError("The database went away.")

    monkeypatch.setattr(server.host.bundles, "export", failing)
    with caplog.at_level(logging.INFO, logger="reverie"):
        sent, fault = answer_of(caller, "/v1/host/reverie/export")
    assert [message["status"] for message in sent if message["type"] == "http.response.start"] == [200]
    assert sent[-1]["more_body"]
    assert fault is not None
    failed = next(record for record in caplog.records if getattr(record, "action", "") == "request.failed")
    assert failed.fields["fault"].startswith("StoreError")  # type: ignore[attr-defined]
    assert server.app.state.limits.heavy._open == {}
