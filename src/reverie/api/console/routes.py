"""The addresses of the console."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache, partial
from importlib import resources
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from reverie.api.console import (
    access,
    agents,
    archive,
    audit,
    change,
    context,
    dream,
    dreams,
    field,
    forget,
    home,
    memories,
    memory,
    operate,
    reference,
    windows,
)
from reverie.api.console.page import Page, read_form, render_page
from reverie.core.errors import NotFound, ReverieError, Unauthenticated
from reverie.host import Host
from reverie.http.banner import home_tenant
from reverie.http.browser import session_of
from reverie.http.origin import is_loopback
from reverie.http.problems import status_of
from reverie.http.threads import Lane, Threads

PAGES: tuple[Page, ...] = (
    home.PAGE,
    memories.PAGE,
    change.PAGE,
    memory.PAGE,
    context.PAGE,
    dreams.PAGE,
    dream.PAGE,
    archive.PAGE,
    windows.PAGE,
    agents.PAGE,
    field.PAGE,
    forget.PAGE,
    audit.PAGE,
    audit.EXPORT,
    operate.PAGE,
    operate.EXPORT,
)
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
LINKS = {"openapi": "/v1/openapi.json", "health": "/healthz", "readiness": "/readyz", "metrics": "/metrics"}


def routes(version: str) -> list[BaseRoute]:
    """The routes of every page. Its JSON comes first: the path of a page may match it too."""
    made: list[BaseRoute] = [
        Route("/sign-in", partial(_sign_in, version), methods=["GET", "POST"]),
        Route("/sign-out", _sign_out, methods=["POST"]),
        Route("/static/{hash}/{name}", _static, methods=["GET"]),
        Route("/favicon.ico", _icon, methods=["GET"]),
        Route("/docs", reference.docs, methods=["GET"]),
    ]
    for page in PAGES:
        if page.template:
            made.append(Route(page.json_path, page.json, methods=["GET"]))
        methods = ["GET", "POST"] if page.do else ["GET"]
        answer = partial(_root, version) if page.path == "/" else page.html
        made.append(Route(page.path, answer, methods=methods))
    return made


async def _root(version: str, request: Request) -> Response:
    """Return the home page to a browser; to every other client a description of the host and its paths."""
    if "text/html" not in request.headers.get("accept", ""):
        request.scope["state"]["route"] = "/"
        body = orjson.dumps({"name": "reverie", "version": version, "links": LINKS})
        return Response(body, media_type="application/json")
    return await home.PAGE.html(request)


async def _sign_in(_version: str, request: Request) -> Response:
    """Sign in with a key, or with the one-time link that the host printed."""
    request.scope["state"]["route"] = "/sign-in"
    state = request.app.state
    host: Host = state.host
    onward = _onward(request.query_params.get("next", ""))
    error: ReverieError | None = None
    try:
        if once := request.query_params.get("once"):
            follow = partial(_by_link, host, state.console_links, once, session_of(request.scope))
            opened = await state.threads.run(Lane.WRITE, "", follow)
            return _signed_in(request, opened, onward)
        if request.method == "POST":
            fields = dict(await read_form(request))
            key = fields.get("key", "").strip()
            opened = await state.threads.run(Lane.WRITE, key[:16], partial(_by_key, host, key))
            return _signed_in(request, opened, _onward(fields.get("next", "")) or onward)
    except ReverieError as fault:
        error = fault
    document: dict[str, Any] = {
        "next": onward,
        "message": error.message if error else "",
        "loopback": is_loopback(state.settings.host),
    }
    if isinstance(error, Unauthenticated) and request.method == "POST" and error.reason == "unauthenticated":
        document["message"] = "That key is not valid. Check that all of it was pasted."
    status = status_of(error) if error else 200
    threads: Threads = state.threads
    render = partial(render_page, "sign_in.html", request, document, page="sign-in", status=status)
    return await threads.run(Lane.READ, "", render)


def _by_key(host: Host, key: str) -> str:
    return host.sessions.open(access.admit(host.keys.authenticate(key, door=access.DOOR)))


def _by_link(host: Host, links: access.Links, secret: str, session: str | None) -> str:
    """A session by a link. A link that is used up leads a browser that is still signed in to its own session."""
    try:
        links.redeem(secret)
    except Unauthenticated:
        with suppress(Unauthenticated):
            host.sessions.resume(session, door=access.DOOR)
            return str(session)
        raise
    return host.sessions.open(access.link_actor(host, home_tenant(host)))


def _signed_in(request: Request, session_id: str, onward: str) -> Response:
    response = RedirectResponse(onward or "/", 303, headers=access.HEADERS)
    access.give_cookie(request, response, session_id)
    return response


async def _sign_out(request: Request) -> Response:
    request.scope["state"]["route"] = "/sign-out"
    session = session_of(request.scope)
    response = RedirectResponse("/sign-in", 303, headers=access.HEADERS)
    if session is None:
        return response
    try:
        access.check_form(request, session, dict(await read_form(request)).get("token", ""))
    except ReverieError:
        return RedirectResponse("/", 303, headers=access.HEADERS)
    host: Host = request.app.state.host
    await request.app.state.threads.run(Lane.WRITE, session[:12], partial(host.sessions.close, session))
    access.take_cookie(request, response)
    return response


def _onward(sent: str) -> str:
    """The path to open after signing in; empty when it is not a plain path of this server."""
    plain = sent.startswith("/") and not sent.startswith("//") and "\\" not in sent and sent.isprintable()
    return sent if plain and len(sent) < 2000 else ""


async def _static(request: Request) -> Response:
    request.scope["state"]["route"] = "/static/{hash}/{name}"
    name = request.path_params["name"]
    found = _files().get(name)
    if found is None or found[1] != request.path_params["hash"]:
        return Response("There is no such file.", 404, media_type="text/plain")
    headers = {**access.HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return Response(found[0], media_type=TYPES[name.rsplit(".", 1)[-1]], headers=headers)


async def _icon(request: Request) -> Response:
    request.scope["state"]["route"] = "/favicon.ico"
    return Response(_files()["icon.svg"][0], media_type=TYPES["svg"], headers=access.HEADERS)


@cache
def _files() -> dict[str, tuple[bytes, str]]:
    """Static files of the console by name, with the beginning of their SHA-256."""
    results = {}
    for file in resources.files("reverie.api.console").joinpath("static").iterdir():
        if file.name.rsplit(".", 1)[-1] in TYPES:
            content = file.read_bytes()
            results[file.name] = (content, hashlib.sha256(content).hexdigest()[:12])
    if "console.css" not in results:
        raise NotFound("The console's files are not installed.")
    return results
