"""A browser that is signed in: the cookie of its session, and the token that proves a request is its own pages'.

A browser sends a cookie with every request to this host, from any page. So a cookie counts only for reading the
console's pages; a form, and a call of the API from the reference at `/docs`, also carry the token.
"""

from __future__ import annotations

import hashlib
import hmac
from http.cookies import CookieError, SimpleCookie

from starlette.types import Scope

COOKIE = "reverie_session"
SECURE_COOKIE = "__Host-reverie_session"
TOKEN_HEADER = b"x-reverie-token"


def secure(scope: Scope) -> bool:
    """Whether the browser reached the host over TLS, here or at a proxy in front."""
    forwarded = _header(scope, b"x-forwarded-proto")
    return scope.get("scheme") == "https" or forwarded.split(",")[0].strip() == "https"


def session_of(scope: Scope) -> str | None:
    """The session id of the cookie. Under TLS only the one that no other host can have set."""
    try:
        found = SimpleCookie(_header(scope, b"cookie")).get(SECURE_COOKIE if secure(scope) else COOKIE)
    except CookieError:
        return None
    return found.value if found is not None else None


def form_token(session_id: str | None) -> str:
    """The token that pages of a session carry: made from its id, so that only they know it."""
    return hmac.new((session_id or "").encode(), b"reverie form v1", hashlib.sha256).hexdigest()


def own_call(scope: Scope) -> str | None:
    """The session of a call that the host's own page sent, with its token, and without a key."""
    if not any(name == TOKEN_HEADER for name, _ in scope["headers"]):
        return None
    session, site = session_of(scope), _header(scope, b"sec-fetch-site")
    fits = hmac.compare_digest(form_token(session).encode(), _header(scope, TOKEN_HEADER).encode())
    return session if session and fits and site in ("", "same-origin") else None


def _header(scope: Scope, name: bytes) -> str:
    return str(next((value.decode("latin-1") for key, value in scope["headers"] if key == name), ""))
