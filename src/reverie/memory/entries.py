"""put: parse, redact, index, and commit once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from reverie.core.actor import Actor, Right
from reverie.core.canonical import canonical
from reverie.core.clock import LATEST
from reverie.core.entry import (
    Draft,
    Entry,
    Receipt,
    Scope,
    Source,
    check_namespace,
    speaker,
)
from reverie.core.errors import IdempotencyReused, Invalid, QuotaExceeded, ReverieError, TooLarge
from reverie.core.event import answer_key, keyed_hash
from reverie.core.pause import paced
from reverie.core.policy import LIGHT_BYTES, TenantPolicy
from reverie.core.query import Head
from reverie.memory.drafts import UNNAMED, check_draft
from reverie.memory.indexing import terms_and_vectors
from reverie.memory.insertion import PreparedEntry, insert, supersede
from reverie.memory.policy import RuleBook, Rules, check_ref, secret_name
from reverie.redact import Redaction
from reverie.search.text import searchable
from reverie.services import Services
from reverie.store.contract import ReadTx, WouldWait, WriteTx
from reverie.store.group_commit import GroupCommit, Here

if TYPE_CHECKING:
    from concurrent.futures import Executor

T = TypeVar("T", str, str | None)
Placed = tuple[Actor, str, Draft]
"""A draft, with its author and the memory it is for."""
MAX_BATCH = 10_000
MAX_KEY_LENGTH = 255
_SHORT = 8192
"""Characters of all texts together that an event loop may store itself: some 2 ms of work."""


class Entries:
    """The write path. Every entry of every door goes through `put`."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules
        self._nights: dict[str, int] = {}
        """By tenant: the night for which it will be woken."""
        self._together: GroupCommit[tuple[str, str], Placed, Receipt] = GroupCommit(
            self._store_together, self._store_at_once
        )
        """By tenant and operation."""

    def put(
        self,
        actor: Actor,
        ref: str,
        drafts: Sequence[Draft],
        *,
        idempotency_key: str | None = None,
        operation: str = "PUT",
        also: Callable[[WriteTx, Receipt], None] | None = None,
    ) -> list[Receipt]:
        """Store drafts in one transaction: all of them, or none.

        A retry with the same `idempotency_key` and the same drafts returns the receipts of the first call and stores
        nothing; with other drafts it raises IdempotencyReused. `also` runs in the transaction for every entry stored.
        """
        _check_request(actor, ref, drafts, idempotency_key)
        if also is None and _sharable(drafts, idempotency_key):
            return [self._together.ask((actor.tenant, operation), (actor, ref, drafts[0]))]
        return self._store(_place(actor, ref, drafts), idempotency_key, operation, also=also)

    async def put_soon(
        self,
        pool: Executor,
        actor: Actor,
        ref: str,
        drafts: Sequence[Draft],
        *,
        idempotency_key: str | None = None,
        here: Here | None = None,
    ) -> list[Receipt]:
        """`put` for callers in an event loop: one thread of `pool` writes for all that wait.

        `here`: whether the loop itself may write; it then waits for nothing but the disk.
        """
        _check_request(actor, ref, drafts, idempotency_key)
        if _sharable(drafts, idempotency_key):
            return [await self._together.ask_soon((actor.tenant, "PUT"), (actor, ref, drafts[0]), pool, here=here)]
        from asyncio import get_running_loop

        alone = partial(self._store, _place(actor, ref, drafts), idempotency_key, "PUT")
        return await get_running_loop().run_in_executor(pool, alone)

    def supersede(
        self,
        actor: Actor,
        ref: str,
        entry_id: str,
        draft: Draft,
        *,
        expected: int | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Store a new entry in place of a readable one, in one transaction.

        The old entry leaves every read with the state `superseded`, and the new one links to it. `expected` is the
        version the caller saw. Raises NotFound, and Conflict when the entry changed.
        """
        _check_request(actor, ref, [draft], idempotency_key)
        check_namespace(entry_id)

        def replace(tx: WriteTx, receipt: Receipt) -> None:
            supersede(tx, actor, entry_id, receipt, expected)

        request = ["supersede", entry_id, expected]
        return self._store([(actor, ref, draft)], idempotency_key, "SUPERSEDE", also=replace, request=request)[0]

    def supersede_many(self, actor: Actor, changes: Sequence[tuple[str, str, Draft, int | None]]) -> list[Receipt]:
        """Store new entries in place of readable ones, in one transaction: all of them, or none.

        A change is (ref, id of the entry, draft, the version the caller saw); the entries may be of several memories.
        Raises NotFound when one of them is not readable, and Conflict when one changed.
        """
        drafts: dict[str, list[Draft]] = {}
        for ref, entry_id, draft, _ in changes:
            check_namespace(entry_id)
            drafts.setdefault(ref, []).append(draft)
        for ref, own in drafts.items():
            _check_request(actor, ref, own, None)
        if len(changes) > MAX_BATCH:
            raise TooLarge(f"At most {MAX_BATCH} entries in one request.", pointer="/entries")

        def prepare(rules: Rules) -> Callable[[WriteTx], list[Receipt]]:
            made = self._prepare([(actor, ref, draft) for ref, _, draft, _ in changes], rules)
            prepared = [
                (entry_id, item, expected) for (_, entry_id, _, expected), item in zip(changes, made, strict=True)
            ]

            def body(tx: WriteTx) -> list[Receipt]:
                size = sum([item.size for item in made])
                _check_quota(tx.head(), rules.policy, len(prepared), size)
                receipts = []
                for entry_id, item, expected in prepared:
                    with tx.within(item.entry.ref):
                        receipts.append(insert(tx, actor, item, operation="SUPERSEDE"))
                        supersede(tx, actor, entry_id, receipts[-1], expected)
                return receipts

            return body

        return self._rules.guard(actor.tenant, prepare, Scope(actor.tenant), weight=len(changes)) if changes else []

    def _store_together(self, key: tuple[str, str], placed: Sequence[Placed]) -> list[Receipt]:
        return self._store(placed, None, key[1])

    def _store_at_once(self, key: tuple[str, str], placed: Sequence[Placed]) -> list[Receipt]:
        """Store the first drafts, as many as are short together. Raises WouldWait instead of waiting."""
        short, room = 0, _SHORT if self._parts.store.free else -1
        for _, _, draft in placed:
            room -= len(draft.content) if not draft.attributes else _SHORT + 1
            if room < 0:
                break
            short += 1
        if not short:
            raise WouldWait
        return self._store(placed[:short], None, key[1], waits=False)

    def _store(
        self,
        placed: Sequence[Placed],
        idempotency_key: str | None,
        operation: str,
        *,
        also: Callable[[WriteTx, Receipt], None] | None = None,
        request: Sequence[Any] = (),
        waits: bool = True,
    ) -> list[Receipt]:
        """Store drafts of one tenant. `also` runs in the same transaction for every entry stored; a retry must repeat
        `request`.
        """
        tenant, first, asked = placed[0][0].tenant, placed[0][1], b""
        if idempotency_key is not None:
            asked = canonical_request(first, [draft for _, _, draft in placed], *request)
        woken: list[int] = []

        def prepare(rules: Rules) -> Callable[[WriteTx], list[Receipt]]:
            woken.clear()
            try:
                prepared = self._prepare(placed, rules)
            except ReverieError:  # what was stored at the first call may be refused by now: it has expired, for example
                stored = self._stored_before(tenant, idempotency_key, asked)
                if stored is None:
                    raise
                return lambda _: stored
            size = sum([item.size for item in prepared])

            def body(tx: WriteTx) -> list[Receipt]:
                if idempotency_key is not None and (stored := _receipts(tx, idempotency_key, asked)) is not None:
                    return stored
                head, policy = tx.head(), rules.policy
                _check_quota(head, policy, len(prepared), size)
                items = paced(list(zip(placed, prepared, strict=True)))
                receipts = [insert(tx, actor, item, operation=operation) for (actor, _, _), item in items]
                if also is not None:
                    for receipt in receipts:
                        also(tx, receipt)
                if policy.nightly == "on" and head.bytes + size > LIGHT_BYTES and self._nights.get(tenant, 0) <= tx.now:
                    night = policy.next_night(tx.now)
                    tx.wake(night)  # once a night, and only where something was written
                    woken.append(night)
                if idempotency_key is not None:
                    digest, key = _marks(tx, idempotency_key, asked)
                    answer = msgspec.json.encode(receipts)
                    tx.remember_answer(key, digest, answer, until=tx.now + policy.idempotency_ms)
                return receipts

            return body

        scope = Scope(tenant, first if len({ref for _, ref, _ in placed}) == 1 else None)
        receipts = self._rules.guard(tenant, prepare, scope, weight=len(placed), waits=waits)
        if woken:
            self._nights[tenant] = woken[-1]
        return receipts

    def _stored_before(self, tenant: str, idempotency_key: str | None, asked: bytes) -> list[Receipt] | None:
        """The receipts of the first call with this key, if there was one."""
        if idempotency_key is None:
            return None
        return self._parts.store.read(Scope(tenant), lambda tx: _receipts(tx, idempotency_key, asked))

    def prepare(
        self, actor: Actor, ref: str, drafts: Sequence[Draft], rules: Rules, *, embed: bool = True
    ) -> list[PreparedEntry]:
        """Check, redact and index drafts, outside any transaction. Without `embed` their vectors come later."""
        return self._prepare(_place(actor, ref, drafts), rules, embed=embed)

    def _prepare(self, placed: Sequence[Placed], rules: Rules, *, embed: bool = True) -> list[PreparedEntry]:
        now, many = self._parts.clock.now(), len(placed) > 1
        texts: dict[str | None, dict[str, None]] = {}
        for number, (_, ref, draft) in enumerate(paced(placed)):
            check_draft(draft, rules.policy, now=now, pointer=f"/entries/{number}" if many else "")
            own = texts.setdefault(draft.source.run, {})
            own[ref] = None
            own.update(dict.fromkeys(_texts(draft)))
            if draft.id:
                own[draft.id] = None
        cleaned = self._redact(placed, texts, rules, now)
        found = terms_and_vectors([entry for entry, _ in cleaned], self._parts.embedder if embed else None)
        return [
            PreparedEntry(
                entry=entry,
                findings=findings,
                terms=words,
                vector=vector,
                minted=draft.id is None,
                replaces=draft.replaces,
                size=len(entry.content.encode()),
            )
            for (_, _, draft), (entry, findings), (words, vector) in zip(placed, cleaned, found, strict=True)
        ]

    def _redact(
        self,
        placed: Sequence[Placed],
        texts: Mapping[str | None, Mapping[str, None]],
        rules: Rules,
        now: int,
    ) -> list[tuple[Entry, Mapping[str, int]]]:
        """Return the entries without secrets, and the findings in each.

        `texts`: by run, every text that a caller can write, except attributes. One pass over all of them costs a
        quarter of single calls, and sees a label that a thousand entries share once. Refs and ids, by which entries are
        found, are not redacted: one that holds a secret is refused.
        """
        tenant = placed[0][0].tenant if placed else ""
        known = {run: self._rules.known(tenant, run, rules) for run in texts}
        changed = {run: self._parts.redactor.changed(list(own), known[run]) for run, own in texts.items()}
        lifetime = rules.policy.default_ttl_ms
        end = None if lifetime is None else min(now + lifetime, LATEST)
        result: list[tuple[Entry, Mapping[str, int]]] = []
        for number, (actor, ref, draft) in enumerate(paced(placed)):
            found: dict[str, int] = {}
            attributes, tags = draft.attributes, draft.tags
            if attributes:
                cleaned, counts = self._parts.redactor.value(dict(attributes), known[draft.source.run])
                attributes = cast("dict[str, Any]", cleaned)
                found |= counts
            source = msgspec.structs.replace(
                draft.source,
                actor=draft.source.actor or actor.id,
                door=actor.door,
                trust=min(draft.source.trust, actor.authority),
            )
            entry = Entry(
                ref=ref,
                id=draft.id or self._parts.ids.new(),
                kind=draft.kind,
                content=draft.content,
                tags=tuple(dict.fromkeys(filter(None, tags))) if tags else (),
                subject=draft.subject,
                attributes=attributes,
                source=source,
                state=draft.state,
                created_at=draft.created_at if draft.created_at is not None else now,
                expires_at=draft.expires_at if draft.expires_at is not None else end,
                pinned=draft.pinned,
            )
            if own := changed[draft.source.run]:
                _refuse_names(own, ref, draft, f"/entries/{number}" if len(placed) > 1 else "")
                for text in _texts(draft):
                    for kind, count in own[text].findings.items() if text in own else ():
                        found[kind] = found.get(kind, 0) + count
                entry = _clean(entry, draft.source, own)
            result.append((entry, found))
        return result


def _texts(draft: Draft) -> list[str]:
    """The texts of a draft that are redacted, attributes apart."""
    source, found = draft.source, [draft.kind, draft.content, *draft.tags]
    if draft.subject:
        found.append(draft.subject)
    if source != UNNAMED:
        named = (source.actor, source.role, source.session, source.run, source.node)
        found = [*filter(None, named), *found]
    return found


def _refuse_names(changed: Mapping[str, Redaction], ref: str, draft: Draft, pointer: str) -> None:
    """Refuse a draft whose ref, id or tag to replace is a secret or holds one."""
    if ref in changed:
        raise secret_name("/ref")
    for name, text in (("id", draft.id), ("replaces", draft.replaces)):
        if text in changed:
            raise secret_name(f"{pointer}/{name}")


def _clean(entry: Entry, said: Source, changed: Mapping[str, Redaction]) -> Entry:
    """An entry with the texts that were redacted. `said`: the source as the caller names it."""

    def clean(text: T) -> T:
        found = changed.get(text or "")
        return found.text if found is not None else text

    named = {name: clean(getattr(said, name)) for name in ("actor", "role", "session", "run", "node")}
    named["actor"] = named["actor"] or entry.source.actor
    return msgspec.structs.replace(
        entry,
        kind=clean(entry.kind),
        content=clean(entry.content),
        tags=tuple(dict.fromkeys(map(clean, entry.tags))),
        subject=clean(entry.subject),
        source=msgspec.structs.replace(entry.source, **named),
    )


def _check_quota(head: Head, policy: TenantPolicy, entries: int, size: int) -> None:
    """Raise QuotaExceeded when the tenant has no room for the entries."""
    if head.entries + entries > policy.max_entries or head.bytes + size > policy.max_bytes:
        raise QuotaExceeded(
            details={"entries": head.entries, "max_entries": policy.max_entries, "bytes": head.bytes}
            | {"max_bytes": policy.max_bytes}
        )


def _check_request(actor: Actor, ref: str, drafts: Sequence[Draft], idempotency_key: str | None) -> None:
    actor.require(Right.WRITE)
    check_ref(ref)
    if not drafts:
        raise Invalid("There is nothing to store.", pointer="/entries")
    if len(drafts) > MAX_BATCH:
        raise TooLarge(f"At most {MAX_BATCH} entries in one request.", pointer="/entries")
    if idempotency_key is not None and not 0 < len(idempotency_key) <= MAX_KEY_LENGTH:
        raise Invalid(f"An idempotency key is 1 to {MAX_KEY_LENGTH} characters.", pointer="/idempotency_key")


def _place(actor: Actor, ref: str, drafts: Sequence[Draft]) -> list[Placed]:
    return [(actor, ref, draft) for draft in drafts]


def _sharable(drafts: Sequence[Draft], idempotency_key: str | None) -> bool:
    """Whether no other caller's write can conflict with it, so that they may share a transaction."""
    return len(drafts) == 1 and idempotency_key is None and drafts[0].id is None and drafts[0].replaces is None


def searchable_text(entry: Entry) -> str:
    """The text under which an entry is found."""
    return searchable(entry.content, speaker=speaker(entry.source), tags=entry.tags, subject=entry.subject)


def canonical_request(ref: str, drafts: Sequence[Draft], *more: Any) -> bytes:
    """One sequence of bytes per request, to recognise a retry."""
    try:
        documents = msgspec.to_builtins(drafts)
        for document in documents:
            if document["replaces"] is None:  # absent before the field existed: a retry may span an upgrade
                del document["replaces"]
        return canonical([ref, documents, *more])
    except TypeError:
        raise Invalid("The entries have no canonical JSON form.", pointer="/entries") from None


def _marks(tx: ReadTx, idempotency_key: str, asked: bytes) -> tuple[str, str]:
    """(the digest of a request, the name under which its answer is kept)."""
    return keyed_hash(tx.log_key(), asked.decode()), answer_key(tx.log_key(), "put", idempotency_key)


def _receipts(tx: ReadTx, idempotency_key: str, asked: bytes) -> list[Receipt] | None:
    """The receipts of the first call with this key; None when there was none. Raises IdempotencyReused."""
    digest, key = _marks(tx, idempotency_key, asked)
    # Up to schema 6 (PostgreSQL: until the upgrade is finished) keys were kept as they came.
    stored = tx.recall_answer(key) or tx.recall_answer(idempotency_key)
    if stored is None:
        return None
    before, answer = stored
    if before != digest:
        raise IdempotencyReused()
    receipts = msgspec.json.decode(answer, type=list[Receipt])
    return [msgspec.structs.replace(receipt, replayed=True) for receipt in receipts]
