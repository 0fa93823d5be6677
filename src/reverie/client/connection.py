"""One host over HTTP: requests with retries, streams, and errors as the classes of the core.

A request is repeated only when that cannot do anything twice: it was never sent, the host says that nothing was done
(`rate_limited`, `store_busy`), or the request is safe to repeat (a read, or a write with an idempotency key).
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from urllib.parse import quote, urlsplit

import orjson

from reverie.client.errors import error_of
from reverie.core.errors import HostUnreachable, Invalid, ReverieError, Unauthenticated

if TYPE_CHECKING:
    import httpx2

API = "/v1/host/reverie"
CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
LONG_SECONDS = 900.0
"""For one answer of a dream, a proof or a re-scan."""
RETRY_SECONDS = 15.0
"""Time for which a request is retried before the host counts as unreachable."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_NOTHING_DONE = frozenset({"rate_limited", "store_busy"})
_GATEWAY = frozenset({502, 504})
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class RequestOptions(TypedDict, total=False):
    """One request."""

    query: Mapping[str, Any] | None
    body: Any
    headers: Mapping[str, str] | None
    again: bool
    """Whether it may be repeated."""
    long: bool
    """Whether its answer may take minutes."""


class Connection:
    """Requests to one host with one key. Safe to share between threads."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        retry_seconds: float = RETRY_SECONDS,
        transport: httpx2.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        import httpx2

        from reverie import __version__

        self.url = check_url(url)
        if not key:
            raise Unauthenticated(
                f"{self.url} needs a key: pass key=..., or set REVERIE_KEY. "
                "Make one on its machine with `reverie keys create`."
            )
        if not key.isascii() or not key.isprintable():
            raise Unauthenticated("The key has characters that no key has. Copy it again.")
        self.key = key
        self._retry_seconds = retry_seconds
        self._sleep, self._clock = sleep, clock
        self._streams: set[httpx2.Response] = set()
        self._client = httpx2.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {key}", "User-Agent": f"reverie-python/{__version__}"},
            timeout=httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            follow_redirects=False,
            trust_env=urlsplit(self.url).hostname not in _LOOPBACK,
            transport=transport,
        )

    def close(self) -> None:
        """Close every connection and end the streams that are being read."""
        for response in tuple(self._streams):
            _interrupt(response)
        self._client.close()

    def get(self, path: str, query: Mapping[str, Any] | None = None, *, long: bool = False) -> Any:
        """Send a GET and return the document of its answer. It may be repeated."""
        return self.send("GET", path, query=query, again=True, long=long)

    def post(self, path: str, body: Any = None, /, **options: Unpack[RequestOptions]) -> Any:
        """Send a POST and return the document of its answer."""
        return self.send("POST", path, **{**options, "body": body})

    def send(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Any:
        """The JSON document of an answer; None of one without a body. Raises the error that the host answered."""
        answer = self.raw(method, path, **options)
        try:
            return orjson.loads(answer) if answer else None
        except orjson.JSONDecodeError:
            raise self.foreign("without JSON") from None

    def raw(self, method: str, path: str, **options: Unpack[RequestOptions]) -> bytes:
        """The bytes of an answer."""
        arguments = _arguments(options)

        def go() -> bytes:
            response = self._client.request(method, f"{API}{path}", **arguments)
            return self._check(response, response.content)

        answer: bytes = self._repeat(go, again=options.get("again", False))
        return answer

    @contextmanager
    def stream(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Iterator[httpx2.Response]:
        """An answer that is read piece by piece. The request may be repeated until the answer begins, not after."""
        arguments = _arguments({**options, "long": True})

        def begin() -> httpx2.Response:
            request = self._client.build_request(method, f"{API}{path}", **arguments)
            response = self._client.send(request, stream=True)
            if response.status_code >= 400:
                try:
                    self._check(response, response.read())
                finally:
                    response.close()
            return response

        response = self._repeat(begin, again=options.get("again", False))
        self._streams.add(response)
        try:
            yield response
        finally:
            self._streams.discard(response)
            response.close()

    def foreign(self, answer: str) -> HostUnreachable:
        """The error of an answer that no host gives."""
        return HostUnreachable(
            f"{self.url} answered {answer}, and not as a Reverie host does. Check the address (--url, REVERIE_URL)."
        )

    def lost(self, fault: Exception, advice: str) -> HostUnreachable:
        """The error of a stream that broke."""
        return HostUnreachable(f"The connection to {self.url} broke ({_reason(fault)}). {advice}")

    def _repeat(self, go: Callable[[], Any], *, again: bool) -> Any:
        import httpx2

        started, tries = self._clock(), 0
        while True:
            tries += 1
            wait = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (tries - 1)) * (0.5 + random.random() / 2)  # noqa: S311
            try:
                return go()
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as fault:  # never sent
                self._pause(wait, started, tries, fault)
            except httpx2.TransportError as fault:
                if not again:
                    raise HostUnreachable(
                        f"{self.url} did not answer ({_reason(fault)}). The request was sent and may have been carried "
                        "out: look before you repeat it."
                    ) from None
                self._pause(wait, started, tries, fault)
            except _Gateway as fault:
                if not again:
                    raise HostUnreachable(str(fault)) from None
                self._pause(wait, started, tries, fault)
            except ReverieError as error:
                if error.reason not in _NOTHING_DONE:
                    raise
                wait = max(wait, float(error.details.get("retry_after_seconds") or 0))
                if self._clock() + wait - started > self._retry_seconds:
                    raise
                self._sleep(wait)

    def _pause(self, wait: float, started: float, tries: int, fault: Exception) -> None:
        spent = self._clock() - started
        if spent + wait > self._retry_seconds:
            times = "once" if tries == 1 else f"{tries} times"
            raise HostUnreachable(
                f"{self.url} does not answer ({_reason(fault)}): tried {times} in {spent:.1f} s. Start the host with "
                "`reverie serve`, or check the address (--url, REVERIE_URL).",
                details={"url": self.url, "tries": tries, "seconds": round(spent, 1)},
            ) from None
        self._sleep(wait)

    def _check(self, response: httpx2.Response, content: bytes) -> bytes:
        status = response.status_code
        if status < 300:
            return content
        error = error_of(status, content, response.headers.get("retry-after"))
        if error is not None:
            raise error
        if status in _GATEWAY:
            raise _Gateway(f"{self.url} answered {status}: what is in front of the host cannot reach it.")
        raise self.foreign(str(status))


def _interrupt(response: httpx2.Response) -> None:
    """End a read that waits in another thread: closing a socket does not, shutting it down does."""
    network = response.extensions.get("network_stream")
    connected = None if network is None else network.get_extra_info("socket")
    if connected is not None:
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)


class _Gateway(Exception):
    """A gateway answered instead of the host."""


def check_url(url: str) -> str:
    """The address of a host without a trailing slash. Raises Invalid."""
    wrong = Invalid("The address of a host is http://HOST:PORT or https://HOST.", pointer="/url")
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, brackets without an end
        raise wrong from None
    if not whole or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise wrong
    if parts.username or parts.password:
        raise Invalid("An address holds no credentials: pass key=..., or set REVERIE_KEY.", pointer="/url")
    return url.rstrip("/")


def segment(name: str) -> str:
    """A ref or an id as one segment of a path."""
    return quote(name, safe="")


def _arguments(options: RequestOptions) -> dict[str, Any]:
    """The arguments of the HTTP client."""
    body, headers = options.get("body"), dict(options.get("headers") or {})
    if body is not None and not isinstance(body, bytes):
        try:
            body, headers["Content-Type"] = orjson.dumps(body), "application/json"
        except TypeError:
            raise Invalid("The entries have no JSON form.", pointer="/entries") from None
    timeout = _timeout(options.get("long", False))
    return {"params": _query(options.get("query")), "content": body, "headers": headers, "timeout": timeout}


def _query(query: Mapping[str, Any] | None) -> list[tuple[str, str]] | None:
    if not query:
        return None
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        if value is None:
            continue
        for item in value if isinstance(value, list | tuple) else (value,):
            pairs.append((name, str(item).lower() if isinstance(item, bool) else str(item)))
    return pairs


def _timeout(long: bool) -> Any:
    import httpx2

    return httpx2.Timeout(LONG_SECONDS if long else READ_SECONDS, connect=CONNECT_SECONDS)


def _reason(fault: Exception) -> str:
    """Describe the kind of fault; never the request."""
    name = type(fault).__name__
    known = {
        "ConnectError": "no connection",
        "ConnectTimeout": f"no connection within {CONNECT_SECONDS:.0f} s",
        "ReadTimeout": "no answer in time",
        "ReadError": "the connection was closed",
        "RemoteProtocolError": "the connection was closed",
    }
    return known.get(name, name if not isinstance(fault, _Gateway) else str(fault))


class RemoteUseCase:
    """One use case of a host, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._http = connection


def entry_path(ref: str, entry_id: str) -> str:
    """The path of an entry."""
    return f"/memory/{segment(ref)}/entries/{segment(entry_id)}"
