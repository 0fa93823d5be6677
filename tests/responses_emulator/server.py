"""The emulated provider on a real socket, with faults on demand."""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.responses_emulator import rules
from tests.responses_emulator.model import Model, talker
from tests.responses_emulator.provider import Provider, Reading
from tests.responses_emulator.rules import Refused
from tests.responses_emulator.stream import events, failed

NOT_FOUND = {"detail": "Not Found"}


@dataclass
class Fail:
    """An error answer. A text body is sent as it is."""

    status: int
    body: dict[str, Any] | str = field(default_factory=lambda: {"error": {"message": "", "type": "server_error"}})
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Raw:
    """A 200 with just this text."""

    text: str


@dataclass
class Cut:
    """The answer begins, then the connection is gone: after so many events of a stream, or half a body."""

    events: int = 3


@dataclass
class Drop:
    """The connection is gone before a word. `answered` says whether the provider had done the work by then."""

    answered: bool = False


@dataclass
class Stall:
    """After so many events (or before the body), nothing, until the caller leaves or the time is over."""

    events: int = 2
    seconds: float = 30.0


@dataclass
class Slow:
    """A pause, then the usual answer."""

    seconds: float


@dataclass
class Twist:
    """The usual answer, changed on its way out."""

    change: Callable[[dict[str, Any]], dict[str, Any]]


@dataclass
class Bare:
    """The completed event of the stream has no output."""


@dataclass
class Overflow:
    """Refused for length, whatever the length is."""


Fault = Fail | Raw | Cut | Drop | Stall | Slow | Twist | Bare | Overflow | None


def quota() -> Fail:
    return Fail(429, {"error": {"message": "You exceeded your quota.", "type": "x", "code": "insufficient_quota"}})


def no_compaction(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "output": [item for item in answer["output"] if item["type"] != "compaction"]}


def empty_output(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "output": []}


@dataclass
class Seen:
    """One request as it came, and what became of it."""

    route: str
    base: str
    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    body: Any
    status: int = 0
    tokens: int = 0
    cached: int = 0
    written: int = 0
    code: str | None = None

    @property
    def input(self) -> list[dict[str, Any]]:
        given = self.body.get("input", []) if isinstance(self.body, dict) else []
        return given if isinstance(given, list) else [{"role": "user", "content": given}]


class Emulator(Provider):
    """`with Emulator() as provider:` serves the API base at `provider.url`, the other one at `provider.codex_url`.

    `provider.key` and `provider.other_key` belong to two accounts. Faults are given by route (create, compact, count)
    and used up one per request; `None` among them is a request without one. `provider.seen` holds every request.
    """

    def __init__(self, *, context: int = 128_000, model: Model = talker, compact_route: bool = True) -> None:
        super().__init__(context=context, model=model)
        self.compact_route = compact_route
        self.key, self.other_key = f"test-{secrets.token_hex(12)}", f"test-{secrets.token_hex(12)}"
        self.orgs = {self.key: "org-one", self.other_key: "org-two"}
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        self.fault: Callable[[str, int], Fault] = lambda route, number: None
        """Asked when the lists are empty: (route, number of the request on it)."""
        self.seen: list[Seen] = []
        self._numbers: dict[str, int] = defaultdict(int)
        self._closing = threading.Event()
        emulator = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _serve(self) -> None:
                with suppress(ConnectionError):
                    emulator.serve(self)

            do_GET = do_POST = do_DELETE = do_PUT = _serve  # noqa: N815

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.root = f"http://127.0.0.1:{self._server.server_port}"
        self.url = f"{self.root}/v1"
        self.codex_url = f"{self.root}/backend-api/codex"

    def __enter__(self) -> Emulator:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def requests(self, route: str) -> list[Seen]:
        """The requests on one route, oldest first."""
        return [seen for seen in self.seen if seen.route == route]

    @property
    def billed(self) -> int:
        """Input tokens of every request that was answered."""
        return sum(seen.tokens for seen in self.seen if seen.status == 200)

    # -- one request ---------------------------------------------------------------------------------------------

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        path = handler.path.split("?", 1)[0]
        base = "codex" if path.startswith("/backend-api/codex/") else "api"
        inside = path.removeprefix("/backend-api/codex" if base == "codex" else "/v1")
        named = {"/responses": "create", "/responses/compact": "compact", "/responses/input_tokens": "count"}
        route = named.get(inside, "other") if handler.command == "POST" else "other"
        try:
            body = json.loads(raw) if raw else None
        except (ValueError, RecursionError):
            body = None
        headers = {name.lower(): value for name, value in handler.headers.items()}
        seen = Seen(route, base, handler.command, handler.path, headers, raw, body)
        with self.vault.lock:
            self.seen.append(seen)
            self._numbers[route] += 1
            number = self._numbers[route]
            waiting = self.faults[route]
            fault = waiting.pop(0) if waiting else self.fault(route, number)
        if isinstance(fault, Slow):
            time.sleep(fault.seconds)
            fault = None
        if isinstance(fault, Fail):
            return self._send(handler, seen, fault.status, fault.body, fault.headers)
        if isinstance(fault, Raw):
            return self._send(handler, seen, 200, fault.text)
        if isinstance(fault, Drop) and not fault.answered:
            return _hang_up(handler)
        try:
            org = self._org(handler)
            if route == "other":
                return self._other(handler, seen, inside, org)
            return self._answer(handler, seen, fault, org)
        except Refused as refused:
            seen.code = refused.code
            answer: Any = {"detail": refused.message} if base == "codex" else refused.body()
            return self._send(handler, seen, refused.status, answer)

    def _org(self, handler: BaseHTTPRequestHandler) -> str:
        given = (handler.headers.get("authorization") or "").removeprefix("Bearer ")
        if given not in self.orgs:
            raise Refused(401, f"Incorrect API key provided: {given[:8]}.", None, "invalid_api_key")
        return self.orgs[given]

    def _other(self, handler: BaseHTTPRequestHandler, seen: Seen, inside: str, org: str) -> None:
        name = inside.removeprefix("/responses/")
        stored = self.vault.stored.get(name)
        if inside == "/models":
            listed = [{"id": model, "object": "model"} for model in self.models]
            return self._send(handler, seen, 200, {"object": "list", "data": listed})
        if name.endswith("/cancel") and handler.command == "POST":
            return self._cancel(handler, seen, name.removesuffix("/cancel"), org)
        if name != inside and handler.command in ("GET", "DELETE"):
            if stored is None or stored.org != org:
                raise Refused(404, f"Response with id '{name}' not found.")
            if handler.command == "DELETE":
                del self.vault.stored[name]
                return self._send(handler, seen, 200, {"id": name, "object": "response", "deleted": True})
            if self.waiting.get(name, 0) > 0:
                self.waiting[name] -= 1
                return self._send(handler, seen, 200, _unfinished(stored.response, "in_progress"))
            if "stream=true" in handler.path:
                after = parse_qs(urlsplit(handler.path).query).get("starting_after", ["-1"])[0]
                left = (event for event in events(stored.response) if event["sequence_number"] > int(after))
                return self._stream(handler, seen, left, None)
            return self._send(handler, seen, 200, stored.response)
        if seen.base == "codex":
            return self._send(handler, seen, 404, NOT_FOUND)
        raise Refused(404, f"Invalid URL ({handler.command} {handler.path})")

    def _cancel(self, handler: BaseHTTPRequestHandler, seen: Seen, name: str, org: str) -> None:
        stored = self.vault.stored.get(name)
        if stored is None or stored.org != org:
            raise Refused(404, f"Response with id '{name}' not found.")
        self.waiting.pop(name, None)
        stored.response = _unfinished(stored.response, "cancelled")
        return self._send(handler, seen, 200, stored.response)

    def _answer(self, handler: BaseHTTPRequestHandler, seen: Seen, fault: Fault, org: str) -> None:
        if seen.raw and seen.body is None:
            raise Refused(400, "We could not parse the JSON body of your request.")
        if seen.route == "compact" and (seen.base == "codex" or not self.compact_route):
            if seen.base == "codex":
                return self._send(handler, seen, 404, NOT_FOUND)
            raise Refused(404, f"Invalid URL (POST {handler.path})")
        allowed = {"create": rules.CREATE, "compact": rules.COMPACT, "count": rules.COUNT}[seen.route]
        reading = self.read(seen.body, allowed, org=org, base=seen.base)
        seen.tokens = reading.tokens
        streaming = reading.body.get("stream") is True
        if seen.route == "count":
            return self._send(handler, seen, 200, {"object": "response.input_tokens", "input_tokens": reading.tokens})
        try:
            if isinstance(fault, Overflow):
                self._refuse_length(reading)
            answer = self.create(reading) if seen.route == "create" else self.compact(reading)
        except Refused as refused:
            if not streaming or refused.code != "context_length_exceeded":
                raise
            seen.code = refused.code
            shown = self._response(reading, [])
            return self._stream(handler, seen, failed(shown, refused.code, refused.message), None)
        seen.cached = answer["usage"]["input_tokens_details"]["cached_tokens"]
        seen.written = answer["usage"]["output_tokens"]
        if isinstance(fault, Twist):
            answer = fault.change(answer)
        if isinstance(fault, Drop):
            return _hang_up(handler)
        if reading.body.get("background") is True and not streaming:
            self.waiting[answer["id"]] = self.polls
            answer = _unfinished(answer, "queued")
        if streaming:
            bare = seen.base == "codex" or isinstance(fault, Bare)
            made = events(answer, compacting=reading.trigger, bare=bare)
            return self._stream(handler, seen, made, fault)
        if isinstance(fault, Cut | Stall):
            return self._half(handler, answer, fault)
        return self._send(handler, seen, 200, answer)

    def _refuse_length(self, reading: Reading) -> None:
        kept, self.context = self.context, -1
        try:
            self.fits(reading)
        finally:
            self.context = kept

    # -- bytes ---------------------------------------------------------------------------------------------------

    def _send(
        self,
        handler: BaseHTTPRequestHandler,
        seen: Seen,
        status: int,
        body: Any,
        headers: dict[str, str] | None = None,
    ) -> None:
        seen.status = status
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        handler.send_response(status)
        given = {"content-type": "application/json", "x-request-id": secrets.token_hex(8), **(headers or {})}
        for name, value in given.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def _stream(
        self, handler: BaseHTTPRequestHandler, seen: Seen, made: Iterable[dict[str, Any]], fault: Fault
    ) -> None:
        seen.status = 200
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream; charset=utf-8")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        limit = fault.events if isinstance(fault, Cut | Stall) else None
        for data in _chunks(made, limit):
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            handler.wfile.flush()
        if isinstance(fault, Cut):
            return _hang_up(handler)
        if isinstance(fault, Stall):
            self._closing.wait(fault.seconds)
            return _hang_up(handler)
        handler.wfile.write(b"0\r\n\r\n")
        return None

    def _half(self, handler: BaseHTTPRequestHandler, answer: dict[str, Any], fault: Cut | Stall) -> None:
        data = json.dumps(answer).encode()
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[: len(data) // 2])
        handler.wfile.flush()
        if isinstance(fault, Stall):
            self._closing.wait(fault.seconds)
        _hang_up(handler)


def _unfinished(answer: dict[str, Any], status: str) -> dict[str, Any]:
    return {**answer, "status": status, "output": [], "usage": None, "background": True}


def _chunks(made: Iterable[dict[str, Any]], limit: int | None) -> Iterator[bytes]:
    for number, event in enumerate(made):
        if limit is not None and number >= limit:
            return
        text = json.dumps(event, ensure_ascii=False)
        yield f"event: {event['type']}\ndata: {text}\n\n".encode()


def _hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    with suppress(OSError):
        handler.wfile.flush()
        handler.connection.shutdown(socket.SHUT_RDWR)
