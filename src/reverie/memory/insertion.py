"""Insertion of a prepared entry with its event, and retirement of the entry it replaces."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec
import orjson

from reverie.core.actor import Actor
from reverie.core.canonical import canonical
from reverie.core.entry import NAMED_SESSIONS, Entry, EntryState, Link, Receipt
from reverie.core.errors import Held
from reverie.core.event import NewEvent, keyed_hash
from reverie.core.query import Filter, each
from reverie.core.run import mark
from reverie.memory.derivation import no_entry
from reverie.store.contract import ReadTx, WriteTx

HASHED = "~"
"""Prefix of the hash of a session in the log."""
_PAGE = 100


class PreparedEntry(msgspec.Struct, frozen=True):
    """A draft after redaction, with everything the transaction needs."""

    entry: Entry
    findings: Mapping[str, int]
    terms: Sequence[str]
    vector: tuple[str, bytes] | None
    minted: bool
    size: int
    """Bytes of the content, by which quotas count."""
    replaces: str | None = None


def insert(
    tx: WriteTx,
    actor: Actor,
    item: PreparedEntry,
    *,
    operation: str,
    type: str = "memory.written",  # noqa: A002
) -> Receipt:
    """Store one prepared entry with its event, and retire the entry it replaces."""
    entry = store_entry(tx, actor, item, operation=operation, type=type)
    return Receipt(
        id=entry.id,
        ref=entry.ref,
        seq=entry.born_seq,
        version=entry.version,
        created_at=entry.created_at,
        findings=item.findings,
        indexed="ok" if item.vector is not None else "words",
    )


def store_entry(
    tx: WriteTx,
    actor: Actor,
    item: PreparedEntry,
    *,
    operation: str,
    type: str = "memory.written",  # noqa: A002
) -> Entry:
    """Like `insert`, but return the entry as stored, with its position."""
    entry = item.entry
    replaced = _with_tag(tx, item.replaces) if item.replaces is not None else []
    data: dict[str, object] = {
        "ref": entry.ref,
        "kind": entry.kind,
        "bytes": item.size,
        "hash": entry_hash(tx.log_key(), entry),
    }
    if item.findings:
        data["redacted"] = dict(item.findings)
    if actor.run:
        data |= mark(tx, actor) | ({"node": entry.source.node} if entry.source.node else {})
    event = NewEvent(type, operation, actor.id, entry_id=entry.id, session=session_mark(tx, entry), data=data)
    stored = tx.insert(entry, seq=tx.append(event), terms=item.terms, vector=item.vector, minted=item.minted)
    for old in replaced:
        _retire(tx, actor, old, by=entry)
    return stored


def _with_tag(tx: WriteTx, tag: str) -> list[Entry]:
    """The readable entries that have this tag: one, unless the tag was also given by hand."""
    return list(each(lambda cursor: tx.scan(Filter(tags=(tag,)), limit=_PAGE, cursor=cursor)))


def _retire(tx: WriteTx, actor: Actor, old: Entry, *, by: Entry) -> None:
    """Take a replaced entry out of every read; its text stays in cold storage for the undo window."""
    if old.held:
        raise Held()
    data = {"ref": old.ref, "by": by.id}
    event = NewEvent(
        "memory.superseded", "REPLACE", actor.id, entry_id=old.id, session=session_mark(tx, old), data=data
    )
    tx.change(old.id, seq=tx.append(event), state=EntryState.DELETED)
    tx.link(Link(by.id, old.id, "supersedes"))


def session_mark(tx: ReadTx, entry: Entry) -> str | None:
    """The session of an entry as the log has it: hashed, unless it names an object. The log is permanent."""
    session = entry.source.session
    if session is None or entry.source.door in NAMED_SESSIONS:
        return session
    return hashed_session(tx.log_key(), session)


def hashed_session(key: bytes, session: str) -> str:
    """Return the hash under which the log names a session that is a label."""
    return f"{HASHED}{keyed_hash(key, session)[:24]}"


def entry_hash(key: bytes, entry: Entry) -> str:
    """Return the log's hash of an entry: under the tenant's key, over everything a caller wrote."""
    document = [entry.id, entry.kind, entry.content, entry.tags, entry.subject, dict(entry.attributes)]
    # Without attributes it is texts only, and stored texts are sound: orjson's bytes are the canonical ones.
    data = canonical(document) if entry.attributes else orjson.dumps(document)
    keyed = _hash_with(key).copy()
    keyed.update(data)
    return keyed.hexdigest()


@lru_cache(maxsize=256)
def _hash_with(key: bytes) -> hmac.HMAC:
    """A hash that has read the key and nothing else: beginning with a copy saves reading it for every entry."""
    return hmac.new(key, digestmod="sha256")


def supersede(tx: WriteTx, actor: Actor, entry_id: str, receipt: Receipt, expected: int | None) -> None:
    """Retire a readable entry in favour of the one just stored."""
    old = tx.get(entry_id)
    if old is None or (old.state is EntryState.DRAFT and old.source.actor != actor.id):
        raise no_entry(tx, entry_id)
    data = {"ref": old.ref, "by": receipt.id}
    mark = session_mark(tx, old)
    event = NewEvent("memory.superseded", "SUPERSEDE", actor.id, entry_id=old.id, session=mark, data=data)
    tx.change(old.id, seq=tx.append(event, tick=False), expected=expected, state=EntryState.SUPERSEDED)
    tx.link(Link(receipt.id, old.id, "supersedes"))
