"""A server in this process, and callers that speak HTTP to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from starlette.applications import Starlette
from tests.described import MOST_BYTES, described

from reverie.app import build_app, build_host
from reverie.host import Host
from reverie.settings import Settings

API = "/v1/host/reverie"
DOCUMENT = "/v1/openapi.json"
_NUMBERS = count(1)
_LOOP = asyncio.Runner()
"""One loop for all requests of the main thread: to make one for each took as long as a simple request."""


def _make_client(app: Starlette) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost")


_main_client = lru_cache(maxsize=4)(_make_client)
"""One for all requests of the main thread: to make one takes as long as a simple request."""


@dataclass
class Caller:
    """Someone with a key (or without one)."""

    app: Starlette
    key: str | None = None
    tenant: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """One request. A path that does not begin with a slash is one of the API's."""
        url = path if path.startswith("/") else f"{API}/{path}"
        headers = {**({"Authorization": f"Bearer {self.key}"} if self.key else {}), **self.headers}
        headers |= options.pop("headers", {})

        if threading.current_thread() is threading.main_thread():
            client = _main_client(self.app)
            client.cookies.clear()  # every request is the first of its browser
            answer = _LOOP.run(client.request(method, url, headers=headers, **options))
        else:
            answer = asyncio.run(_make_client(self.app).request(method, url, headers=headers, **options))
        if len(answer.content) <= MOST_BYTES and path != DOCUMENT:
            media = answer.headers.get("content-type", "").partition(";")[0]
            body = answer.json() if media == "application/json" and answer.content else answer.content
            known = described(self.app, lambda: Caller(self.app).get(DOCUMENT).content)
            known.check(method, answer.request.url.raw_path.decode().partition("?")[0], answer.status_code, media, body)
        return answer

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return self.send("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> httpx2.Response:
        return self.send("POST", path, **({"json": body} if body is not None else {}), **options)

    def patch(self, path: str, body: Any = None, **options: Any) -> httpx2.Response:
        return self.send("PATCH", path, json=body, **options)

    def delete(self, path: str, **options: Any) -> httpx2.Response:
        return self.send("DELETE", path, **options)

    def put(self, content: str, ref: str = "notes", **fields: Any) -> str:
        """Store an entry; its id."""
        answer = self.post(f"memory/{quote(ref, safe='')}/entries", {"content": content, **fields})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


@dataclass
class Server:
    """A host and its application."""

    host: Host
    app: Starlette

    def caller(self, tenant: str | None = None, **key: Any) -> Caller:
        """A caller with a new key; of a new tenant unless one is named."""
        name = tenant or f"tenant-{next(_NUMBERS)}"
        return Caller(self.app, self.host.keys.create(name, **key).key, name)

    def stranger(self) -> Caller:
        """A caller without a key."""
        return Caller(self.app)


class Servers:
    """Servers on new databases, or on the one that belongs to the folder `data`."""

    def __init__(self, folders: pytest.TempPathFactory, make_database: Callable[[], str] | None) -> None:
        self._folders = folders
        self._make_database = make_database
        self._databases: dict[Path, str] = {}
        self._made: list[Host] = []

    def __call__(self, data: Path | None = None, **settings: Any) -> Server:
        folder = data or self._folders.mktemp("data")
        if self._make_database is not None and "database_url" not in settings:
            if folder not in self._databases:
                self._databases[folder] = self._make_database()
            settings |= {"database_url": self._databases[folder], "database_pool": 8}
        chosen = Settings.load({}, data=str(folder), **settings)
        host = build_host(chosen)
        self._made.append(host)
        return Server(host, build_app(chosen, host))

    def close(self) -> None:
        for host in self._made:
            host.close()


@pytest.fixture(scope="session")
def lasting_server(
    engine: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Server]]:
    """`lasting_server(**settings)`: a server that runs until the end, for many tests. Its database goes with PostgreSQL."""
    databases = request.getfixturevalue("postgres").make_database if engine == "postgres" else None
    servers = Servers(tmp_path_factory, databases)
    yield servers
    servers.close()


@pytest.fixture
def make_server(
    engine: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Server]]:
    """`make_server(**settings)`: a server for one test."""
    databases = request.getfixturevalue("make_database") if engine == "postgres" else None
    servers = Servers(tmp_path_factory, databases)
    yield servers
    servers.close()


@pytest.fixture(scope="session")
def server(lasting_server: Callable[..., Server]) -> Server:
    """One server for tests that bring their own tenant."""
    return lasting_server()


@pytest.fixture
def no_refill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rate limits of servers made from here on do not recover, however slow the machine is."""
    monkeypatch.setattr("reverie.http.limits.time", SimpleNamespace(monotonic=lambda: 0.0))


@pytest.fixture
def acme(server: Server) -> Caller:
    """A caller of a tenant nobody else uses."""
    return server.caller()
