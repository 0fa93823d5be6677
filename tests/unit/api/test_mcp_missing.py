"""A host without the MCP SDK: /mcp says what to install, and everything else works."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from reverie.app import build_app, build_host
from reverie.core.errors import MissingExtra
from reverie.mcp import require_sdk
from reverie.settings import Settings


def test_mcp_without_its_sdk_is_501_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtra("MCP needs the package mcp: pip install 'reverie[mcp]'")

    monkeypatch.setattr("reverie.mcp.http.require_sdk", missing)
    settings = Settings.load({}, database_url="sqlite://")
    host = build_host(settings)
    try:
        key = host.keys.create("default", name="test").key
        client = TestClient(build_app(settings, host), base_url="http://127.0.0.1:8484")
        answer = client.post(
            "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers={"Authorization": f"Bearer {key}"}
        )
        assert answer.status_code == 501
        assert answer.json()["error"] == "missing_extra"
        assert "pip install 'reverie[mcp]'" in answer.json()["message"]
    finally:
        host.close()


def test_the_check_passes_where_the_sdk_is() -> None:
    require_sdk()
