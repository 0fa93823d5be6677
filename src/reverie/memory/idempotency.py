"""Requests that are carried out once, however often they are sent.

A record holds the digest of the first request and, once there is one, its answer. It is written together with a lease
before any work begins, and holds an id for whatever the work makes: when the process dies, the request that is sent
again does the work under the same id, and finds what was already done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from reverie.core.actor import Actor
from reverie.core.entry import Scope
from reverie.core.errors import IdempotencyReused
from reverie.core.event import answer_key, keyed_hash
from reverie.memory.policy import RuleBook
from reverie.services import Services
from reverie.store.contract import WriteTx
from reverie.store.leases import Leases, holder

LEASE_MS = 30_000
_FREE = ""
"""The digest of a record that binds no request any more."""


class StoredAnswer(Struct, frozen=True, omit_defaults=True):
    """The answer to a request: status and body. Status 0: there is none yet."""

    id: str
    status: int = 0
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to carry out a request. `id` is for the thing that the request creates, the same at every attempt."""

    name: str
    digest: str
    holder: str
    id: str


class Idempotency:
    """Records of requests, by tenant, operation and key. Of a key only a hash is kept."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules
        self._leases = Leases(parts.store, parts.clock, read_only=parts.read_only)

    def claim(self, actor: Actor, operation: str, key: str, request: str) -> Claim | StoredAnswer | None:
        """Return the claim of a new request, the answer of a finished one, or None while another process works on it.

        Raises IdempotencyReused when the key was used for another request.
        """
        own, fresh = holder(f"once/{self._parts.ids.new()}"), self._parts.ids.new()

        def body(tx: WriteTx) -> Claim | StoredAnswer | None:
            name = answer_key(tx.log_key(), operation, key)
            digest = keyed_hash(tx.log_key(), request)
            stored = tx.recall_answer(name)
            found = StoredAnswer(fresh)
            if stored is not None and stored[0] != _FREE:
                if stored[0] != digest:
                    raise IdempotencyReused()
                found = msgspec.msgpack.decode(stored[1], type=StoredAnswer)
            if found.status:
                return found
            if not tx.claim(name, own, until=tx.now + LEASE_MS):
                return None
            self._save(tx, actor, name, digest, found)
            return Claim(name, digest, own, found.id)

        return self._parts.store.write(Scope(actor.tenant), body)

    @contextmanager
    def keep_claim(self, actor: Actor, claim: Claim) -> Iterator[None]:
        """Keep the claim while the work is in progress."""
        with self._leases.beating(actor, claim.name, claim.holder, for_ms=LEASE_MS):
            yield

    def keep(self, actor: Actor, claim: Claim, status: int, body: bytes) -> None:
        """Record the answer, which every repetition of the request gets."""

        def save(tx: WriteTx) -> None:
            self._save(tx, actor, claim.name, claim.digest, StoredAnswer(claim.id, status, body))
            tx.release(claim.name, claim.holder)

        self._parts.store.write(Scope(actor.tenant), save)

    def release(self, actor: Actor, claim: Claim) -> None:
        """Drop the claim: a retry may have another outcome."""

        def save(tx: WriteTx) -> None:
            tx.remember_answer(claim.name, _FREE, b"", until=tx.now + 1)
            tx.release(claim.name, claim.holder)

        self._parts.store.write(Scope(actor.tenant), save)

    def _save(self, tx: WriteTx, actor: Actor, name: str, digest: str, answer: StoredAnswer) -> None:
        until = tx.now + self._rules.current(actor.tenant).policy.idempotency_ms
        tx.remember_answer(name, digest, msgspec.msgpack.encode(answer), until=until)
