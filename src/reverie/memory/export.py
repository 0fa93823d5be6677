"""Bundles: a tenant's memory as JSON lines that anyone can read and check.

    {"type": "manifest", "format": "reverie.bundle/1", "tenant": ..., "created_at": ..., "head": {"seq", "hash"}}
    {"type": "entry", "ref": ..., "id": ..., "content": ..., ...}
    {"type": "link", "ref": ..., "from_id": ..., "to_id": ..., "link": ...}
    {"type": "event", ...}                                     (the log as exported; never imported)
    {"type": "end", "entries": n, "links": n, "events": n, "sha256": "<of every byte before this line>"}

An import checks the whole bundle first and then stores through the ordinary write path: redaction included. Entries
whose id the memory already has are left alone, so importing twice is importing once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.clock import from_iso, to_iso
from reverie.core.entry import (
    CREDENTIAL_PREFIXES,
    LINK_TYPES,
    MAX_ID_LENGTH,
    READABLE,
    Draft,
    Entry,
    EntryState,
    Link,
    Receipt,
    Scope,
    Source,
    check_namespace,
)
from reverie.core.errors import Conflict, Invalid, ReadOnly
from reverie.core.event import Event, NewEvent
from reverie.core.pause import pause
from reverie.core.query import Page, each
from reverie.memory.entries import Entries
from reverie.memory.policy import RuleBook, Rules
from reverie.memory.read import ANYTHING
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

FORMAT = "reverie.bundle/1"
_PAGE = 50
_BATCH = 200
MAX_LINE = 1_000_000
MAX_NOTE = 4096
Progress = Callable[[int, int], None]


class Imported(Struct, frozen=True):
    """The result of an import."""

    entries: int
    skipped: int
    """Not stored: expired, or of an id that exists already."""
    links: int
    findings: Mapping[str, int]


class Bundles:
    """Export and import of bundles."""

    def __init__(self, parts: Services, rules: RuleBook, entries: Entries) -> None:
        self._parts = parts
        self._rules = rules
        self._entries = entries

    def export(self, actor: Actor, *, ref: str | None = None, events: bool = True) -> Iterator[bytes]:
        """Yield the lines of a bundle: the entries readable when their page is read, so not one snapshot."""
        actor.require(Right.READ)
        check_namespace(ref)
        head = self._parts.store.read(Scope(actor.tenant), lambda tx: tx.head())
        digest = hashlib.sha256()
        counts = {"entries": 0, "links": 0, "events": 0}

        def line(document: Mapping[str, Any]) -> bytes:
            encoded = orjson.dumps(document) + b"\n"
            digest.update(encoded)
            return encoded

        created = to_iso(self._parts.clock.now())
        tip = {"seq": head.seq, "hash": head.hash}
        yield line(
            {"type": "manifest", "format": FORMAT, "tenant": actor.tenant, "ref": ref}
            | {"created_at": created, "head": tip}
        )
        where = msgspec.structs.replace(ANYTHING, gone=True, states=READABLE, expired=False)

        def page(tx: ReadTx, cursor: str | None) -> Page[tuple[Entry, list[Link]]]:
            found = tx.scan(where, limit=_PAGE, cursor=cursor)
            rows = []
            for entry in found.items:
                with tx.within(entry.ref):
                    rows.append((entry, tx.links(entry.id)))
            return Page(rows, found.cursor)

        scope = Scope(actor.tenant, ref)
        for entry, links in each(lambda cursor: self._parts.store.read(scope, lambda tx: page(tx, cursor))):
            pause()
            counts["entries"] += 1
            yield line({"type": "entry", **entry_document(entry)})
            for link in links:
                counts["links"] += 1
                yield line(
                    {"type": "link", "ref": entry.ref, "from_id": link.from_id, "to_id": link.to_id}
                    | {"link": link.type, "note": link.note}
                )
        after = 0
        while events and after < head.seq:
            log = self._log(actor, after)
            for event in log:
                pause()
                if event.seq <= head.seq:
                    counts["events"] += 1
                    yield line({**event.document(), "event_type": event.type, "type": "event"})
            after = log[-1].seq if log else head.seq
        yield orjson.dumps({"type": "end", **counts, "sha256": digest.hexdigest()}) + b"\n"

    def check(self, lines: Iterable[bytes]) -> Mapping[str, Any]:
        """Read a bundle to the end. Raises Invalid when it is damaged or cut short."""
        return check_bundle(lines)

    def take(self, actor: Actor, lines: Sequence[bytes], *, ref: str | None = None) -> Imported:
        """Check a whole bundle, then store it. A damaged bundle stores nothing."""
        actor.require(Right.WRITE)
        self.check(lines)
        return self.load(actor, lines, ref=ref)

    def load(
        self,
        actor: Actor,
        lines: Iterable[bytes],
        *,
        ref: str | None = None,
        total: int = 0,
        progress: Progress | None = None,
    ) -> Imported:
        """Store a checked bundle, into its own refs or all into `ref`."""
        actor.require(Right.WRITE)
        if self._parts.read_only:
            raise ReadOnly()
        done = Imported(0, 0, 0, {})
        waiting: dict[str, list[Draft]] = {}
        links: dict[str, list[Link]] = {}
        archived: set[tuple[str, str]] = set()
        for number, raw in enumerate(lines, 1):
            pause()
            document = _parse(raw, number)
            if document.get("type") == "entry":
                target = ref or str(document.get("ref", ""))
                waiting.setdefault(target, []).append(to_draft(document, number))
                if document.get("archived") is True and document.get("id"):
                    archived.add((target, document["id"]))
                if len(waiting[target]) >= _BATCH:
                    done = self._store(actor, target, waiting.pop(target), archived, done)
            elif document.get("type") == "link":
                links.setdefault(ref or str(document.get("ref", "")), []).append(_link(document, number))
            if progress:
                progress(number, max(total, number))
        for target, drafts in waiting.items():
            done = self._store(actor, target, drafts, archived, done)
        for target in sorted(links):
            self._add_links(actor, target, links[target])
        linked = sum(map(len, links.values()))

        def body(tx: WriteTx) -> None:
            data = {"entries": done.entries, "skipped": done.skipped, "links": linked}
            tx.append(NewEvent("memory.imported", "IMPORT", actor.id, data=data))

        self._parts.store.write(Scope(actor.tenant), body)
        return msgspec.structs.replace(done, links=linked)

    def _log(self, actor: Actor, after: int) -> list[Event]:
        return self._parts.store.read(Scope(actor.tenant), lambda tx: tx.read_log(after=after, limit=_PAGE))

    def _add_links(self, actor: Actor, ref: str, links: list[Link]) -> None:
        """Store links; ids and notes are redacted like those of entries."""
        self._rules.check_ref(actor.tenant, ref)

        def prepare(rules: Rules) -> Callable[[WriteTx], None]:
            def clean(text: str) -> str:
                return self._parts.redactor.text(text, rules.known).text

            cleaned = [
                Link(clean(link.from_id), clean(link.to_id), link.type, clean(link.note) if link.note else None)
                for link in links
            ]

            def body(tx: WriteTx) -> None:
                data = {"ref": ref, "links": len(cleaned)}
                tx.append(NewEvent("memory.imported", "IMPORT", actor.id, data=data))
                for link in cleaned:
                    tx.link(link)

            return body

        self._rules.guard(actor.tenant, prepare, Scope(actor.tenant, ref))

    def _store(
        self, actor: Actor, ref: str, drafts: list[Draft], archived: Collection[tuple[str, str]], done: Imported
    ) -> Imported:
        def shelve(tx: WriteTx, receipt: Receipt) -> None:
            if (ref, receipt.id) in archived:
                event = NewEvent("memory.archived", "IMPORT", actor.id, entry_id=receipt.id, data={"ref": ref})
                with tx.within(ref):
                    tx.change(receipt.id, seq=tx.append(event), archived=True)

        def present(tx: ReadTx) -> set[str]:
            return {draft.id for draft in drafts if draft.id and tx.get(draft.id, where=ANYTHING)}

        there = self._parts.store.read(Scope(actor.tenant, ref), present) if ref else set()
        new = [draft for draft in drafts if draft.id not in there]
        expired = [d for d in new if d.expires_at is not None and d.expires_at <= self._parts.clock.now()]
        new = [draft for draft in new if draft not in expired]
        findings = dict(done.findings)
        stored = 0
        try:
            receipts = self._entries.put(actor, ref, new, operation="IMPORT", also=shelve) if new else []
        except Conflict:  # ids that appeared meanwhile, or twice in the bundle: one by one
            receipts = []
            for draft in new:
                try:
                    receipts += self._entries.put(actor, ref, [draft], operation="IMPORT", also=shelve)
                except Conflict:
                    continue
        for receipt in receipts:
            stored += 1
            for kind, count in receipt.findings.items():
                findings[kind] = findings.get(kind, 0) + count
        return Imported(done.entries + stored, done.skipped + len(drafts) - stored, 0, findings)


def check_bundle(lines: Iterable[bytes]) -> Mapping[str, Any]:
    """Read a bundle to the end and return its manifest and counts.

    Raises Invalid when it is damaged or cut short, or when a line is no entry or link.
    """
    digest, end, manifest, number = hashlib.sha256(), None, None, 0
    for number, raw in enumerate(lines, 1):
        if end is not None:
            raise Invalid(f"Line {number}: there is something after the end of the bundle.")
        document = _parse(raw, number)
        if number == 1:
            if document.get("type") != "manifest" or document.get("format") != FORMAT:
                raise Invalid(f"This is not a bundle of the format {FORMAT}.")
            manifest = document
        if document.get("type") == "end":
            end = document
            continue
        digest.update(raw)
        if document.get("type") == "entry":
            to_draft(document, number)
        elif document.get("type") == "link":
            _link(document, number)
    if manifest is None or end is None:
        raise Invalid("The bundle is cut short: its last line is missing. Export it again.")
    if end.get("sha256") != digest.hexdigest():
        raise Invalid("The bundle was changed or damaged: its SHA-256 does not fit. Export it again.")
    return {**manifest, **{name: end.get(name) for name in ("entries", "links", "events")}, "lines": number}


def entry_document(entry: Entry) -> dict[str, Any]:
    """An entry as every native door shows it."""
    return entry_documents([entry])[0]


def entry_documents(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Entries as every native door shows them."""
    made = [to_iso(entry.created_at) for entry in entries]
    ends = [None if entry.expires_at is None else to_iso(entry.expires_at) for entry in entries]
    return [_document(*each) for each in zip(entries, made, ends, strict=True)]


def _document(entry: Entry, created_at: str, expires_at: str | None) -> dict[str, Any]:
    source = entry.source
    return {
        "ref": entry.ref,
        "id": entry.id,
        "kind": entry.kind,
        "content": entry.content,
        "tags": list(entry.tags),
        "subject": entry.subject,
        "attributes": dict(entry.attributes),
        "source": {
            "actor": source.actor,
            "role": source.role,
            "door": source.door,
            "session": source.session,
            "run": source.run,
            "node": source.node,
            "trust": source.trust,
        },
        "state": entry.state.value,
        "archived": entry.archived,
        "pinned": entry.pinned,
        "held": entry.held,
        "created_at": created_at,
        "expires_at": expires_at,
        "version": entry.version,
        "seq": entry.born_seq,
    }


def to_draft(document: Mapping[str, Any], number: int) -> Draft:
    """A line of a bundle as a draft. Raises Invalid."""
    try:
        source = document.get("source") or {}
        expires = document.get("expires_at")
        state = EntryState(document.get("state", "active"))
        draft = Draft(
            content=document["content"],
            kind=document.get("kind", "note"),
            tags=tuple(document.get("tags", ())),
            subject=document.get("subject"),
            attributes=document.get("attributes") or {},
            id=document.get("id"),
            source=Source(
                actor="" if str(source.get("actor", "")).startswith(CREDENTIAL_PREFIXES) else source.get("actor") or "",
                role=source.get("role"),
                session=source.get("session"),
                run=source.get("run"),
                node=source.get("node"),
                trust=source.get("trust", 10),
            ),
            state=state if state in READABLE else EntryState.ACTIVE,
            created_at=from_iso(document["created_at"]) if document.get("created_at") else None,
            expires_at=from_iso(expires) if expires else None,
            pinned=bool(document.get("pinned", False)),
        )
        return msgspec.convert(msgspec.to_builtins(draft), Draft)  # checks every type
    except (KeyError, TypeError, ValueError, AttributeError, msgspec.ValidationError, Invalid):
        raise Invalid(f"Line {number}: this is not an entry of a bundle.") from None


def _link(document: Mapping[str, Any], number: int) -> Link:
    try:
        fields = {name: document[name] for name in ("from_id", "to_id", "note")} | {"type": document["link"]}
        link = msgspec.convert(fields, Link)
    except (KeyError, msgspec.ValidationError):
        raise Invalid(f"Line {number}: this is not a link of a bundle.") from None
    long = max(len(link.from_id), len(link.to_id)) > MAX_ID_LENGTH or len(link.note or "") > MAX_NOTE
    if link.type not in LINK_TYPES or long or "\0" in f"{link.from_id}{link.to_id}{link.note}":
        raise Invalid(f"Line {number}: a link is one of {', '.join(sorted(LINK_TYPES))}, with ids and a short note.")
    return link


def _parse(raw: bytes, number: int) -> dict[str, Any]:
    if len(raw) > MAX_LINE:
        raise Invalid(f"Line {number} is over {MAX_LINE} bytes.")
    try:
        document = orjson.loads(raw)
    except ValueError:
        raise Invalid(f"Line {number} is not JSON.") from None
    if not isinstance(document, dict):
        raise Invalid(f"Line {number} is not a JSON object.")
    return document
