"""`reverie serve` as a process that tests kill and start again, and callers that retry as programs do."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import httpx2
from tests.processes import PATIENCE, Child

from reverie.app import build_host
from reverie.settings import Settings

API = "/v1/host/reverie"


def settings(data: Path, database_url: str = "", **more: Any) -> Settings:
    """Settings of a host on a folder, or on a database with its keys in the folder."""
    quiet = {"port": 0, "rate_per_second": 0, "database_pool": 8, "log_level": "error"}
    return Settings.load({}, data=str(data), database_url=database_url, **{**quiet, **more})


def serve(data: str, database_url: str, more: dict[str, Any]) -> None:
    """The body of the process."""
    from reverie.http.run import run

    run(settings(Path(data), database_url, **more))


def make_key(data: Path, database_url: str = "", *, tenant: str = "acme") -> str:
    """A key with every right."""
    host = build_host(settings(data, database_url))
    try:
        return host.keys.create(tenant).key
    finally:
        host.close()


class Served:
    """A server process. Its address changes with every start, so no port is used twice."""

    def __init__(self, data: Path, database_url: str = "", **more: Any) -> None:
        self._arguments = (str(data), database_url, more)
        self.url = ""
        self._ended = False
        self.start()

    def start(self) -> None:
        self._process, self._ended = Child(serve, *self._arguments), False
        self._process.listen(until=b"listening on ")
        while b"\n" not in self._process.said.partition(b"listening on ")[2]:
            self._process.listen(until=self._process.said + b"\n", seconds=1)
        self.url = self._process.said.partition(b"listening on ")[2].split()[0].decode()

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """End it as a power cut would; one that has ended stays ended."""
        if not self._ended:
            self._ended = True
            self._process.kill()

    def stop(self) -> None:
        """Let it finish the requests at hand."""
        os.kill(self.pid, signal.SIGTERM)
        self._ended = True
        assert self._process.end() == 0


class Unanswered(Exception):
    """No answer came, so the outcome is unknown."""


class Client:
    """A caller of one or more hosts, which it uses at random."""

    def __init__(self, hosts: list[Served], key: str, chance: random.Random, *, may_refuse: bool = True) -> None:
        """`may_refuse`: a host may say that it cannot at the moment (503), as it does while its database is away."""
        self.hosts = hosts
        self.may_refuse = may_refuse
        self.chance = chance
        headers = {"Authorization": f"Bearer {key}"}
        self.repeated = False
        """Whether the last request that was sent took more than one try."""
        self._http = httpx2.Client(headers=headers, trust_env=False, timeout=PATIENCE, verify=False)

    def close(self) -> None:
        self._http.close()

    def once(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """One try. Raises Unanswered when no host answered, or one said that it cannot at the moment."""
        url = self.chance.choice(self.hosts).url
        try:
            answer = self._http.request(method, url + (path if path.startswith("/") else f"{API}/{path}"), **options)
        except httpx2.TransportError as fault:
            raise Unanswered from fault
        if answer.status_code == 503 and self.may_refuse:
            raise Unanswered
        assert answer.status_code < 500, (method, path, answer.status_code, answer.text[:300])
        return answer

    def send(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """As many tries as it takes: a server may close an idle connection in the instant in which it is used."""
        until = time.monotonic() + PATIENCE
        self.repeated = False
        while True:
            try:
                return self.once(method, path, **options)
            except Unanswered:
                self.repeated = True
                assert time.monotonic() < until, f"no host answered {method} {path}"
                time.sleep(0.02)
