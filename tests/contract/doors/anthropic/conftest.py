"""The unmodified `anthropic` client against Reverie on a real socket."""

from __future__ import annotations

import secrets
import socket
import string
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx2
import pytest
import uvicorn
from anthropic import Anthropic, APIStatusError, AsyncAnthropic
from tests.contract.doors.conftest import Server

_NUMBERS = count(1)


def refused(call: Any, status: int, kind: str = "invalid_request_error") -> APIStatusError:
    """The refusal of a call."""
    with pytest.raises(APIStatusError) as fault:
        call()
    assert (fault.value.status_code, fault.value.type) == (status, kind), fault.value.message
    return fault.value


@dataclass
class Live:
    """A server that listens, and clients of it."""

    server: Server
    url: str
    clients: list[Anthropic] = field(default_factory=list)

    def key(self, tenant: str | None = None, **key: Any) -> tuple[str, str]:
        """(tenant, key)."""
        name = tenant or f"tenant-a{next(_NUMBERS)}"
        return name, self.server.host.keys.create(name, **key).key

    def client(self, tenant: str | None = None, *, base: str = "/anthropic", **key: Any) -> Anthropic:
        """A client with a new key; of a new tenant unless one is named."""
        made = Anthropic(base_url=self.url + base, api_key=self.key(tenant, **key)[1], max_retries=0)
        self.clients.append(made)
        return made

    def async_client(self, tenant: str | None = None) -> AsyncAnthropic:
        return AsyncAnthropic(base_url=self.url + "/anthropic", api_key=self.key(tenant)[1], max_retries=0)

    def send(self, method: str, path: str, key: str | None, **options: Any) -> httpx2.Response:
        """One plain request."""
        headers = {**({"Authorization": f"Bearer {key}"} if key else {}), **options.pop("headers", {})}
        return httpx2.request(method, self.url + path, headers=headers, **options)


@pytest.fixture(scope="session")
def make_live(lasting_server: Callable[..., Server]) -> Iterator[Callable[..., Live]]:
    """`make_live(**settings)`: a server in this process that listens on a free port of the loopback address."""
    running: list[tuple[uvicorn.Server, threading.Thread, Live]] = []

    def make(**settings: Any) -> Live:
        server = lasting_server(**settings)
        listening = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(server.app, log_config=None, lifespan="off")
        served = uvicorn.Server(config)
        thread = threading.Thread(target=served.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        live = Live(server, f"http://127.0.0.1:{listening.getsockname()[1]}")
        running.append((served, thread, live))
        return live

    yield make
    for served, thread, live in running:
        for client in live.clients:
            client.close()
        served.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def live(make_live: Callable[..., Live]) -> Live:
    """One server for tests that bring their own tenant."""
    return make_live()


@pytest.fixture
def client(live: Live) -> Anthropic:
    """A client of a tenant nobody else uses."""
    return live.client()


@pytest.fixture
def store(client: Anthropic) -> str:
    """The id of an empty memory store."""
    return client.beta.memory_stores.create(name="notes").id


@pytest.fixture
def github_token() -> str:
    """Something that has the shape of a credential and opens nothing."""
    return "ghp_" + "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(36))
