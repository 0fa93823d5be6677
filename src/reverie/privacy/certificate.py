"""The result of a forget and its certificate: counts and keyed hashes, never text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from reverie.core.entry import EntryState
from reverie.core.errors import ReverieError
from reverie.core.event import keyed_hash
from reverie.dreams.lineage import derived_from
from reverie.dreams.redream import RedreamOutcome
from reverie.memory.read import ANYTHING
from reverie.privacy.reach import WAYS, Reach, Target, find, ids_by_ref, is_independent
from reverie.store.contract import WriteTx

CERTIFIED = "forgotten"
"""Documents that say when a subject was last forgotten, by its hash."""


class Forgotten(Struct, frozen=True):
    """The result of a forget or, with `preview`, the result it would have: the same planner counts both."""

    forgotten: int
    """Entries about the subject."""
    derived: int
    """Dreams made from them, destroyed too."""
    redone: int
    """Dreams made again from what remains."""
    restored: int
    """Entries readable again because their dream could not be made again."""
    archives: int
    bytes: int
    refs: int
    held: int
    """Entries that a hold protects; a forget with any of them is refused."""
    preview: bool
    readable: int = 0
    """Number of the destroyed entries and dreams that were readable until now."""
    certificate: int | None = None
    """The log position of the certificate."""
    ways: Mapping[str, int] = field(default_factory=dict)
    """Number of entries reached by their subject, by a tag, by a mention, or through their sources."""
    mentioned: int | None = None
    """Further entries that mention the words. Counted when no label matches, and when mentions are asked for."""
    texts: int = 0
    """Files, tasks and other texts outside of entries that mention the words: forgotten when mentions are asked for,
    else counted where `mentioned` is."""
    outside: Sequence[str] = ()
    """Copies the store itself keeps for a while, out of every query's reach: see docs/privacy.md."""


class Incomplete(ReverieError):
    """Something of the subject would have been left. Nothing was changed; report this as a defect."""

    code = "forget_incomplete"


def count(reach: Reach, outcomes: Sequence[RedreamOutcome], *, preview: bool, outside: Sequence[str] = ()) -> Forgotten:
    """The result that a plan leads to."""
    alive = reach.alive
    restored = {(item.derived.entry.ref, entry.id) for item in outcomes for entry in item.restore}
    ways = list(reach.ways.values())
    return Forgotten(
        forgotten=len(reach.entries),
        derived=sum(item.entry.state is not EntryState.ERASED for item in reach.derived),
        redone=sum(item.answer is not None for item in outcomes),
        restored=len(restored),
        archives=len({item.archive for item in reach.derived if item.archive}),
        bytes=sum([entry.byte_size for entry in alive]),
        refs=len({entry.ref for entry in alive}),
        held=sum(entry.held for entry in alive),
        preview=preview,
        readable=sum(entry.gone_seq is None for entry in alive),
        ways={way: ways.count(way) for way in WAYS if way in ways},
        outside=outside,
    )


def certificate(counts: Forgotten, target: Target, log_key: bytes) -> dict[str, Any]:
    """The data of the certificate event."""
    return {
        "subject": target.subject,
        "scope": keyed_hash(log_key, target.ref) if target.ref else None,
        "entries": counts.forgotten,
        "derived": counts.derived,
        "redone": counts.redone,
        "restored": counts.restored,
        "archives": counts.archives,
        "bytes": counts.bytes,
        "refs": counts.refs,
        "ways": dict(counts.ways),
        "texts": counts.texts,
        "outside": list(counts.outside),
    }


def prove(tx: WriteTx, target: Target, before: Reach, texts: int) -> None:
    """Raise Incomplete unless nothing of the target is left: by its labels, its words, or what was made from it.

    `texts`: the number of texts outside of entries that mention the words.
    """
    left = find(tx, target, before)
    entries = len(left.alive) + len(left.tombstones) + texts
    for ref, roots in ids_by_ref(before.entries, before.tombstones).items():
        with tx.within(ref):
            found = derived_from(tx, sorted(roots))
            excluded = {*roots, *found}
            for entry_id in found:
                made = tx.get(entry_id, where=ANYTHING)
                if made is not None and made.state is not EntryState.ERASED:
                    entries += not is_independent(tx, made, excluded)
    if entries:
        raise Incomplete(details={"entries": entries})
