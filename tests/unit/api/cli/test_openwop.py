"""reverie openwop profile and reverie agents: any host's document, whoever wrote it, and agents by hand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reverie.protocols.openwop.capabilities import DIMENSIONS, dimensions
from reverie.protocols.openwop.profiles import profiles

MEMORY = {
    "protocolVersion": "1.0",
    "supportedEnvelopes": [],
    "schemaVersions": {},
    "limits": {"clarificationRounds": 0, "schemaRounds": 0, "envelopesPerTurn": 0},
    "memory": {"supported": True, "retention": {"ttl": True}},
    "agents": {"memoryBackends": ["long-term"]},
    "multiAgent": {"executionModel": {"version": 2}},
}


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """`serve(body, status)`: an address that answers with it."""
    running: list[ThreadingHTTPServer] = []

    def start(body: bytes, status: int = 200) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status if self.path == "/.well-known/openwop" else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def test_a_profile_names_what_decides_each_dimension(cli: Any, serve: Any) -> None:
    url = serve(json.dumps(MEMORY).encode())
    for given in (url, url + "/", url + "/.well-known/openwop"):
        answer = cli("openwop", "profile", given, "--json")
        assert answer.code == 0, answer.err
        told = json.loads(answer.out)
        assert [item["name"] for item in told["dimensions"]] == list(DIMENSIONS)
        held = {item["name"] for item in told["dimensions"] if item["holds"]}
        assert held == {"read", "write", "long-term-durability", "replay-snapshot", "retention"}
        assert all(item["reason"] for item in told["dimensions"] + told["profiles"])
        assert {item["name"]: item["holds"] for item in told["profiles"]}["openwop-memory"]
    shown = cli("openwop", "profile", url)
    assert "long-term-durability" in shown.out
    assert "memory.writable is absent" in shown.out


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{not json",
        b"\xff\xfe",
        b'"text"',
        b"[" * 100_000,
        b'{"a":1,"a":2}',
        b"1" * 10_000,
    ],
)
def test_what_is_no_document_is_said_in_one_line(cli: Any, serve: Any, body: bytes) -> None:
    answer = cli("openwop", "profile", serve(body))
    assert answer.code == 1
    assert answer.err.count("\n") == 1
    assert "Unexpected fault" not in answer.err


HOSTILE: list[dict[str, Any]] = [
    {},
    {"memory": 1, "agents": [], "multiAgent": "x", "limits": None, "fixtures": {}, "replay": [], "secrets": 0},
    {"memory": {"supported": "true", "writable": 0, "search": [], "compaction": True, "retention": 7}},
    {"agents": {"memoryBackends": "long-term"}, "multiAgent": {"executionModel": {"version": True}}},
    {"agents": {"memoryBackends": [["long-term"], {"a": 1}]}, "multiAgent": {"executionModel": {"version": 1e308}}},
    {"protocolVersion": 1, "supportedEnvelopes": [1], "schemaVersions": {"a": -1}, "limits": {"schemaRounds": True}},
    {"memory": {"supported": "\x1b[31mred\u202e" * 50}},
    {"secrets": {"supported": True, "scopes": [{}]}, "replay": {"supported": True, "modes": "all"}},
]


@pytest.mark.parametrize("document", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_document_has_no_dimension_it_does_not_prove(cli: Any, serve: Any, document: dict[str, Any]) -> None:
    assert not [verdict.name for verdict in dimensions(document) if verdict.holds]
    assert not [verdict.name for verdict in profiles(document) if verdict.holds]
    answer = cli("openwop", "profile", serve(json.dumps(document).encode()))
    assert answer.code == 0, answer.err
    assert "\x1b[31m" not in answer.out
    assert "\u202e" not in answer.out


@pytest.mark.parametrize("url", ["ftp://x", "http://", "::::", "http://127.0.0.1:1", "http://[::1", "http://a b"])
def test_an_address_that_is_none_is_said_in_one_line(cli: Any, url: str) -> None:
    answer = cli("openwop", "profile", url)
    assert answer.code == 1
    assert "Unexpected fault" not in answer.err
    assert answer.err.count("\n") == 1


def test_a_refusal_is_told(cli: Any, serve: Any) -> None:
    answer = cli("openwop", "profile", serve(b"{}", 503))
    assert answer.code == 1
    assert "503" in answer.err


def test_agents_are_installed_shown_and_removed(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "bot.json"
    manifest = {
        "agentId": "bot",
        "persona": "Helper",
        "modelClass": "chat",
        "systemPrompt": "never kept",
        "memoryShape": {"longTerm": True},
    }
    path.write_text(json.dumps(manifest))
    assert cli("agents", "install", str(path)).out == "installed bot\n"
    assert cli("agents", "install", str(path), "--tenant", "other", "--host-scope").code == 0
    listed = json.loads(cli("agents", "list", "--json").out)["items"]
    assert [item["agentId"] for item in listed] == ["bot"]
    assert "never kept" not in cli("agents", "show", "bot", "--json").out
    assert "longTerm" in cli("agents", "show", "bot").out
    assert cli("agents", "remove", "bot").code == 0
    assert json.loads(cli("agents", "list", "--json").out)["items"], "the host's own is still there"
    assert cli("agents", "remove", "bot", "--host-scope").code == 0
    assert json.loads(cli("agents", "list", "--json").out)["items"] == []
    assert cli("agents", "remove", "bot").code == 1


def test_a_manifest_that_is_none_is_refused(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "bot.json"
    for content in ("", "[]", "{}", '{"agentId": "x"}'):
        path.write_text(content)
        answer = cli("agents", "install", str(path))
        assert answer.code == 1
        assert "Unexpected fault" not in answer.err
    assert cli("agents", "install", str(tmp_path / "none.json")).code == 1
