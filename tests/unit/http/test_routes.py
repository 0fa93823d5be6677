"""Arguments of handlers: read from where they say, refused with every fault named."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, ClassVar

import pytest
from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as PlainRoute

from reverie.app import build_app, build_host
from reverie.core.errors import Invalid
from reverie.http.faults import validate
from reverie.http.openapi import document
from reverie.http.routes import Header, Query, Route, Router, Segment
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
def routes() -> list[Route]:
    settings = Settings.load({}, database_url="sqlite://")
    host = build_host(settings)
    try:
        return [route for route in build_app(settings, host).routes if isinstance(route, Route)]
    finally:
        host.close()


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_route_matches_exactly_what_its_pattern_matches(routes: list[Route], method: str) -> None:
    for path in [*PATHS, *(route.path.replace("{", "").replace("}", "") for route in routes)]:
        scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "root_path": ""}
        short = [route.matches(dict(scope)) for route in routes]
        assert short == [PlainRoute.matches(route, dict(scope)) for route in routes]


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    size: Annotated[int, Meta(ge=1, le=9)]
    label: Annotated[str, Meta(max_length=3)] | None = None


class Whole(Struct, frozen=True, forbid_unknown_fields=True):
    schema_extra: ClassVar[dict[str, Any]] = {"examples": [{"parts": [{"size": 1}]}]}

    parts: Annotated[list[Part], Meta(min_length=1)]


class Asked(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1)] = 10
    deep: bool = False
    tag: list[str] = []
    name: str | UnsetType = UNSET


router = Router("/things")


@router.post("/{name}", id="put_thing", summary="Store a thing")
async def put(
    name: Segment,
    body: Part | Whole,
    asked: Annotated[Asked, Query()],
    if_match: Annotated[str | None, Header("The version.")] = None,
) -> Response:
    return JSONResponse([name, type(body).__name__, to_builtins(asked), if_match])


@router.get("/{name}")
async def look(name: Segment, as_of: Annotated[str | None, Query(alias="asOf")] = None) -> Response:
    return JSONResponse([name, as_of])


class _Limits:
    max_request_values = 1000


class _App:
    class state:  # noqa: N801
        settings = _Limits
        host = limits = threads = None


def ask(route: Route, path: str, *, query: str = "", body: bytes = b"", headers: dict[str, str] | None = None) -> Any:
    """The JSON that a route answers."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http",
        "method": next(iter(route.methods)),
        "path": path,
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in (headers or {}).items()],
        "state": {},
        "app": _App,
    }
    scope |= route.matches(scope)[1]
    asyncio.run(route.handle(scope, receive, send))
    return sent[1]["body"]


JSON = {"content-type": "application/json"}


def test_arguments_come_from_path_query_header_and_body() -> None:
    answer = ask(
        router.routes[0],
        "/things/a%2Fb",
        query="limit=3&tag=x&tag=y&deep=yes",
        body=b'{"size": 2}',
        headers={**JSON, "if-match": "7"},
    )
    assert answer == b'["a/b","Part",{"limit":3,"deep":true,"tag":["x","y"]},"7"]'
    assert ask(router.routes[1], "/things/a", query="asOf=now&other=1") == b'["a","now"]'


def test_of_several_bodies_the_one_with_its_required_members_is_taken() -> None:
    assert b'"Whole"' in ask(router.routes[0], "/things/a", body=b'{"parts": [{"size": 1}]}', headers=JSON)


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ([], {"": "Input should be an object."}),
        ({}, {"/parts": "Field required."}),
        ({"parts": []}, {"/parts": "List should have at least 1 item, not 0."}),
        ({"parts": [{"size": True}]}, {"/parts/0/size": "Input should be a valid integer."}),
        (
            {"parts": [{"size": 10, "label": "long"}, {"size": 0, "x/y": 1}], "z": 1},
            {
                "/parts/0/size": "Input should be less than or equal to 9.",
                "/parts/0/label": "String should have at most 3 characters.",
                "/parts/1/size": "Input should be greater than or equal to 1.",
                "/parts/1/x~1y": "Extra inputs are not permitted.",
                "/z": "Extra inputs are not permitted.",
            },
        ),
    ],
)
def test_every_fault_is_named_with_a_pointer(value: Any, faults: dict[str, str]) -> None:
    with pytest.raises(Invalid) as refused:
        validate(value, Whole)
    first = next(iter(faults))
    assert refused.value.pointer == first
    assert refused.value.message.endswith(faults[first])
    shown = refused.value.details.get("faults", [{"pointer": first, "message": faults[first]}])
    assert {fault["pointer"]: fault["message"] for fault in shown} == faults


def test_a_long_list_is_whole_and_in_order_after_conversion_in_pieces() -> None:
    whole = validate({"parts": [{"size": n % 9 + 1} for n in range(1000)]}, Whole)
    assert [part.size for part in whole.parts] == [n % 9 + 1 for n in range(1000)]


class Loose(Struct, rename="camel"):
    """Ignores fields that it does not have."""

    many_parts: Annotated[list[Part], Meta(max_length=500, description="A few.")] = []


def test_a_long_list_is_refused_when_it_is_over_its_limit() -> None:
    with pytest.raises(Invalid, match="List should have at most 500 items, not 501"):
        validate({"manyParts": [{"size": 1}] * 501}, Loose)
    assert len(validate({"manyParts": [{"size": 1}] * 500}, Loose).many_parts) == 500


def test_a_long_list_in_an_ignored_field_is_ignored() -> None:
    assert validate({"other": [{}] * 200, "manyParts": [{"size": 1}]}, Loose).many_parts == [Part(1)]


def test_the_document_is_made_from_the_same_declarations() -> None:
    made = document(
        [(route.operation, route, ()) for route in router.routes if route.operation], version="1", description=""
    )
    assert list(made["paths"]) == ["/things/{name}"]
    operation = made["paths"]["/things/{name}"]["post"]
    assert operation["requestBody"]["content"]["application/json"]["schema"] == {
        "oneOf": [{"$ref": "#/components/schemas/Part"}, {"$ref": "#/components/schemas/Whole"}]
    }
    names = {(one["in"], one["name"]): one for one in operation["parameters"]}
    assert names["header", "if-match"]["description"] == "The version."
    assert names["query", "limit"]["schema"] == {"type": "integer", "minimum": 1, "default": 10}
    assert not names["query", "tag"]["required"]
    assert names["path", "name"]["required"]
    assert made["components"]["schemas"]["Whole"]["examples"]
    assert operation["security"] == [{"key": []}]
