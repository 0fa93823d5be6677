"""put: parse, redact, index, and commit once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec

from reverie.core.actor import Actor, Right
from reverie.core.canonical import canonical
from reverie.core.entry import (
    Draft,
    Entry,
    Receipt,
    Scope,
    Source,
    check_namespace,
    speaker,
)
from reverie.core.errors import IdempotencyReused, Invalid, QuotaExceeded, TooLarge
from reverie.core.event import answer_key, keyed_hash
from reverie.core.pause import paced
from reverie.core.policy import LIGHT_BYTES, TenantPolicy
from reverie.core.query import Head
from reverie.memory.drafts import UNNAMED, check_draft
from reverie.memory.indexing import indexed
from reverie.memory.insertion import PreparedEntry, insert, supersede
from reverie.memory.policy import RuleBook, Rules, check_ref, secret_name
from reverie.redact import Redaction
from reverie.search.text import searchable
from reverie.services import Services
from reverie.store.contract import WouldWait, WriteTx
from reverie.store.group_commit import GroupCommit

if TYPE_CHECKING:
    from concurrent.futures import Executor

Placed = tuple[str, Draft]
"""A draft, with the memory it is for."""
MAX_BATCH = 10_000
MAX_KEY_LENGTH = 255
_SHORT = 8192
"""Characters of all texts together that an event loop may store itself: some 2 ms of work."""


class _Cleaning:
    """Redacts a draft's texts and counts the findings."""

    __slots__ = ("_redacted", "findings")

    def __init__(self, redacted: Mapping[str, Redaction]) -> None:
        self._redacted = redacted
        self.findings: dict[str, int] = {}

    def __call__(self, text: str | None) -> str | None:
        if not text:
            return text
        redaction = self._redacted[text]
        if redaction.findings:
            self.add(redaction.findings)
        return redaction.text

    def add(self, found: Mapping[str, int]) -> None:
        for kind, count in found.items():
            self.findings[kind] = self.findings.get(kind, 0) + count


class Entries:
    """The write path. Every entry of every door goes through `put`."""

    def __init__(self, parts: Services, rules: RuleBook) -> None:
        self._parts = parts
        self._rules = rules
        self._nights: dict[str, int] = {}
        """Until when a tenant is known to be woken for its nightly dream."""
        self._together: GroupCommit[tuple[Actor, str], Placed, Receipt] = GroupCommit(
            self._store_together, self._store_at_once
        )

    def put(
        self,
        actor: Actor,
        ref: str,
        drafts: Sequence[Draft],
        *,
        idempotency_key: str | None = None,
        operation: str = "PUT",
    ) -> list[Receipt]:
        """Store drafts in one transaction: all of them, or none.

        A retry with the same `idempotency_key` and the same drafts answers what the first call answered and stores
        nothing; with other drafts it is refused.
        """
        _check_request(actor, ref, drafts, idempotency_key)
        if _sharable(drafts, idempotency_key):
            return [self._together.ask((actor, operation), (ref, drafts[0]))]
        return self._store(actor, _placed(ref, drafts), idempotency_key, operation)

    async def put_soon(
        self,
        pool: Executor,
        actor: Actor,
        ref: str,
        drafts: Sequence[Draft],
        *,
        idempotency_key: str | None = None,
        here: bool = False,
    ) -> list[Receipt]:
        """`put` for callers in an event loop: one thread of `pool` writes for all that wait.

        `here`: the loop itself may, as long as it waits for nothing but the disk.
        """
        _check_request(actor, ref, drafts, idempotency_key)
        if _sharable(drafts, idempotency_key):
            return [await self._together.ask_soon((actor, "PUT"), (ref, drafts[0]), pool, here=here)]
        from asyncio import get_running_loop

        alone = partial(self._store, actor, _placed(ref, drafts), idempotency_key, "PUT")
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
        return self._store(actor, [(ref, draft)], idempotency_key, "SUPERSEDE", also=replace, request=request)[0]

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
            made = self._prepare(actor, [(ref, draft) for ref, _, draft, _ in changes], rules)
            prepared = [
                (entry_id, item, expected) for (_, entry_id, _, expected), item in zip(changes, made, strict=True)
            ]

            def body(tx: WriteTx) -> list[Receipt]:
                size = sum([item.entry.byte_size for _, item, _ in prepared])
                _check_quota(tx.head(), rules.policy, len(prepared), size)
                receipts = []
                for entry_id, item, expected in prepared:
                    with tx.within(item.entry.ref):
                        receipts.append(insert(tx, actor, item, operation="SUPERSEDE"))
                        supersede(tx, actor, entry_id, receipts[-1], expected)
                return receipts

            return body

        return self._rules.guarded(actor.tenant, prepare, Scope(actor.tenant), weight=len(changes)) if changes else []

    def _store_together(self, key: tuple[Actor, str], placed: Sequence[Placed]) -> list[Receipt]:
        actor, operation = key
        return self._store(actor, placed, None, operation)

    def _store_at_once(self, key: tuple[Actor, str], placed: Sequence[Placed]) -> list[Receipt]:
        """The same for a few short texts. Raises WouldWait instead of waiting."""
        actor, operation = key
        short = sum([len(draft.content) for _, draft in placed]) <= _SHORT
        if not self._parts.store.free or not short or any(draft.attributes for _, draft in placed):
            raise WouldWait
        return self._store(actor, placed, None, operation, waits=False)

    def _store(
        self,
        actor: Actor,
        placed: Sequence[Placed],
        idempotency_key: str | None,
        operation: str,
        *,
        also: Callable[[WriteTx, Receipt], None] | None = None,
        request: Sequence[Any] = (),
        waits: bool = True,
    ) -> list[Receipt]:
        """Store drafts. `also` runs in the same transaction for every entry stored; a retry must repeat `request`."""
        first, asked = placed[0][0], b""
        if idempotency_key is not None:
            asked = canonical_request(first, [draft for _, draft in placed], *request)
        woken: list[int] = []

        def prepare(rules: Rules) -> Callable[[WriteTx], list[Receipt]]:
            woken.clear()
            prepared = self._prepare(actor, placed, rules)
            size = sum([item.entry.byte_size for item in prepared])

            def body(tx: WriteTx) -> list[Receipt]:
                digest = key = ""
                if idempotency_key is not None:
                    digest = keyed_hash(tx.log_key(), asked.decode())
                    key = answer_key(tx.log_key(), "put", idempotency_key)
                    # Up to schema 6 (PostgreSQL: until the upgrade is finished) keys were kept as they came.
                    stored = tx.recall_answer(key) or tx.recall_answer(idempotency_key)
                    if stored is not None:
                        return _replay(stored, digest)
                head, policy = tx.head(), rules.policy
                _check_quota(head, policy, len(prepared), size)
                receipts = [insert(tx, actor, item, operation=operation) for item in paced(prepared)]
                if also is not None:
                    for receipt in receipts:
                        also(tx, receipt)
                if (
                    policy.nightly == "on"
                    and head.bytes + size > LIGHT_BYTES
                    and self._nights.get(actor.tenant, 0) <= tx.now
                ):
                    night = policy.next_night(tx.now)
                    tx.wake(night)  # once a night, and only where something was written
                    woken.append(night)
                if idempotency_key is not None:
                    answer = msgspec.json.encode(receipts)
                    tx.remember_answer(key, digest, answer, until=tx.now + policy.idempotency_ms)
                return receipts

            return body

        scope = Scope(actor.tenant, first if all(ref == first for ref, _ in placed) else None)
        receipts = self._rules.guarded(actor.tenant, prepare, scope, weight=len(placed), waits=waits)
        if woken:
            self._nights[actor.tenant] = woken[-1]
        return receipts

    def prepare(
        self, actor: Actor, ref: str, drafts: Sequence[Draft], rules: Rules, *, embed: bool = True
    ) -> list[PreparedEntry]:
        """Check, redact and index drafts, outside any transaction. Without `embed` their vectors come later."""
        return self._prepare(actor, _placed(ref, drafts), rules, embed=embed)

    def _prepare(
        self, actor: Actor, placed: Sequence[Placed], rules: Rules, *, embed: bool = True
    ) -> list[PreparedEntry]:
        now = self._parts.clock.now()
        many = len(placed) > 1
        for number, (_, draft) in enumerate(paced(placed)):
            check_draft(draft, rules.policy, now=now, pointer=f"/entries/{number}" if many else "")
        cleaned = self._redact(actor, placed, rules, now)
        found = indexed([entry for entry, _, _ in cleaned], self._parts.embedder if embed else None)
        return [
            PreparedEntry(
                entry=entry, findings=findings, terms=words, vector=vector, minted=minted, replaces=draft.replaces
            )
            for (_, draft), (entry, findings, minted), (words, vector) in zip(placed, cleaned, found, strict=True)
        ]

    def _redact(
        self, actor: Actor, placed: Sequence[Placed], rules: Rules, now: int
    ) -> list[tuple[Entry, Mapping[str, int], bool]]:
        """Return the entries without secrets, the findings in each, and whether its id is new.

        Texts are redacted. What others find them by is not: a ref or an id that holds a secret is refused.
        """
        redacted = self._sweep(actor, placed, rules)
        nobody = Source(actor=actor.id, door=actor.door, trust=min(UNNAMED.trust, actor.authority))
        result: list[tuple[Entry, Mapping[str, int], bool]] = []
        for number, (ref, draft) in enumerate(paced(placed)):
            own = redacted[draft.source.run]
            if own[ref].findings:
                raise secret_name("/ref")
            if draft.id and own[draft.id].findings:
                raise secret_name(f"/entries/{number}/id" if len(placed) > 1 else "/id")
            if draft.replaces and own[draft.replaces].findings:
                raise secret_name(f"/entries/{number}/replaces" if len(placed) > 1 else "/replaces")
            clean = _Cleaning(own)
            attributes = draft.attributes
            if attributes:
                known = self._rules.known(actor.tenant, draft.source.run, rules)
                cleaned, found = self._parts.redactor.value(dict(attributes), known)
                attributes = cast("dict[str, Any]", cleaned)
                clean.add(found)
            source = nobody
            if draft.source != UNNAMED:
                source = Source(
                    actor=clean(draft.source.actor) or actor.id,
                    role=clean(draft.source.role),
                    door=actor.door,
                    session=clean(draft.source.session),
                    run=clean(draft.source.run),
                    node=clean(draft.source.node),
                    trust=min(draft.source.trust, actor.authority),
                )
            entry = Entry(
                ref=ref,
                id=draft.id or self._parts.ids.new(),
                kind=clean(draft.kind) or draft.kind,
                content=clean(draft.content) or "",
                tags=tuple(dict.fromkeys([tag for tag in map(clean, draft.tags) if tag])) if draft.tags else (),
                subject=clean(draft.subject),
                attributes=attributes,
                source=source,
                state=draft.state,
                created_at=draft.created_at if draft.created_at is not None else now,
                expires_at=_expiry(draft, rules.policy, now),
                pinned=draft.pinned,
            )
            result.append((entry, clean.findings, draft.id is None))
        return result

    def _sweep(self, actor: Actor, placed: Sequence[Placed], rules: Rules) -> dict[str | None, Mapping[str, Redaction]]:
        """Every text a caller can write but attributes, redacted in one sweep per run: many at once cost a quarter, and
        a label that a thousand entries share is looked at once."""
        texts: dict[str | None, dict[str, None]] = {}
        for ref, draft in placed:
            source = draft.source
            own = texts.setdefault(source.run, {})
            own[draft.content] = own[draft.kind] = own[ref] = None
            for text in (draft.id, draft.subject, *draft.tags):
                if text:
                    own[text] = None
            if source != UNNAMED:
                for text in (source.actor, source.role, source.session, source.run, source.node):
                    if text:
                        own[text] = None
        redacted: dict[str | None, Mapping[str, Redaction]] = {}
        for run, wanted in texts.items():
            known = self._rules.known(actor.tenant, run, rules)
            found = self._parts.redactor.many(list(wanted), known)
            redacted[run] = dict(zip(wanted, found, strict=True))
        return redacted


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


def _placed(ref: str, drafts: Sequence[Draft]) -> list[Placed]:
    return [(ref, draft) for draft in drafts]


def _sharable(drafts: Sequence[Draft], idempotency_key: str | None) -> bool:
    """Whether no other caller's write can conflict with it, so that they may share a transaction."""
    return len(drafts) == 1 and idempotency_key is None and drafts[0].id is None and drafts[0].replaces is None


def searchable_text(entry: Entry) -> str:
    """The text under which an entry is found."""
    return searchable(
        entry.content,
        speaker=speaker(entry.source),
        tags=entry.tags,
        subject=entry.subject,
        created_at=entry.created_at,
    )


def canonical_request(ref: str, drafts: Sequence[Draft], *more: Any) -> bytes:
    """One sequence of bytes per request, to recognise a retry."""
    try:
        documents = msgspec.to_builtins(drafts)
        for document in documents:
            if document["replaces"] is None:  # as it was before there was such a field: retries span upgrades
                del document["replaces"]
        return canonical([ref, documents, *more])
    except TypeError:
        raise Invalid("The entries have no canonical JSON form.", pointer="/entries") from None


def _expiry(draft: Draft, policy: TenantPolicy, now: int) -> int | None:
    if draft.expires_at is not None or policy.default_ttl_ms is None:
        return draft.expires_at
    return now + policy.default_ttl_ms


def _replay(stored: tuple[str, bytes], digest: str) -> list[Receipt]:
    before, answer = stored
    if before != digest:
        raise IdempotencyReused()
    receipts = msgspec.json.decode(answer, type=list[Receipt])
    return [msgspec.structs.replace(receipt, replayed=True) for receipt in receipts]
