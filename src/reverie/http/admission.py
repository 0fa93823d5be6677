"""Admission: the key of a request is checked before a byte of its body is read."""

from __future__ import annotations

import re
from asyncio import get_running_loop
from functools import partial

from starlette.types import Scope

from reverie.core.actor import Actor
from reverie.core.errors import RateLimited, ReverieError, Unauthenticated
from reverie.host import Host
from reverie.http.browser import own_call
from reverie.http.door import Doors
from reverie.http.limits import Limits, key_of
from reverie.http.pace import Pace
from reverie.http.threads import Lane, Threads
from reverie.ops.metrics import Metrics

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class Admission:
    """Authenticates, counts requests and bytes against the key's limits, then checks scopes."""

    def __init__(self, *, host: Host, doors: Doors, limits: Limits, threads: Threads, metrics: Metrics) -> None:
        self._host = host
        self._doors = doors
        self._limits = limits
        self._threads = threads
        self._metrics = metrics
        self._quick = host.parts.store.quick
        self._turn: dict[tuple[str | None, str], Actor] = {}
        self._pace = Pace(threads.crowded)

    async def admit(self, scope: Scope, size: int) -> None:
        """Admit a request, if its path needs a key. `size`: the bytes that its body is about to cost. Raises
        ReverieError.
        """
        path = scope["path"]
        door = self._doors.at(path)
        if door is None or not door.needs_key(path):
            return
        token, named = bearer(scope, door.scheme), request_id(scope)
        session = own_call(scope) if token is None else None
        try:
            if self._quick and named is None and session is None:
                actor, sent = self._authenticate(token, door.name), None
            else:
                # The tenant is not known yet, so lookups take turns by the id in the token, valid or not.
                check = partial(self._known, token, session, door.name, named)
                actor, sent = await self._threads.run(Lane.LOOK, (token or session or "")[:16], check)
        except Unauthenticated as error:
            self._metrics.refused.labels(error.reason).inc()
            raise
        if sent:
            scope["state"]["request_id"] = sent
        if (turn := self._pace.begin(actor.tenant)) is not None:
            await turn
        try:
            counted = key_of(actor)
            self._limits.requests.take(counted)
            self._limits.bytes.take(counted, size)
        except RateLimited:
            self._metrics.refused.labels("rate_limited").inc()
            raise
        door.admit(actor, scope["method"], path)
        scope["state"]["actor"] = actor

    def _authenticate(self, token: str | None, door: str) -> Actor:
        """Authenticate the caller. Requests of one turn of the event loop share one lookup of the key.

        A request that arrives later is handled in a later turn, so a key revoked before a request was sent is refused.
        """
        actor = self._turn.get((token, door))
        if actor is None:
            actor = self._host.keys.authenticate(token, door=door)
            if not self._turn:
                get_running_loop().call_soon(self._turn.clear)
            self._turn[token, door] = actor
        return actor

    def _known(self, token: str | None, session: str | None, door: str, sent: str | None) -> tuple[Actor, str | None]:
        """The caller, and the request id it sent; None for an id that holds a secret, because ids are logged."""
        if session is not None:
            actor = self._host.sessions.resume(session, door=door)
        else:
            actor = self._host.keys.authenticate(token, door=door)
        if sent is not None:
            try:
                self._host.rules.check_names(actor.tenant, {"/X-Request-Id": sent})
            except ReverieError:
                sent = None
        return actor, sent


def request_id(scope: Scope) -> str | None:
    """The caller's own id for the request; None without one, or when it is malformed."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            return value.decode() if _REQUEST_ID.fullmatch(value) else None
    return None


def bearer(scope: Scope, scheme: str = "bearer") -> str | None:
    """The token of the `Authorization` header, sent as Bearer or as `scheme`; None unless there is exactly one."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(sent) != 1:
        return None
    kind, _, token = sent[0].decode("latin-1").partition(" ")
    return token.strip() if kind.lower() in ("bearer", scheme) else None
