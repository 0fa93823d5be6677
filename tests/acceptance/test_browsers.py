"""Web pages and local servers: a page of another origin, or one that reaches us by a name of its own, gets nothing."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.acceptance.test_push import Team
from tests.acceptance.test_server import PATIENCE, Child
from tests.relay import running
from tests.responses_emulator import MODEL, Drop, Emulator, Fail, Raw
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import reverie
from reverie.core.actor import Actor
from reverie.core.clock import SystemClock
from reverie.http.origin import OriginPolicy
from reverie.protocols.responses.proxy.application import Proxy
from reverie.protocols.responses.proxy.relay import Upstream
from reverie.protocols.responses.proxy.status import Counts
from reverie.protocols.responses.proxy.turns import WindowTurns
from reverie.window import Base, WindowPolicy

SCOPE = "agent-1"
FOREIGN_PAGE = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]
FOREIGN_HOST = [
    "evil.example",
    "evil.example:{port}",
    "localhost.evil.example",
    "127.0.0.1.evil.example:{port}",
    "10.1.2.3",
]

UPGRADE = (
    "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13"
    "\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
)
AMBIGUOUS_HEAD = [
    ("GET http://evil.example{path} HTTP/1.1\r\nHost: {own}", 421),
    ("GET http://evil.example:{port}{path} HTTP/1.1\r\nHost: {own}", 421),
    ("GET HTTPS://evil.example{path} HTTP/1.1\r\nHost: {own}", 421),
    ("GET http://evil.example{path} HTTP/1.1\r\nHost: evil.example", 421),
    ("GET http://{own}{path} HTTP/1.1\r\nHost: evil.example", 421),
    ("GET http://localhost:{port}{path} HTTP/1.1\r\nHost: {own}", 400),
    ("GET http://{own}@evil.example{path} HTTP/1.1\r\nHost: {own}", 400),
    ("GET ftp://{own}{path} HTTP/1.1\r\nHost: {own}", 400),
    ("GET http://{own}{path} HTTP/1.1", 400),
    ("GET http://{own}{path} HTTP/1.0", 400),
    ("GET {path} HTTP/1.1\r\nHost: {own}\r\nHost: {own}", 400),
    ("GET {path} HTTP/1.1\r\nHost: {own}\r\nHost: evil.example", 400),
    ("GET {path} HTTP/1.1", 400),
    ("GET {path} HTTP/1.0", 400),
    ("GET {path} HTTP/1.1\r\nHost: {own}, evil.example", 400),
    ("GET http://evil.example{path} HTTP/1.1\r\nHost: {own}" + UPGRADE, 421),
    ("GET http://{own}{path} HTTP/1.1\r\nHost: {own}", 200),
    ("GET http://{own}{path} HTTP/1.0\r\nHost: {own}", 200),
    ("GET {path} HTTP/1.0\r\nHost: {own}", 200),
]
"""Heads that name the server twice, by another name, or not at all, and their status."""


def status_of(root: str, head: str, path: str) -> int:
    """Status of the answer to a head that no client library would send."""
    own = root.removeprefix("http://")
    name, _, port = own.rpartition(":")
    with socket.create_connection((name, int(port)), timeout=PATIENCE) as line:
        line.sendall((head.format(own=own, port=port, path=path) + "\r\n\r\n").encode())
        return int(line.recv(65_536).split(b" ", 2)[1])


class Desk:
    """A proxy, its upstream and its memory, with one conversation of the user in it."""

    def __init__(self, data: Path, provider: Emulator, pages: OriginPolicy | None) -> None:
        self.provider, self.memory = provider, reverie.open(data)
        base = Base.of(provider.url)
        upstream, self.counts = Upstream(base.url), Counts(SystemClock().now())
        self.actor = Actor(tenant="default", id="local:proxy", door="responses")
        policy = WindowPolicy(trigger_input_tokens=4000)
        turns = WindowTurns(self.memory.host, self.actor, upstream, base=base, policy=policy, counts=self.counts)
        self.proxy = Proxy(upstream, turns, counts=self.counts, pages=pages)
        self.root = ""
        self.history: list[dict[str, Any]] = []

    def ask(self, words: str) -> str:
        """A turn of the user; how the window was used."""
        self.history.append({"role": "user", "content": words})
        body = {"model": MODEL, "input": self.history, "prompt_cache_key": SCOPE}
        with self.web() as web:
            answer = web.post("/v1/responses", json=body, headers={"authorization": f"Bearer {self.provider.key}"})
        said = next(item["content"][0]["text"] for item in answer.json()["output"] if item["type"] == "message")
        self.history.append({"role": "assistant", "content": said})
        return str(answer.headers["x-reverie-window-status"])

    def web(self) -> httpx2.Client:
        """A caller that is no SDK."""
        given = {"content-type": "application/json"}
        return httpx2.Client(base_url=self.root, headers=given, trust_env=False, timeout=PATIENCE, verify=False)

    def kept(self) -> tuple[Any, ...]:
        """Everything that is stored: the window, the words, the log."""
        host = self.memory.host
        log = host.reader.snapshot(self.actor)
        shown = host.windows.show(self.actor, SCOPE)
        return log, shown["version"], shown["generation"], json.dumps(shown, sort_keys=True, default=str)


@pytest.fixture
def provider() -> Iterator[Emulator]:
    with Emulator(context=6000) as started:
        yield started


@pytest.fixture
def desk(tmp_path: Path, provider: Emulator) -> Iterator[Desk]:
    made = Desk(tmp_path / "data", provider, None)
    with running(made.proxy) as made.root:
        assert made.ask("The blue folder is in the second drawer.") == "fallback_full_request"
        yield made
    made.memory.close()


def stolen(words: str = "words of a page", **more: Any) -> str:
    """A request of a page that guessed the scope."""
    return json.dumps({"model": MODEL, "input": words, "prompt_cache_key": SCOPE, **more})


def test_a_page_of_another_origin_gets_nothing_from_the_proxy(desk: Desk) -> None:
    before, asked = desk.kept(), len(desk.provider.seen)
    with desk.web() as web:
        for page in FOREIGN_PAGE:
            for kind in ("text/plain", "application/json"):
                answer = web.post("/v1/responses", content=stolen(), headers={**page, "content-type": kind})
                assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden_origin")
                assert not [name for name in answer.headers if name.startswith("access-control-")]
            for path in ("/v1/models", "/reverie/status", "/reverie/metrics"):
                assert web.get(path, headers=page).status_code == 403
            wants = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
            assert web.options("/v1/responses", headers={**page, **wants}).status_code == 403
    assert desk.kept() == before
    assert len(desk.provider.seen) == asked
    assert desk.counts.requests["forbidden_origin"] == 6 * len(FOREIGN_PAGE)
    assert desk.ask("And the red one?") == "hit"


def test_a_name_of_somebody_else_is_not_served_by_the_proxy(desk: Desk) -> None:
    before, asked = desk.kept(), len(desk.provider.seen)
    with desk.web() as web:
        for host in (*FOREIGN_HOST, "localhost:1", "127.0.0.1"):
            named = {"host": host.format(port=desk.root.rsplit(":", 1)[1])}
            answer = web.post("/v1/responses", content=stolen(), headers=named)
            assert (answer.status_code, answer.json()["error"]["code"]) == (421, "forbidden_host")
            assert host not in answer.text
            for path in ("/v1/models", "/reverie/status"):
                assert web.get(path, headers=named).status_code == 421
    assert desk.kept() == before
    assert len(desk.provider.seen) == asked


@pytest.mark.parametrize(("head", "status"), AMBIGUOUS_HEAD)
def test_the_proxy_serves_one_name_of_its_own(desk: Desk, head: str, status: int) -> None:
    asked = len(desk.provider.seen)
    assert status_of(desk.root, head, "/reverie/status") == status
    if status != 200:
        assert status_of(desk.root, head, "/v1/models") == status
        assert len(desk.provider.seen) == asked


def test_the_proxy_takes_json_only_where_json_is_spoken(desk: Desk) -> None:
    before, asked = desk.kept(), len(desk.provider.seen)
    with desk.web() as web:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
            for path in ("/v1/responses", "/v1/responses/compact", "/v1/%72esponses", "/v1//responses"):
                answer = web.post(path, content=stolen(), headers={"content-type": kind})
                assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")
    assert desk.kept() == before
    assert len(desk.provider.seen) == asked


def test_a_request_that_the_upstream_refuses_changes_nothing(desk: Desk) -> None:
    before = desk.kept()
    with desk.web() as web:
        for headers in ({}, {"authorization": "Bearer wrong"}):
            for body in (stolen("words of a stranger"), stolen("other words"), stolen(stream=True)):
                assert web.post("/v1/responses", content=body, headers=headers).status_code == 401
    assert desk.kept() == before
    found = desk.memory.ref(SCOPE).search("words of a stranger").hits
    assert not [hit for hit in found if "words" in hit.entry.content]
    assert desk.ask("And the red one?") == "hit"


def test_a_diverging_history_resets_nothing_until_it_is_answered(desk: Desk) -> None:
    """The user's own key, another history: the window is dropped with the answer, not with the question."""
    headers = {"authorization": f"Bearer {desk.provider.key}"}
    with desk.web() as web:
        for fault in (Fail(429), Fail(500), Fail(403), Drop(), Raw("not json")):
            for stream in (False, True):
                before = desk.kept()
                desk.provider.faults["create"] = [fault]
                web.post("/v1/responses", content=stolen("an edited history", stream=stream), headers=headers)
                assert desk.kept() == before
                assert desk.ask("And the red one?") == "hit"
        before = desk.kept()
        accepted = web.post("/v1/responses", content=stolen("an edited history"), headers=headers)
    assert accepted.headers["x-reverie-window-status"] == "reset"
    log = desk.memory.host.reader.events(desk.actor, after=before[0], limit=100, types=None)
    dropped = [event for event in log if event.type == "provider_window_reset"]
    assert [event.data["reason"] for event in dropped] == ["not_append_only"]
    assert desk.memory.ref(SCOPE).get(dropped[0].data["checkpoint_ref"]).kind == "checkpoint"


def test_a_listed_page_may_ask_and_read(tmp_path: Path, provider: Emulator) -> None:
    pages = OriginPolicy.of(
        "127.0.0.1", hosts="studio.example", origins="https://studio.example", own_port=True, own_pages=False
    )
    desk = Desk(tmp_path / "data", provider, pages)
    page = {"Origin": "https://studio.example", "Sec-Fetch-Site": "cross-site"}
    asks = {**page, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    with running(desk.proxy) as desk.root, desk.web() as web:
        asked = web.options("/v1/responses", headers=asks)
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == "https://studio.example"
        assert asked.headers["access-control-allow-headers"] == "authorization"
        key = {"authorization": f"Bearer {provider.key}"}
        answer = web.post("/v1/responses", content=stolen(), headers={**page, **key})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "https://studio.example"
        named = web.post("/v1/responses", content=stolen(), headers={"host": "studio.example"})
        assert named.status_code == 401
        other = web.post("/v1/responses", content=stolen(), headers={"Origin": "https://other.example"})
        assert other.status_code == 403
    desk.memory.close()


# the server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    child = Child(tmp_path_factory.mktemp("served"))
    yield child
    child.kill()


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ENVELOPE = {"protocol": "akashik", "version": "0.1.0", "id": "m", "operation": "REGISTER", "agent_id": "a"}
DOORS: list[tuple[str, str, Any]] = [
    ("GET", "/", None),
    ("GET", "/healthz", None),
    ("GET", "/readyz", None),
    ("GET", "/metrics", None),
    ("GET", "/v1/openapi.json", None),
    ("GET", "/.well-known/openwop", None),
    ("GET", "/v1/host/reverie/events", None),
    ("GET", "/v1/host/reverie/memory/notes/entries", None),
    ("POST", "/v1/host/reverie/memory/notes/entries", {"content": "words of a page"}),
    ("POST", "/v1/host/reverie/memory/forget", {"subject": "ada"}),
    ("POST", "/mcp", INITIALIZE),
    ("POST", "/akashik/mcp", INITIALIZE),
    ("POST", "/akashik/v1/register", ENVELOPE),
    ("GET", "/akashik/v1/field/status", None),
    ("GET", "/akashik/v1/subscriptions/stream", None),
    ("GET", "/nowhere", None),
]


WEB = httpx2.Client(trust_env=False, timeout=PATIENCE, verify=False)


def send(child: Child, method: str, path: str, body: Any, headers: dict[str, str]) -> httpx2.Response:
    accepted = {"Authorization": f"Bearer {child.key}", "Accept": "application/json, text/event-stream"}
    given = {"Content-Type": "application/json", **accepted, **headers}
    content = None if body is None else json.dumps(body)
    return WEB.request(method, child.url + path, content=content, headers=given)


def stats(child: Child) -> Any:
    return send(child, "GET", "/v1/host/reverie/stats", None, {}).json()


@pytest.mark.parametrize(("method", "path", "body"), DOORS)
def test_no_door_answers_a_page_or_a_name_of_somebody_else(served: Child, method: str, path: str, body: Any) -> None:
    before = stats(served)
    for page in FOREIGN_PAGE:
        answer = send(served, method, path, body, page)
        assert answer.status_code == 403, (page, answer.text)
        assert "forbidden_origin" in answer.text
        assert not [name for name in answer.headers if name.startswith("access-control-")]
    port = served.url.rsplit(":", 1)[1]
    for host in FOREIGN_HOST:
        answer = send(served, method, path, body, {"Host": host.format(port=port)})
        assert answer.status_code == 421, (host, answer.text)
        assert "forbidden_host" in answer.text
    assert stats(served) == before


@pytest.mark.parametrize(("head", "status"), AMBIGUOUS_HEAD)
def test_a_request_names_one_server(served: Child, head: str, status: int) -> None:
    assert status_of(served.url, head, "/healthz") == status


def test_programs_and_own_pages_notice_nothing(served: Child) -> None:
    port = served.url.rsplit(":", 1)[1]
    stored = "/v1/host/reverie/memory/own/entries"
    for number, headers in enumerate(
        (
            {},
            {"Host": f"localhost:{port}"},
            {"Host": "LOCALHOST."},
            {"Host": f"[::1]:{port}"},
            {"Host": "127.0.0.7:9999"},
            {"Sec-Fetch-Site": "none"},
            {"Sec-Fetch-Site": "same-origin", "Origin": served.url},
            {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}", "Sec-Fetch-Site": "same-origin"},
        )
    ):
        answer = send(served, "POST", stored, {"content": f"entry {number}"}, headers)
        assert answer.status_code == 201, (headers, answer.text)
    told = send(served, "POST", "/mcp", INITIALIZE, {})
    assert told.status_code == 200, told.text


@pytest.mark.parametrize(
    ("path", "body"),
    [(path, body) for method, path, body in DOORS if method == "POST"],
    ids=lambda value: str(value)[:40],
)
def test_no_door_takes_a_body_that_a_page_may_send_unasked(served: Child, path: str, body: Any) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        answer = send(served, "POST", path, body, {"Content-Type": kind})
        assert 400 <= answer.status_code < 500, answer.text


def test_a_websocket_of_another_origin_is_refused(served: Child) -> None:
    team = Team(served)
    team("a", "REGISTER", id="a", role="r", authority_level=10)
    address = team.subscribe("a", "memory.recorded")["websocket_url"]
    for origin in ("https://evil.example", "null"):
        with pytest.raises(InvalidStatus) as refused:
            connect(address, proxy=None, origin=origin)  # type: ignore[arg-type]
        assert refused.value.response.status_code == 403
    for header, status in (({"Sec-Fetch-Site": "cross-site"}, 403), ({"Host": "evil.example"}, 400)):
        with pytest.raises(InvalidStatus) as refused:
            connect(address, proxy=None, additional_headers=header)
        assert refused.value.response.status_code == status
    with connect(address, proxy=None) as socket:  # the ticket was not used up
        unit = team.record("a", "The pump runs at 40 bar.")
        assert unit in socket.recv(timeout=PATIENCE)


def test_an_operator_lists_names_and_pages(tmp_path: Path) -> None:
    listed = {"REVERIE_ALLOWED_HOSTS": "memory.example", "REVERIE_ALLOWED_ORIGINS": "https://app.example:8443"}
    child = Child(tmp_path / "data", **listed)
    try:
        path = "/v1/host/reverie/stats"
        assert send(child, "GET", path, None, {"Host": "memory.example"}).status_code == 200
        assert send(child, "GET", path, None, {"Host": "memory.example:443"}).status_code == 200
        assert send(child, "GET", path, None, {"Host": "other.example"}).status_code == 421
        own = {"Host": "memory.example", "Origin": "https://memory.example", "Sec-Fetch-Site": "same-origin"}
        assert send(child, "GET", path, None, own).status_code == 200
        page = {"Origin": "https://app.example:8443", "Sec-Fetch-Site": "cross-site"}
        answer = send(child, "GET", path, None, page)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "https://app.example:8443")
        wants = {**page, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "authorization"}
        asked = WEB.options(child.url + path, headers=wants)
        assert (asked.status_code, asked.headers["access-control-allow-headers"]) == (204, "authorization")
        assert send(child, "GET", path, None, {"Origin": "https://app.example"}).status_code == 403
    finally:
        child.kill()
