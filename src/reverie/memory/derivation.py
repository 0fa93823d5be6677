"""Derivation: the walk over links from originals to dreams and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import accumulate

import msgspec
from msgspec import Struct

from reverie.core.entry import Entry
from reverie.core.errors import NotFound
from reverie.search.passages import Passage, passages
from reverie.store.contract import ReadTx

_DISTILLED_FROM = "distilled-from"
DREAM_SPACE = "dream"


def derived_from(tx: ReadTx, entry_ids: Sequence[str]) -> set[str]:
    """Ids of everything made from these entries of the transaction's ref."""
    return _walk(entry_ids, partial(_dreams_of, tx))


def _dreams_of(tx: ReadTx, *entry_ids: str) -> list[str]:
    return sorted({link.from_id for link in tx.links(*entry_ids, incoming=True, type=_DISTILLED_FROM)})


def _walk(entry_ids: Sequence[str], dreams_of: Callable[..., Sequence[str]]) -> set[str]:
    found: set[str] = set()
    edge = entry_ids
    while edge:
        edge = [dream for dream in dreams_of(*edge) if dream not in found]
        found.update(edge)
    return found


class _Line(Struct, frozen=True):
    line: int
    sources: Sequence[str]


class _Lines(Struct, frozen=True):
    ref: str
    output_id: str | None
    statements: Sequence[_Line] = ()


class DreamLines:
    """The lines of the dreams that a search meets. Reads every dream and its report once, however many hits it has."""

    def __init__(self, tx: ReadTx) -> None:
        self._tx = tx
        self._get = cache(tx.get)
        self._dreams_of = cache(partial(_dreams_of, tx))
        self._statements: dict[str, Sequence[_Line]] = {}
        self._parts: dict[str, tuple[list[int], dict[int, Passage]]] = {}

    def holder(self, entry_id: str) -> Entry | None:
        """The readable dream that holds a source, through however many dreams; None when there is none."""
        above = sorted(_walk([entry_id], self._dreams_of))
        found = [entry for other in above if (entry := self._get(other)) is not None]
        return max(found, key=lambda entry: entry.born_seq, default=None)

    def sources(self, dream: Entry, passage: Passage) -> list[str]:
        """Ids of the sources behind a line of a dream; all of them when its lines are not traced."""
        if statements := self._statements_in(dream):
            line = dream.content.count("\n", 0, passage.start)
            return list(dict.fromkeys(source for one in statements if one.line == line for source in one.sources))
        return [link.to_id for link in self._tx.links(dream.id, type=_DISTILLED_FROM)]

    def made_from(self, dream: Entry, source: str) -> list[Passage]:
        """The lines of a dream that were made from a source; none when its lines are not traced."""
        lines = dict.fromkeys(one.line for one in self._statements_in(dream) if source in one.sources)
        if not lines:
            return []
        starts, parts = self._read(dream)
        found = [parts.get(starts[line]) for line in lines if line < len(starts)]
        return [part for part in found if part is not None]

    def _statements_in(self, dream: Entry) -> Sequence[_Line]:
        if dream.id not in self._statements:
            self._statements[dream.id] = _statements_of(self._tx, dream)
        return self._statements[dream.id]

    def _read(self, dream: Entry) -> tuple[list[int], dict[int, Passage]]:
        """The beginning of each line, and the lines that are passages by their beginning."""
        if dream.id not in self._parts:
            starts = list(accumulate((len(line) + 1 for line in dream.content.split("\n")), initial=0))
            parts = {part.start: part for part in passages(dream.content, lines=True)}
            self._parts[dream.id] = starts[:-1], parts
        return self._parts[dream.id]


def _statements_of(tx: ReadTx, entry: Entry) -> Sequence[_Line]:
    named = entry.attributes.get("dream")
    document = tx.load(DREAM_SPACE, named) if isinstance(named, str) else None
    if document is None or document.body is None:
        return ()
    report = msgspec.json.decode(document.body, type=_Lines)
    return report.statements if (report.output_id, report.ref) == (entry.id, entry.ref) else ()


def holder_of(tx: ReadTx, entry_id: str) -> Entry | None:
    """The readable dream that holds a source, through however many dreams; None when there is none."""
    return DreamLines(tx).holder(entry_id)


def no_entry(tx: ReadTx, entry_id: str) -> NotFound:
    """The error for an entry that is not readable. For a source of a dream it names the dream."""
    holder = holder_of(tx, entry_id)
    if holder is None:
        return NotFound("There is no entry with that id in this memory.")
    return NotFound(
        f"This entry is in cold storage: the dream {holder.id} holds its statements. Read it with `cold`, or store a "
        "correction as a new entry."
    )


def kin(tx: ReadTx, entry_id: str) -> set[str]:
    """Ids of everything that shares an original with this entry of the transaction's ref."""
    originals: set[str] = set()
    edge, seen = {entry_id}, {entry_id}
    while edge:
        below = tx.links(*edge, type=_DISTILLED_FROM)
        originals |= edge - {link.from_id for link in below}
        edge = {link.to_id for link in below} - seen
        seen |= edge
    return (originals | derived_from(tx, sorted(originals))) - {entry_id}
