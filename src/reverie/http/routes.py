"""Routes whose handlers take typed arguments, read once, from the path, the query, the headers and a JSON body.

    router = Router("/v1/things")

    @router.post("/{name}", id="put_thing", summary="Store a thing")
    @needs(Right.WRITE)
    def put(call: Call, name: Segment, body: ThingIn, if_match: Annotated[str | None, Header()] = None) -> Response: ...

A handler is inspected when its route is made, never for a request. A plain function runs in a thread of its lane, a
coroutine function on the event loop. The same declarations make the OpenAPI document (openapi.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from inspect import Parameter, iscoroutinefunction, signature
from typing import Annotated, Any, NewType, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct, inspect
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.routing import Route as PlainRoute
from starlette.routing import Router as StarletteRouter
from starlette.types import Receive, Scope, Send

from reverie.core.errors import Invalid
from reverie.http.call import SMALL_BODY, Call, Handler, Needs
from reverie.http.faults import plain_type, validate
from reverie.http.parsing import UnsupportedMedia
from reverie.http.paths import decode_segment
from reverie.http.threads import Lane

Segment = NewType("Segment", str)
"""One segment of the raw path, decoded once: `%2F` inside it is no slash."""
Form = type[Struct] | tuple[type[Struct], ...] | Mapping[str, Any]
"""The shape of a body: a struct, several structs to choose from, or a JSON schema."""
_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
_FALSE = frozenset({"0", "false", "f", "no", "n", "off"})
_REMEMBERED = 64
"""Size of the cache of media types."""


@dataclass(frozen=True, slots=True)
class Query:
    """Marks an argument that comes from the query: one parameter, or a struct of them."""

    alias: str = ""


@dataclass(frozen=True, slots=True)
class Header:
    """Marks an argument that comes from a header of the same name, with hyphens."""

    description: str = ""


@dataclass(frozen=True, slots=True)
class DocumentedAnswer:
    """One documented answer. Without `body` and `media`: an answer without content."""

    description: str = ""
    body: Form | None = None
    media: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Other media types with their schemas."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One method on one path, as the OpenAPI document describes it."""

    id: str
    summary: str
    method: str = "GET"
    path: str = ""
    """Whole, as OpenAPI writes it."""
    description: str = ""
    tags: Sequence[str] = ()
    parameters: Sequence[Mapping[str, Any]] = ()
    """Parameters that are not arguments of the handler."""
    body: Form | None = None
    body_media: str = "application/json"
    body_required: bool = True
    answers: Mapping[int, DocumentedAnswer] = field(default_factory=dict)
    open: bool = False
    """Whether no key is needed."""


@dataclass(frozen=True, slots=True)
class Values:
    """Arguments that come from one place as a struct: the query, or the headers."""

    kind: type[Struct]
    place: str
    whole: str | None
    """The argument that takes the struct; None: its fields are arguments."""
    lists: frozenset[str]
    readers: Mapping[str, Callable[[str], Any]]
    descriptions: Mapping[str, str]
    raw_names: Mapping[bytes, str]
    """Names of headers as a server hands them over."""
    absent: Mapping[str, Any] | None
    """The arguments when a request has none of them; None: it must have some."""

    def read(self, call: Call) -> Mapping[str, Any]:
        """The arguments from a request. Raises Invalid."""
        found: dict[str, Any] = {}
        if self.place == "query":
            for name, text in call.query_params.multi_items():
                reader = self.readers.get(name)
                value = text if reader is None else reader(text)
                if name in self.lists:
                    found.setdefault(name, []).append(value)
                else:
                    found[name] = value
        else:
            for raw, sent in call.scope["headers"]:
                if raw in self.raw_names:
                    found.setdefault(self.raw_names[raw], sent.decode("latin-1"))
        if not found and self.absent is not None:
            return self.absent
        read = validate(found, self.kind, text=True)
        return {self.whole: read} if self.whole else msgspec.structs.asdict(read)


class Route(PlainRoute):
    """A route that checks rights and the media type before it reads the body."""

    methods: set[str]

    def __init__(
        self, path: str, handler: Callable[..., Any], *, methods: Sequence[str], operation: Operation | None
    ) -> None:
        super().__init__(path, handler, methods=list(methods))
        self.methods = set(methods)  # without the HEAD that Starlette adds
        reads = self.methods <= {"GET", "HEAD"}
        self.needs: Needs = getattr(handler, "needs", Needs(lane=Lane.READ if reads else Lane.WRITE))
        self.handler = handler
        self.operation = operation
        self._waits = iscoroutinefunction(handler)
        hints = get_type_hints(handler, include_extras=True)
        hints.pop("return", None)
        taken = signature(handler).parameters
        self._call = next((name for name, hint in hints.items() if hint is Call), None)
        self._path = [name for name, hint in hints.items() if hint is Segment]
        self.values = [one for one in (_values("query", hints, taken), _values("header", hints, taken)) if one]
        self.body_name, self.body = _body(hints)
        # A parameter never holds a slash, but for one that says it is a path.
        self.slashes = None if ":path}" in self.path else self.path.count("/")
        self._ending = self.path.rpartition("}")[2]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the pattern, unless the end of the path or its slashes rule that out at a tenth of the cost."""
        path: str = scope["path"]
        if self.slashes is not None and not (path.endswith(self._ending) and path.count("/") == self.slashes):
            return Match.NONE, {}
        return super().matches(scope)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["method"] not in self.methods:
            return await super().handle(scope, receive, send)
        scope["state"]["route"] = self.path_format  # for logs and metrics: the template, never the path
        call = Call(scope, receive)
        if call.tenant:
            self.needs.check(call.actor)
        values: dict[str, Any] = {} if self._call is None else {self._call: call}
        for name in self._path:
            values[name] = decode_segment(scope["path_params"][name])
        for one in self.values:
            values.update(one.read(call))
        if self.body:
            response: Response = await self._with_body(call, values)
        elif self._waits:
            response = await self.handler(**values)
        else:
            response = await call.run(self.needs.lane, partial(self.handler, **values))
        await response(scope, receive, send)
        return None

    async def _with_body(self, call: Call, values: dict[str, Any]) -> Response:
        needed = self.operation is None or self.operation.body_required
        if not _is_json(call.header(b"content-type")) and (needed or await call.body()):
            raise UnsupportedMedia()
        body, name, lane = await call.body(), self.body_name, self.needs.lane
        if not body and needed:
            raise Invalid("The body is empty. Send a JSON object.", pointer="")
        body = body or b"{}"
        small = len(body) <= SMALL_BODY
        if small and not self._waits:
            return await call.run(lane, lambda: self.handler(**values, **{name: self._read(call, body)}))
        values[name] = self._read(call, body) if small else await call.run(Lane.PARSE, lambda: self._read(call, body))
        if self._waits:
            response: Response = await self.handler(**values)
            return response
        return await call.run(lane, partial(self.handler, **values))

    def _read(self, call: Call, body: bytes) -> Any:
        document = call._json = call.parse_body(body)
        return validate(document, matching_struct(self.body, document))


class Dispatch:
    """Finds the route of a request among those whose paths have as many segments."""

    def __init__(self, router: StarletteRouter) -> None:
        self._router = router
        most = max((route.slashes or 0 for route in router.routes if isinstance(route, Route)), default=0)
        self._by_slashes = [
            [one for one in router.routes if getattr(one, "slashes", None) in (None, number)]
            for number in range(most + 2)
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._router(scope, receive, send)
        path: str = scope["path"]
        method: str = scope["method"]
        others: list[BaseRoute] = []
        for route in self._by_slashes[min(path.count("/"), len(self._by_slashes) - 1)]:
            if isinstance(route, Route) and method not in route.methods:
                others.append(route)
                continue
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope.update(found)
                return await route.handle(scope, receive, send)
            if match is Match.PARTIAL:
                others.append(route)
        for route in others:
            if route.matches(scope)[0] is Match.PARTIAL:
                return await route.handle(scope, receive, send)  # raises: the path does not have the method
        raise HTTPException(404)


class Router:
    """Routes under one prefix, declared by their handlers."""

    def __init__(self, prefix: str = "", *, tags: Sequence[str] = ()) -> None:
        self.prefix = prefix
        self.routes: list[Route] = []
        self._tags = tags

    def get(self, path: str, **said: Any) -> Callable[[Handler], Handler]:
        """A handler of GET. For the keywords see `route`."""
        return self.route(path, ["GET"], **said)

    def post(self, path: str, **said: Any) -> Callable[[Handler], Handler]:
        """A handler of POST."""
        return self.route(path, ["POST"], **said)

    def put(self, path: str, **said: Any) -> Callable[[Handler], Handler]:
        """A handler of PUT."""
        return self.route(path, ["PUT"], **said)

    def patch(self, path: str, **said: Any) -> Callable[[Handler], Handler]:
        """A handler of PATCH."""
        return self.route(path, ["PATCH"], **said)

    def delete(self, path: str, **said: Any) -> Callable[[Handler], Handler]:
        """A handler of DELETE."""
        return self.route(path, ["DELETE"], **said)

    def route(self, path: str, methods: Sequence[str], **said: Any) -> Callable[[Handler], Handler]:
        """A handler of several methods. `said` are fields of `Operation`; without an id the route is not described."""

        def add(handler: Handler) -> Handler:
            whole = self.prefix + path
            operation: Operation | None = None
            if "id" in said:
                shown = {"tags": self._tags, **said}
                operation = Operation(method=methods[0], path=whole.replace(":path}", "}"), **shown)
            self.routes.append(Route(whole, handler, methods=methods, operation=operation))
            return handler

        return add


def matching_struct(kinds: Sequence[type[Struct]], document: Any) -> type[Struct]:
    """The last of several structs whose required members are all present; the first when there is none."""
    if isinstance(document, dict):
        for kind in reversed(kinds[1:]):
            if document.keys() >= _required(kind):
                return kind
    return kinds[0]


@lru_cache(_REMEMBERED)
def _is_json(media: bytes) -> bool:
    plain = media.decode("latin-1").partition(";")[0].strip().lower()
    return plain == "application/json" or (plain.startswith("application/") and plain.endswith("+json"))


@cache
def _required(kind: type[Struct]) -> frozenset[str]:
    return frozenset(one.encode_name for one in msgspec.structs.fields(kind) if one.required)


def _body(hints: Mapping[str, Any]) -> tuple[str, tuple[type[Struct], ...]]:
    for name, hint in hints.items():
        kinds = get_args(hint) or (hint,)
        if all(isinstance(kind, type) and issubclass(kind, Struct) for kind in kinds):
            return name, kinds
    return "", ()


def _values(place: str, hints: Mapping[str, Any], taken: Mapping[str, Parameter]) -> Values | None:
    """The arguments of a handler that are marked as coming from the query, or from headers."""
    marker = Query if place == "query" else Header
    fields: list[tuple[str, Any, Any]] = []
    names: dict[str, str] = {}
    descriptions: dict[str, str] = {}
    for name, hint in hints.items():
        if get_origin(hint) is not Annotated:
            continue
        kind, *extras = get_args(hint)
        mark = next((extra for extra in extras if isinstance(extra, marker)), None)
        if mark is None:
            continue
        if isinstance(kind, type) and issubclass(kind, Struct):
            return _struct_values(kind, place, name, {})
        names[name] = name.replace("_", "-") if place == "header" else getattr(mark, "alias", "") or name
        descriptions[names[name]] = getattr(mark, "description", "")
        fields.append((name, kind, taken[name].default))
    if not fields:
        return None
    made = msgspec.defstruct(f"{place.title()}Values", fields, rename=names, kw_only=True)
    return _struct_values(made, place, None, descriptions)


def _struct_values(kind: type[Struct], place: str, whole: str | None, descriptions: Mapping[str, str]) -> Values:
    lists: set[str] = set()
    readers: dict[str, Callable[[str], Any]] = {}
    for one in inspect.type_info(kind).fields:  # type: ignore[attr-defined]
        plain = plain_type(one.type)
        if isinstance(plain, inspect.ListType):
            lists.add(one.encode_name)
            plain = plain_type(plain.item_type)
        readers[one.encode_name] = {inspect.IntType: _integer, inspect.BoolType: _boolean}.get(type(plain), str)
    raw_names = {name.lower().encode(): name for name in readers}
    absent = None if whole or _required(kind) else msgspec.structs.asdict(kind())
    return Values(kind, place, whole, frozenset(lists), readers, descriptions, raw_names, absent)


def _integer(text: str) -> Any:
    """A whole number from text; other text is returned as it is, for validation to refuse."""
    try:
        return int(text.strip().removesuffix(".0"))
    except ValueError:
        return text


def _boolean(text: str) -> Any:
    said = text.lower()
    return True if said in _TRUE else False if said in _FALSE else text
