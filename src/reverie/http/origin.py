"""Hosts and origins: the names a server answers to, and the web pages whose requests it accepts.

Every web page that a user opens can send requests to servers on the same machine, and with a name of its own that
resolves to 127.0.0.1 it can also read the answers (DNS rebinding). Both are visible in the head of a request: `Host`
names the server as the browser sees it, `Origin` and `Sec-Fetch-Site` say where the page came from. Programs send
neither `Origin` nor `Sec-Fetch-Site`, so they are not affected. A target such as `http://name/path` names the server a
second time, and proxies go by that name: it must be served here, and equal the one in `Host`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from reverie.core.errors import Invalid
from reverie.http.door import Doors
from reverie.http.problems import problem
from reverie.ops.metrics import Metrics

Header = tuple[bytes, bytes]
TARGET = "reverie.target"
"""Key in the scope of a request: its target, when that is more than a path (`http/head.py`)."""
READABLE = "readable_by"
"""Key in the state of a request: the headers that let its page read the answer."""

_PORTS = {"http": 80, "https": 443}
_OWN_SITES = frozenset({b"same-origin", b"none"})
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_TOKENS = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{0,1000}")
_PREFLIGHT_SECONDS = b"600"
_REMEMBERED = 256
"""Size of the caches of host names: clients use few names for a server."""


@dataclass(frozen=True, slots=True)
class OriginRefusal:
    """The reason a request is refused."""

    status: int
    code: str
    message: str


_FOREIGN_HOST = OriginRefusal(
    421, "forbidden_host", "This server does not answer to that Host. List its names in REVERIE_ALLOWED_HOSTS."
)


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """The `Host` and `Origin` headers that are served. Judged from the headers alone, before anything is read."""

    hosts: frozenset[str] | None = frozenset()
    """Names besides the loopback ones, as `name` or `name:port`; None: every name."""
    origins: frozenset[str] = frozenset()
    """Pages that may ask and read the answers, as `https://name` or `https://name:port`."""
    own_pages: bool = True
    """Whether pages of this server may ask: their origin is the host that the request names."""
    own_port: bool = False
    """Whether a loopback name counts only with the port that the server listens on."""
    addresses: bool = False
    """Whether every numeric address is served: probes use them, and DNS rebinding needs a name."""

    @classmethod
    def of(cls, listen: str, *, hosts: str = "", origins: str = "", **rest: bool) -> OriginPolicy:
        """The policy of a server that listens on an address. `hosts` and `origins` are lists with commas.

        On loopback, only loopback names and those listed are served. On another address without a list, every name is
        served: a proxy in front decides. Raises Invalid for an entry that no header can match.
        """
        named = frozenset(_entry(entry) for entry in _listed(hosts))
        outward = not is_loopback(listen)
        every = "*" in named or (not named and outward)
        pages = frozenset(_origin(entry) for entry in _listed(origins))
        return cls(None if every else named, pages, addresses=outward, **rest)

    def refused(self, scope: Scope) -> OriginRefusal | None:
        """Return the reason why a request or a WebSocket upgrade is refused; None when it is served."""
        sent: list[bytes] = []
        origin: list[bytes] = []
        sites: list[bytes] = []
        for name, value in scope["headers"]:
            if name == b"host":
                sent.append(value)
            elif name == b"origin":
                origin.append(value)
            elif name == b"sec-fetch-site":
                sites.append(value)
        if len(sent) > 1 or (not sent and self.hosts is not None):
            return OriginRefusal(400, "validation_error", "Send exactly one Host header.")
        host = split_host(sent[0]) if sent else None
        if sent and host is None:
            return OriginRefusal(400, "validation_error", "The header Host is not NAME or NAME:PORT.")
        if host is not None and not self._serves(*host, scope):
            return _FOREIGN_HOST
        target = scope.get(TARGET) or scope.get("raw_path") or b"/"
        if not target.startswith(b"/") and (refusal := self._judge_target(target, host, scope)) is not None:
            return refusal
        if origin:
            allowed = len(origin) == 1 and self._takes(origin[0], host)
        else:
            allowed = _OWN_SITES.issuperset(sites)
        if not allowed:
            said = "Web pages of other origins may not call this server. List exceptions in REVERIE_ALLOWED_ORIGINS."
            return OriginRefusal(403, "forbidden_origin", said)
        return None

    def _judge_target(self, target: bytes, host: tuple[str, int | None] | None, scope: Scope) -> OriginRefusal | None:
        """Return the reason why a target that is no path is refused."""
        if target == b"*":
            return None
        scheme, _, rest = target.partition(b"://")
        standard = _PORTS.get(scheme.decode("latin-1").lower())
        named = split_host(re.split(rb"[/?#]", rest, maxsplit=1)[0])
        if standard is None or named is None:
            return OriginRefusal(400, "validation_error", "The target is not a path, nor http://NAME/PATH.")
        if not self._serves(*named, scope):
            return _FOREIGN_HOST
        if host is not None and (named[0], named[1] or standard) != (host[0], host[1] or standard):
            return OriginRefusal(400, "validation_error", "The target and the Host header name different servers.")
        return None

    def shared_with(self, scope: Scope) -> bytes | None:
        """The listed origin that a request comes from: its page may read the answer."""
        if not self.origins:
            return None
        origin = _values(scope["headers"], b"origin")
        if len(origin) != 1:
            return None
        return origin[0] if origin[0].decode("latin-1").lower() in self.origins else None

    def _serves(self, name: str, port: int | None, scope: Scope) -> bool:
        if self.hosts is None:
            return True
        if is_loopback(name):
            server = scope.get("server")
            expected = server[1] if self.own_port and server else None
            return expected is None or (port or _PORTS["http"]) == expected
        if self.addresses and _is_address(name):
            return True
        return name in self.hosts or f"{name}:{port or _port_of(scope)}" in self.hosts

    def _takes(self, sent: bytes, host: tuple[str, int | None] | None) -> bool:
        origin = sent.decode("latin-1").lower()
        if origin in self.origins:
            return True
        if not self.own_pages or host is None:
            return False
        scheme, separator, rest = origin.partition("://")
        page = split_host(rest.encode("latin-1")) if separator and scheme in _PORTS else None
        if page is None or page[0] != host[0]:
            return False
        # Behind a proxy that ends TLS, the request arrives as http and names no port.
        return page[1] == host[1] or (page[1] or _PORTS[scheme]) == (host[1] or _PORTS[scheme])


class OriginCheck:
    """Applies the policy to every request and upgrade, health and metrics included, before anything else looks."""

    def __init__(self, policy: OriginPolicy, *, doors: Doors, metrics: Metrics) -> None:
        self._policy = policy
        self._doors = doors
        self._metrics = metrics

    def answer(self, scope: Scope) -> Response | None:
        """Return the refusal of a request, or the answer to a preflight; None for a request to be served."""
        refused = self._policy.refused(scope)
        if refused is not None:
            return self._refusal(refused, scope)
        page = self._policy.shared_with(scope)
        if page is None:
            return None
        granted = preflight(scope, page)
        if granted is None:
            scope["state"][READABLE] = readable_by(page)
            return None
        answer = Response(status_code=204)
        answer.raw_headers.extend(granted)
        return answer

    async def upgrades(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Whether a WebSocket upgrade may proceed. One that may not is answered here."""
        refused = self._policy.refused(scope)
        if refused is None:
            return True
        refusal = self._refusal(refused, scope)
        if "websocket.http.response" in scope.get("extensions", {}):
            await refusal(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008, "reason": refused.code})
        return False

    def _refusal(self, refused: OriginRefusal, scope: Scope) -> Response:
        self._metrics.refused.labels(refused.code).inc()
        return problem(refused.status, refused.code, refused.message, shape=self._doors.shape(scope["path"]))


def preflight(scope: Mapping[str, Any], page: bytes) -> list[Header] | None:
    """The headers that answer a CORS preflight from a listed page; None when the request is not a preflight."""
    asked = _values(scope["headers"], b"access-control-request-method")
    if scope["method"] != "OPTIONS" or not asked:
        return None
    wanted = b", ".join(_values(scope["headers"], b"access-control-request-headers"))
    return [
        *readable_by(page),
        (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE"),
        (b"access-control-allow-headers", wanted if _TOKENS.fullmatch(wanted) else b""),
        (b"access-control-max-age", _PREFLIGHT_SECONDS),
    ]


def readable_by(page: bytes) -> list[Header]:
    """The headers that let a page read an answer."""
    return [
        (b"access-control-allow-origin", page),
        (b"access-control-expose-headers", b"*"),
        (b"vary", b"Origin"),
    ]


@lru_cache(_REMEMBERED)
def is_loopback(name: str) -> bool:
    """Whether a name or an address is this machine's own."""
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name.lower() == "localhost"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@lru_cache(_REMEMBERED)
def split_host(value: bytes) -> tuple[str, int | None] | None:
    """Name and port of a `Host` header, in lower case; None when it is neither a name nor an address."""
    text = value.decode("latin-1").strip().lower()
    name, port = text, ""
    if text.startswith("["):
        name, closed, rest = text[1:].partition("]")
        if not closed or not (rest == "" or rest.startswith(":")):
            return None
        port = rest[1:]
        try:
            name = ipaddress.IPv6Address(name).compressed
        except ValueError:
            return None
    else:
        name, _, port = text.partition(":")
        name = name.removesuffix(".")
        if _NAME.fullmatch(name) is None:
            return None
    if port and not (port.isascii() and port.isdigit() and len(port) < 6):
        return None
    return name, int(port) if port else None


def _values(headers: Sequence[Header], wanted: bytes) -> list[bytes]:
    return [value for name, value in headers if name == wanted]


def _port_of(scope: Mapping[str, Any]) -> int:
    return _PORTS.get(str(scope.get("scheme", "http")).replace("ws", "http"), 80)


def _listed(text: str) -> list[str]:
    return [entry for entry in (part.strip() for part in text.split(",")) if entry]


def _entry(entry: str) -> str:
    if entry == "*":
        return entry
    found = split_host(entry.encode("latin-1", "replace"))
    if found is None:
        raise Invalid("REVERIE_ALLOWED_HOSTS lists names such as memory.example.com or memory.example.com:8443.")
    return found[0] if found[1] is None else f"{found[0]}:{found[1]}"


def _origin(entry: str) -> str:
    parts = urlsplit(entry.lower())
    found = split_host(parts.netloc.encode("latin-1", "replace"))
    if parts.scheme not in _PORTS or found is None or parts.path.strip("/") or parts.query or parts.fragment:
        raise Invalid("REVERIE_ALLOWED_ORIGINS lists origins such as https://app.example.com, without a path.")
    name = f"[{found[0]}]" if ":" in found[0] else found[0]
    standard = found[1] in (None, _PORTS[parts.scheme])
    return f"{parts.scheme}://{name}" + ("" if standard else f":{found[1]}")
