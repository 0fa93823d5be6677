"""Commitments: intentions found in memory, fired when their time comes or their condition becomes true.

An entry of kind `commitment` with the attribute `due` (an instant) fires once, at that instant. With
`when: {"tag": ...}` it fires each time the memory goes from no entry with that tag to one or more. The text of the
intention stays in the entry; the event says only that it fired.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from reverie.core.actor import Actor, Right
from reverie.core.canonical import canonical
from reverie.core.clock import from_iso
from reverie.core.entry import COMMITMENT_KIND, Draft, Entry, EntryState, Scope
from reverie.core.errors import Conflict, Invalid, ReadOnly
from reverie.core.event import NewEvent
from reverie.core.query import Filter, each
from reverie.memory.entries import Entries
from reverie.memory.policy import check_ref
from reverie.memory.read import ANYTHING
from reverie.services import Services
from reverie.store.contract import ReadTx, WriteTx

KIND = COMMITMENT_KIND
COMMITMENT_SPACE = "commitment"
OVER_SPACE = "commitment.over"
"""Commitments that have fired for good, which no look at the tenant reads. They keep an entry from firing again."""
GONE_MS = 3_600_000
"""Interval between checks of a commitment whose entry is gone: the entry may come back."""
_PAGE = 500


class Commitment(Struct, frozen=True, omit_defaults=True):
    """The state of a commitment."""

    ref: str
    id: str
    """The entry that holds the intention; also the commitment's own id."""
    due: int | None = None
    tag: str | None = None
    fired_for: int | None = None
    """The due instant for which it has fired."""
    met: bool = False
    """Whether the condition held at the last check."""
    fires: int = 0

    @property
    def condition(self) -> str:
        """`time` or `predicate`."""
        return "time" if self.due is not None else "predicate"

    @property
    def over(self) -> bool:
        """Whether it has fired for good: a condition may become true again, an instant does not come back."""
        return self.due is not None and self.fired_for == self.due


class Commitments:
    """Finds commitments in memory and fires them, at most once per instant or change of state."""

    def __init__(self, parts: Services, entries: Entries) -> None:
        self._parts = parts
        self._entries = entries

    def make(
        self, actor: Actor, ref: str, intention: str, *, due: int | None = None, tag: str | None = None
    ) -> Commitment:
        """Store an intention as an entry, with its commitment."""
        if (due is None) == (tag is None):
            raise Invalid("A commitment is due at an instant, or when a tag appears.", pointer="/condition")
        attributes: dict[str, object] = {"due": due} if due is not None else {"when": {"tag": tag}}
        receipt = self._entries.put(actor, ref, [Draft(intention, kind=KIND, attributes=attributes)])[0]
        self.infer(actor, ref)
        return Commitment(ref, receipt.id, due, tag)

    def infer(self, actor: Actor, ref: str) -> int:
        """Store the commitments found in the memory; return the number of new ones. Called by consolidation,
        which has checked the actor's rights."""
        check_ref(ref)
        self._writable()

        def body(tx: ReadTx) -> list[Commitment]:
            found = (_read(entry) for entry in _entries(tx))
            return [item for item in found if item and not _known(tx, key_of(item.ref, item.id))]

        fresh = self._parts.store.read(Scope(actor.tenant, ref), body)
        return sum(self._remember(actor, item) for item in fresh)

    def _remember(self, actor: Actor, item: Commitment) -> bool:
        key = key_of(item.ref, item.id)

        def body(tx: WriteTx) -> bool:
            if _known(tx, key):
                return False
            data = {"space": COMMITMENT_SPACE, "key": key}
            seq = tx.append(NewEvent("document.saved", "COMMIT", actor.id, data=data), tick=False)
            tx.save(COMMITMENT_SPACE, key, msgspec.json.encode(item), seq=seq, expected=0)
            tx.wake(tx.now if item.due is None else item.due)
            return True

        try:
            return self._parts.store.write(Scope(actor.tenant), body)
        except Conflict:
            return False  # another process was faster

    def fire_due(self, actor: Actor) -> int:
        """Fire the commitments that are due or whose condition became true; return their number. Any number of
        processes may call this.
        """
        actor.require(Right.WRITE)
        self._writable()
        moving = self._parts.store.read(Scope(actor.tenant), lambda tx: list(_moving(tx)))
        return sum(self.settle(actor, key) for key, _ in moving)

    def settle(self, actor: Actor, key: str) -> bool:
        """Fire one commitment if it is due or its condition became true. Returns whether this call fired it.

        One that is over leaves the commitments that are looked at, in the same transaction.
        """

        def body(tx: WriteTx) -> bool:
            stored = tx.load(COMMITMENT_SPACE, key)
            if stored is None or stored.body is None:
                return False
            item = msgspec.json.decode(stored.body, type=Commitment)
            fires, after = _next(tx, item)
            if after == item and not item.over:
                return False
            if fires:
                data = {"ref": item.ref, "commitment": item.id, "condition": item.condition}
                if actor.run:
                    data["run"] = actor.run
                event = NewEvent("commitment.fired", "COMMIT", actor.id, entry_id=item.id, data=data)
                seq = tx.append(event)
            else:
                data = {"space": COMMITMENT_SPACE, "key": key}
                seq = tx.append(NewEvent("document.saved", "COMMIT", actor.id, data=data), tick=False)
            if after is not None and not after.over:
                tx.save(COMMITMENT_SPACE, key, msgspec.json.encode(after), seq=seq, expected=stored.version)
                return fires
            tx.drop(COMMITMENT_SPACE, key, seq=seq, expected=stored.version, keep=0)
            if after is not None:
                tx.save(OVER_SPACE, key, msgspec.json.encode(after), seq=seq)
            return fires

        try:
            return self._parts.store.write(Scope(actor.tenant), body)
        except Conflict:
            return False  # another process was faster

    def _writable(self) -> None:
        if self._parts.read_only:
            raise ReadOnly()


def key_of(ref: str, entry_id: str) -> str:
    """The document key of a commitment; no other pair of names has the same."""
    return hashlib.sha256(canonical([ref, entry_id])).hexdigest()


def upcoming_commitment(tx: ReadTx) -> tuple[bool, int | None]:
    """Return whether a commitment would fire or change now, and when to check the tenant's commitments again.

    Any write may make a condition true, so conditions are checked on every look at the tenant.
    """
    moving, at = False, None
    for _, item in _commitments(tx):
        changes = _changes(tx, item)
        moving = moving or changes
        if changes or item.due is None:
            instant = tx.now if changes or _entry(tx, item) else tx.now + GONE_MS
        else:
            instant = max(item.due, tx.now + 1) if _entry(tx, item) else max(item.due, tx.now + GONE_MS)
        at = instant if at is None else min(at, instant)
    return moving, at


def _next(tx: ReadTx, item: Commitment) -> tuple[bool, Commitment | None]:
    """Whether a commitment fires now, and its state afterwards: None once its entry is destroyed.

    One whose entry is gone never fires.
    """
    if not _entry(tx, item):
        return False, None if _destroyed(tx, item) else item
    if item.due is not None:
        if item.due > tx.now or item.over:
            return False, item
        return True, msgspec.structs.replace(item, fired_for=item.due, fires=item.fires + 1)
    with tx.within(item.ref):
        met = _holds(tx, item)
    fires = met and not item.met
    return fires, msgspec.structs.replace(item, met=met, fires=item.fires + fires)


def _entry(tx: ReadTx, item: Commitment) -> bool:
    with tx.within(item.ref):
        return tx.get(item.id) is not None


def _destroyed(tx: ReadTx, item: Commitment) -> bool:
    with tx.within(item.ref):
        entry = tx.get(item.id, where=ANYTHING)
    return entry is not None and entry.state is EntryState.ERASED


def _known(tx: ReadTx, key: str) -> bool:
    """Whether an entry's commitment is stored already."""
    return any(tx.load(space, key) is not None for space in (COMMITMENT_SPACE, OVER_SPACE))


def _holds(tx: ReadTx, item: Commitment) -> bool:
    found = tx.scan(Filter(tags=(str(item.tag),)), limit=2).items
    return any(entry.id != item.id for entry in found)


def _commitments(tx: ReadTx) -> Iterator[tuple[str, Commitment]]:
    for document in each(lambda cursor: tx.documents(COMMITMENT_SPACE, limit=_PAGE, cursor=cursor)):
        yield document.key, msgspec.json.decode(document.body or b"{}", type=Commitment)


def _moving(tx: ReadTx) -> Iterator[tuple[str, Commitment]]:
    """Commitments whose state would change now."""
    return ((key, item) for key, item in _commitments(tx) if _changes(tx, item))


def _changes(tx: ReadTx, item: Commitment) -> bool:
    """Whether the state of a commitment would change now. Older versions left those that were over in this space."""
    return item.over or _next(tx, item)[1] != item


def _entries(tx: ReadTx) -> Iterator[Entry]:
    return each(lambda cursor: tx.scan(Filter(kinds=(KIND,)), limit=_PAGE, cursor=cursor))


def _read(entry: Entry) -> Commitment | None:
    """The commitment in an entry; None without a valid `due` or `when`."""
    due, when = entry.attributes.get("due"), entry.attributes.get("when")
    if isinstance(due, str):
        try:
            due = from_iso(due)
        except Invalid:
            return None
    if isinstance(due, int) and not isinstance(due, bool):
        return Commitment(entry.ref, entry.id, due=due)
    tag = when.get("tag") if isinstance(when, dict) else None
    return Commitment(entry.ref, entry.id, tag=tag) if isinstance(tag, str) and tag else None
