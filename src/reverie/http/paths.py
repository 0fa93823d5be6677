"""Routing on the raw path: `%2F` inside a ref is not a slash, and nothing is decoded twice.

The server hands over a decoded path, in which `a%2Fb` and `a/b` look the same. `use_raw_path` replaces it with the path
as it was sent; routes match on that, and each parameter is decoded once, by `decode_segment`.
"""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from reverie.http.problems import problem

MAX_PATH = 8192


def decode_segment(segment: str) -> str:
    """A path segment, decoded once. Raises ValueError when it is not UTF-8."""
    if "%" not in segment:
        return segment
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise ValueError("the path is not valid UTF-8") from None


def use_raw_path(scope: Scope) -> Response | None:
    """Make routes match the path as sent. Returns the refusal of a path or query that is not UTF-8; None otherwise."""
    raw = scope.get("raw_path")
    path = quote(scope["path"], safe="/:@!$&'()*+,;=-._~").encode() if raw is None else raw.partition(b"?")[0]
    query = scope.get("query_string", b"")
    try:
        if len(path) > MAX_PATH:
            raise ValueError
        sent = path.decode("ascii")
        decode_segment(sent)
        if query:
            unquote_to_bytes(query).decode()
    except ValueError:
        said = f"Send a path of at most {MAX_PATH} characters and a query, percent-encoded as UTF-8."
        return problem(400, "validation_error", said)
    scope["path"], scope["root_path"] = sent, ""
    return None


class OwnPort:
    """Serves one door at the root of a port of its own, for clients that cannot take a prefix.

    A request at that port is routed as if it were sent under the door's prefix; other ports are not affected.
    """

    def __init__(self, app: ASGIApp, *, port: int, prefix: str) -> None:
        self.app = app
        self.port = port
        self.prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and (scope.get("server") or ("", 0))[1] == self.port:
            path, raw = scope["path"], scope.get("raw_path")
            if not path.startswith(self.prefix + "/"):
                scope = {**scope, "path": self.prefix + path}
                if raw is not None:
                    scope["raw_path"] = self.prefix.encode() + raw
        return await self.app(scope, receive, send)
