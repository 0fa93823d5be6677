"""Run the proxy: bind to loopback, say where, serve, drain."""

from __future__ import annotations

import ipaddress

from reverie.core.errors import Invalid
from reverie.http.run import Drained, bind
from reverie.protocols.responses.proxy.application import Proxy


def address(listen: str) -> tuple[str, int]:
    """`127.0.0.1:8485`, `localhost:0`, `[::1]:8485` or a port alone. Only loopback: callers send credentials here."""
    host, colon, port = listen.strip().rpartition(":")
    host = (host if colon else "127.0.0.1").strip("[]") or "127.0.0.1"
    if not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise Invalid("--listen is HOST:PORT, for example 127.0.0.1:8485.", pointer="/listen")
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise Invalid("--listen takes an address of this machine only, for example 127.0.0.1:8485.", pointer="/listen")
    return host, int(port)


def run(proxy: Proxy, listen: str) -> None:
    """Serve until SIGTERM or SIGINT; then finish the requests at hand. Prints `listening on http://HOST:PORT/v1`."""
    host, port = address(listen)
    listener = bind(host, port)
    try:
        shown = f"[{host}]" if ":" in host else host
        server(proxy, f"http://{shown}:{listener.getsockname()[1]}/v1").run(sockets=[listener])
    finally:
        listener.close()


def server(proxy: Proxy, url: str) -> Drained:
    """A server that adds nothing of its own to answers."""
    return Drained(proxy, url, interface="asgi3", date_header=False, proxy_headers=False)
