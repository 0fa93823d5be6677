"""Spend limits for models: per tenant and UTC day, durable, shared by every process.

Before a call its maximum cost is reserved in one transaction, or the call is refused; after it the difference is
returned. A process that dies in between leaves its reservation spent, so no crash can exceed a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import orjson
from msgspec import Struct, json, structs

from reverie.core.actor import Actor, Right
from reverie.core.clock import to_iso
from reverie.core.dream import SpendExceeded
from reverie.core.entry import Scope
from reverie.core.event import NewEvent
from reverie.core.policy import TenantPolicy
from reverie.distil.spend import MICRO, Tally
from reverie.memory.policy import POLICY_SPACE
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

SPEND_SPACE = "spend"


class Spent(Struct, frozen=True):
    """Model usage of a tenant's dreams on one UTC day, reservations included."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    microcents: int = 0

    @property
    def tokens(self) -> int:
        """Input and output tokens together, as the limit counts them."""
        return self.input_tokens + self.output_tokens

    def plus(self, calls: int, input_tokens: int, output_tokens: int, microcents: int) -> Spent:
        """Return the sum; no figure falls below zero."""
        return Spent(
            max(self.calls + calls, 0),
            max(self.input_tokens + input_tokens, 0),
            max(self.output_tokens + output_tokens, 0),
            max(self.microcents + microcents, 0),
        )


class SpendLimits:
    """Model spending of tenants."""

    def __init__(self, parts: Services) -> None:
        self._parts = parts

    def day(self, actor: Actor, day: str | None = None) -> Spent:
        """Return the spending of a UTC day (`2026-01-31`); today by default."""
        actor.require(Right.READ)
        return self._parts.store.read(Scope(actor.tenant), lambda tx: _spent(tx, day or _today(tx)))

    def guard(self, actor: Actor, dream_id: str, policy: TenantPolicy) -> SpendGuard:
        """Return the meter of one dream."""
        return SpendGuard(self._parts, actor, dream_id, policy.model_seconds_per_dream)


class SpendGuard:
    """The meter of one dream. Applies the limits that the tenant has at the time of each call."""

    def __init__(
        self, parts: Services, actor: Actor, dream_id: str, seconds: int, *, time: Callable[[], float] = monotonic
    ) -> None:
        self._store = parts.store
        self._scope = Scope(actor.tenant)
        self._actor = actor.id
        self._dream = dream_id
        self._tally = Tally(seconds, time=time)
        self._open: tuple[str, int, int, int] | None = None

    def reserve(self, *, input_tokens: int, output_tokens: int, microcents: int) -> None:
        if self.seconds_left() <= 0:
            raise SpendExceeded(
                "The time a dream may wait for models is used up.", details={"limit": "model_seconds_per_dream"}
            )

        def body(tx: WriteTx) -> str:
            day = _today(tx)
            wanted = _spent(tx, day).plus(1, input_tokens, output_tokens, microcents)
            _require(wanted, _policy(tx), money=microcents > 0)
            amounts = {"calls": 1, "input": input_tokens, "output": output_tokens, "microcents": microcents}
            self._save(tx, "model.reserved", day, wanted, amounts)
            return day

        day = self._store.write(self._scope, body)
        self._open = (day, input_tokens, output_tokens, microcents)
        self._tally.reserve(input_tokens=input_tokens, output_tokens=output_tokens, microcents=microcents)

    def settle(self, *, input_tokens: int, output_tokens: int, microcents: int) -> None:
        if self._open is None:
            return
        day, in_, out, money = self._open
        self._open = None
        self._tally.settle(input_tokens=input_tokens, output_tokens=output_tokens, microcents=microcents)
        if (in_, out, money) == (input_tokens, output_tokens, microcents):
            return

        def body(tx: WriteTx) -> None:
            after = _spent(tx, day).plus(0, input_tokens - in_, output_tokens - out, microcents - money)
            amounts = {"input": input_tokens, "output": output_tokens, "microcents": microcents}
            self._save(tx, "model.settled", day, after, amounts)

        self._store.write(self._scope, body)

    def _save(self, tx: WriteTx, kind: str, day: str, spent: Spent, amounts: dict[str, int]) -> None:
        data = {"dream": self._dream, "day": day, **amounts}
        seq = tx.append(NewEvent(kind, "SPEND", self._actor, data=data), tick=False)
        tx.save(SPEND_SPACE, day, orjson.dumps(structs.asdict(spent)), seq=seq)

    def seconds_left(self) -> float:
        return self._tally.seconds_left()

    def retried(self) -> None:
        self._tally.retried()

    def note(self, **facts: str | int) -> None:
        self._tally.note(**facts)

    def document(self) -> dict[str, Any]:
        """Return the figures for the report."""
        return self._tally.document()


def _require(wanted: Spent, policy: TenantPolicy, *, money: bool) -> None:
    checks = (
        ("model_calls_per_day", wanted.calls, policy.model_calls_per_day, True),
        ("model_tokens_per_day", wanted.tokens, policy.model_tokens_per_day, True),
        ("model_cents_per_day", wanted.microcents, policy.model_cents_per_day * MICRO, money),
    )
    for name, value, limit, counted in checks:
        if counted and value > limit:
            raise SpendExceeded(
                f"This call would pass the tenant's {name}. Raise it, wait for the next UTC day, or dream without a"
                " model.",
                details={"limit": name},
            )


def _today(tx: ReadTx) -> str:
    return to_iso(tx.now)[:10]


def _spent(tx: ReadTx, day: str) -> Spent:
    document = tx.load(SPEND_SPACE, day)
    return json.decode(document.body, type=Spent) if document and document.body else Spent()


def _policy(tx: ReadTx) -> TenantPolicy:
    """Read the policy inside this transaction: another process may have changed it a moment ago."""
    stored = tx.load(POLICY_SPACE, "tenant")
    return TenantPolicy().changed(orjson.loads(stored.body)) if stored and stored.body else TenantPolicy()
