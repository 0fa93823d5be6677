"""Authentication of the console: session cookie, one-time link, form token, and the headers of every page."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time

from starlette.requests import Request
from starlette.responses import Response

from reverie.core.actor import ALL_RIGHTS, Actor
from reverie.core.errors import Forbidden, Unauthenticated
from reverie.host import Host
from reverie.http.browser import COOKIE, SECURE_COOKIE, form_token, secure

DOOR = "console"
SEVEN_DAYS = 7 * 86_400
LINK_SECONDS = 24 * 3600
LINK_KEY = "console link"
"""The name of the key behind sessions that a one-time link opened. Its secret is never given out."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
"""Headers of every page; `nosniff` and `no-store` come from the edge. With the referrer policy `no-referrer`, browsers
would hide the origin of our own forms too."""


def admit(actor: Actor) -> Actor:
    """The actor. Raises Forbidden for a key with scopes: the console shows everything, and makes keys without any."""
    if actor.scopes:
        raise Forbidden("The console needs a key without scopes.")
    return actor


def give_cookie(request: Request, response: Response, session_id: str) -> None:
    """Sign the browser in."""
    tls = secure(request.scope)
    response.set_cookie(
        SECURE_COOKIE if tls else COOKIE,
        session_id,
        max_age=SEVEN_DAYS,
        path="/",
        secure=tls,
        httponly=True,
        samesite="strict",
    )


def take_cookie(request: Request, response: Response) -> None:
    """Sign the browser out."""
    tls = secure(request.scope)
    name = SECURE_COOKIE if tls else COOKIE
    response.delete_cookie(name, path="/", secure=tls, httponly=True, samesite="strict")


def check_form(request: Request, session_id: str, sent: str) -> None:
    """Refuse a form that this session's own pages did not send."""
    site = request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin") or not hmac.compare_digest(form_token(session_id).encode(), sent.encode()):
        raise Forbidden("This form was not sent by the console itself. Reload the page and try again.")


def seal(session_id: str | None, said: str) -> str:
    """The signature of a message to a session. A link from elsewhere cannot have it."""
    return hmac.new(form_token(session_id).encode(), said.encode(), hashlib.sha256).hexdigest()[:32]


class Links:
    """One-time links of this process. A link works once, within a day."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[bytes, float] = {}

    def make(self) -> str:
        """The secret of a new link."""
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._open[_digest(secret)] = time.monotonic() + LINK_SECONDS
        return secret

    def redeem(self, secret: str) -> None:
        """Use up a link. Raises Unauthenticated when it is unknown, used or expired."""
        with self._lock:
            until = self._open.pop(_digest(secret), 0.0)
        if until <= time.monotonic():
            raise Unauthenticated("This link was used already or is too old. Sign in with a key.")


def link_actor(host: Host, tenant: str) -> Actor:
    """The caller behind one-time links: a key of the tenant with all rights, made when a link is first used."""
    for key in host.keys.all(tenant):
        if key.name == LINK_KEY and key.rights == tuple(sorted(ALL_RIGHTS)) and host.keys.valid([key.id]):
            return host.keys.actor_of(key.id, door=DOOR)
    return host.keys.actor_of(host.keys.create(tenant, name=LINK_KEY, rights=ALL_RIGHTS).id, door=DOOR)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
