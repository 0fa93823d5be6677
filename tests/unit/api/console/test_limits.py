"""Limits at the console: what a key may send in forms, and what a browser may send that nobody knows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.api.console.test_pages import Site, token

from reverie.app import build_app
from reverie.http.call import SMALL_BODY


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr("reverie.http.limits.time", SimpleNamespace(monotonic=lambda: 0.0))
    made = Site(tmp_path)
    yield made
    made.host.close()


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunks"])
def test_the_bytes_of_forms_count_against_the_key(site: Site, chunked: bool) -> None:
    site.app = build_app(replace(site.settings, bytes_per_second=1000), site.host)
    browser = site.browser(site.key())
    form = f"do=plan&token={token(browser)}&more=".encode() + b"x" * 6000
    headers = {"content-type": "application/x-www-form-urlencoded"}
    answers = [
        browser.post("/dreams", content=iter([form[:3000], form[3000:]]) if chunked else form, headers=headers)
        for _ in range(3)
    ]
    assert [answer.status_code for answer in answers] == [400, 429, 429]
    assert "Too many bytes" in answers[-1].text


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out"])
def test_a_form_from_nobody_is_not_read_beyond_its_limit(site: Site, path: str) -> None:
    pieces, sent = 0, list[Any]()

    async def receive() -> dict[str, Any]:
        nonlocal pieces
        pieces += 1
        return {"type": "http.request", "body": b"a" * 4096, "more_body": pieces < 1000}

    async def send(message: Any) -> None:
        sent.append(message)

    names = {"host": "localhost", "content-type": "application/x-www-form-urlencoded", "cookie": "reverie_session=x"}
    headers = [(name.encode(), value.encode()) for name, value in names.items()]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "headers": headers}
    scope |= {"query_string": b"", "scheme": "http", "http_version": "1.1", "server": ("localhost", 80)}
    asyncio.run(site.app(scope, receive, send))
    assert sent[0]["status"] == (413 if path == "/sign-in" else 303)
    assert pieces <= SMALL_BODY // 4096 + 1


@pytest.mark.parametrize("path", ["/audit/export", "/operate/export"])
def test_an_export_beyond_the_limit_is_refused_with_a_page(site: Site, path: str) -> None:
    site.app = build_app(replace(site.settings, heavy_per_key=1), site.host)
    key = site.key()
    site.put("acme", "A note.")
    browser = site.browser(key)
    with site.app.state.limits.heavy.one(key.split("_")[1]):
        answer = browser.get(path)
    assert answer.status_code == 429
    assert answer.headers["content-type"].startswith("text/html")
    assert "running dreams, exports" in answer.text
    assert browser.get(path).status_code == 200
