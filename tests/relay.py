"""A proxy on a real socket, an upstream that answers exact bytes, and a caller that sees them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from reverie.http.run import bind
from reverie.protocols.responses.proxy.application import Proxy
from reverie.protocols.responses.proxy.listen import server


@contextmanager
def running(proxy: Proxy) -> Iterator[str]:
    """The proxy at work; its root address."""
    listener = bind("127.0.0.1", 0)
    root = f"http://127.0.0.1:{listener.getsockname()[1]}"
    serving = server(proxy, root)
    thread = threading.Thread(target=serving.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not serving.started:
        time.sleep(0.005)
    try:
        yield root
    finally:
        serving.should_exit = True
        thread.join(120)
        listener.close()


@dataclass
class Exchange:
    """One request as it arrived: the head, line by line, and the body without its framing."""

    line: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass
class Wire:
    """An upstream that answers every connection's requests with the given bytes. `cut` closes after the answer."""

    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    cut: bool = False
    between: Callable[[], None] | None = None
    """Called between the pieces of an answer that is a list."""
    parts: list[bytes] = field(default_factory=list)
    seen: list[Exchange] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = bind("127.0.0.1", 0)
        self._listener.listen(64)
        self.port = self._listener.getsockname()[1]
        self.root = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with suppress(OSError, ValueError), peer, peer.makefile("rb") as stream:
            while True:
                exchange = read_request(stream)
                if exchange is None:
                    return
                self.seen.append(exchange)
                for number, part in enumerate(self.parts or [self.answer]):
                    if number and self.between:
                        self.between()
                    peer.sendall(part)
                if self.cut:
                    peer.shutdown(socket.SHUT_RDWR)
                    return


def read_request(stream) -> Exchange | None:  # type: ignore[no-untyped-def]
    line = stream.readline()
    if not line.strip():
        return None
    headers = read_headers(stream)
    return Exchange(line.rstrip(b"\r\n"), headers, read_body(stream, headers))


def read_headers(stream) -> list[tuple[bytes, bytes]]:  # type: ignore[no-untyped-def]
    headers = []
    while (line := stream.readline().rstrip(b"\r\n")) != b"":
        name, _, value = line.partition(b":")
        headers.append((name, value.strip()))
    return headers


def read_body(stream, headers: list[tuple[bytes, bytes]], *, to_end: bool = False) -> bytes:  # type: ignore[no-untyped-def]
    known = {name.lower(): value for name, value in headers}
    if known.get(b"transfer-encoding") == b"chunked":
        body = b""
        while (size := int(stream.readline().split(b";")[0], 16)) > 0:  # ValueError: it ended early
            body += stream.read(size)
            stream.readline()
        stream.readline()
        return body
    if b"content-length" in known:
        return stream.read(int(known[b"content-length"]))
    return stream.read() if to_end else b""


@dataclass
class Answered:
    """An answer as a caller saw it; `whole` is False when it broke off."""

    line: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    whole: bool = True


def exchange(port: int, request: bytes, *, method: bytes = b"GET") -> Answered:
    """Send bytes, read one answer."""
    with socket.create_connection(("127.0.0.1", port), 120) as peer, peer.makefile("rb") as stream:
        peer.sendall(request)
        line = stream.readline().rstrip(b"\r\n")
        headers = read_headers(stream)
        status = int(line.split()[1]) if line else 0
        if method == b"HEAD" or status in (204, 304):
            return Answered(line, headers, b"")
        known = {name.lower(): value for name, value in headers}
        try:
            body = read_body(stream, headers, to_end=True)
        except (ValueError, OSError):
            return Answered(line, headers, b"", whole=False)
        whole = len(body) == int(known.get(b"content-length", len(body)))
        return Answered(line, headers, body, whole)
