"""The short way to a handler, and that it leads to the same place."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.routing import APIRoute

from reverie.app import build_app, build_host
from reverie.http.call import Quick, StrictRoute
from reverie.settings import Settings

PATHS = [
    "/",
    "/healthz",
    "/v1/host/reverie/memory/a%2Fb/entries",
    "/v1/host/reverie/memory/a/entries/",
    "/v1/host/reverie/memory/a/entries/1",
    "/v1/host/reverie/memory/a/entries/1/restore",
    "/v1/host/reverie/memory/forget",
    "/v1/host/reverie/memory//entries",
    "/v1/host/reverie/memory/a/dreams",
    "/v1/host/reverie/dreams/1/undo",
    "/v1/runs/1/events/poll",
    "/v1/host/openwop/workspace/files/a/b/c.md",
    "/.well-known/openwop",
    "/v1/host/reverie/memory/a/b/c/d/entries",
]


@pytest.fixture(scope="module")
def routes() -> list[StrictRoute]:
    settings = Settings.load({}, database_url="sqlite://")
    host = build_host(settings)
    try:
        return [route for route in build_app(settings, host).routes if isinstance(route, StrictRoute)]
    finally:
        host.close()


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_route_matches_exactly_what_its_pattern_matches(routes: list[StrictRoute], method: str) -> None:
    for path in [*PATHS, *(route.path.replace("{", "").replace("}", "") for route in routes)]:
        scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "root_path": ""}
        short = [route.matches(dict(scope)) for route in routes]
        assert short == [APIRoute.matches(route, dict(scope)) for route in routes]


def test_storing_takes_the_short_way_and_what_has_a_query_does_not(routes: list[StrictRoute]) -> None:
    short = {route.operation_id for route in routes if Quick.of(route) is not None}
    assert "put_entries" in short
    assert "list_entries" not in short
