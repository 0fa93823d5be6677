"""One-time tickets in the addresses of notifications: random bits that name nothing.

An address ends up in logs and histories, so a ticket must not say whose it is. The host stores its digest, with what it
opens, in one of a fixed number of slots; a ticket that was never used may be overwritten when its minute is over.
"""

from __future__ import annotations

import secrets
from hashlib import sha256

import msgspec
from msgspec import Struct

from reverie.core.entry import Scope
from reverie.core.errors import RateLimited
from reverie.protocols.akashik.call import FieldServices
from reverie.protocols.akashik.errors import FieldError
from reverie.protocols.akashik.operations.subscriptions import Subscription, load_subscription
from reverie.store.contract import ControlTx

LIFE_MS = 60_000
_BYTES = 32
_PLACES = 3
"""Hexadecimal digits of the digest that choose the slot: there are 4,096."""
_TRIES = 32


class _Ticket(Struct, frozen=True):
    digest: str
    tenant: str
    agent: str
    subscription: str
    key: str | None
    until: int


def issue(services: FieldServices, tenant: str, key: str | None, agent: str, subscription: str) -> str:
    """Make a ticket for a subscription. Raises RateLimited when no free slot was found."""

    def body(tx: ControlTx) -> str | None:
        now = services.parts.clock.now()
        for _ in range(_TRIES):
            ticket = secrets.token_urlsafe(_BYTES)
            digest = sha256(ticket.encode()).hexdigest()
            taken = tx.setting(_place(digest))
            if taken is None or msgspec.json.decode(taken, type=_Ticket).until <= now:
                held = _Ticket(digest, tenant, agent, subscription, key, now + LIFE_MS)
                tx.set_setting(_place(digest), msgspec.json.encode(held))
                return ticket
        return None

    made = services.parts.store.control(body, write=True)
    if made is None:
        raise RateLimited(
            "Too many subscriptions wait for their first connection.", details={"retry_after_seconds": LIFE_MS // 1000}
        )
    return made


def redeem(services: FieldServices, ticket: str) -> tuple[str, Subscription, str | None]:
    """Use up a ticket; returns tenant, subscription and key. A used, late or invented one is UNAUTHENTICATED."""
    digest = sha256(ticket.encode("utf-8", "replace")).hexdigest()
    store = services.parts.store

    def known(tx: ControlTx) -> bool:
        kept = tx.setting(_place(digest))
        return kept is not None and msgspec.json.decode(kept, type=_Ticket).digest == digest

    # looked at before it is taken: a guess writes nothing
    kept = store.control(lambda tx: tx.take_setting(_place(digest)), write=True) if store.control(known) else None
    held = None if kept is None else msgspec.json.decode(kept, type=_Ticket)
    if held is None or held.digest != digest or held.until <= services.parts.clock.now():
        raise _refused()
    scope = Scope(held.tenant, services.ref)
    found = store.read(scope, lambda tx: load_subscription(tx, held.agent, held.subscription))
    if found is None:
        raise _refused()
    return held.tenant, found, held.key


def _place(digest: str) -> str:
    return f"akashik.ticket/{digest[:_PLACES]}"


def _refused() -> FieldError:
    """The same for a used, a late and an invented ticket."""
    return FieldError("UNAUTHENTICATED", "This ticket does not work. SUBSCRIBE again.", operation="SUBSCRIBE")
