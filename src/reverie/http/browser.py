"""Signed-in browsers: the session cookie, and the token that proves that a request came from one of our pages.

A browser sends the cookie with every request to this host, whichever page made it. So the cookie alone allows only
reading the console's pages; a form, or an API call from the reference at `/docs`, must also carry the token.
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
    """The session id in the cookie; None without one. Under TLS only the cookie counts that no other host can set."""
    try:
        found = SimpleCookie(_header(scope, b"cookie")).get(SECURE_COOKIE if secure(scope) else COOKIE)
    except CookieError:
        return None
    return found.value if found is not None else None


def form_token(session_id: str | None) -> str:
    """The token that the pages of a session carry, derived from the session id."""
    return hmac.new((session_id or "").encode(), b"reverie form v1", hashlib.sha256).hexdigest()


def own_call(scope: Scope) -> str | None:
    """The session id of an API call from one of the host's own pages; None when the call does not carry its token."""
    if not any(name == TOKEN_HEADER for name, _ in scope["headers"]):
        return None
    session, site = session_of(scope), _header(scope, b"sec-fetch-site")
    fits = hmac.compare_digest(form_token(session).encode(), _header(scope, TOKEN_HEADER).encode())
    return session if session and fits and site in ("", "same-origin") else None


def _header(scope: Scope, name: bytes) -> str:
    return str(next((value.decode("latin-1") for key, value in scope["headers"] if key == name), ""))
