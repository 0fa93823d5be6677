"""Requests of the proxy that belong to a window: the engine's steps over raw HTTP, with the answer relayed.

Credentials go upstream and nowhere else: of an account the window keeps a keyed hash. An answer reaches the caller as
the upstream sent it, a stream piece by piece.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections import OrderedDict
from collections.abc import Generator, Mapping, MutableMapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from reverie.core.actor import Actor
from reverie.core.errors import ReverieError
from reverie.host import Host
from reverie.ops.logs import Action, log, where
from reverie.protocols.responses.proxy.application import STATUS
from reverie.protocols.responses.proxy.relay import (
    Caller,
    Header,
    Scope,
    Send,
    Upstream,
    UpstreamFault,
    WindowRequest,
    error_body,
    header,
    pass_through,
    refuse,
    response_headers,
    start,
)
from reverie.protocols.responses.proxy.relay import answer as refused
from reverie.protocols.responses.proxy.reply import UpstreamReply, decoder, read
from reverie.protocols.responses.proxy.sse import Events
from reverie.protocols.responses.proxy.status import Counts
from reverie.window import Base, Item, NegativeCache, WindowPolicy
from reverie.window.driver import keep
from reverie.window.engine import BackgroundPending, Engine
from reverie.window.steps import Keep, RequestOutcome
from reverie.window.steps import Send as Step
from reverie.window.streaming import Streaming, holds_back, is_closing

PROVIDERS = {"messages": "anthropic"}
"""By the kind of base; else `openai`."""
MOST_OPEN = 1000
"""Windows kept in memory; others are loaded again on demand."""
BETA = b"anthropic-beta"
_ONCE = (b"idempotency-key",)
"""Not sent again with another body."""
_FIELDS = {
    "status": b"x-reverie-window-status",
    "request_lowering_mode": b"x-reverie-window-lowering",
    "fallback_reason": b"x-reverie-window-fallback-reason",
    "reset_reason": b"x-reverie-window-reset-reason",
    "incremental_input_items": b"x-reverie-window-new-items",
    "first_mismatch_path": b"x-reverie-window-mismatch-path",
    "mismatch_kind": b"x-reverie-window-mismatch-kind",
}


@dataclass(slots=True)
class ProxyWindow:
    """A window in memory, for one turn at a time. The stored window decides."""

    engine: Engine
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class WindowTurns:
    """The windows behind one proxy."""

    def __init__(
        self, host: Host, actor: Actor, upstream: Upstream, *, base: Base, policy: WindowPolicy, counts: Counts
    ) -> None:
        self._host = host
        self._actor = actor
        self._upstream = upstream
        self._base = base
        self._policy = policy
        self._negative = NegativeCache()
        self._counts = counts
        self._held: OrderedDict[tuple[str, bytes], ProxyWindow] = OrderedDict()
        self._waiting: OrderedDict[str, ProxyWindow] = OrderedDict()
        """By the id of a response: the window that waits for it."""
        self._secret = secrets.token_bytes(32)  # no credential outlives its request, not even here

    def window_list(self) -> list[Mapping[str, Any]]:
        """The windows, newest first, without their items."""
        page = self._host.windows.all(self._actor, limit=500)
        found = sorted(page.items, key=lambda window: -window.updated_at)
        return [
            {
                "scope": window.scope,
                "generation": window.generation,
                "items": window.items,
                "compactionItems": window.compactions,
                "updatedAt": window.updated_at,
            }
            for window in found
        ]

    async def turn(self, request: WindowRequest, caller: Caller, send: Send) -> int | None:
        """Answer one request through its window; the status that was sent, or None when there can be no window."""
        try:
            held = await self._window(request)
        except ReverieError:
            return None
        waited = False
        async with caller.present():
            waited = await held.lock.acquire()
        if not waited:
            return 0  # it left while others were being answered
        try:
            return await _Exchange(self, held.engine, request, caller, send).run()
        finally:
            self._wait_for(held)
            held.lock.release()

    async def latest(self, request: WindowRequest) -> str | None:
        """The id of the newest response of the window, None before the first."""
        try:
            held = await self._window(request)
            async with held.lock:
                state = await keep(held.engine.current)
        except ReverieError:
            return None
        return state.last_response_id if not state.empty else None

    async def look(
        self, response_id: str, request: WindowRequest, scope: Scope, caller: Caller, send: Send
    ) -> int | None:
        """Fetch or cancel a response that a window waits for; None when none does. The window is named by the header,
        or known from the turn that asked for the response."""
        held = self._waiting.get(response_id)
        if held is None and request.scope_id:
            try:
                held = await self._window(request)
            except ReverieError:
                return None
        if held is None:
            return None
        recorded = _RecordedSend(send)
        status = await pass_through(self._upstream, scope, caller, recorded, ())
        async with held.lock:
            exchange = _Exchange(self, held.engine, request, caller, send)
            with suppress(Exception):  # the answer was given; the next turn fetches it again
                text, items = recorded.response()
                if status == 200 and await exchange.drive(held.engine.resolved(response_id, text, items)):
                    await exchange.drive(held.engine.after_turn())
            if held.engine.state.background is None:
                self._waiting.pop(response_id, None)
        return status

    def _wait_for(self, held: ProxyWindow) -> None:
        """Remember which window waits for a response, so that a request without a scope finds it."""
        background = held.engine.state.background
        if background is not None:
            self._waiting[str(background["response_id"])] = held
            while len(self._waiting) > MOST_OPEN:
                self._waiting.popitem(last=False)

    async def _window(self, request: WindowRequest) -> ProxyWindow:
        account = _account(request.headers)
        key = (request.scope_id, blake2b(account.encode(), key=self._secret).digest())
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key]

        def open_window() -> Engine:
            keeper = self._host.windows.keeper(
                self._actor, request.scope_id, policy=self._policy, negative=self._negative
            )
            provider = PROVIDERS.get(self._base.kind, "openai")
            state = keeper.open(provider=provider, base=self._base, account=account)
            return Engine(keeper, state, clock=self._host.parts.clock.now)

        engine: Engine = await keep(open_window)
        held = self._held.setdefault(key, ProxyWindow(engine))
        while len(self._held) > MOST_OPEN:
            self._held.popitem(last=False)
        return held


class _RecordedSend:
    """Passes an answer on and records it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._headers: Sequence[Header] = ()
        self._body = bytearray()

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._headers = message["headers"]
        self._body += message.get("body", b"")
        await self._send(message)

    def response(self) -> tuple[str, list[Item] | None]:
        """The response as JSON text, with its items when a stream brought them."""
        data = decoder(self._headers)(bytes(self._body))
        if b"event-stream" not in (header(self._headers, b"content-type") or b""):
            return data.decode("utf-8", "surrogateescape"), None
        reading = Streaming()
        for event in Events().feed(data + b"\n\n"):
            reading.feed(event)
        failed = '{"status":"failed"}' if reading.failure is not None else ""
        return reading.response or failed, reading.output or None


class _Exchange:
    """One request and its answer."""

    def __init__(
        self, windows: WindowTurns, engine: Engine, request: WindowRequest, caller: Caller, send: Send
    ) -> None:
        self._windows = windows
        self._engine = engine
        self._request = request
        self._caller = caller
        self._send = send
        self._open = AsyncExitStack()
        self._sent = 0
        self._kept: bool | None = None
        """Whether the answer was kept as a stable boundary; None before it was kept."""
        message = "messages" if windows._base.kind == "messages" else "input"
        self._params = {name: value for name, value in request.body.items() if name != message}
        if not request.chained and windows._base.kind != "messages":
            self._params.setdefault("store", windows._base.kind != "codex")  # what leaving it out means

    async def run(self) -> int | None:
        """The status that was sent."""
        async with self._open:
            completed = False
            status: int | None = 0
            async with self._caller.present():
                try:
                    status, completed = await self._answer()
                except UpstreamFault as fault:
                    if not fault.begun:
                        status = await refuse(self._send, self._windows._upstream, fault.kind, self._headers())
                except Exception as fault:
                    if not isinstance(fault, ReverieError):
                        log(Action.REQUEST_FAILED, level=logging.ERROR, fault=where(fault))
                    status = None if not self._sent else 0
        # The caller has its answer; a pass that is due now costs it nothing.
        if completed:
            with suppress(Exception):  # it is the next turn's again
                await self.drive(self._engine.after_turn())
        self._windows._counts.turn(self._engine.diagnostics)
        return status

    async def _answer(self) -> tuple[int, bool]:
        engine = self._engine
        request = self._request
        answer: RequestOutcome = await self.drive(
            engine.turn(request.caller_input, request.input_is, self._params, stream=True)
        )
        reply: UpstreamReply | None = answer.value
        if isinstance(answer.error, BackgroundPending):
            await refused(self._send, 409, error_body(answer.error.message, answer.error.code))
            return 409, False
        if reply is None:
            raise UpstreamFault(str(answer.error or "upstream_disconnected"))
        if reply.stream is not None:
            return await self._relay(reply)
        while answer.ok and engine.foreign is None and engine.state.dialect.paused(answer.text):
            answer = await self.drive(engine.resumed(answer.text, stream=True))
            if answer.value is None:
                raise UpstreamFault(str(answer.error or "upstream_disconnected"))
            reply = answer.value
        completed = bool(answer.ok and await self._keep(answer.text, None))
        await self._send(start(reply.status, [*response_headers(reply.headers), *self._headers()]))
        await self._send({"type": "http.response.body", "body": reply.body})
        return reply.status, completed

    # streams

    async def _relay(self, reply: UpstreamReply) -> tuple[int, bool]:
        """Pass a stream on, piece by piece, and keep its result when it ends well.

        A window may be refused for its length in the stream, even when its estimated size was within the limit. So the
        opening events, which carry no content, are held back until the first that does, and the request can be repeated
        unseen.
        """
        state = self._engine.state
        careful = state.mode != "off" and bool(state.items)
        events, reading = Events(), state.dialect.reading()
        waiting: list[bytes] | None = [] if careful else None
        decoded = decoder(reply.headers)
        begun = False
        assert reply.stream is not None
        silence = self._engine.state.policy.watchdog_seconds if self._engine.state.mode == "server_side" else None
        source = reply.stream
        while True:
            try:
                piece = await asyncio.wait_for(anext(source, None), silence)
            except (TimeoutError, UpstreamFault) as fault:
                await self.drive(self._engine.stream_failed(stalled=isinstance(fault, TimeoutError)))
                if not begun:
                    await self._begin(reply)
                    await self._pass_on(waiting)
                return 0, False  # left unfinished, as the upstream left it
            if piece is None:
                break
            kinds = [reading.feed(event) for event in events.feed(decoded(piece))]
            if waiting is not None:
                waiting.append(piece)
                if all(holds_back(kind) for kind in kinds):
                    continue
                again = None
                if reading.paused and self._engine.foreign is None:
                    again = await self.drive(self._engine.resumed(reading.body(), stream=True))
                elif self._engine.overflowed(reading.failure) and not reading.items:
                    again = await self.drive(self._engine.reopen())
                if again is not None and again.ok and again.value.stream is not None:
                    reply, source = again.value, again.value.stream
                    events, reading, decoded = Events(), self._engine.state.dialect.reading(), decoder(reply.headers)
                    waiting = None
                    continue
                await self._begin(reply)
                begun = True
                await self._pass_on(waiting)
                waiting = None
                continue
            if not begun:
                await self._begin(reply)
                begun = True
            if any(is_closing(kind) for kind in kinds):  # kept before the caller can act on it
                self._kept = await self._keep(reading.response or "", list(reading.output) or None)
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        if not begun:
            await self._begin(reply)
            await self._pass_on(waiting)
        if reading.response is not None and self._kept is None:
            self._kept = await self._keep(reading.response, list(reading.output) or None)
        await self._send({"type": "http.response.body", "body": b""})
        return reply.status, bool(self._kept)

    async def _keep(self, text: str, items: list[Item] | None) -> bool:
        """Keep an answer. Whatever that meets, the caller gets it."""
        try:
            return bool(await self.drive(self._engine.keep(text, items)))
        except Exception as fault:
            log(Action.REQUEST_FAILED, level=logging.ERROR, fault=where(fault))
            return False

    async def _begin(self, reply: UpstreamReply) -> None:
        await self._send(start(reply.status, [*response_headers(reply.headers), *self._headers()]))

    async def _pass_on(self, waiting: list[bytes] | None) -> None:
        for piece in waiting or ():
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    # steps

    async def drive(self, steps: Generator[Step | Keep, Any, Any]) -> Any:
        """Carry out the steps of the engine, one after the other."""
        try:
            step = next(steps)
            while True:
                try:
                    if isinstance(step, Keep):
                        result: Any = await keep(step.call)
                    else:
                        result = await self._ask(step)
                except BaseException as fault:
                    step = steps.throw(fault)
                else:
                    step = steps.send(result)
        except StopIteration as done:
            return done.value

    async def _ask(self, step: Step) -> RequestOutcome:
        upstream = self._windows._upstream
        body = dict(step.body)
        if step.collect:
            body["stream"] = True
        data = json.dumps(body, separators=(",", ":")).encode()
        headers = [
            (name, value)
            for name, value in self._request.headers
            if name.lower() not in _ONCE or (not step.is_pass and not self._sent)
        ]
        if not step.is_pass:
            self._sent += 1
        headers = _with_betas(headers, step.betas)
        headers += [(b"Accept-Encoding", b"identity"), (b"Content-Length", str(len(data)).encode())]
        target = upstream.target(b"/v1" + step.path.encode(), self._request.query if not step.is_pass else b"")
        if step.method == "GET":
            return await self._fetch(target)
        streams = not step.is_pass and body.get("stream") is True
        try:
            if streams and self._request.far is not None:
                far = await self._request.far.turn(body)
                if far is not None:
                    return _outcome(far)
            if streams:
                response = await self._open.enter_async_context(upstream.ask(b"POST", target, headers, data))
                reply = await read(response, whole=response.status != 200)
            else:
                async with asyncio.timeout(step.timeout), upstream.ask(b"POST", target, headers, data) as response:
                    reply = await read(response, whole=True)
        except TimeoutError:
            return RequestOutcome(None, error=UpstreamFault("upstream_timeout"), stalled=True)
        except UpstreamFault as fault:
            return RequestOutcome(None, error=fault)
        if reply.stream is not None or not step.collect:
            return _outcome(reply)
        text = decoder(reply.headers)(reply.body).decode("utf-8", "surrogateescape")
        if reply.status == 200:
            reading = Streaming()
            for event in Events().feed(decoder(reply.headers)(reply.body) + b"\n\n"):
                reading.feed(event)
            text = reading.body() if reading.response is not None else ""
        return _outcome(reply, text)

    async def _fetch(self, target: bytes) -> RequestOutcome:
        left = (b"content-type", *_ONCE)
        headers = [(name, value) for name, value in self._request.headers if name.lower() not in left]
        headers.append((b"Accept-Encoding", b"identity"))
        try:
            async with self._windows._upstream.ask(b"GET", target, headers, None) as response:
                reply = await read(response, whole=True)
        except UpstreamFault as fault:
            return RequestOutcome(None, error=fault)
        return _outcome(reply)

    # diagnostics

    def _headers(self) -> list[Header]:
        """The diagnostics that are known when the answer begins."""
        known = self._engine.diagnostics
        found = known["incremental_continuation"] or {}
        if found.get("fallback_reason") == "client_managed_chain":
            return [(STATUS, b"client_managed_chain")]
        rows: list[Header] = [
            (name, _plain(found[field])) for field, name in _FIELDS.items() if found.get(field) is not None
        ]
        state = self._engine.state
        rows.append((b"x-reverie-window-generation", str(state.generation).encode()))
        rows.append((b"x-reverie-window-items", str(len(state.items)).encode()))
        passed = known["remote_compaction"]
        if passed:
            rows.append((b"x-reverie-window-compaction", _plain(passed["status"])))
            if passed.get("trigger_reason"):
                rows.append((b"x-reverie-window-compaction-trigger", _plain(passed["trigger_reason"])))
        cache = known["cache"]
        if cache and cache.get("cache_loss"):
            rows.append((b"x-reverie-window-cache-loss", _plain(cache["cache_loss"])))
        return rows if any(name == STATUS for name, _ in rows) else [(STATUS, b"unknown"), *rows]


def _outcome(reply: UpstreamReply, text: str | None = None) -> RequestOutcome:
    """An answer as the engine takes it."""
    if reply.stream is not None:
        return RequestOutcome(reply.status, value=reply)
    if text is None:
        text = decoder(reply.headers)(reply.body).decode("utf-8", "surrogateescape")
    failed = None if reply.status < 300 else UpstreamFault(f"status_{reply.status}", begun=True)
    return RequestOutcome(reply.status, text, value=reply, error=failed)


def _with_betas(headers: list[Header], betas: Sequence[str]) -> list[Header]:
    """The caller's headers, with the betas that a step needs added to those it names."""
    given = b",".join(value for name, value in headers if name.lower() == BETA).decode("latin-1")
    named = [part.strip() for part in given.split(",") if part.strip()]
    wanted = ",".join([*named, *(beta for beta in betas if beta not in named)])
    kept = [(name, value) for name, value in headers if name.lower() != BETA]
    return [*kept, (BETA, wanted.encode("latin-1"))] if wanted else kept


def _account(headers: Sequence[Header]) -> str:
    """Return the headers that identify an account. A ChatGPT account keeps its id while its tokens change."""
    own = header(headers, b"chatgpt-account-id")
    if own is not None:
        return "chatgpt " + own.decode("latin-1")
    names = (b"authorization", b"api-key", b"x-api-key", b"openai-organization", b"openai-project")
    return "\n".join((header(headers, name) or b"").decode("latin-1") for name in names)


def _plain(value: Any) -> bytes:
    """A header value: printable ASCII only."""
    text = "".join(char if " " <= char <= "~" else "?" for char in str(value))
    return text[:200].encode()
