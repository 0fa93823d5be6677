"""A request of the protocol on its way to a handler: workspace and beta checked, body parsed, work in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reverie.core.actor import Actor, Right
from reverie.core.errors import Forbidden, Invalid
from reverie.host import Host
from reverie.http.call import Call
from reverie.http.limits import Limits, key_of
from reverie.http.once import Once
from reverie.http.parsing import parse
from reverie.http.paths import decode_segment
from reverie.http.reply import TextReply
from reverie.http.threads import Lane, Threads
from reverie.protocols.anthropic.http.answers import HEADERS, WORKSPACE, workspace_of
from reverie.protocols.anthropic.http.wire import Empty, Query, read_body
from reverie.settings import Settings

T = TypeVar("T", bound=Struct)
_ONCE = Once(lambda _: 0, lambda error: error.reason)
"""Refusals are not kept: they are the same when the request is sent again, and have the protocol's own shape."""
BETA = "anthropic-beta"
BETAS = {
    "memory_stores": ("agent-memory-2026-07-22", "managed-agents-2026-04-01"),
    "dreams": ("dreaming-2026-04-21",),
}
"""Betas of each family; one of them is enough."""
PAGE = "page_"
_CHANGES = frozenset({Right.WRITE, Right.DREAM})
"""Rights to change something. Without one of them an `Idempotency-Key` has no effect."""
_LOOK_AGAIN_SECONDS = 0.2


class NotDone(Exception):
    """The work answers that nothing was done. No `Idempotency-Key` binds that answer: a retry is carried out."""

    def __init__(self, document: Any) -> None:
        super().__init__()
        self.document = document


@dataclass
class AnthropicCall:
    """Input of a handler."""

    host: Host
    actor: Actor
    settings: Settings
    path: Mapping[str, str]
    query: Query
    body: bytes
    idempotency_key: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    """Headers of the answer."""
    charge: Callable[[], None] = lambda: None
    """Counts an entry about to be stored. Raises RateLimited."""
    work_id: str | None = None
    """With an `Idempotency-Key`: the id of the work, also when a process that died began it."""
    wait_seconds: int = 0
    again: Callable[[], Any] | None = None
    """Called again until it returns an answer, for at most `wait_seconds`; None means not yet."""

    def read(self, kind: type[T]) -> T:
        """The body as a struct."""
        return read_body(parse(self.body, most=self.settings.max_request_values), kind)

    def no_body(self) -> None:
        """Refuse a body with fields; none at all is right, and so is an empty object."""
        if self.body:
            self.read(Empty)

    def cursor(self, *bound: str) -> str | None:
        """Decode the cursor of the requested page. Raises Invalid when it belongs to another list."""
        page = self.query.text("page")
        if page is None:
            return None
        if not page.startswith(PAGE):
            raise Invalid("page: it is not a cursor of this list.", pointer="/page")
        try:
            return self.host.cursors.open(self.actor, self._question(bound), page.removeprefix(PAGE))
        except Invalid:
            raise Invalid("page: it is not a cursor of this list.", pointer="/page") from None

    def page(self, items: list[Any], after: str | None, *bound: str) -> dict[str, Any]:
        """A page of a list."""
        sealed = None if after is None else PAGE + self.host.cursors.seal(self.actor, self._question(bound), after)
        return {"data": items, "next_page": sealed}

    def _question(self, bound: tuple[str, ...]) -> bytes:
        return b"anthropic/" + "/".join(bound).encode() + b"\0" + self.query.question()


Work = Callable[[AnthropicCall], Any]


def route(method: str, path: str, work: Work, *, right: Right, retried: Work | None = None) -> Route:
    """A route whose work runs in a thread and answers 200 with JSON.

    `retried`: with an `Idempotency-Key` the work is done once, and this answers a retry. Without it, the work itself
    knows the key, or does nothing the second time.
    """
    family = path.split("/v1/", 1)[1].split("/", 1)[0]
    lane = Lane.READ if right is Right.READ else Lane.WRITE

    async def handle(request: Request) -> Response:
        request.state.route = path  # for logs and metrics: the template, never the path
        actor: Actor = request.state.actor
        own: dict[str, str] = request.scope["state"].get(HEADERS, {})
        host: Host = request.app.state.host
        settings: Settings = request.app.state.settings
        limits: Limits = request.app.state.limits
        workspace = workspace_of(host, actor)
        own[WORKSPACE] = workspace
        if request.headers.get(WORKSPACE, workspace) != workspace:
            raise Forbidden("This key belongs to another workspace.", details={"header": WORKSPACE})
        actor.require(right)
        if settings.anthropic_strict:
            check_beta(request.headers.getlist(BETA), family)
        body = await request.body()
        call = AnthropicCall(
            host=host,
            actor=actor,
            settings=settings,
            path={name: _decode(value) for name, value in request.path_params.items()},
            query=Query(request.query_params),
            body=body,
            idempotency_key=request.headers.get("idempotency-key"),
            headers=own,
            charge=lambda: limits.entries.take(key_of(actor), 1),
        )
        if right is Right.WRITE:
            call.charge()
        threads: Threads = request.app.state.threads
        try:
            if retried is not None and call.idempotency_key is not None and not actor.rights.isdisjoint(_CHANGES):
                plain = Call(request.scope, request.receive)
                plain._body = body

                def once(work_id: str | None) -> Response:
                    call.work_id = work_id
                    return TextReply(work(call))

                return await _ONCE(
                    plain,
                    f"anthropic.{work.__name__}",
                    lane,
                    once,
                    now=lambda: TextReply(retried(call)),
                )
            answer = await threads.run(lane, actor.tenant, lambda: orjson.dumps(work(call)))
        except NotDone as undone:
            answer = orjson.dumps(undone.document)
        if call.again is not None:
            again = call.again
            until = asyncio.get_running_loop().time() + call.wait_seconds
            while asyncio.get_running_loop().time() < until:
                found = await threads.run(Lane.READ, actor.tenant, again)
                if found is not None:
                    answer = orjson.dumps(found)
                    break
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        return Response(answer, media_type="application/json")

    handle.__doc__ = work.__doc__
    endpoint: Callable[[Request], Awaitable[Response]] = handle
    return Route(path, endpoint, methods=[method], name=work.__name__)


def check_beta(sent: list[str], family: str) -> None:
    """Refuse a request without the beta of its family."""
    named = {beta.strip() for value in sent for beta in value.split(",")}
    wanted = BETAS[family]
    if named.isdisjoint(wanted):
        raise Invalid(f"{BETA}: this needs {' or '.join(wanted)}.", pointer=f"/{BETA}")


def _decode(value: str) -> str:
    try:
        return decode_segment(value)
    except ValueError:
        raise Invalid("The path is not valid UTF-8.", pointer="") from None
