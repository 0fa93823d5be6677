"""The OpenAPI document: every operation of every protocol, each with what it takes and answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
from starlette.routing import Route as PlainRoute
from tests.contract.doors.conftest import Server
from tests.described import close

from reverie.http.openapi import operations
from reverie.http.routes import Route

UNDESCRIBED = {"/", "/healthz", "/readyz", "/metrics", "/v1/openapi.json"}
"""For an operator's tools and browsers; none of them takes or answers memory."""


def described(server: Server) -> dict[str, Any]:
    document: dict[str, Any] = server.stranger().get("/v1/openapi.json").json()
    return document


def test_every_route_of_every_door_is_described(server: Server) -> None:
    paths = described(server)["paths"]
    routes = [route for door in server.app._doors for route in door.routes if isinstance(route, PlainRoute)]  # type: ignore[attr-defined]
    assert len(routes) > 60
    for route in routes:
        path = route.path.replace(":path}", "}")
        for method in route.methods or ():
            if path not in UNDESCRIBED and method != "HEAD":
                assert method.lower() in paths.get(path, {}), f"{method} {path} is not described"


def test_seams_are_described_while_they_are_on(make_server: Any) -> None:
    server = make_server(
        openwop_seams=True, openwop_compaction=True, openwop_trigger_compaction=True, akashik_faults=True
    )
    test_every_route_of_every_door_is_described(server)
    test_every_body_and_every_answer_has_an_example_that_fits_its_schema(server)
    assert "/v1/test/memory/compact" in described(server)["paths"]
    assert not {path for path in described(make_server())["paths"] if "/test/" in path or "/sample/" in path}


def test_no_answer_is_described_as_just_some_object(server: Server) -> None:
    document = described(server)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for status, answer in operation["responses"].items():
                schema = answer.get("content", {}).get("application/json", {}).get("schema")
                assert schema != {"type": "object"}, f"{method} {path} {status}"


def test_every_operation_says_what_it_answers_and_who_may_ask(server: Server) -> None:
    document = described(server)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name = f"{method} {path}"
            assert operation["summary"], name
            assert operation["tags"], name
            assert any(status.startswith("2") for status in operation["responses"]), name
            named = {one["name"] for one in operation.get("parameters", []) if one["in"] == "path"}
            assert named == {part.split("}")[0] for part in path.split("{")[1:]}, name


def test_every_part_of_a_path_says_what_it_is(server: Server) -> None:
    for path, operations_of in described(server)["paths"].items():
        for method, operation in operations_of.items():
            for one in operation.get("parameters", ()):
                assert one["in"] != "path" or one.get("description"), f"{method} {path}: {one['name']}"


def test_the_protocol_at_the_root_is_first_and_every_operation_names_its_scopes(server: Server) -> None:
    paths = described(server)["paths"]
    order = list(paths)
    assert order[0] == "/.well-known/openwop"
    native = order.index("/v1/host/reverie/memory/{ref}/entries")
    assert max(order.index(path) for path in ("/v1/runs", "/v1/agents", "/v1/workflows/{workflow_id}")) < native
    assert paths["/v1/runs"]["post"]["security"] == [{"key": ["runs:create"]}]
    assert paths["/v1/runs/{run_id}:fork"]["post"]["security"] == [{"key": ["runs:create"]}]
    assert paths["/v1/runs/{run_id}/events"]["get"]["security"] == [{"key": ["runs:read"]}]
    assert paths["/v1/host/workspace/files/{path}"]["put"]["security"] == [{"key": ["workspace:write"]}]
    assert paths["/v1/host/reverie/memory/{ref}/search"]["post"]["security"] == [
        {"key": ["x-host-reverie-memory-query"]}
    ]
    assert "security" not in paths["/.well-known/openwop"]["get"]


def _contents(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every body, and every successful answer of an operation that has a first one."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            asked = operation.get("requestBody", {}).get("content", {})
            good = {status: one for status, one in operation["responses"].items() if status.startswith("2")}
            for what, message in (
                ("the body", asked),
                *((status, one.get("content", {})) for status, one in good.items()),
            ):
                for media, content in list(message.items())[:1]:
                    if media != "text/event-stream":
                        yield f"{what} of {method} {path}", content


def test_every_body_and_every_answer_has_an_example_that_fits_its_schema(server: Server) -> None:
    document = json.loads(server.stranger().get("/v1/openapi.json").content)
    strict = close(document)
    seen = 0
    for (name, content), (_, schema) in zip(_contents(document), _contents(strict), strict=True):
        assert "example" in content, f"{name} has no example"
        whole = {**schema["schema"], "components": strict["components"]}
        fault = next(jsonschema_rs.Draft202012Validator(whole).iter_errors(content["example"]), None)
        assert fault is None, f"{name}: {fault.instance_path}: {fault.message[:300]}"
        seen += 1
    assert seen > 150


def test_a_door_lists_what_its_routes_do_not_say_themselves(server: Server) -> None:
    doors = {door.name: door for door in server.app._doors}  # type: ignore[attr-defined]
    assert {operation.path for operation, route, _ in operations(doors["akashik"]) if route is None} >= {
        "/akashik/v1/record",
        "/akashik/v1/field/log",
    }
    assert all(isinstance(route, Route) for _, route, _ in operations(doors["openwop"]))
