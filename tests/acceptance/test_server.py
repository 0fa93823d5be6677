"""The server as a process: started, used over a real socket, stopped, started again."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.commands import invoke
from tests.patience import until
from tests.processes import Command, serve

API = "/v1/host/reverie"
PATIENCE = 120.0


class Child:
    """A running server, in a process that is forked from one that has imported everything."""

    def __init__(self, data: Path, *arguments: str, **environment: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("REVERIE_", "OTEL_"))}
        line = ("--port", "0", "--data", str(data), *arguments)
        # as `make run` does: the output of a test is a pipe
        given = {"NO_PROXY": "*", "REVERIE_PRINT_KEY": "true", **environment}
        self.process = self._begin(line, {**inherited, **given})
        self.lines: list[str] = []
        self.errors: list[str] = []
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        threading.Thread(target=self._collect, args=(self.process.stderr, self.errors), daemon=True).start()
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("listening on "):
                break
        else:
            raise AssertionError(f"the server did not start: {''.join(self.errors)}")
        self.url = self.lines[-1].removeprefix("listening on ")
        threading.Thread(target=self._collect, args=(self.process.stdout, self.lines), daemon=True).start()
        found = re.search(r"rvk_\w{12}_[\w-]{43}", "\n".join(self.lines))
        self.key = found[0] if found else None

    def _begin(self, line: Sequence[str], environment: Mapping[str, str]) -> Any:
        return Command(serve, *line, environment=environment)

    @staticmethod
    def _collect(stream: Any, lines: list[str]) -> None:
        lines.extend(line.rstrip("\n") for line in stream)

    def client(self, key: str | None = None) -> httpx2.Client:
        return httpx2.Client(
            base_url=self.url + API,
            headers={"Authorization": f"Bearer {key or self.key}"},
            timeout=PATIENCE,
            trust_env=False,
        )

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to stop; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def gauge(self, name: str) -> float:
        """A number of its metrics."""
        page = httpx2.get(f"{self.url}/metrics", trust_env=False, timeout=PATIENCE, verify=False).text
        return next((float(line.split()[-1]) for line in page.splitlines() if line.startswith(f"{name} ")), 0.0)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)


class NewInterpreter(Child):
    """A running server that an interpreter of its own has started, as a user's shell does."""

    def _begin(self, line: Sequence[str], environment: Mapping[str, str]) -> Any:
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([sys.executable, "-m", "reverie.http", *line], env=dict(environment), **pipes)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    """`start(*arguments, **environment)`: a server on this test's data."""
    children: list[Child] = []

    def make(*arguments: str, kind: type[Child] = Child, **environment: str) -> Child:
        children.append(kind(tmp_path / "data", *arguments, **environment))
        return children[-1]

    yield make
    for child in children:
        child.kill()


def read_events(
    client: httpx2.Client,
    wanted: int,
    *,
    last: str | None = None,
    query: str = "",
    found: list[dict[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """So many events of a stream, then hang up. `found` shows them as they come."""
    headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
    found = [] if found is None else found
    event: dict[str, str] = {}
    with client.stream("GET", f"/events{query}", headers=headers) as stream:
        assert stream.status_code == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            if line.startswith(":"):
                continue
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
            elif "data" in event:
                found.append({**json.loads(event["data"]), "id": event["id"], "event": event["event"]})
                event = {}
                if len(found) == wanted:
                    return found
            else:
                event = {}
    return found


def test_a_service_leaves_no_key_and_no_link_in_its_journal(start: Callable[..., Child], tmp_path: Path) -> None:
    child = start(REVERIE_PRINT_KEY="")
    assert child.lines[0] == "Reverie has no keys yet. Create one: reverie keys create --tenant default"
    made = invoke("keys", "create", "--tenant", "default", "--json", "--data", str(tmp_path / "data"))
    with child.client(made.json["key"]) as client:
        assert client.get("/memory/demo/entries").status_code == 200
    assert child.stop() == 0
    printed = "\n".join([*child.lines, *child.errors])
    assert "rvk_" not in printed
    assert "once=" not in printed

    again = start(REVERIE_PRINT_KEY="")
    assert again.lines == [f"listening on {again.url}"]
    again.kill()
    root = Path(__file__).parents[2]
    target = subprocess.run(["make", "-n", "run"], cwd=root, check=True, capture_output=True, text=True).stdout
    assert "REVERIE_PRINT_KEY=true" in target


def test_first_run_use_restart_and_resume(start: Callable[..., Child]) -> None:
    child = start(kind=NewInterpreter, REVERIE_LOG_FORMAT="json")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", child.url)
    assert child.key is not None
    assert "\n".join(child.lines).count(child.key) == 1
    with child.client() as client:
        stored = client.post("/memory/demo/entries", json={"content": "The customer prefers e-mail.", "tags": ["a"]})
        assert stored.status_code == 201
        found = client.post("/memory/demo/search", json={"query": "how to reach the customer"}).json()
        assert found["hits"][0]["entry"]["id"] == stored.json()["id"]
        assert len(client.get("/memory/demo/entries").json()["entries"]) == 1
        assert read_events(client, 1)[0]["event"] == "memory.written"
    assert child.stop() == 0
    log = [json.loads(line) for line in child.errors]
    assert {line["action"] for line in log} >= {"serve.started", "request.done", "serve.stopping", "serve.stopped"}
    assert "customer" not in "\n".join(child.errors)
    assert child.key not in "\n".join(child.errors)

    again = start()
    assert again.key is None
    assert again.lines[0] == f"listening on {again.url}"  # the link to the console may follow
    with again.client(child.key) as client:
        client.post("/memory/demo/entries", json={"content": "second"})
        assert [event["seq"] for event in read_events(client, 1, last="1")] == [2]
        assert [event["seq"] for event in read_events(client, 2)] == [1, 2]
    assert again.stop(signal.SIGINT) == 0


def test_a_stream_follows_this_process_and_others_and_ends_with_the_server(start: Callable[..., Child]) -> None:
    one = start()
    two = start()  # a second process on the same data
    with one.client() as client, two.client(one.key) as other, ThreadPoolExecutor(1) as pool:
        client.post("/memory/demo/entries", json={"content": "before"})
        following = pool.submit(read_events, client, 3, query="?type=memory.written")
        until(lambda: one.gauge("reverie_event_streams") == 1, "the stream was opened")
        with one.client() as writer:
            writer.post("/memory/demo/entries", json={"content": "here"})
        other.post("/memory/demo/entries", json={"content": "there"})
        assert [event["seq"] for event in following.result(PATIENCE)] == [1, 2, 3]
        seen: list[dict[str, Any]] = []
        open_ended = pool.submit(read_events, client, 99, found=seen)
        until(lambda: len(seen) == 3, "the stream caught up")
        assert one.stop() == 0
        assert len(open_ended.result(PATIENCE)) == 3
    assert two.stop() == 0


def test_a_signal_lets_the_request_at_hand_finish(start: Callable[..., Child]) -> None:
    child = start()
    host, port = child.url.removeprefix("http://").split(":")
    body = json.dumps({"content": "half of it came after the signal"}).encode()
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as line:
        head = (
            f"POST {API}/memory/demo/entries HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {child.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        line.sendall(head.encode() + body[:10])
        until(lambda: child.gauge("reverie_requests_in_flight") == 2, "the request was taken up")  # and this look
        child.process.send_signal(signal.SIGTERM)
        until(lambda: any("serve.stopping" in said for said in child.errors), "the signal arrived")
        assert child.process.poll() is None
        line.sendall(body[10:])
        answer = line.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 201")
    assert child.process.wait(PATIENCE) == 0
    again = start()
    with again.client(child.key) as client:
        assert len(client.get("/memory/demo/entries").json()["entries"]) == 1


def test_sixty_four_callers_at_once(start: Callable[..., Child]) -> None:
    child = start(REVERIE_RATE_PER_SECOND="0")

    def write(number: int) -> int:
        with child.client() as client:
            return sum(
                client.post(f"/memory/r{number}/entries", json={"content": f"{number} {turn}"}).status_code == 201
                for turn in range(3)
            )

    with ThreadPoolExecutor(64) as pool:
        assert sum(pool.map(write, range(64))) == 192
    with child.client() as client:
        assert client.get("/stats").json()["entries"] == 192
        assert client.get("/audit/verify").json()["ok"] is True
    ready = httpx2.get(f"{child.url}/readyz", trust_env=False)
    assert (ready.status_code, ready.json()["status"]) == (200, "ok")


def test_the_worker_destroys_what_expired(start: Callable[..., Child]) -> None:
    child = start(REVERIE_SWEEP_SECONDS="1")
    with child.client() as client:
        for seconds in (3, 20, 60):  # a busy machine may take so long that the time has passed
            soon = datetime.now(UTC) + timedelta(seconds=seconds)
            entry = {"content": "gone soon", "expires_at": soon.isoformat()}
            if client.post("/memory/demo/entries", json=entry).status_code == 201:
                break
        events = read_events(client, 2)
        assert [event["type"] for event in events] == ["memory.written", "memory.expired"]
        assert client.get("/memory/demo/entries").json()["entries"] == []
    assert child.stop() == 0


@pytest.mark.parametrize(
    ("raw", "statuses"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", {200}),
        (b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n", {400, 404}),
        (b"GET /v1/host/reverie/memory/%ff/entries HTTP/1.1\r\nHost: localhost\r\n\r\n", {400, 401}),
        (b"NONSENSE\r\n\r\n", {400}),
        (b"GET " + b"/a" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", {400, 404, 414, 431}),
        (b"POST /v1/host/reverie/scan HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", {400}),
        (b"POST /v1/host/reverie/scan HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n", {401, 413}),
        (
            b"POST /v1/host/reverie/scan HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            {400, 401},
        ),
    ],
)
def test_raw_bytes_on_the_line(shared: Child, raw: bytes, statuses: set[int]) -> None:
    host, port = shared.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as line:
        line.sendall(raw)
        answer = line.recv(65_536)
    assert int(answer.split(b" ", 2)[1]) in statuses
    assert httpx2.get(f"{shared.url}/healthz", trust_env=False).status_code == 200


def test_an_oversize_body_over_the_line(shared: Child) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(200):
            yield b"x" * 65_536

    with shared.client() as client:
        plain = client.post("/memory/n/entries", json={"content": "x" * 10_000_000})
        assert (plain.status_code, plain.json()["error"]) == (413, "too_large")
        try:
            chunked = client.post("/memory/n/entries", content=pieces(), headers={"Content-Type": "application/json"})
            assert chunked.status_code == 413
        except httpx2.TransportError:
            pass  # the server may hang up on a caller that goes on sending
        assert client.get("/stats").status_code == 200


@pytest.mark.parametrize("head", [b"X: " + b"a" * 5_000_000, b"X: a\r\n" * 500_000], ids=["one", "many"])
def test_a_head_without_end_is_refused(shared: Child, head: bytes) -> None:
    """The parser copies a value for every piece: 100 MB of one kept everybody waiting for 26 s."""
    host, port = shared.url.removeprefix("http://").rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as line:
        answer = b""
        with contextlib.suppress(ConnectionError):  # it does not read the rest
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + head)
        with contextlib.suppress(ConnectionError):
            answer = line.recv(65536)
        assert answer.partition(b"\r\n")[0] in (b"", b"HTTP/1.1 431 Request Header Fields Too Large")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 60_000 + b"\r\n\r\n")
        assert line.recv(65536).startswith(b"HTTP/1.1 200")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """One server for tests that leave nothing behind."""
    child = Child(tmp_path_factory.mktemp("shared"))
    yield child
    child.kill()


def test_an_address_in_use_is_one_clear_line(shared: Child, tmp_path: Path) -> None:
    port = shared.url.rsplit(":", 1)[1]
    found = subprocess.run(
        [sys.executable, "-m", "reverie.http", "--port", port, "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert found.returncode == 1
    assert found.stderr.startswith(f"error: Cannot listen on 127.0.0.1:{port}")
    assert len(found.stderr.splitlines()) == 1
    assert found.stdout == ""
