"""Rules for the writes of a tenant: its policy and its known secrets.

Both are documents. A writer works with a copy and the log position it was read at; inside the transaction it checks
that nothing changed the rules since, else it starts again. So a secret that was registered is redacted from the next
commit on, in every process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import orjson

from reverie.core.actor import Actor, Right
from reverie.core.clock import is_zone
from reverie.core.entry import Scope, valid_ref
from reverie.core.errors import Invalid, NotFound, ReadOnly, ReverieError, StoreBusy
from reverie.core.event import NewEvent
from reverie.core.policy import TenantPolicy
from reverie.core.query import each
from reverie.core.retry import retry
from reverie.redact import KnownSecrets
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

T = TypeVar("T")
POLICY_SPACE = "policy"
SECRET_SPACE = "secret"
MAX_SECRETS = 100_000
LARGEST = 2**53 - 1
"""The largest number of a policy, and the last log position that is asked for: JSON has no larger integers."""
MOST_PLAIN = 1000
"""Names of a tenant that are remembered as plain. One request asks about the same few again and again."""


@dataclass(frozen=True, slots=True)
class Rules:
    """A tenant's policy and known secrets as of a log position."""

    policy: TenantPolicy = field(default_factory=TenantPolicy)
    known: KnownSecrets = KnownSecrets.EMPTY
    seq: int = 0


def check_ref(ref: str, *, pointer: str = "/ref") -> None:
    """Refuse a malformed ref."""
    if not valid_ref(ref):
        raise Invalid(
            "A ref is 1 to 256 letters, digits and . _ : - /, begins with a letter or digit, and has no empty, "
            "'.' or '..' segment.",
            pointer=pointer,
        )


def secret_name(pointer: str) -> Invalid:
    """The refusal of a name in which the redactor found something."""
    field = pointer.rsplit("/", 1)[-1]
    return Invalid(f"{field} looks like a secret or holds one. Choose a plain name.", pointer=pointer)


class RulesMoved(Exception):
    """The rules changed between preparing a write and committing it."""


def _too_fast() -> StoreBusy:
    return StoreBusy("The tenant's policy or secrets change faster than writes can follow. Try again.")


class RuleBook:
    """The rules of every tenant, read when they change."""

    def __init__(self, parts: Services) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._held: dict[str, Rules] = {}
        self._runs: dict[tuple[str, str], KnownSecrets] = {}
        self._own = KnownSecrets(parts.own_secrets.items())
        self._plain: dict[str, tuple[KnownSecrets, set[str]]] = {}
        """By tenant: names that hold no secret, and the known secrets under which they were judged."""

    def current(self, tenant: str) -> Rules:
        """The rules as last read; `guard` makes sure they still hold when it matters."""
        held = self._held.get(tenant)
        return held if held is not None else self._read(tenant)

    def latest(self, tenant: str) -> Rules:
        """The rules of this moment, also when another process changed them: for work whose commit no `guard` checks."""
        held = self._held.get(tenant)
        if held is not None and held.seq == self._parts.store.read(Scope(tenant), lambda tx: tx.head().rules_seq):
            return held
        return self._read(tenant)

    def _read(self, tenant: str) -> Rules:
        def body(tx: ReadTx) -> Rules:
            policy = tx.load(POLICY_SPACE, "tenant")
            documents = each(lambda cursor: tx.documents(SECRET_SPACE, cursor=cursor))
            secrets = [(d.key, self._open(tenant, d.key, d.body or b"")) for d in documents]
            return Rules(
                policy=TenantPolicy().changed(orjson.loads(policy.body or b"{}")) if policy else TenantPolicy(),
                known=(KnownSecrets(secrets) if secrets else KnownSecrets.EMPTY) + self._own,
                seq=tx.head().rules_seq,
            )

        rules = self._parts.store.read(Scope(tenant), body)
        with self._lock:
            self._held[tenant] = rules
        return rules

    def guard(
        self,
        tenant: str,
        prepare: Callable[[Rules], Callable[[WriteTx], T]],
        scope: Scope,
        *,
        weight: int = 1,
        waits: bool = True,
    ) -> T:
        """Prepare a write under the rules and commit it only if they still hold.

        `prepare` runs outside any transaction and may run again. `weight` and `waits`: see `Store.write`.
        """
        if self._parts.read_only:
            raise ReadOnly()

        def attempt(number: int) -> T:
            rules = self._read(tenant) if number else self.current(tenant)
            body = prepare(rules)

            def check_first(tx: WriteTx) -> T:
                if tx.head().rules_seq != rules.seq:
                    raise RulesMoved
                return body(tx)

            check_first.weight, check_first.waits = weight, waits  # type: ignore[attr-defined]
            return self._parts.store.write(scope, check_first)

        return retry(attempt, on=RulesMoved, busy=_too_fast)

    # names

    def check_names(
        self, tenant: str, names: Mapping[str, str | None], *, run: str | None = None, rules: Rules | None = None
    ) -> None:
        """Refuse a name that is a secret or holds one.

        The one rule for everything a caller names and the host keeps as it is: memories, entries, files, schedules,
        secrets, agents, keys. `names`: a JSON pointer to each. The message repeats the pointer, never the name.
        """
        known = self.known(tenant, run, rules or self.current(tenant))
        held = self._plain.get(tenant)
        if held is None or held[0] is not known or len(held[1]) >= MOST_PLAIN:
            held = self._plain[tenant] = known, set()
        plain = held[1]
        asked = [(pointer, name) for pointer, name in names.items() if name and name not in plain]
        found = self._parts.redactor.many([name for _, name in asked], known) if asked else []
        for (pointer, name), redaction in zip(asked, found, strict=True):
            if redaction.findings:
                raise secret_name(pointer)
            plain.add(name)

    def check_ref(
        self, tenant: str, ref: str, *, pointer: str = "/ref", run: str | None = None, rules: Rules | None = None
    ) -> None:
        """Refuse a name for a memory that is malformed or holds a secret, on a write. (Reads find nothing there.)"""
        check_ref(ref, pointer=pointer)
        self.check_names(tenant, {pointer: ref}, run=run, rules=rules)

    # known secrets

    def known(self, tenant: str, run: str | None, rules: Rules) -> KnownSecrets:
        """The tenant's secrets and those of one run."""
        own = self._runs.get((tenant, run)) if run else None
        return rules.known if own is None else rules.known + own

    def register_run(self, actor: Actor, run: str, secrets: Mapping[str, str] | Sequence[tuple[str, str]]) -> int:
        """Register the secrets that a run's vault resolved. Held in memory only, until `end_run`."""
        actor.require(Right.WRITE)
        pairs = list(secrets.items() if isinstance(secrets, Mapping) else secrets)
        self.check_names(actor.tenant, {f"/secrets/{at}/secretId": name for at, (name, _) in enumerate(pairs)})
        with self._lock:
            before = self._runs.get((actor.tenant, run), KnownSecrets.EMPTY)
            self._runs[(actor.tenant, run)] = before + KnownSecrets(pairs)
        return len(pairs)

    def end_run(self, actor: Actor, run: str) -> None:
        """Forget a run's secrets."""
        with self._lock:
            self._runs.pop((actor.tenant, run), None)

    def register(self, actor: Actor, secret_id: str, value: str) -> int:
        """Register a secret of the tenant; it is kept sealed and replaced in everything stored from now on."""
        actor.require(Right.ADMIN)
        if not secret_id.isascii() or not secret_id.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise Invalid("A secret's id is 1 to 64 letters, digits and . _ -", pointer="/id")
        if len(secret_id) > 64:
            raise Invalid("A secret's id is at most 64 characters.", pointer="/id")
        if len(value.strip()) < 8 or len(set(value)) < 3:
            text = "Values under 8 characters, or of one or two repeated, are too common to replace safely."
            raise Invalid(text, pointer="/value")
        if len(value) > 65_536:
            raise Invalid("A secret's value is at most 65536 characters.", pointer="/value")
        rules = self.current(actor.tenant)
        known = rules.known + KnownSecrets([("new", value)])
        self.check_names(actor.tenant, {"/id": secret_id}, rules=replace(rules, known=known))
        sealed = self._seal(actor.tenant, secret_id, value)

        def body(tx: WriteTx) -> int:
            seq = tx.append(NewEvent("secret.registered", "SECRET", actor.id, data={"secret": secret_id}))
            tx.save(SECRET_SPACE, secret_id, sealed, seq=seq)
            return seq

        return self._change(actor, body)

    def remove(self, actor: Actor, secret_id: str) -> int:
        """Remove a secret from the registry. What was redacted stays redacted."""
        actor.require(Right.ADMIN)

        def body(tx: WriteTx) -> int:
            if tx.load(SECRET_SPACE, secret_id) is None:
                raise NotFound("There is no secret with that id. `reverie secrets list` shows them.")
            seq = tx.append(NewEvent("secret.removed", "SECRET", actor.id, data={"secret": secret_id}))
            tx.drop(SECRET_SPACE, secret_id, seq=seq)
            return seq

        return self._change(actor, body)

    def secret_ids(self, actor: Actor) -> list[str]:
        """The ids of the tenant's registered secrets; never a value."""
        actor.require(Right.ADMIN)

        def body(tx: ReadTx) -> list[str]:
            return [d.key for d in tx.documents(SECRET_SPACE, limit=MAX_SECRETS).items]

        return self._parts.store.read(Scope(actor.tenant), body)

    # policy

    def policy(self, actor: Actor) -> TenantPolicy:
        """The tenant's policy."""
        actor.require(Right.READ)
        return self._read(actor.tenant).policy

    def set_policy(self, actor: Actor, changes: Mapping[str, Any]) -> TenantPolicy:
        """Change the tenant's policy; an unknown name is refused."""
        actor.require(Right.ADMIN)
        names = {f"/{name}": value for name, value in changes.items() if isinstance(value, str)}
        self.check_names(actor.tenant, {**names, **{f"/{at}": name for at, name in enumerate(changes)}})
        for name, value in changes.items():
            if isinstance(value, int) and value > LARGEST:
                raise Invalid(f"The policy '{name[:64]}' is at most {LARGEST}.", pointer=f"/{name[:64]}")
        zone = changes.get("zone")
        if isinstance(zone, str) and not is_zone(zone):
            raise Invalid("zone is an IANA time zone such as Europe/Berlin.", pointer="/zone")

        def body(tx: WriteTx) -> TenantPolicy:
            stored = tx.load(POLICY_SPACE, "tenant")
            before = TenantPolicy().changed(orjson.loads(stored.body or b"{}")) if stored else TenantPolicy()
            after = before.changed(changes)
            seq = tx.append(NewEvent("policy.changed", "POLICY", actor.id, data={"names": sorted(changes)}))
            tx.save(POLICY_SPACE, "tenant", orjson.dumps(after.document()), seq=seq, keep=50)
            if not after.recorded_searches:
                tx.keep_searches(None)
            return after

        return self._change(actor, body)

    def _change(self, actor: Actor, body: Callable[[WriteTx], T]) -> T:
        if self._parts.read_only:
            raise ReadOnly()
        result = self._parts.store.write(Scope(actor.tenant), body)
        self._read(actor.tenant)
        return result

    def _seal(self, tenant: str, secret_id: str, value: str) -> bytes:
        if self._parts.cipher is None:
            raise ReverieError(
                "Secrets can only be kept sealed, and this host has no key. Set REVERIE_KEY_FILE.", code="no_cipher"
            )
        return self._parts.cipher.seal(value.encode(), context=f"{tenant}/{secret_id}".encode())

    def _open(self, tenant: str, secret_id: str, sealed: bytes) -> str:
        if self._parts.cipher is None:
            raise ReverieError(
                "This tenant has registered secrets, and this host has no key to open them. Set REVERIE_KEY_FILE.",
                code="no_cipher",
            )
        return self._parts.cipher.open(sealed, context=f"{tenant}/{secret_id}".encode()).decode()
