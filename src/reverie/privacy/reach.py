"""The reach of a forget: every entry about a subject, everything made from these, and what remains of that.

One planner for the preview, for the forget and for the check inside its transaction. Entries are found by an index of
subjects, what was made from them by links, and a dream's report by its output: the cost is that of the subject's own
entries and dreams, however much else is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import chain
from typing import Any

import msgspec

from reverie.core.dream import DreamReport, SourceTrace
from reverie.core.entry import FILE_KIND, Entry, EntryState
from reverie.core.event import keyed_hash
from reverie.core.query import Page, each
from reverie.core.subject import forms, named_subjects, subject_hashes
from reverie.dreams.archive import ARCHIVE_SPACE
from reverie.dreams.lineage import derived_from
from reverie.dreams.redream import Derived
from reverie.dreams.report import find_report
from reverie.memory.read import ANYTHING
from reverie.privacy.mentions import Mention, runs
from reverie.store.contract import ReadTx, each_event

WAYS = ("subject", "tag", "mention", "lineage")
"""Ways to reach an entry: by its field, by a `subject:` tag, by its words, or because it was made from another."""
_PAGE = 500
_ALIVE = msgspec.structs.replace(ANYTHING, states=frozenset(EntryState) - {EntryState.ERASED})


@dataclass(frozen=True, slots=True)
class Target:
    """The subject to forget, and the memories concerned."""

    subject: str
    """The hash of the subject."""
    ref: str | None = None
    before: int | None = None
    """Only entries made at or before this instant."""
    mention: Mention | None = None
    folded: str | None = field(default=None, repr=False)
    """The subject itself, folded, where it is known in clear."""

    def covers(self, entry: Entry) -> bool:
        """Whether an entry is in the memory and time that were asked for."""
        return (self.ref is None or entry.ref == self.ref) and (self.before is None or entry.created_at <= self.before)

    def named_in(self, text: str, key: bytes) -> bool:
        """Whether a text that is no entry names the subject, or mentions the words. `key`: the tenant's secret."""
        if self.mention is not None and self.mention.occurs_in(text):
            return True
        if self.folded is not None and not any(self.folded in form for form in forms(text)):
            return False  # hashing every run of words is slow, and a forget asks of many texts
        return any(keyed_hash(key, name) == self.subject for name in runs(text))


@dataclass(frozen=True)
class Reach:
    """Everything that a forget destroys, as of one log position."""

    position: int
    entries: Sequence[Entry] = ()
    """Entries about the subject that were not made from others."""
    tombstones: Sequence[Entry] = ()
    """Entries about the subject that were destroyed before."""
    derived: Sequence[Derived] = ()
    ways: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to destroy."""
        return not self.entries and not self.derived

    @cached_property
    def alive(self) -> list[Entry]:
        """Every entry that still has text to destroy."""
        made = [item.entry for item in self.derived if item.entry.state is not EntryState.ERASED]
        return [*self.entries, *made]

    @property
    def state(self) -> tuple[Any, ...]:
        """Equal when, and only when, nothing that the forget was planned from has changed."""
        plain = tuple(sorted(map(_identity, self.entries)))
        stones = tuple(sorted(map(_identity, self.tombstones)))
        return plain, stones, tuple(sorted(item.state for item in self.derived)), tuple(sorted(self.ways.items()))


def _identity(entry: Entry) -> tuple[str, str, int]:
    return entry.ref, entry.id, entry.version


def find(tx: ReadTx, target: Target, known: Reach | None = None) -> Reach:
    """Everything the target reaches now.

    `known`: its reach at an earlier position, so that only entries written since are searched for mentions.
    """
    ways: dict[tuple[str, str], str] = {}
    entries: dict[tuple[str, str], Entry] = {}
    tombstones: list[Entry] = []
    hashed = cache(partial(subject_hashes, tx.log_key()))
    for entry in tx.about(target.subject, erased=True):
        if not target.covers(entry):
            continue
        if entry.state is EntryState.ERASED:
            tombstones.append(entry)
            continue
        entries[entry.ref, entry.id] = entry
        named = bool(entry.subject) and target.subject in hashed(str(entry.subject))
        ways[entry.ref, entry.id] = "subject" if named else "tag"
    if target.mention is not None:
        for entry in mentioning(tx, target, known):
            if (entry.ref, entry.id) not in entries:
                entries[entry.ref, entry.id] = entry
                ways[entry.ref, entry.id] = "mention"
    made = {key for key, entry in entries.items() if entry.attributes.get("dream")}
    derived = _derived(tx, target, [entries[key] for key in entries], tombstones, made)
    for item in derived:
        if item.entry.state is not EntryState.ERASED:
            ways[item.entry.ref, item.entry.id] = "lineage"
    plain = [entry for key, entry in entries.items() if key not in made and ways[key] != "lineage"]
    return Reach(tx.head().seq, plain, tombstones, derived, ways)


def mentioning(tx: ReadTx, target: Target, known: Reach | None = None) -> Iterator[Entry]:
    """Entries with text that mention the words: of all, or of those a forget saw before and those written since."""
    assert target.mention is not None
    if known is None:
        yield from (entry for entry in all_entries(tx, target.ref) if _mentions(entry, target))
        return
    named = {key for key, way in known.ways.items() if way in ("mention", "lineage")}
    for event in each_event(tx, after=known.position):
        if event.entry_id is not None and "ref" in event.data:
            named.add((str(event.data["ref"]), event.entry_id))
        elif event.entry_id is not None:  # the event does not name its memory: look at every entry
            yield from (entry for entry in all_entries(tx, target.ref) if _mentions(entry, target))
            return
    for ref, entry_id in sorted(named):
        entry = _get(tx, ref, entry_id)
        if entry is not None and entry.state is not EntryState.ERASED and _mentions(entry, target):
            yield entry


def _mentions(entry: Entry, target: Target) -> bool:
    return target.mention is not None and target.covers(entry) and target.mention.occurs_in_entry(entry)


def all_entries(tx: ReadTx, ref: str | None) -> Iterator[Entry]:
    """Every entry with text, readable or not."""

    def read(cursor: str | None) -> Page[Entry]:
        with tx.within(ref):
            return tx.scan(_ALIVE, limit=_PAGE, cursor=cursor)

    return each(read)


def _get(tx: ReadTx, ref: str, entry_id: str) -> Entry | None:
    with tx.within(ref):
        return tx.get(entry_id, where=ANYTHING)


def _derived(
    tx: ReadTx, target: Target, entries: Sequence[Entry], tombstones: Sequence[Entry], made: set[tuple[str, str]]
) -> list[Derived]:
    found: list[Derived | None] = []
    hashes = _hashes(tx, target, entries)
    dreams: dict[str, set[str]] = {}
    for ref, entry_id in made:
        dreams.setdefault(ref, set()).add(entry_id)
    for ref, roots in sorted(ids_by_ref(entries, tombstones).items()):
        with tx.within(ref):
            ids = derived_from(tx, sorted(roots)) | dreams.get(ref, set())
            excluded = roots | ids
            for entry_id in sorted(ids):
                entry = tx.get(entry_id, where=ANYTHING)
                if entry is not None and entry.kind == FILE_KIND:
                    found.append(_file(tx, entry, excluded, target))
                elif entry is not None:
                    found.append(_traced(tx, entry, excluded, hashes, target))
    return [item for item in found if item is not None]


def ids_by_ref(*groups: Sequence[Entry]) -> dict[str, set[str]]:
    """The ids of entries, by memory."""
    found: dict[str, set[str]] = {}
    for entry in chain.from_iterable(groups):
        found.setdefault(entry.ref, set()).add(entry.id)
    return found


def _file(tx: ReadTx, entry: Entry, excluded: set[str], target: Target) -> Derived | None:
    """A version of a file goes whole when words of a forgotten entry are in it."""
    if entry.state is EntryState.ERASED or is_independent(tx, entry, excluded):
        return None
    return Derived(entry, None, None, (), (), frozenset(_sources(tx, entry, excluded)), {}, target.subject)


def is_independent(tx: ReadTx, entry: Entry, excluded: set[str]) -> bool:
    """Whether an entry is a version of a file that was made from earlier versions alone.

    Those may lack the words it has, and it theirs: it is judged by its own subject, tags and words.
    """
    if entry.kind != FILE_KIND:
        return False
    sources = (tx.get(name, where=ANYTHING) for name in _sources(tx, entry, excluded))
    return all(source is None or source.kind == FILE_KIND for source in sources)


def _sources(tx: ReadTx, entry: Entry, excluded: set[str]) -> list[str]:
    return [link.to_id for link in tx.links(entry.id, type="distilled-from") if link.to_id in excluded]


def _hashes(tx: ReadTx, target: Target, entries: Sequence[Entry]) -> frozenset[str]:
    """The hashes under which reports may know the subject. Older reports hashed it as it was spelled."""
    key = tx.log_key()
    spelled = {name for entry in entries for name in named_subjects(entry.subject, entry.tags)}
    own = {name: subject_hashes(key, name) for name in spelled}
    same = {name: hashes for name, hashes in own.items() if target.subject in hashes}
    return frozenset({target.subject, *(keyed_hash(key, name) for name in same), *chain(*same.values())})


def _traced(tx: ReadTx, entry: Entry, excluded: set[str], hashes: frozenset[str], target: Target) -> Derived | None:
    """Return the remainder of a derived entry. A source that is itself derived counts as its own sources."""
    report = find_report(tx, entry)
    checksum = report.checksum if report is not None else None
    archive = checksum if checksum and tx.load(ARCHIVE_SPACE, checksum) is not None else None
    if entry.state is EntryState.ERASED:
        return Derived(entry, report, archive, (), (), frozenset(), {}, target.subject) if archive else None
    remaining: dict[str, Entry] = {}
    traces: dict[str, SourceTrace] = {}
    forgotten: set[str] = set()
    lost: set[str] = set()
    edge, seen = [entry], {entry.id}
    while edge:
        at = edge.pop()
        own = report if at is entry else find_report(tx, at)
        if own is not None:
            forgotten |= {source for source, named in own.about.items() if not hashes.isdisjoint(named)}
            traces |= _source_traces(tx, own)
        for link in tx.links(at.id, type="distilled-from"):
            source = tx.get(link.to_id, where=ANYTHING)
            alive = source is not None and source.state is not EntryState.ERASED
            if link.to_id in excluded:
                forgotten.add(link.to_id)
                if source is not None and alive and source.attributes.get("dream") and source.id not in seen:
                    seen.add(source.id)
                    edge.append(source)
            elif source is not None and alive:
                remaining[source.id] = source  # also when it is about the subject, and only later than asked for
            else:
                lost.add(link.to_id)
    forgotten -= remaining.keys()
    kept = {source: traces[source] for source in remaining if source in traces}
    left = list(remaining.values())
    return Derived(entry, report, archive, left, sorted(lost - forgotten), frozenset(forgotten), kept, target.subject)


def _source_traces(tx: ReadTx, report: DreamReport) -> dict[str, SourceTrace]:
    """Return the sources of a dream and of the earlier dreams that it replaced, by id."""
    traces: dict[str, SourceTrace] = {}
    edge, seen = [report], {report.id}
    while edge:
        own = edge.pop()
        traces |= {trace.id: trace for trace in own.sources}
        for output_id in own.superseded:
            entry = tx.get(output_id, where=ANYTHING)
            earlier = find_report(tx, entry) if entry is not None else None
            if earlier is not None and earlier.id not in seen:
                seen.add(earlier.id)
                edge.append(earlier)
    return traces
