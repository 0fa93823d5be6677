"""API keys: made once, shown once, stored as a digest, scoped to a tenant and to rights."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Collection, Iterable
from functools import lru_cache

import msgspec
from msgspec import Struct

from reverie.core.actor import ALL_RIGHTS, Actor, Right
from reverie.core.clock import LATEST
from reverie.core.entry import valid_tenant
from reverie.core.errors import Invalid, NotFound, Unauthenticated
from reverie.core.query import Key
from reverie.memory.policy import RuleBook
from reverie.services import Services
from reverie.store.contract import ControlTx

_TOKEN = re.compile(r"rvk_([0-9a-z]{12})_([A-Za-z0-9_-]{43})")
_ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LABEL = b"reverie key v1"
_NOT_USABLE = "There is no usable key with that id. `reverie keys list` shows them."


class NewKey(Struct, frozen=True):
    """A key just made. `key` is shown here and never again."""

    id: str
    tenant: str
    key: str
    rights: tuple[str, ...]
    authority: int
    scopes: tuple[str, ...]
    expires_at: int | None


class Keys:
    """Authentication for every door."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._rules = rules
        self._store = parts.store
        self._clock = parts.clock

    def create(
        self,
        tenant: str,
        *,
        name: str = "",
        rights: Iterable[str] = ALL_RIGHTS,
        authority: int | None = None,
        scopes: Iterable[str] = (),
        expires_at: int | None = None,
    ) -> NewKey:
        """Make a key. Authority defaults to 10 when the rights include admin, else to 4."""
        key, made = self._make(tenant, name, rights, authority, scopes, expires_at)
        self._store.control(lambda tx: tx.add_key(key), write=True)
        return made

    def _make(
        self,
        tenant: str,
        name: str,
        rights: Iterable[str],
        authority: int | None,
        scopes: Iterable[str],
        expires_at: int | None,
    ) -> tuple[Key, NewKey]:
        """A key that is not stored yet. Raises Invalid."""
        if not valid_tenant(tenant):
            raise Invalid("A tenant is 1 to 64 lower-case letters, digits and . _ -", pointer="/tenant")
        try:
            checked = frozenset(Right(right) for right in rights)
        except ValueError:
            raise Invalid(f"Rights are {', '.join(Right)}.", pointer="/rights") from None
        if not checked:
            raise Invalid("A key needs at least one right.", pointer="/rights")
        level = (10 if Right.ADMIN in checked else 4) if authority is None else authority
        if not 0 <= level <= 10:
            raise Invalid("Authority is 0 to 10.", pointer="/authority")
        granted = tuple(sorted(set(scopes)))
        scoped = {f"/scopes/{at}": scope for at, scope in enumerate(granted)}
        self._rules.check_names(tenant, {"/tenant": tenant, "/name": name, **scoped})
        now = self._clock.now()
        if expires_at is not None and expires_at <= now:
            raise Invalid("The key would have expired already.", pointer="/expires_at")
        if expires_at is not None and expires_at > LATEST:
            raise Invalid("The expiry is out of range.", pointer="/expires_at")
        key_id = "".join(secrets.choice(_ID_ALPHABET) for _ in range(12))
        secret = secrets.token_urlsafe(32)
        key = Key(
            id=key_id,
            tenant=tenant,
            digest=_digest(secret),
            name=name[:128],
            rights=tuple(sorted(checked)),
            authority=level,
            scopes=granted,
            created_at=now,
            expires_at=expires_at,
        )
        token = f"rvk_{key_id}_{secret}"
        return key, NewKey(key_id, tenant, token, key.rights, level, key.scopes, expires_at)

    def all(self, tenant: str | None = None) -> list[Key]:
        """Keys, oldest first."""
        return self._store.control(lambda tx: tx.keys(tenant))

    def revoke(self, key_id: str, *, at: int | None = None) -> None:
        """Revoke a key, now or at a later instant. An earlier revocation stays."""
        when = self._clock.now() if at is None else at
        if not self._store.control(lambda tx: tx.revoke_key(key_id, at=when), write=True):
            raise NotFound("There is no key with that id. `reverie keys list` shows them.")

    def rotate(self, key_id: str, *, overlap_ms: int = 0) -> NewKey:
        """Make a key with the same rights; the old one works for `overlap_ms` more. Both happen, or neither."""
        old, now = self._read(key_id)
        if not 0 <= overlap_ms <= LATEST - now:
            raise Invalid("The overlap is out of range.", pointer="/overlap_ms")
        if old is None or not _usable(old, now):
            raise NotFound(_NOT_USABLE)
        key, made = self._make(old.tenant, old.name, old.rights, old.authority, old.scopes, old.expires_at)

        def swap(tx: ControlTx) -> None:
            tx.revoke_key(key_id, at=LATEST)  # changes nothing that counts, and holds back a revocation by others
            current = tx.key(key_id)
            if current is None or not _usable(current, self._clock.now()):
                raise NotFound(_NOT_USABLE)
            tx.add_key(key)
            tx.revoke_key(key_id, at=self._clock.now() + overlap_ms)

        self._store.control(swap, write=True)
        return made

    def authenticate(self, token: str | None, *, door: str) -> Actor:
        """The caller behind a token. Raises Unauthenticated.

        The holder of a revoked or expired key is given the reason. Any other invalid token gets the same error, in the
        same time.
        """
        parsed = _TOKEN.fullmatch(token or "")
        key, now = self._read(parsed[1]) if parsed else (None, 0)
        fits = hmac.compare_digest(_digest(parsed[2] if parsed else ""), key.digest if key else bytes(32))
        if key is None or not fits:
            raise Unauthenticated()
        return _actor(key, door, now)

    def actor_of(self, key_id: str, *, door: str) -> Actor:
        """The caller behind a key that was proved before, such as a session's. Raises Unauthenticated."""
        key, now = self._read(key_id)
        if key is None:
            raise Unauthenticated()
        return _actor(key, door, now)

    def _read(self, key_id: str) -> tuple[Key | None, int]:
        """A key, and the time at which it was looked up."""
        return self._store.control(lambda tx: (tx.key(key_id), tx.now))

    def valid(self, key_ids: Collection[str]) -> set[str]:
        """The ids of the keys that are neither revoked nor expired."""

        def body(tx: ControlTx) -> set[str]:
            found = map(tx.key, key_ids)
            return {key.id for key in found if key is not None and _usable(key, tx.now)}

        return self._store.control(body) if key_ids else set()


def describe(key: Key) -> dict[str, object]:
    """A key for display: without its digest."""
    shown = msgspec.to_builtins(key)
    del shown["digest"]
    return dict(shown)


def _actor(key: Key, door: str, now: int) -> Actor:
    """The caller that a key stands for. Raises Unauthenticated when the key is revoked or expired."""
    if key.revoked_at is not None and key.revoked_at <= now:
        raise Unauthenticated("This key was revoked. Ask for a new one.", code="key_revoked")
    if key.expires_at is not None and key.expires_at <= now:
        raise Unauthenticated("This key has expired. Ask for a new one.", code="key_expired")
    return _caller(key.id, key.tenant, key.rights, key.authority, key.scopes, door)


def _usable(key: Key, now: int) -> bool:
    revoked = key.revoked_at is not None and key.revoked_at <= now
    return not revoked and (key.expires_at is None or key.expires_at > now)


@lru_cache(256)
def _caller(
    key_id: str, tenant: str, rights: tuple[str, ...], authority: int, scopes: tuple[str, ...], door: str
) -> Actor:
    """The caller of a key: one object for all of its requests."""
    return Actor(
        tenant=tenant,
        id=f"key:{key_id}",
        rights=frozenset(map(Right, rights)),
        authority=authority,
        scopes=frozenset(scopes),
        door=door,
        key_id=key_id,
    )


def _digest(secret: str) -> bytes:
    # The secret has 256 random bits: one keyed hash is enough, and a slow one would be a way to stall the host.
    return hmac.digest(_LABEL, secret.encode(), "sha256")
