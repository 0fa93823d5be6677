"""A page: a function from a request to a document, which is rendered as HTML by its template or sent as JSON.

`show(look)` reads; `do` names the changes that the forms of the page may request. Both run in a worker thread. A change
returns `See` (a redirect) or a document of its own, which the page's template shows: a preview, a new key.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import resources
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from reverie.api.console import access, text
from reverie.core.actor import Actor, Right
from reverie.core.errors import (
    Forbidden,
    Invalid,
    RateLimited,
    ReverieError,
    TooLarge,
    Unauthenticated,
)
from reverie.host import Host
from reverie.http.admission import bearer
from reverie.http.body import length_of
from reverie.http.browser import form_token, session_of
from reverie.http.call import SMALL_BODY
from reverie.http.limits import key_of
from reverie.http.paths import decode_segment
from reverie.http.problems import status_of
from reverie.http.reply import Reply
from reverie.http.threads import Lane, Threads
from reverie.settings import Settings

FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 2000
_RECENT = 50
"""Events searched for the memory that changed last."""
NAV = (
    ("home", "/", "Home"),
    ("memories", "/memories", "Memories"),
    ("context", "/context", "Context lab"),
    ("dreams", "/dreams", "Dreams"),
    ("windows", "/windows", "Windows"),
    ("agents", "/agents", "Agents"),
    ("field", "/field", "Field"),
    ("forget", "/forget", "Forget"),
    ("audit", "/audit", "Audit"),
    ("operate", "/operate", "Operate"),
)


@dataclass(frozen=True, slots=True)
class Look:
    """An authenticated request for a page."""

    host: Host
    actor: Actor
    state: Any
    """The state of the application: settings, health, limits, metrics."""
    path: Mapping[str, str]
    query: QueryParams
    form: tuple[tuple[str, str], ...] = ()

    @property
    def settings(self) -> Settings:
        """Settings of this process."""
        settings: Settings = self.state.settings
        return settings

    def may(self, right: str) -> bool:
        """Whether the key has a right: actions without it are not offered."""
        return Right(right) in self.actor.rights

    def text(self, name: str, default: str = "") -> str:
        """A parameter of the address, without surrounding space."""
        return self.query.get(name, default).strip()

    def ref(self, refs: Sequence[tuple[str, int]]) -> str:
        """The memory the address names; without one, the memory that changed last, else the largest."""
        named = self.text("ref")
        if named or not refs:
            return named
        head = self.host.reader.snapshot(self.actor)
        names = {name for name, _ in refs}
        recent = self.host.reader.events(self.actor, before=head + 1, limit=_RECENT)
        found = (event.data.get("ref") for event in recent)
        return next((ref for ref in found if ref in names), max(refs, key=lambda one: one[1])[0])

    def number(self, name: str, default: int, *, least: int = 1, most: int = 1_000_000) -> int:
        """A whole number of the address. Raises Invalid."""
        return whole(self.text(name), name, default, least=least, most=most)

    def form_field(self, name: str, default: str = "") -> str:
        """A field of the form, without surrounding space."""
        return next((value.strip() for key, value in self.form if key == name), default)

    def form_fields(self, name: str) -> list[str]:
        """Every value of a field of the form."""
        return [value for key, value in self.form if key == name]

    def sealed(self, cursor: str | None, *question: str | None) -> str | None:
        """A store's cursor as an address may hold it."""
        return None if cursor is None else self.host.cursors.seal(self.actor, orjson.dumps(question), cursor)

    def cursor(self, *question: str | None) -> str | None:
        """The store's cursor of this address."""
        sent = self.text("cursor")
        return self.host.cursors.open(self.actor, orjson.dumps(question), sent) if sent else None


@dataclass(frozen=True, slots=True)
class See:
    """After a change: the page to go to, and one sentence to show there."""

    url: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Begin:
    """Work that continues after the answer, and the page that shows its progress."""

    url: str
    work: Callable[[], None]


Document = dict[str, Any]
Show = Callable[[Look], "Document | Response"]
Change = Callable[[Look], "See | Begin | Document"]
_UNDER_WAY: set[asyncio.Task[None]] = set()
"""Work begun by pages: a task without a reference may be garbage-collected."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page: its name in the navigation, its address, its content and its actions."""

    name: str
    path: str
    template: str
    show: Show
    do: Mapping[str, Change] = field(default_factory=dict)
    heavy: frozenset[str] = frozenset()
    """Changes that take long, such as dreams, proofs and forgets."""

    @property
    def json_path(self) -> str:
        """The same page as JSON."""
        return "/home.json" if self.path == "/" else f"{self.path}.json"

    async def html(self, request: Request) -> Response:
        """The page for people."""
        return await self._answer(request, as_json=False)

    async def json(self, request: Request) -> Response:
        """The page for programs."""
        return await self._answer(request, as_json=True)

    async def _answer(self, request: Request, *, as_json: bool) -> Response:
        request.scope["state"]["route"] = self.json_path if as_json else self.path
        state, session = request.app.state, session_of(request.scope)
        threads: Threads = state.threads
        try:
            look = await _authenticate(request, session)
        except Unauthenticated as error:
            return _signed_out(request, error, as_json=as_json)
        except (Forbidden, RateLimited) as error:
            return _refuse(request, error, None, session, self.name, as_json=as_json)
        work, lane = partial(self._show, look), Lane.READ
        try:
            if request.method == "POST":
                look, change = await self._change(request, look, session)
                heavy = look.form_field("do") in self.heavy
                work, lane = partial(change, look), Lane.HEAVY if heavy else Lane.WRITE
            slot = state.limits.heavy.one(key_of(look.actor)) if lane is Lane.HEAVY else nullcontext()
            with slot:
                made = partial(self._make, request, look, session, work, as_json=as_json)
                done = await threads.run(lane, look.actor.tenant, made)
            return _begin(state, look, done) if isinstance(done, Begin) else done
        except ReverieError as error:
            answer = partial(_refuse, request, error, look, session, self.name, as_json=as_json)
            return await threads.run(Lane.READ, look.actor.tenant, answer)

    def _show(self, look: Look) -> Document | Response:
        """Show the page; the key needs the right to read."""
        look.actor.require(Right.READ)
        return self.show(look)

    async def _change(self, request: Request, look: Look, session: str | None) -> tuple[Look, Any]:
        if session is None:
            raise Forbidden("Forms are for browsers that are signed in. Programs use the API: see /docs.")
        form = await read_form(request, tenant=look.actor.tenant)
        look = Look(look.host, look.actor, look.state, look.path, look.query, form)
        access.check_form(request, session, look.form_field("token"))
        change = self.do.get(look.form_field("do"))
        if change is None:
            raise Invalid("This page cannot do that.", pointer="/do")
        return look, change

    def _make(
        self, request: Request, look: Look, session: str | None, work: Callable[[], Any], *, as_json: bool
    ) -> Response | Begin:
        done = work()
        if isinstance(done, Begin | Response):
            return done
        if isinstance(done, See):
            return to(done, session)
        if as_json:
            return Reply(done, headers=access.HEADERS, default=str)
        return render_page(self.template, request, done, page=self.name, look=look, session=session)


def _begin(state: Any, look: Look, begin: Begin) -> Response:
    """Start the work in a thread. It counts against the key while it waits and runs. Raises RateLimited."""
    slot = ExitStack()
    slot.enter_context(state.limits.heavy.one(key_of(look.actor)))

    async def go() -> None:
        with slot:
            await state.threads.run(Lane.HEAVY, look.actor.tenant, begin.work)
        state.tail.ring(look.actor.tenant)

    task = asyncio.ensure_future(go())
    _UNDER_WAY.add(task)
    task.add_done_callback(_UNDER_WAY.discard)
    return to(See(begin.url), None)


async def read_form(request: Request, *, tenant: str | None = None) -> tuple[tuple[str, str], ...]:
    """The fields of a form. A large form is parsed in a thread for the tenant, and not even read without one.

    Raises Invalid and TooLarge.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != FORM:
        raise Invalid(f"Send the form as {FORM}.")
    if tenant is None:
        return _fields(await _small_body(request))
    body = await request.body()
    if len(body) <= SMALL_BODY:
        return _fields(body)
    threads: Threads = request.app.state.threads
    return await threads.run(Lane.PARSE, tenant, partial(_fields, body))


async def _small_body(request: Request) -> bytes:
    """The body of a form that anyone may send. Raises TooLarge before more is held than a small form has."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > SMALL_BODY:
            raise TooLarge(f"This form is at most {SMALL_BODY} bytes.")
    return body


def _fields(body: bytes) -> tuple[tuple[str, str], ...]:
    try:
        sent = body.decode()
        return tuple(parse_qsl(sent, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"))
    except (UnicodeDecodeError, ValueError):
        raise Invalid(f"The form cannot be read: send UTF-8 and at most {MOST_FIELDS} fields.") from None


def whole(sent: str, name: str, default: int, *, least: int = 1, most: int = 1_000_000) -> int:
    """A typed whole number; `default` when nothing was typed. Raises Invalid."""
    if not sent:
        return default
    if not sent.isdecimal() or len(sent) > 16 or not least <= int(sent) <= most:
        raise Invalid(f"{name} is a whole number from {least} to {most}.", pointer=f"/{name}")
    return int(sent)


def to(see: See, session: str | None) -> Response:
    """Go to another page of the console."""
    where, mark, anchor = see.url.partition("#")
    if see.said:
        sealed = {"said": see.said, "seal": access.seal(session, see.said)}
        where += ("&" if "?" in where else "?") + urlencode(sealed)
    return RedirectResponse(where + mark + anchor, 303, headers=access.HEADERS)


async def _authenticate(request: Request, session: str | None) -> Look:
    """Authenticate the caller by the browser's session, or by a bearer key."""
    state = request.app.state
    host: Host = state.host
    token = bearer(request.scope)

    def find() -> Actor:
        if token is not None:
            return access.admit(host.keys.authenticate(token, door=access.DOOR))
        return access.admit(host.sessions.resume(session, door=access.DOOR))

    actor = await state.threads.run(Lane.LOOK, (token or session or "")[:16], find)
    request.scope["state"]["actor"] = actor
    state.limits.requests.take(key_of(actor))
    state.limits.bytes.take(key_of(actor), max(length_of(request.scope) or 0, 0))
    try:
        path = {name: decode_segment(value) for name, value in request.path_params.items()}
    except ValueError:
        path = dict.fromkeys(request.path_params, "\0")
    return Look(host, actor, state, path, request.query_params)


def _signed_out(request: Request, error: ReverieError, *, as_json: bool) -> Response:
    if as_json:
        body = orjson.dumps({"error": error.reason, "message": error.message})
        return Response(body, 401, media_type="application/json", headers=access.HEADERS)
    address = request.scope["path"] + (f"?{request.url.query}" if request.url.query else "")
    keep = {"next": address} if request.method == "GET" and address != "/" else {}
    return RedirectResponse("/sign-in" + (f"?{urlencode(keep)}" if keep else ""), 303, headers=access.HEADERS)


def _refuse(
    request: Request, error: ReverieError, look: Look | None, session: str | None, page: str, *, as_json: bool
) -> Response:
    status = status_of(error)
    redactor = request.app.state.host.parts.redactor
    message = redactor.text(error.message).text.replace("`", "")
    if as_json:
        body = orjson.dumps({"error": error.reason, "message": message})
        return Response(body, status, media_type="application/json", headers=access.HEADERS)
    document = {"status": status, "code": error.reason, "message": message}
    return render_page("error.html", request, document, page=page, look=look, session=session, status=status)


def error_page(scope: Scope, *, status: int, code: str, message: str) -> Response:
    """An error page, for an unknown address or a fault. It does not use the store."""
    document = {"status": status, "code": code, "message": message}
    return render_page("error.html", Request(scope), document, page="", status=status)


@cache
def environment() -> Environment:
    """The templates. Everything is escaped, and hidden characters are shown."""
    made = Environment(
        loader=PackageLoader("reverie.api.console"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=text.visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "num": text.number,
        "brief": text.brief,
        "size": text.size,
        "dur": text.duration,
        "seg": text.segment,
        "cut": text.cut,
        "marked": text.marked,
        "coded": text.coded,
        "share": text.share,
        "shell": text.shell,
    }
    made.globals |= {"asset": asset}
    return made


@cache
def asset(name: str) -> str:
    """The address of a static file; it changes with the content, so that it can be kept for ever."""
    import hashlib

    content = resources.files("reverie.api.console").joinpath("static", name).read_bytes()
    return f"/static/{hashlib.sha256(content).hexdigest()[:12]}/{name}"


def _message(request: Request, session: str | None) -> str:
    """The message that a change left for this page; empty unless the console signed it for this session."""
    said = request.query_params.get("said", "")
    fits = hmac.compare_digest(access.seal(session, said).encode(), request.query_params.get("seal", "").encode())
    return said[:300] if session and said.isprintable() and fits else ""


def render_page(
    template: str,
    request: Request,
    document: Mapping[str, Any],
    *,
    page: str,
    look: Look | None = None,
    session: str | None = None,
    status: int = 200,
) -> Response:
    """A document as HTML."""
    now = request.app.state.host.parts.clock.now()
    query = [one for one in request.query_params.multi_items() if one[0] not in ("said", "seal")]
    path: str = request.scope["path"]
    as_json: str = ("/home" if path == "/" else path) + ".json" + (f"?{urlencode(query)}" if query else "")
    if template in ("error.html", "docs.html"):
        as_json = ""

    def link(**changes: Any) -> str:
        """This address with some parameters changed; None takes one away. A change starts at the first page."""
        kept = [(name, value) for name, value in query if name not in changes and name != "cursor"]
        kept += [(name, str(value)) for name, value in changes.items() if value not in (None, "")]
        return path + (f"?{urlencode(kept)}" if kept else "")

    body = (
        environment()
        .get_template(template)
        .render(
            **document,
            page=page,
            nav=NAV,
            look=look,
            token=form_token(session),
            said=_message(request, session),
            ago=partial(text.ago, now=now),
            link=link,
            query=request.query_params,
            json_url=as_json,
            version=request.app.state.console_version,
        )
    )
    return Response(body, status, media_type="text/html; charset=utf-8", headers=access.HEADERS)
