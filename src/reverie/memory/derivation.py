"""Derivation: the walk over links from originals to dreams and back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from reverie.core.entry import Entry
from reverie.core.errors import NotFound
from reverie.store.contract import ReadTx

_DISTILLED_FROM = "distilled-from"
DREAM_SPACE = "dream"


def derived_from(tx: ReadTx, entry_ids: Sequence[str]) -> set[str]:
    """Ids of everything made from these entries of the transaction's ref."""
    found: set[str] = set()
    edge = list(entry_ids)
    while edge:
        for link in tx.links(edge.pop(), incoming=True, type=_DISTILLED_FROM):
            if link.from_id not in found:
                found.add(link.from_id)
                edge.append(link.from_id)
    return found


class _Line(Struct, frozen=True):
    line: int
    sources: Sequence[str]


class _Lines(Struct, frozen=True):
    ref: str
    output_id: str | None
    statements: Sequence[_Line] = ()


def line_sources(tx: ReadTx, entry: Entry, line: int) -> list[str]:
    """Ids of the sources behind a line of a dream, counted from 0; all of them when its lines are not traced."""
    traced = _traced(tx, entry)
    if traced:
        return list(dict.fromkeys(source for one in traced if one.line == line for source in one.sources))
    return [link.to_id for link in tx.links(entry.id, type=_DISTILLED_FROM)]


def lines_by_source(tx: ReadTx, entry: Entry) -> dict[str, list[int]]:
    """For each source of a dream the lines made from it, counted from 0; empty when its lines are not traced."""
    found: dict[str, list[int]] = {}
    for one in _traced(tx, entry):
        for source in one.sources:
            found.setdefault(source, []).append(one.line)
    return found


def _traced(tx: ReadTx, entry: Entry) -> Sequence[_Line]:
    named = entry.attributes.get("dream")
    document = tx.load(DREAM_SPACE, named) if isinstance(named, str) else None
    if document is None or document.body is None:
        return ()
    report = msgspec.json.decode(document.body, type=_Lines)
    return report.statements if (report.output_id, report.ref) == (entry.id, entry.ref) else ()


def held_by(tx: ReadTx, entry_id: str) -> Entry | None:
    """The readable dream that holds a source, through however many dreams; None when there is none."""
    found = [entry for other in sorted(derived_from(tx, [entry_id])) if (entry := tx.get(other)) is not None]
    return max(found, key=lambda entry: entry.born_seq, default=None)


def missing(tx: ReadTx, entry_id: str) -> NotFound:
    """The error for an entry that is not readable. For a source of a dream it names the dream."""
    holder = held_by(tx, entry_id)
    if holder is None:
        return NotFound("There is no entry with that id in this memory.")
    return NotFound(
        f"This entry is in cold storage: the dream {holder.id} holds its statements. Read it with `cold`, or store a "
        "correction as a new entry."
    )


def kin(tx: ReadTx, entry_id: str) -> set[str]:
    """Ids of everything that shares an original with this entry of the transaction's ref."""
    originals: set[str] = set()
    edge, seen = [entry_id], {entry_id}
    while edge:
        at = edge.pop()
        below = {link.to_id for link in tx.links(at, type=_DISTILLED_FROM)}
        if not below:
            originals.add(at)
        edge += below - seen
        seen |= below
    return (originals | derived_from(tx, sorted(originals))) - {entry_id}
