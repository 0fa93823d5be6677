"""`Idempotency-Key`: a request with a key is carried out once, and every retry gets its answer."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable
from functools import partial, wraps
from inspect import signature
from typing import Any

from starlette.responses import Response

from reverie.core.canonical import canonical
from reverie.core.errors import Busy, Invalid, ReverieError
from reverie.http.call import SMALL_BODY, Call, Handler, Needs
from reverie.http.problems import answer
from reverie.http.reply import TextReply
from reverie.http.threads import Lane
from reverie.memory.idempotency import Claim, StoredAnswer

HEADER = "idempotency-key"
REPLAYED = "openwop-Idempotent-Replay"
PATIENCE_SECONDS = 30.0
_LOOK_AGAIN_SECONDS = 0.05
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_FINAL = frozenset({404, 413, 422})
_FINAL_CODES = frozenset({"workspace_conflict", "run_terminal", "run_state_conflict"})
"""Codes of refusals that no retry can cure; like those with a status in `_FINAL`, they are stored as answers."""


class Once:
    """Requests with a key at one door, whose error table is `status_of` and `code_of`."""

    def __init__(self, status_of: Callable[[ReverieError], int], code_of: Callable[[ReverieError], str]) -> None:
        self._status_of = status_of
        self._code_of = code_of

    def handler(self, operation: str, *, now: Callable[..., Response] | None = None) -> Callable[[Handler], Handler]:
        """Carry out the work of a handler once for each key. A handler that answers with a TextReply needs `now`, which
        takes the same arguments and answers a retry.

        The argument `work_id` of a handler receives an id for what it creates; None when the request has no key.
        """

        def mark(handler: Any) -> Any:
            needs: Needs = handler.needs
            named = "work_id" in signature(handler).parameters

            @wraps(handler)
            async def answered(**values: Any) -> Response:
                def work(work_id: str | None) -> Response:
                    made: Response = handler(**values, **({"work_id": work_id} if named else {}))
                    return made

                again = None if now is None else partial(now, **values)
                return await self(values["call"], operation, needs.lane, work, now=again)

            answered.once = True  # type: ignore[attr-defined]
            return answered

        return mark

    async def __call__(
        self,
        call: Call,
        operation: str,
        lane: Lane,
        work: Callable[[str | None], Response],
        *,
        now: Callable[[], Response] | None = None,
    ) -> Response:
        """Return the answer of `work`, or the answer stored for an earlier request with the same key.

        `work` receives an id for what it creates: the same id when a process died while creating it. Of a TextReply
        only the status is stored; `now` answers a retry from the present data.
        """
        key = call.headers.get(HEADER)
        if key is None:
            return await call.run(lane, lambda: work(None))
        if not _KEY.fullmatch(key):
            raise Invalid("An Idempotency-Key is 1 to 255 visible ASCII characters.", pointer="/Idempotency-Key")
        request, loop = await _request(call), asyncio.get_running_loop()
        until = loop.time() + PATIENCE_SECONDS
        while True:
            found = await call.run(Lane.WRITE, lambda: call.host.idempotency.claim(call.actor, operation, key, request))
            if isinstance(found, StoredAnswer) and now is not None and not found.body:
                return await call.run(lane, lambda: _replayed(now()))
            if isinstance(found, StoredAnswer):
                return Response(found.body or None, found.status, {REPLAYED: "true"}, _media(found.body))
            if found is not None:
                return await self._carry_out(call, found, lane, work)
            if loop.time() >= until:
                said = "A request with this Idempotency-Key is still being carried out. Send it again later."
                raise Busy(said, code="idempotency_in_flight", details={"retryAfter": 5})
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def _carry_out(
        self, call: Call, claim: Claim, lane: Lane, work: Callable[[str | None], Response]
    ) -> Response:
        released = False

        def whole() -> Response:
            """Do the work and record its answer in one thread, which a caller that hangs up does not interrupt.

            A claim whose answer cannot be recorded stays: a retry finds what was done under its id.
            """
            nonlocal released
            host, actor = call.host, call.actor
            try:
                with host.idempotency.keep_claim(actor, claim):
                    response = self._attempt(call, claim.id, work)
            except Exception:
                released = True
                host.idempotency.release(actor, claim)
                raise
            body = b"" if isinstance(response, TextReply) else bytes(response.body)
            host.idempotency.keep(actor, claim, response.status_code, body)
            return response

        try:
            return await call.run(lane, whole)
        except ReverieError as refused:
            if self._status_of(refused) == 429 and not released:  # no slot was free: the work never began
                await call.run(Lane.WRITE, lambda: call.host.idempotency.release(call.actor, claim))
            raise

    def _attempt(self, call: Call, name: str, work: Callable[[str | None], Response]) -> Response:
        try:
            return work(name)
        except ReverieError as fault:
            status, code = self._status_of(fault), self._code_of(fault)
            if status not in _FINAL and code not in _FINAL_CODES:
                raise
            known = call.host.rules.current(call.actor.tenant).known
            return answer(fault, status, redactor=call.host.parts.redactor, code=code, known=known)


def _replayed(response: Response) -> Response:
    response.headers[REPLAYED] = "true"
    return response


async def _request(call: Call) -> str:
    """A request as text, to compare it with another: neither the order of members nor white space counts."""
    sent = await call.body()
    is_json = call.headers.get("content-type", "").partition(";")[0].strip().lower() in ("", "application/json")
    document = await call.json() if sent and is_json else None

    def text() -> str:
        return canonical(
            {
                "path": dict(call.path_params),
                "query": sorted([name, value] for name, value in call.query_params.multi_items()),
                "match": call.headers.get("if-match"),
                "body": document if is_json or not sent else hashlib.sha256(sent).hexdigest(),
            }
        ).decode()

    return text() if len(sent) <= SMALL_BODY else await call.run(Lane.PARSE, text)


def _media(body: bytes) -> str | None:
    return "application/json" if body else None
